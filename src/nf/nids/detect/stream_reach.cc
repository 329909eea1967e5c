// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/stream_reach.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "nf/nids/detect/expression_facts.h"

namespace penstock::nids {

namespace {

constexpr std::int64_t kMostNumberText = 23;  // the longest number in text form

/// Reads a rule's options in their order.
class Reach {
 public:
  /// False if the option can only be tested from the stream's first byte on. Others with positions that count from
  /// there can be tested anywhere, because the program gets the number of bytes before.
  bool add(const Content& content) {
    const bool relative = content.distance || content.within;
    const bool from_start = content.offset || content.depth || content.starts_with;
    has_places_ = has_places_ || from_start;
    if (relative && !placed_) return false;
    if (from_start && (content.negated || relative || !is_fixed(content.offset) || !is_fixed(content.depth)))
      return false;
    if (content.negated) {
      if (!relative)
        bounded_ = false;  // the more preceding bytes are inspected, the more certain it is that it is
                           // absent
      return true;
    }
    const auto length = static_cast<std::int64_t>(content.bytes.size());
    lengths_ += length;
    if (!placed_) {
      span_ += length;
    } else if (content.within && is_fixed(content.within) && is_fixed(content.distance)) {
      const std::int64_t distance = content.distance ? content.distance->value : 0;
      span_ += std::max<std::int64_t>(0, content.within->value + distance) + std::max<std::int64_t>(0, -distance);
    } else {
      bounded_ = false;
    }
    placed_ = true;
    return true;
  }

  /// The program handles other `^`: it knows whether bytes came before.
  bool add(const Pcre& pcre) {
    const auto longest = pcre.of == Pcre::Of::buffer && !pcre.negated ? facts_of(pcre).longest : std::nullopt;
    if (longest && !placed_) {
      span_ += *longest;
    } else {
      bounded_ = false;
    }
    if (pcre.of == Pcre::Of::buffer) {
      const std::string_view pattern = pcre.pattern;
      const bool at_start = pcre.anchored || pattern.find("\\A") != pattern.npos || pattern.find("\\G") != pattern.npos;
      const bool of_first_line = !pcre.multiline && !pcre.negated && pattern.starts_with('^');
      if (pcre.relative ? !placed_ : at_start || of_first_line) return false;
    }
    if (!pcre.negated) placed_ = true;
    return true;
  }

  bool add(const IsDataAt& option) {
    return add_near(option, option.position, option.negated ? 0 : option.position.value) &&
           (option.relative || !option.negated);
  }
  bool add(const ByteTest& option) { return add_near(option, option.offset, option.offset.value + kMostNumberText); }
  bool add(const ByteExtract& option) { return add_near(option, {}, std::int64_t{option.offset} + option.bytes); }
  bool add(const ByteMath& option) { return add_near(option, option.offset, option.offset.value + kMostNumberText); }
  bool add(const ByteJump& option) {
    bounded_ = false;
    has_places_ = has_places_ || !option.relative || option.from_beginning;
    return (!option.relative || placed_) && !option.from_end;
  }
  bool add(const Base64Decode& option) {
    bounded_ = false;
    return option.relative && placed_;
  }
  bool add(const Bsize& /*of all there is*/) { return false; }

  [[nodiscard]] StreamReach reach() const noexcept {
    if (!placed_) return {.from_start = true};
    const std::int64_t most = std::max<std::int64_t>(kMostStreamReach, lengths_);
    const std::int64_t bytes = bounded_ ? std::clamp<std::int64_t>(span_ - 1, 0, most) : most;
    return {.bytes = static_cast<std::uint32_t>(bytes), .has_places = has_places_};
  }

 private:
  [[nodiscard]] static bool is_fixed(const std::optional<Number>& number) noexcept {
    return !number || number->variable < 0;
  }
  template <typename Option>
  bool add_near(const Option& option, const Number& place, std::int64_t ends) {
    has_places_ = has_places_ || !option.relative;
    if (place.variable >= 0 || !option.relative) bounded_ = false;  // an absolute position is not near any option
    span_ += std::max<std::int64_t>(0, ends);
    return !option.relative || placed_;
  }

  bool placed_ = false;  // an earlier match gives a position
  bool bounded_ = true;
  bool has_places_ = false;
  std::int64_t span_ = 0, lengths_ = 0;
};

}  // namespace

StreamReach stream_reach(std::span<const BufferMatch> payload) noexcept {
  Reach reach;
  for (const BufferMatch& match : payload) {
    if (!std::visit([&](const auto& option) { return reach.add(option); }, match)) return {.from_start = true};
  }
  return reach.reach();
}

}  // namespace penstock::nids
