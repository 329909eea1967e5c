// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/stream_reach.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "nf/nids/detect/expression_facts.h"

namespace penstock::nids {

namespace {

constexpr std::int64_t kMostNumberText = 23;  // what a number in text takes, at most

/// Reads a rule's options in their order.
class Reach {
 public:
  /// False: the option counts from the buffer's start.
  bool add(const Content& content) {
    const bool relative = content.distance || content.within;
    if (content.depth || content.starts_with || (relative && !placed_)) return false;
    // Whoever runs it knows how many bytes came before: an offset is as far from the stream's first byte everywhere.
    if (content.offset && (content.negated || relative || !is_fixed(content.offset))) return false;
    if (content.negated) {
      if (!relative) bounded_ = false;  // the more of the bytes before is looked at, the surer that it is not there
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

  /// Other `^` are for who runs it: he knows whether bytes came before.
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
    if (!option.relative && !option.negated && is_fixed(option.position)) return true;  // as an offset
    return add_near(option, option.position, option.negated ? 0 : option.position.value);
  }
  bool add(const ByteTest& option) { return add_near(option, option.offset, option.offset.value + kMostNumberText); }
  bool add(const ByteExtract& option) { return add_near(option, {}, std::int64_t{option.offset} + option.bytes); }
  bool add(const ByteMath& option) { return add_near(option, option.offset, option.offset.value + kMostNumberText); }
  bool add(const ByteJump& option) {
    bounded_ = false;
    return option.relative && placed_ && !option.from_beginning && !option.from_end;
  }
  bool add(const Base64Decode& option) {
    bounded_ = false;
    return option.relative && placed_;
  }
  bool add(const Bsize& /*of all there is*/) { return false; }

  [[nodiscard]] std::uint32_t bytes() const noexcept {
    if (!placed_) return 0;
    const std::int64_t most = std::max<std::int64_t>(kMostStreamReach, lengths_);
    return static_cast<std::uint32_t>(bounded_ ? std::clamp<std::int64_t>(span_ - 1, 0, most) : most);
  }

 private:
  [[nodiscard]] static bool is_fixed(const std::optional<Number>& number) noexcept {
    return !number || number->variable < 0;
  }
  template <typename Option>
  bool add_near(const Option& option, const Number& place, std::int64_t ends) {
    if (place.variable >= 0) bounded_ = false;
    span_ += std::max<std::int64_t>(0, ends);
    return option.relative && placed_;
  }

  bool placed_ = false;  // a match before gives a place
  bool bounded_ = true;
  std::int64_t span_ = 0, lengths_ = 0;
};

}  // namespace

std::uint32_t stream_reach(std::span<const BufferMatch> payload) noexcept {
  Reach reach;
  for (const BufferMatch& match : payload) {
    if (!std::visit([&](const auto& option) { return reach.add(option); }, match)) return 0;
  }
  return reach.bytes();
}

}  // namespace penstock::nids
