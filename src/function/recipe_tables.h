// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How functions write their tables into recipes, and read them from recipes that others may have made. Arrays become
// tables in a fixed order. A function lists its arrays once, for both directions:
//
//     template <typename Use> void each_array(Use& use) { use(entries); use(conditions); … }   // std::span<const T>
//
// Only types without padding go into recipes, so that no stray bytes of this process leave it. Types of arguments have
// no `bool`, and arrays with `bool` need is_bool() for each: other values than 0 and 1 have no meaning.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/wipe.h"
#include "function/stage_recipe.h"

namespace penstock::function {

/// A recipe that a kernel cannot be given: "recipe of router: hop 7 leads out of its table: found 9, expected …".
[[nodiscard]] inline tl::unexpected<Errors> refused(const StageRecipe& recipe, std::string_view what,
                                                    std::string found = {}, std::string expected = {}) {
  // The name comes from the list of kernels: a recipe gets only to the kernel that it names.
  return failure(
      Error{{}, "recipe of " + recipe.kernel + ": " + std::string(what), std::move(found), std::move(expected)});
}

template <typename T>
[[nodiscard]] std::vector<std::byte> bytes_of(std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::span<const std::byte> bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

/// A table that is zeroed before its memory is given back, for keys.
[[nodiscard]] inline TableBytes secret_table(std::vector<std::byte> bytes) {
  return {new std::vector<std::byte>(std::move(bytes)), [](const std::vector<std::byte>* table) {
            // It was not created as const.
            auto* const own = const_cast<std::vector<std::byte>*>(table);
            wipe(own->data(), own->size());
            delete own;
          }};
}

/// Adds arrays to a recipe, in their order.
class TableWriter {
 public:
  explicit TableWriter(StageRecipe& recipe) : recipe_(recipe) {}
  template <typename T>
  void operator()(std::span<const T> values) {
    static_assert(std::has_unique_object_representations_v<T>);  // no padding
    recipe_.tables.push_back(std::make_shared<const std::vector<std::byte>>(bytes_of(values)));
  }

 private:
  StageRecipe& recipe_;
};

/// Finds arrays in a recipe, in their order. Borrows them. What is wrong with one is known at the end.
class TableReader {
 public:
  /// Where the memory of tables begins, as that of all vectors does.
  static constexpr std::size_t kAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

  explicit TableReader(const StageRecipe& recipe) : recipe_(recipe) {}
  template <typename T>
  void operator()(std::span<const T>& values) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    values = {};
    const std::size_t at = next_++;
    if (at >= recipe_.tables.size()) return;
    const TableBytes& table = recipe_.tables[at];
    const bool whole = table != nullptr && table->size() % sizeof(T) == 0 &&
                       reinterpret_cast<std::uintptr_t>(table->data()) % alignof(T) == 0;
    if (whole) {
      values = {reinterpret_cast<const T*>(table->data()), table->size() / sizeof(T)};
    } else if (wrong_ == kNone) {
      wrong_ = at;
    }
  }
  /// Whether all tables were there, whole, and no more.
  [[nodiscard]] Result<void> end() const {
    if (next_ != recipe_.tables.size()) {
      return refused(recipe_, "wrong number of tables", std::to_string(recipe_.tables.size()), std::to_string(next_));
    }
    if (wrong_ != kNone) return refused(recipe_, "table " + std::to_string(wrong_) + " has no whole number of entries");
    return {};
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  const StageRecipe& recipe_;
  std::size_t next_ = 0;
  std::size_t wrong_ = kNone;
};

template <typename Arguments>
concept RecipeArguments =
    std::is_trivially_copyable_v<Arguments> && std::has_unique_object_representations_v<Arguments>;

template <RecipeArguments Arguments>
[[nodiscard]] std::vector<std::byte> bytes_of_arguments(const Arguments& arguments) {
  return bytes_of(std::span(&arguments, 1));
}
template <RecipeArguments Arguments>
[[nodiscard]] Result<Arguments> read_arguments(const StageRecipe& recipe) {
  Arguments arguments;
  if (recipe.arguments.size() != sizeof(arguments)) {
    return refused(recipe, "arguments of a wrong length", std::to_string(recipe.arguments.size()) + " bytes",
                   std::to_string(sizeof(arguments)));
  }
  std::memcpy(&arguments, recipe.arguments.data(), sizeof(arguments));
  return arguments;
}

/// Whether this `bool`, which may come from another process, is one.
[[nodiscard]] inline bool is_bool(const bool& value) noexcept {
  unsigned char byte = 0;
  std::memcpy(&byte, &value, sizeof(byte));
  return byte <= 1;
}

}  // namespace penstock::function
