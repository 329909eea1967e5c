// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Evaluates byte options by trying every position: slow, exhaustive, and with no code in common with BufferProgram
// except the options themselves. If BufferProgram matches a buffer, so must this. The reverse only holds if what
// Suricata does not try again cannot help. This finds matches that Suricata gives up:
// - after a content or pcre that nothing is relative to, if the option that failed has no position of its own: in
// payloads
//   an option between them hides the one from the other, and everywhere a negated content or pcre does;
// - at an isdataat with a constant, which could hold at another match of a pcre or byte_jump before it;
// - at a content whose offset is a variable, because other values of the variable are not tried.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "nf/nids/detect/content_search.h"
#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

class NaiveInspection {
 public:
  NaiveInspection(Buffer kind, std::span<const BufferMatch> matches, std::span<const std::uint8_t> buffer)
      : buffer_(buffer), size_(static_cast<std::int64_t>(buffer.size())) {
    for (const BufferMatch& match : matches) {
      if (Content* const content = ended_by(kind, match)) {
        content->ends_with = true;
      } else {
        matches_.push_back(match);
      }
    }
  }

  [[nodiscard]] bool matches() const { return from(0, {}); }

 private:
  struct State {
    std::int64_t position = 0;
    std::array<std::uint64_t, 8> variables{};
  };

  /// `isdataat:!1,relative` means that the content it is relative to must end the buffer; it becomes a part of that
  /// content. In payloads this is the previous option, elsewhere the last content or pcre.
  [[nodiscard]] Content* ended_by(Buffer kind, const BufferMatch& match) {
    const auto* const option = std::get_if<IsDataAt>(&match);
    if (option == nullptr || !option->relative || !option->negated || option->position.variable >= 0 ||
        option->position.value != 1) {
      return nullptr;
    }
    for (auto before = matches_.rbegin(); before != matches_.rend(); ++before) {
      if (std::holds_alternative<Bsize>(*before)) continue;
      const bool pattern = std::holds_alternative<Content>(*before) || std::holds_alternative<Pcre>(*before);
      if (pattern || kind == Buffer::payload) return std::get_if<Content>(&*before);
    }
    return nullptr;
  }

  [[nodiscard]] bool from(std::size_t index, State state) const {
    if (index == matches_.size()) return true;
    return std::visit([&](const auto& option) { return option_from(option, index, state); }, matches_[index]);
  }

  [[nodiscard]] static std::uint64_t value(const Number& number, const State& state) {
    return number.variable < 0 ? static_cast<std::uint64_t>(number.value)
                               : state.variables.at(static_cast<std::size_t>(number.variable));
  }
  /// Positions are 32-bit numbers, whatever a variable holds.
  [[nodiscard]] static std::int64_t place_value(const Number& number, const State& state) {
    return static_cast<std::int64_t>(value(number, state) & 0xffffffff);
  }
  [[nodiscard]] static std::int64_t signed_value(const Number& number, const State& state) {
    return static_cast<std::int64_t>(value(number, state));
  }

  [[nodiscard]] bool is_at(const Content& content, std::int64_t begin) const {
    for (std::size_t i = 0; i < content.bytes.size(); ++i) {
      const std::uint8_t a = buffer_[static_cast<std::size_t>(begin) + i], b = content.bytes[i];
      if (content.nocase ? to_lower(a) != to_lower(b) : a != b) return false;
    }
    return true;
  }

  /// First byte, and end, of the window in which a content must lie.
  [[nodiscard]] std::array<std::int64_t, 2> window(const Content& content, const State& state) const {
    std::int64_t begin = 0, end = size_;
    if (content.distance || content.within) {
      const std::int64_t distance =
          content.distance ? static_cast<std::int32_t>(place_value(*content.distance, state)) : 0;
      begin = std::max<std::int64_t>(0, state.position + distance);
      if (content.within) {
        const auto limit = static_cast<std::int32_t>(state.position + distance + place_value(*content.within, state));
        if (limit >= 0) end = std::min<std::int64_t>(end, limit);
      }
    } else {
      if (content.offset) begin = place_value(*content.offset, state);
      if (content.depth) end = std::min(end, begin + place_value(*content.depth, state));
      if (content.starts_with && !content.depth) end = std::min<std::int64_t>(end, std::ssize(content.bytes));
    }
    return {begin, end};
  }

  [[nodiscard]] bool option_from(const Content& content, std::size_t index, const State& state) const {
    const auto [begin, end] = window(content, state);
    const std::int64_t length = std::ssize(content.bytes);
    for (std::int64_t place = begin; place + length <= end; ++place) {
      if (!is_at(content, place)) continue;
      if (content.negated) {
        // Only the first match counts, and its end is measured from the start of the window.
        if (content.ends_with && (end < size_ || place + length != end - begin)) return from(index + 1, state);
        return false;
      }
      if (content.ends_with && place + length != size_) continue;
      State then = state;
      then.position = place + length;
      if (from(index + 1, then)) return true;
    }
    return content.negated && from(index + 1, state);
  }

  [[nodiscard]] bool option_from(const Pcre& pcre, std::size_t index, const State& state) const {
    const std::regex regex(pcre.pattern);
    const auto* const text = reinterpret_cast<const char*>(buffer_.data());
    for (std::int64_t begin = pcre.relative ? state.position : 0; begin <= size_; ++begin) {
      std::cmatch match;
      if (!std::regex_search(text + begin, text + size_, match, regex, std::regex_constants::match_continuous))
        continue;
      if (pcre.negated) return false;
      State then = state;
      then.position = begin + match.length();
      if (from(index + 1, then)) return true;
    }
    return pcre.negated && from(index + 1, state);
  }

