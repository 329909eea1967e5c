// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"

namespace penstock::firewall::nftables {

namespace {

using Visit = std::function<bool(std::size_t, const std::string&, const Json&)>;

constexpr std::string_view kExpected = "{\"nftables\": […]}, as `nft -j list ruleset` prints it";

/// Builds one object of the array at a time, and hands it over when it ends.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::string& file, std::size_t most_values, const Visit& visit)
      : text_(text), file_(file), most_values_(most_values), visit_(visit) {}

  [[nodiscard]] std::optional<Error>& error() noexcept { return error_; }
  [[nodiscard]] bool is_complete() const noexcept { return complete_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return add(nullptr); }  // not in JSON text
  bool start_object(std::size_t) override {
    if (frame_ == 0) return ++frame_ != 0;
    return open(Json::object());
  }
  bool start_array(std::size_t) override {
    if (frame_ == 1) return ++frame_ != 0;
    return open(Json::array());
  }
  bool end_object() override {
    if (!open_.empty()) return close();
    --frame_;
    return complete_ = true;
  }
  bool end_array() override {
    if (!open_.empty()) return close();
    --frame_;
    return true;
  }
  bool key(string_t& name) override {
    if (frame_ < 2) {
      if (name == "nftables" && !std::exchange(has_array_, true)) return true;
      return refuse({{file_, 0, 0}, "wrong member of the outermost object", in_quotes(name), std::string(kExpected)});
    }
    if (open_.back()->contains(name)) {
      return refuse({{file_, 0, 0}, fmt::format("nftables[{}]: key given twice", index_), in_quotes(name), "once"});
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception&) override {
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    const auto line = static_cast<std::uint32_t>(1 + std::ranges::count(before, '\n'));
    const auto column = static_cast<std::uint32_t>(before.size() - (before.rfind('\n') + 1));
    const bool ended = position > text_.size();
    return refuse({{file_, line, std::max(column, 1U)},
                   ended ? "the file ends in the middle of a value" : "not valid JSON",
                   ended ? "" : in_quotes(token),
                   std::string(kExpected)});
  }

 private:
  bool refuse(Error error) {
    if (!error_) error_ = std::move(error);
    return false;
  }

  /// Puts a value into the innermost open one. Null if it is refused.
  Json* put(Json value) {
    if (open_.empty() && (frame_ < 2 || !value.is_object())) {
      refuse({{file_, 0, 0},
              frame_ < 2 ? "not a rule set of nftables" : fmt::format("nftables[{}]: not an object", index_),
              value.is_structured() ? "" : in_quotes(value.dump()),
              std::string(kExpected)});
      return nullptr;
    }
    if (++values_ > most_values_) {
      const std::string most = format_count(most_values_);
      refuse({{file_, 0, 0},
              fmt::format("nftables[{}]: too many values in an object", index_),
              fmt::format("more than {}", most),
              fmt::format("at most {} (most_rules raises it)", most)});
      return nullptr;
    }
    if (open_.empty()) return &(object_ = std::move(value));
    Json& outer = *open_.back();
    if (outer.is_array()) {
      outer.push_back(std::move(value));
      return &outer.back();
    }
    return &(outer[key_] = std::move(value));
  }

  bool add(Json value) { return put(std::move(value)) != nullptr; }

  bool open(Json value) {
    if (open_.size() == kMostNesting) {
      return refuse({{file_, 0, 0},
                     fmt::format("nftables[{}]: values nested too deeply", index_),
                     fmt::format("more than {} levels", kMostNesting),
                     fmt::format("at most {}", kMostNesting)});
    }
    Json* const added = put(std::move(value));
    if (added == nullptr) return false;
    open_.push_back(added);
    return true;
  }

  bool close() {
    open_.pop_back();
    if (!open_.empty()) return true;
    values_ = 0;
    if (object_.size() != 1) {
      return refuse({{file_, 0, 0},
                     fmt::format("nftables[{}]: object of {} members", index_, object_.size()),
                     "",
                     "one member, such as \"rule\""});
    }
    const auto member = object_.begin();
    if (!visit_(index_, member.key(), member.value())) return false;
    ++index_;
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  const std::size_t most_values_;
  const Visit& visit_;
  std::optional<Error> error_;
  unsigned frame_ = 0;  // how much of {"nftables": [ is open
  bool has_array_ = false;
  bool complete_ = false;
  std::size_t index_ = 0;
  std::size_t values_ = 0;
  Json object_;
  std::vector<Json*> open_;  // the values of object_ that are open, from the outermost
  std::string key_;
};

}  // namespace

bool is_json(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

std::string json_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string_view text_of(const Json& value, const char* member) {
  const auto found = value.find(member);
  if (found == value.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

Result<void> visit_objects(std::string_view text, const std::string& file, std::size_t most_values,
                           const Visit& visit) {
  Builder builder(text, file, most_values, visit);
  // False also if `visit` has stopped it.
  const bool parsed = Json::sax_parse(text, &builder);
  if (builder.error()) return failure(std::move(*builder.error()));
  if (parsed && !builder.is_complete()) {
    return failure({{file, 0, 0}, "not a rule set of nftables", "", std::string(kExpected)});
  }
  return {};
}

}  // namespace penstock::firewall::nftables
