// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Multi-pattern matching: finds which of many literals occur in a text. One interface for all engines: Hyperscan, the
// Aho-Corasick automaton, the hashed filter.

#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock::nids {

/// A byte string to search for; `nocase`: ASCII letters match in either case.
struct Literal {
  std::vector<std::uint8_t> bytes;  // at least one
  bool nocase = false;

  friend bool operator==(const Literal&, const Literal&) = default;
  friend std::strong_ordering operator<=>(const Literal& a, const Literal& b) noexcept {
    const auto order = a.text() <=> b.text();
    return order != 0 ? order : a.nocase <=> b.nocase;
  }

 private:
  /// As text, because GCC 12 warns about comparisons of vectors.
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

/// The set of literals found, by index, each once and in the order of discovery. Memory for all is allocated once.
class LiteralSet {
 public:
  explicit LiteralSet(std::size_t literals) : found_((literals + 63) / 64) { list_.reserve(literals); }

  void add(std::uint32_t literal) noexcept {
    std::uint64_t& word = found_[literal / 64];
    const std::uint64_t bit = std::uint64_t{1} << (literal % 64);
    if ((word & bit) != 0) return;
    word |= bit;
    list_.push_back(literal);
  }
  void clear() noexcept {
    for (const std::uint32_t literal : list_) found_[literal / 64] = 0;
    list_.clear();
  }
  [[nodiscard]] std::span<const std::uint32_t> list() const noexcept { return list_; }

 private:
  std::vector<std::uint64_t> found_;
  std::vector<std::uint32_t> list_;
};

/// Immutable; shared by all workers.
class PatternMatcher {
 public:
  virtual ~PatternMatcher() = default;

  /// A worker's state for scanning with one matcher.
  class Scratch {
   public:
    virtual ~Scratch() = default;
  };
  /// Null if the matcher needs none.
  [[nodiscard]] virtual std::unique_ptr<Scratch> make_scratch() const = 0;
  /// Adds to `found` every literal that occurs in the text.
  virtual void scan(std::span<const std::uint8_t> text, Scratch* scratch, LiteralSet& found) const noexcept = 0;
  /// "Hyperscan, 147 literals, 120 KiB".
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
};

enum class MatcherKind : std::uint8_t { hyperscan, aho_corasick, hashed_filter };

[[nodiscard]] Result<std::unique_ptr<PatternMatcher>> make_pattern_matcher(MatcherKind kind,
                                                                           std::span<const Literal> literals);

}  // namespace penstock::nids
