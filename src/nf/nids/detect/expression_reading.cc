// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/expression_reading.h"

namespace penstock::nids {

using Instruction = ExpressionAutomaton::Instruction;

ExpressionReader::ExpressionReader() : steps_(kMostSteps) {}

void ExpressionReader::start(const ExpressionAutomaton& expression, std::size_t begin, bool begins_line) noexcept {
  expression_ = &expression;
  begin_ = at_ = begin;
  begins_line_ = begins_line;
  step_count_ = place_begin_ = place_end_ = 0;
  has_match_ = false;
  work_ = expression.instructions().size();
  std::fill_n(visited_.begin(), expression.instructions().size(), 0);
}

bool ExpressionReader::next_match(const ContestedText& text, const ContestedText::Reading& reading) noexcept {
  constexpr std::uint64_t kWorkOfPlace = 16;
  while (at_ <= text.size()) {
    has_match_ = false;
    const std::size_t first = step_count_;
    for (std::size_t i = place_begin_; i < place_end_; ++i) {
      follow(static_cast<std::uint16_t>(steps_[i].instruction + 1U), static_cast<std::uint32_t>(i), text, reading);
    }
    if (at_ == begin_ || !expression_->is_anchored()) follow(0, kNone, text, reading);
    place_begin_ = first;
    place_end_ = step_count_;
    ++at_;
    work_ += kWorkOfPlace;
    if (has_match_) return true;
    if (step_count_ + ExpressionAutomaton::kMostInstructions > kMostSteps) return false;
  }
  return false;
}

/// Follows all transitions that consume no byte.
void ExpressionReader::follow(std::uint16_t instruction, std::uint32_t before, const ContestedText& text,
                              const ContestedText::Reading& reading) noexcept {
  constexpr std::uint64_t kWorkOfInstruction = 8;
  const auto instructions = expression_->instructions();
  const auto now = static_cast<std::uint32_t>(at_ + 1);
  std::size_t waiting = 0;
  waiting_[waiting++] = instruction;
  while (waiting > 0) {
    const std::uint16_t here = waiting_[--waiting];
    if (visited_[here] == now) continue;
    visited_[here] = now;
    work_ += kWorkOfInstruction;
    const Instruction& it = instructions[here];
    const auto next = static_cast<std::uint16_t>(here + 1U);
    switch (it.kind) {
      case Instruction::Kind::bytes:
        if (at_ < text.size() && takes(it.first, text, reading)) steps_[step_count_++] = {before, here};
        break;
      case Instruction::Kind::split:
        waiting_[waiting++] = it.second;
        waiting_[waiting++] = it.first;
        break;
      case Instruction::Kind::begin:
        if (at_ == begin_ && begins_line_) waiting_[waiting++] = next;
        break;
      case Instruction::Kind::end:
        if (at_ + 1 >= text.size()) waiting_[waiting++] = next;
        break;
      case Instruction::Kind::match:
        has_match_ = true;
        match_ = before;
        break;
    }
  }
}

bool ExpressionReader::takes(std::uint16_t set, const ContestedText& text,
                             const ContestedText::Reading& reading) const noexcept {
  const ExpressionAutomaton::ByteSet& bytes = expression_->byte_set(set);
  if (bytes[reading.bytes()[at_]]) return true;
  return !reading.laid(at_) && text.may_be_of(at_, bytes);
}

bool ExpressionReader::choose(const ContestedText& text, ContestedText::Reading& reading) const noexcept {
  bool is_contested = false;
  std::size_t place = at_ - 1;  // next_match() has already advanced
  for (std::uint32_t i = match_; i != kNone; i = steps_[i].before) {
    --place;
    if (!text.contested(place) || reading.laid(place)) continue;
    is_contested = true;
    const auto& bytes = expression_->byte_set(expression_->instructions()[steps_[i].instruction].first);
    if (bytes[text.bytes()[place]]) continue;
    bool chosen = false;
    text.for_each_byte(place, [&](std::uint8_t byte) {
      if (!chosen && bytes[byte]) reading.choose(place, byte);
      chosen = chosen || bytes[byte];
    });
  }
  return is_contested;
}

void ExpressionReader::restore(const ContestedText& text, ContestedText::Reading& reading) const noexcept {
  std::size_t place = at_ - 1;
  for (std::uint32_t i = match_; i != kNone; i = steps_[i].before) {
    --place;
    if (text.contested(place) && !reading.laid(place)) reading.choose(place, text.bytes()[place]);
  }
}

}  // namespace penstock::nids