  [[nodiscard]] bool option_from(const IsDataAt& option, std::size_t index, const State& state) const {
    const std::uint64_t at = value(option.position, state), size = buffer_.size();
    const bool there = option.relative ? at <= size - static_cast<std::uint64_t>(state.position) : at < size;
    return there != option.negated && from(index + 1, state);
  }

  struct Found {
    std::uint64_t value;
    std::int64_t begin, end;
  };
  template <typename Option>
  [[nodiscard]] std::optional<Found> number(const Option& option, std::int64_t bytes, std::int64_t offset,
                                            const State& state) const {
    const std::int64_t begin = (option.relative ? state.position : 0) + offset;
    if (begin < 0 || begin + bytes > size_ || begin >= size_) return std::nullopt;
    if (option.text != NumberText::none) {
      const std::string text(reinterpret_cast<const char*>(buffer_.data()) + begin, static_cast<std::size_t>(bytes));
      char* stop = nullptr;
      const int base = option.text == NumberText::decimal ? 10 : option.text == NumberText::octal ? 8 : 16;
      const std::uint64_t value = std::strtoull(text.c_str(), &stop, base);
      if (stop == text.c_str()) return std::nullopt;
      return Found{value, begin, begin + (stop - text.c_str())};
    }
    std::uint64_t value = 0, weight = 1;
    for (std::int64_t i = 0; i < bytes; ++i, weight *= 256) {
      const std::int64_t at = option.order == ByteOrder::little ? begin + i : begin + bytes - 1 - i;
      value += weight * buffer_[static_cast<std::size_t>(at)];
    }
    return Found{value, begin, begin + bytes};
  }

  [[nodiscard]] static std::uint64_t masked(std::uint64_t value, std::uint32_t mask) {
    if (mask == 0) return value;
    value &= mask;
    for (; mask % 2 == 0; mask /= 2) value /= 2;
    return value;
  }

  [[nodiscard]] bool option_from(const ByteTest& option, std::size_t index, const State& state) const {
    const auto found = number(option, signed_value(option.bytes, state), signed_value(option.offset, state), state);
    if (!found) return false;
    const std::uint64_t a = masked(found->value, option.bitmask), b = value(option.value, state);
    const std::array<bool, 7> outcomes{a<b, a> b, a == b, a <= b, a >= b, (a & b) != 0, a != b};
    return outcomes.at(static_cast<std::size_t>(option.operation)) != option.negated && from(index + 1, state);
  }

  [[nodiscard]] bool option_from(const ByteJump& option, std::size_t index, State state) const {
    const auto found = number(option, signed_value(option.bytes, state), signed_value(option.offset, state), state);
    if (!found) return false;
    std::uint64_t jump = masked(found->value, option.bitmask) * option.multiplier;
    while (option.align && jump % 4 != 0) ++jump;
    const std::int64_t base = option.from_beginning ? 0 : option.from_end ? size_ : found->end;
    state.position = base + static_cast<std::int64_t>(jump) + signed_value(option.post_offset, state);
    if (state.position >= size_) return false;
    state.position = std::max<std::int64_t>(state.position, 0);
    return from(index + 1, state);
  }

  [[nodiscard]] bool option_from(const ByteExtract& option, std::size_t index, State state) const {
    const auto found = number(option, option.bytes, option.offset, state);
    if (!found) return false;
    std::uint64_t result = found->value * option.multiplier;
    while (option.align != 0 && result % option.align != 0) ++result;
    state.position = found->end;
    state.variables.at(static_cast<std::size_t>(option.variable)) = result;
    return from(index + 1, state);
  }

  [[nodiscard]] bool option_from(const ByteMath& option, std::size_t index, State state) const {
    const auto found = number(option, signed_value(option.bytes, state), signed_value(option.offset, state), state);
    if (!found) return false;
    const std::uint64_t a = found->value, b = value(option.value, state);
    std::uint64_t result = 0;
    switch (option.operation) {
      case ByteMath::Operator::add: result = a + b; break;
      case ByteMath::Operator::subtract: result = a - b; break;
      case ByteMath::Operator::multiply: result = a * b; break;
      case ByteMath::Operator::divide:
        if (b == 0) return false;
        result = a / b;
        break;
      case ByteMath::Operator::shift_left: result = b >= 64 ? 0 : a << b; break;
      case ByteMath::Operator::shift_right: result = b >= 64 ? 0 : a >> b; break;
    }
    state.position = found->end;
    state.variables.at(static_cast<std::size_t>(option.variable)) = masked(result, option.bitmask);
    return from(index + 1, state);
  }

  [[nodiscard]] bool option_from(const Base64Decode&, std::size_t, const State&) const { return false; }

  [[nodiscard]] bool option_from(const Bsize& option, std::size_t index, const State& state) const {
    return option.range.operation == NumberRange::Operator::equal && option.range.first == buffer_.size() &&
           from(index + 1, state);
  }

  std::vector<BufferMatch> matches_;
  std::span<const std::uint8_t> buffer_;
  std::int64_t size_;
};

}  // namespace penstock::nids
