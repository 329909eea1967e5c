// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/buffer_program.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "nf/nids/detect/base64.h"
#include "nf/nids/detect/byte_number.h"
#include "nf/nids/detect/content_search.h"
#include "nf/nids/detect/packet_test.h"
#include "nf/nids/detect/pcre_program.h"
#include "nf/nids/detect/request_target.h"

namespace penstock::nids {

namespace {

using Bytes = std::span<const std::uint8_t>;

// Suricata's detect.inspection-recursion-limit.
constexpr unsigned kMostSteps = 3000;
constexpr std::size_t kMostVariables = 256;
constexpr std::uint32_t kMostBase64 = 65535;        // decoded bytes
constexpr std::uint64_t kMostIsDataAt = 100000000;  // a variable above this is past all data
constexpr std::int64_t kMostBinary = 8, kMostText = 23, kMostMathBinary = 4, kMostMathText = 10;

/// A content with its numbers as they are used. Relative contents have `distance` or `within`.
struct ContentStep {
  ContentSearch search;
  bool negated = false, ends_with = false;
  bool relative = false;
  bool depth_moves = false;  // depth or offset is a variable: the depth counts from the offset
  bool fatal = false;        // negated, without position or relative option: if it is found, the rule cannot match
  // A later option is relative to this content, so another match of it may succeed where the first fails.
  bool tried_again = false;
  std::optional<Number> offset{}, depth{}, distance{}, within{};
};

struct PcreStep {
  PcreProgram program;
  bool negated = false;
  bool relative = false;
  bool tried_again = false;
};

/// An expression on the targets of HTTP requests.
struct TargetStep {
  PcreProgram program;
  bool negated = false;
  bool raw = false;
};
// Longer request targets are truncated.
constexpr std::size_t kMostTarget = 4096;

}  // namespace

struct InspectionScratch::Parts {
  explicit Parts(const InspectionBudget& given) : budget(given) {}

  std::array<std::uint64_t, kMostVariables> variables{};
  std::size_t variables_used = 0;
  std::size_t base64_bytes = 0;
  std::size_t match_end = 0;
  std::array<std::uint8_t, base64_capacity(kMostBase64)> base64{};
  std::array<std::uint8_t, kMostTarget> target{};
  const InspectionBudget budget;
  WorkAllowance work;  // the frame's
  bool frame_is_over_budget = false;
  PcreScratch pcre;
  std::shared_ptr<Counters> counters = std::make_shared<Counters>();

  void note_over_budget() noexcept {
    if (!frame_is_over_budget) ++counters->frames_over_budget;
    frame_is_over_budget = true;
  }
  [[nodiscard]] bool take(std::uint64_t some) noexcept {
    work.take(some);
    if (!work.is_over()) return true;
    note_over_budget();
    return false;
  }

  [[nodiscard]] std::uint64_t value_of(const Number& number) const noexcept {
    return number.variable < 0 ? static_cast<std::uint64_t>(number.value)
                               : variables[static_cast<std::size_t>(number.variable)];
  }
  void set(int variable, std::uint64_t value) noexcept {
    const auto index = static_cast<std::size_t>(variable);
    variables[index] = value;
    variables_used = std::max(variables_used, index + 1);
  }
};

InspectionScratch::InspectionScratch(const InspectionBudget& budget) : parts_(std::make_unique<Parts>(budget)) {
  begin_frame();
}
InspectionScratch::~InspectionScratch() = default;

void InspectionScratch::begin_frame() noexcept {
  parts_->frame_is_over_budget = false;
  parts_->work.begin(parts_->budget.work);
  parts_->pcre.begin_frame(parts_->budget.expressions);
}

void InspectionScratch::add_bytes(std::uint64_t bytes) noexcept {
  parts_->work.add(bytes * parts_->budget.work_per_byte);
  parts_->pcre.allow_frame(bytes * parts_->budget.expressions_per_byte);
}

bool InspectionScratch::take(std::uint64_t work) noexcept { return parts_->take(work); }

std::uint64_t InspectionScratch::work_left() const noexcept { return parts_->work.left() + parts_->pcre.frame_left(); }

void InspectionScratch::begin_rule() noexcept {
  std::fill_n(parts_->variables.begin(), parts_->variables_used, 0);
  parts_->variables_used = 0;
  parts_->base64_bytes = 0;
}

std::size_t InspectionScratch::match_end() const noexcept { return parts_->match_end; }

std::span<const std::uint8_t> InspectionScratch::base64() const noexcept {
  return {parts_->base64.data(), parts_->base64_bytes};
}

const InspectionScratch::Counters& InspectionScratch::counters() const noexcept { return *parts_->counters; }

void InspectionScratch::share_counters(InspectionScratch& other) noexcept { parts_->counters = other.parts_->counters; }

/// base64_decode, and base64_data's options if it runs them itself.
struct BufferProgram::Step {
  struct Base64 {
    Base64Decode decode;
    bool runs_data = false;
    std::vector<Step> data;
  };
  std::variant<ContentStep, PcreStep, IsDataAt, ByteTest, ByteJump, ByteExtract, ByteMath, Base64, Bsize, TargetStep>
      what;
};

/// Prepares options as Suricata does: determines which of them a later one is relative to.
class BufferProgram::Builder {
 public:
  explicit Builder(Buffer buffer) : buffer_(buffer) {}

  [[nodiscard]] Result<std::vector<Step>> build(std::span<const BufferMatch> matches,
                                                std::optional<std::span<const BufferMatch>> base64_data) {
    for (const BufferMatch& match : matches) {
      Errors errors = std::visit(
          [&](const auto& option) {
            check_variables(option);
            return add(option);
          },
          match);
      if (!errors.empty()) return failure(std::move(errors));
    }
    for (Step& step : steps_) {
      auto* const base64 = std::get_if<Step::Base64>(&step.what);
      if (base64 == nullptr || !base64_data) continue;
      base64->runs_data = true;
      auto data = Builder(Buffer::base64_data).build(*base64_data, std::span<const BufferMatch>{});
      if (!data) return tl::unexpected(std::move(data.error()));
      base64->data = std::move(*data);
    }
    if (bad_variable_) {
      return failure(Error{{}, "too many variables: at most " + std::to_string(kMostVariables) + " are kept", {}, {}});
    }
    return std::move(steps_);
  }

 private:
  Errors add(const Content& content) {
    if (content.bytes.empty()) return {Error{{}, "empty content", {}, {}}};
    ContentStep step{ContentSearch(content.bytes, content.nocase)};
    step.negated = content.negated;
    step.ends_with = content.ends_with;
    step.relative = content.distance || content.within;
    step.offset = content.offset;
    step.depth = content.depth;
    if (content.starts_with && !step.depth) step.depth = Number{static_cast<std::int64_t>(content.bytes.size())};
    step.distance = content.distance;
    step.within = content.within;
    step.depth_moves = is_variable(step.depth) || is_variable(step.offset);
    // A constant depth counts from the offset; make it count from the start.
    if (step.depth && !step.depth_moves && step.offset) step.depth->value += step.offset->value;
    if (step.relative) {
      // The previous option may have to match again further on. With only a distance, not negated, this is useless: its
      // first match leaves more room than all others.
      if (ContentStep* const last = last_of<ContentStep>(pattern_)) {
        last->tried_again = last->tried_again || content.within || content.negated;
        last->fatal = false;
      } else if (PcreStep* const regex = last_of<PcreStep>(pattern_)) {
        regex->tried_again = true;
      }
    }
    step.fatal = step.negated && !step.relative && !step.depth && !step.offset;
    push(std::move(step));
    pattern_ = position_ = static_cast<int>(steps_.size()) - 1;
    return {};
  }

  Errors add(const Pcre& pcre) {
    auto program = PcreProgram::compile(pcre);
    if (!program) return std::move(program.error());
    if (pcre.of != Pcre::Of::buffer) {
      push(TargetStep{std::move(*program), pcre.negated, pcre.of == Pcre::Of::raw_request_target});
      return {};
    }
    if (pcre.relative) followed_by_relative(pattern_);
    push(PcreStep{std::move(*program), pcre.negated, pcre.relative, false});
    pattern_ = position_ = static_cast<int>(steps_.size()) - 1;
    return {};
  }

  Errors add(const IsDataAt& option) {
    if (option.relative) {
      // "No data after a content" means that the content is at the end.
      ContentStep* const last = last_of<ContentStep>(before());
      if (last != nullptr && option.negated && option.position.variable < 0 && option.position.value == 1) {
        last->ends_with = true;
        return {};
      }
    }
    return add_positioned(option);
  }
  Errors add(const ByteTest& option) { return add_positioned(option); }
  Errors add(const ByteJump& option) { return add_positioned(option); }
  Errors add(const ByteExtract& option) { return add_positioned(option); }
  Errors add(const ByteMath& option) { return add_positioned(option); }
  Errors add(const Base64Decode& option) {
    push(Step::Base64{option, false, {}});
    return {};
  }
  Errors add(const Bsize& option) {
    push(option);
    return {};
  }

  template <typename Option>
  Errors add_positioned(const Option& option) {
    if (option.relative) followed_by_relative(before());
    push(option);
    position_ = static_cast<int>(steps_.size()) - 1;
    return {};
  }

  /// What a relative option on bytes follows: in payloads also these options themselves, so that a content before them
  /// is not tried again.
  [[nodiscard]] int before() const noexcept { return buffer_ == Buffer::payload ? position_ : pattern_; }

  void followed_by_relative(int index) {
    if (ContentStep* const content = last_of<ContentStep>(index)) {
      content->tried_again = true;
      content->fatal = false;
    } else if (PcreStep* const regex = last_of<PcreStep>(index)) {
      regex->tried_again = true;
    }
  }

  template <typename T>
  [[nodiscard]] T* last_of(int index) {
    return index < 0 ? nullptr : std::get_if<T>(&steps_[static_cast<std::size_t>(index)].what);
  }

  void push(auto what) { steps_.push_back(Step{std::move(what)}); }

  [[nodiscard]] static bool is_variable(const std::optional<Number>& number) { return number && number->variable >= 0; }

  void check(int variable) {
    if (variable >= static_cast<int>(kMostVariables)) bad_variable_ = true;
  }
  void check(const std::optional<Number>& number) {
    if (number) check(number->variable);
  }
  template <typename Option>
  void check_variables(const Option& option) {
    if constexpr (requires { option.variable; }) {
      check(option.variable);
      if (option.variable < 0) bad_variable_ = true;
    }
    if constexpr (requires { option.position; }) check(option.position);
    if constexpr (requires { option.within; }) {
      check(option.depth);
      check(option.distance);
      check(option.within);
    }
    if constexpr (requires { std::optional<Number>(option.offset); }) check(option.offset);
    if constexpr (requires { option.value.variable; }) check(option.value);
    if constexpr (requires { option.bytes.variable; }) check(option.bytes);
    if constexpr (requires { option.post_offset; }) check(option.post_offset);
  }

  Buffer buffer_;
  std::vector<Step> steps_;
  int pattern_ = -1;   // the last content or pcre
  int position_ = -1;  // the last content, pcre, isdataat, byte_test, byte_jump, byte_extract or byte_math
  bool bad_variable_ = false;
};

/// One rule's evaluation of one buffer. `position_` is the end of the last match.
class BufferProgram::Run {
 public:
  Run(InspectionScratch::Parts& scratch, std::size_t buffer_bytes, std::uint64_t before)
      : scratch_(scratch), before_(before) {
    const InspectionBudget& budget = scratch_.budget;
    scratch_.pcre.begin_rule(budget.rule_expressions + buffer_bytes * budget.rule_expressions_per_byte);
  }

  enum class Outcome : std::uint8_t { match, no_match, give_up /* nothing can match elsewhere */ };

  /// The end of what the options matched.
  [[nodiscard]] std::size_t match_end() const noexcept { return static_cast<std::size_t>(match_end_); }

  /// Runs the steps from `step` on. Recurses after a content or pcre that may be tried again, so the depth is bounded
  /// by the length of the rule.
  [[nodiscard]] Outcome inspect(const Step* step, const Step* end, Bytes buffer) noexcept {
    std::int64_t furthest = position_;  // end of what matched from here on
    const auto ended = [&](Outcome outcome) {
      if (outcome == Outcome::match) match_end_ = std::max(match_end_, furthest);
      return outcome;
    };
    for (;; ++step) {
      if (++steps_ == kMostSteps) {
        ++scratch_.counters->inspection_limits;
        return Outcome::give_up;
      }
      if (!scratch_.take(kWorkOfStep)) return Outcome::give_up;
      Outcome outcome = Outcome::match;
      switch (step->what.index()) {
        case 0: {
          const ContentStep& content = *std::get_if<ContentStep>(&step->what);
          if (!content.negated) return ended(inspect_content(content, step, end, buffer));
          outcome = holds_without(content, buffer);
          break;
        }
        case 1: {
          const PcreStep& regex = *std::get_if<PcreStep>(&step->what);
          if (regex.tried_again) return ended(inspect_pcre(regex, step, end, buffer));
          outcome = first_match(regex, buffer);
          break;
        }
        case 2: outcome = test(*std::get_if<IsDataAt>(&step->what), buffer); break;
        case 3: outcome = test(*std::get_if<ByteTest>(&step->what), buffer); break;
        case 4: outcome = test(*std::get_if<ByteJump>(&step->what), buffer); break;
        case 5: outcome = test(*std::get_if<ByteExtract>(&step->what), buffer); break;
        case 6: outcome = test(*std::get_if<ByteMath>(&step->what), buffer); break;
        case 7:
          // The options after it are not evaluated (in Suricata, base64_data ends the list).
          return ended(decode(*std::get_if<Step::Base64>(&step->what), buffer));
        case 9: outcome = test(*std::get_if<TargetStep>(&step->what), buffer); break;
        default:
          outcome = in_range(std::get_if<Bsize>(&step->what)->range, buffer.size()) ? Outcome::match : Outcome::give_up;
          break;
      }
      furthest = std::max(furthest, position_);
      if (outcome != Outcome::match || step + 1 == end) return ended(outcome);
    }
  }

 private:
  /// The range in which a content may lie.
  struct Window {
    std::int64_t begin = 0, end = 0;
    [[nodiscard]] bool holds_any() const noexcept { return begin <= end && end != 0; }
  };

  /// Suricata's 32-bit arithmetic: values of variables are truncated, and a `within` that ends before the start of the
  /// stream does not bound the match.
  [[nodiscard]] Window window_of(const ContentStep& content, std::int64_t size, std::int64_t position) const noexcept {
    Window window{0, size};
    const auto number = [&](const std::optional<Number>& of) -> std::int64_t {
      return static_cast<std::uint32_t>(scratch_.value_of(*of));
    };
    if (content.relative) {
      std::int64_t distance = 0;
      if (content.distance) distance = static_cast<std::int32_t>(number(content.distance));
      window.begin = std::max<std::int64_t>(0, position + distance);
      if (content.within) {
        const std::int64_t within = position + number(content.within) + distance;
        if (before_ != 0) {
          window.end = std::min(window.end, std::max<std::int64_t>(0, within));
        } else if (static_cast<std::int32_t>(within) >= 0) {
          window.end = std::min<std::int64_t>(window.end, static_cast<std::int32_t>(within));
        }
      }
      if (content.depth && number(content.depth) != 0) {
        window.end = std::min(window.end, position + number(content.depth));
      }
      if (content.offset) window.begin = std::max(window.begin, number(content.offset));
    } else {
      if (content.depth && (content.depth->variable >= 0 || content.depth->value != 0)) {
        window.end = number(content.depth);
        if (!content.depth_moves) window.end = std::max<std::int64_t>(0, window.end - places_before());
      }
      if (content.offset) window.begin = std::max<std::int64_t>(0, number(content.offset) - places_before());
    }
    if (content.depth_moves) window.end += window.begin;
    return window;
  }

  [[nodiscard]] Outcome inspect_content(const ContentStep& content, const Step* step, const Step* end,
                                        Bytes buffer) noexcept {
    const auto size = static_cast<std::int64_t>(buffer.size());
    Window window = window_of(content, size, position_);
    window.end = std::min(window.end, size);
    for (;;) {
      if (!window.holds_any()) return Outcome::no_match;
      const std::int64_t found = content.ends_with && window.end < size ? -1 : find(content, buffer, window);
      if (found < 0) return content.relative ? Outcome::no_match : Outcome::give_up;
      const auto match_end = found + static_cast<std::int64_t>(content.search.length());
      position_ = match_end;
      if (!content.ends_with || match_end == size) {
        const Outcome rest = rest_of(step, end, buffer);
        if (rest != Outcome::no_match) return rest;
        if (!content.tried_again) return Outcome::give_up;
      }
      if (scratch_.work.is_over()) return Outcome::give_up;
      window.begin = found + 1;
    }
  }

  /// Runs the steps after a content or pcre that has matched up to `position_`.
  [[nodiscard]] Outcome rest_of(const Step* step, const Step* end, Bytes buffer) noexcept {
    const std::int64_t position = position_;
    const Outcome rest = step + 1 == end ? Outcome::match : inspect(step + 1, end, buffer);
    if (rest == Outcome::match) match_end_ = std::max(match_end_, position);
    return rest;
  }

  [[nodiscard]] Outcome holds_without(const ContentStep& content, Bytes buffer) const noexcept {
    const auto size = static_cast<std::int64_t>(buffer.size());
    Window window = window_of(content, size, position_);
    window.end = std::min(window.end, size);
    if (!window.holds_any() || (content.ends_with && window.end < size)) return Outcome::match;
    const std::int64_t found = find(content, buffer, window);
    if (found < 0) return Outcome::match;
    // As in Suricata, only the first match is tested, and its end is compared with the length of the window.
    const auto match_end = found + static_cast<std::int64_t>(content.search.length());
    if (content.ends_with && match_end != window.end - window.begin) return Outcome::match;
    return content.fatal ? Outcome::give_up : Outcome::no_match;
  }

  [[nodiscard]] std::int64_t find(const ContentStep& content, Bytes buffer, const Window& window) const noexcept {
    const auto size = static_cast<std::size_t>(window.end - window.begin);
    std::uint64_t work = kWorkOfStep;
    const std::int64_t found = content.search.find(buffer.subspan(static_cast<std::size_t>(window.begin), size), work);
    scratch_.work.take(work + (found < 0 ? size : static_cast<std::uint64_t>(found)));
    return found < 0 ? found : window.begin + found;
  }

  /// It holds if it matches any of the targets.
  [[nodiscard]] Outcome test(const TargetStep& regex, Bytes buffer) noexcept {
    if (before_ != 0) {
      const auto line_end = std::find(buffer.begin(), buffer.end(), '\n');
      buffer = line_end == buffer.end() ? Bytes() : Bytes(line_end + 1, buffer.end());
    }
    scratch_.work.take(2 * buffer.size());  // lines are searched for, and their targets copied
    RequestTargets targets(buffer);
    for (RequestTargets::Target target; targets.next(target);) {
      const Bytes subject = regex.raw ? target.bytes : normal_target(target, scratch_.target);
      if (subject.empty()) continue;
      const PcreProgram::Match match = find(regex, subject, 0, true);
      const auto wanted = regex.negated ? PcreProgram::Outcome::no_match : PcreProgram::Outcome::match;
      if (match.outcome == wanted) return Outcome::match;
    }
    return Outcome::no_match;
  }

  template <typename PatternStep>
  [[nodiscard]] PcreProgram::Match find(const PatternStep& regex, Bytes subject, std::size_t from,
                                        bool begins_line) noexcept {
    const PcreProgram::Match match = regex.program.find(subject, from, scratch_.pcre, begins_line);
    if (match.outcome == PcreProgram::Outcome::failed && from <= subject.size()) {
      ++scratch_.counters->pcre_limits;
      if (scratch_.pcre.frame_is_over()) scratch_.note_over_budget();
    }
    return match;
  }

  /// Sets `position_` to the end of the match.
  [[nodiscard]] Outcome first_match(const PcreStep& regex, Bytes buffer) noexcept {
    const std::int64_t base = regex.relative ? position_ : 0;
    const Bytes subject = buffer.subspan(static_cast<std::size_t>(base));
    const PcreProgram::Match match = find(regex, subject, 0, regex.relative || before_ == 0);
    if (regex.negated) return match.outcome == PcreProgram::Outcome::no_match ? Outcome::match : Outcome::no_match;
    if (match.outcome != PcreProgram::Outcome::match) return Outcome::no_match;
    position_ = base + static_cast<std::int64_t>(match.end);
    return Outcome::match;
  }

  /// A later option is relative to this one.
  [[nodiscard]] Outcome inspect_pcre(const PcreStep& regex, const Step* step, const Step* end, Bytes buffer) noexcept {
    if (regex.negated) {
      const Outcome outcome = first_match(regex, buffer);
      return outcome == Outcome::match && step + 1 != end ? inspect(step + 1, end, buffer) : outcome;
    }
    const std::int64_t base = regex.relative ? position_ : 0;
    const Bytes subject = buffer.subspan(static_cast<std::size_t>(base));
    for (std::size_t from = 0;;) {
      const PcreProgram::Match match = find(regex, subject, from, regex.relative || before_ == 0);
      if (match.outcome != PcreProgram::Outcome::match) return Outcome::no_match;
      position_ = base + static_cast<std::int64_t>(match.end);
      const Outcome rest = rest_of(step, end, buffer);
      if (rest != Outcome::no_match) return rest;
      from = match.begin + 1;
    }
  }

  /// The `count` bytes from `offset` on, for options that read numbers; empty if the buffer does not have all of them.
  [[nodiscard]] std::optional<Bytes> bytes_at(std::int64_t offset, std::int64_t count, bool relative,
                                              Bytes buffer) const noexcept {
    const auto size = static_cast<std::int64_t>(buffer.size());
    const std::int64_t begin = (relative ? position_ : -places_before()) + offset;
    const std::int64_t left = size - begin;
    if (size == 0 || begin < 0 || count < 0 || count > left || (relative && left <= 0)) return std::nullopt;
    return buffer.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
  }

  [[nodiscard]] static std::optional<ByteNumber> number_in(Bytes bytes, NumberText text, ByteOrder order) noexcept {
    return text == NumberText::none ? read_binary_number(bytes, order) : read_text_number(bytes, text);
  }

  /// Suricata stores positions and sizes in 32 bits.
  [[nodiscard]] std::int64_t place(const Number& number) const noexcept {
    return static_cast<std::int32_t>(scratch_.value_of(number));
  }

  [[nodiscard]] Outcome test(const IsDataAt& option, Bytes buffer) const noexcept {
    const std::uint64_t value = scratch_.value_of(option.position);
    const bool variable = option.position.variable >= 0;
    const auto size = static_cast<std::uint64_t>(buffer.size());
    bool there = false;
    if (!variable || value < kMostIsDataAt) {
      there = option.relative ? static_cast<std::uint64_t>(position_) + value <= size : value < before_ + size;
    } else {
      return option.negated ? Outcome::match : Outcome::no_match;
    }
    if (there != option.negated) return Outcome::match;
    // A later match leaves less data after it. The opposite holds for a negated relative option, and a variable may
    // change.
    return variable || (option.relative && option.negated) ? Outcome::no_match : Outcome::give_up;
  }

  [[nodiscard]] Outcome test(const ByteTest& option, Bytes buffer) const noexcept {
    const std::int64_t count = place(option.bytes);
    if (count < 1 || count > (option.text == NumberText::none ? kMostBinary : kMostText)) return Outcome::no_match;
    const auto bytes = bytes_at(place(option.offset), count, option.relative, buffer);
    if (!bytes) return Outcome::no_match;
    const auto number = number_in(*bytes, option.text, option.order);
    if (!number) return Outcome::no_match;
    const std::uint64_t value = apply_bitmask(number->value, option.bitmask);
    return compare(value, option.operation, scratch_.value_of(option.value)) != option.negated ? Outcome::match
                                                                                               : Outcome::no_match;
  }

  [[nodiscard]] static bool compare(std::uint64_t a, ByteTest::Operator operation, std::uint64_t b) noexcept {
    switch (operation) {
      case ByteTest::Operator::less: return a < b;
      case ByteTest::Operator::greater: return a > b;
      case ByteTest::Operator::equal: return a == b;
      case ByteTest::Operator::less_equal: return a <= b;
      case ByteTest::Operator::greater_equal: return a >= b;
      case ByteTest::Operator::bit_and: return (a & b) != 0;
      case ByteTest::Operator::bit_xor: return (a ^ b) != 0;
    }
    return false;
  }

  [[nodiscard]] Outcome test(const ByteJump& option, Bytes buffer) noexcept {
    const std::int64_t count = place(option.bytes);
    if (count < 0 || count > (option.text == NumberText::none ? kMostBinary : kMostText)) return Outcome::no_match;
    auto bytes = bytes_at(place(option.offset), count, option.relative, buffer);
    if (!bytes) return Outcome::no_match;
    const std::int64_t begin = bytes->data() - buffer.data();
    // A count of 0 takes as much text as there is.
    if (count == 0 && option.text != NumberText::none) {
      const Bytes rest = buffer.subspan(static_cast<std::size_t>(begin));
      bytes = rest.first(std::min(rest.size(), static_cast<std::size_t>(kMostText)));
    }
    const auto number = number_in(*bytes, option.text, option.order);
    if (!number) return Outcome::no_match;
    std::uint64_t jump = apply_bitmask(number->value, option.bitmask) * option.multiplier;
    if (option.align) jump = (jump + 3) & ~std::uint64_t{3};
    jump += static_cast<std::uint64_t>(place(option.post_offset));
    const auto size = static_cast<std::int64_t>(buffer.size());
    std::int64_t base = begin + number->bytes;
    if (option.from_beginning) {
      base = -places_before();
    } else if (option.from_end) {
      base = size;
    }
    std::int64_t target = 0;
    if (__builtin_add_overflow(base, static_cast<std::int64_t>(jump), &target) || target >= size) {
      return Outcome::no_match;
    }
    position_ = std::max<std::int64_t>(target, 0);
    return Outcome::match;
  }

  [[nodiscard]] Outcome test(const ByteExtract& option, Bytes buffer) noexcept {
    const auto bytes = bytes_at(option.offset, option.bytes, option.relative, buffer);
    if (!bytes) return Outcome::no_match;
    const auto number = number_in(*bytes, option.text, option.order);
    if (!number) return Outcome::no_match;
    std::uint64_t value = number->value * option.multiplier;
    if (option.align != 0 && value % option.align != 0) value += option.align - value % option.align;
    position_ = bytes->data() - buffer.data() + number->bytes;
    scratch_.set(option.variable, value);
    return Outcome::match;
  }

  [[nodiscard]] Outcome test(const ByteMath& option, Bytes buffer) noexcept {
    const std::int64_t count = static_cast<std::uint8_t>(scratch_.value_of(option.bytes));
    if (count < 1 || count > (option.text == NumberText::none ? kMostMathBinary : kMostMathText)) {
      return Outcome::no_match;
    }
    const auto bytes = bytes_at(place(option.offset), count, option.relative, buffer);
    if (!bytes) return Outcome::no_match;
    const auto number = number_in(*bytes, option.text, option.order);
    if (!number) return Outcome::no_match;
    position_ = bytes->data() - buffer.data() + number->bytes;
    const auto result = calculate(number->value, option.operation, scratch_.value_of(option.value));
    if (!result) return Outcome::no_match;
    scratch_.set(option.variable, apply_bitmask(*result, option.bitmask));
    return Outcome::match;
  }

  [[nodiscard]] static std::optional<std::uint64_t> calculate(std::uint64_t a, ByteMath::Operator operation,
                                                              std::uint64_t b) noexcept {
    switch (operation) {
      case ByteMath::Operator::add: return a + b;
      case ByteMath::Operator::subtract: return a - b;
      case ByteMath::Operator::multiply: return a * b;
      case ByteMath::Operator::divide:
        if (b == 0) return std::nullopt;
        return a / b;
      case ByteMath::Operator::shift_left: return b < 64 ? a << b : 0;
      case ByteMath::Operator::shift_right: return b < 64 ? a >> b : 0;
    }
    return std::nullopt;
  }

  [[nodiscard]] Outcome decode(const Step::Base64& step, Bytes buffer) noexcept {
    Bytes encoded = buffer;
    if (step.decode.relative) encoded = encoded.subspan(static_cast<std::size_t>(position_));
    if (step.decode.offset != 0) {
      if (step.decode.offset >= encoded.size()) return Outcome::no_match;
      encoded = encoded.subspan(step.decode.offset);
    }
    const std::uint32_t most = step.decode.bytes == 0 ? kMostBase64 : std::min(step.decode.bytes, kMostBase64);
    encoded = encoded.first(std::min<std::size_t>(encoded.size(), most));
    scratch_.work.take(2 * encoded.size());
    scratch_.base64_bytes = decode_base64(encoded, scratch_.base64);
    if (scratch_.base64_bytes == 0) return Outcome::no_match;
    if (!step.runs_data) return Outcome::match;
    if (step.data.empty()) return Outcome::no_match;
    position_ = 0;
    const std::uint64_t before = std::exchange(before_, 0);
    const std::int64_t match_end = std::exchange(match_end_, 0);
    const Outcome data = inspect(step.data.data(), step.data.data() + step.data.size(),
                                 Bytes(scratch_.base64.data(), scratch_.base64_bytes));
    before_ = before;
    match_end_ = match_end;
    return data == Outcome::match ? Outcome::match : Outcome::no_match;
  }

  /// How much positions from the stream's start exceed those in the buffer. No rule has a position over 2^31.
  [[nodiscard]] std::int64_t places_before() const noexcept {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(before_, std::numeric_limits<std::int32_t>::max()));
  }

  InspectionScratch::Parts& scratch_;
  std::int64_t position_ = 0;
  std::int64_t match_end_ = 0;
  std::uint64_t before_;  // bytes of the stream before the buffer
  unsigned steps_ = 0;
};

BufferProgram::BufferProgram(std::vector<Step> steps)
    : steps_(std::move(steps)), only_contents_(std::ranges::all_of(steps_, [](const Step& step) {
        const auto* const content = std::get_if<ContentStep>(&step.what);
        return content != nullptr && !content->ends_with;
      })) {}
BufferProgram::BufferProgram(BufferProgram&&) noexcept = default;
BufferProgram& BufferProgram::operator=(BufferProgram&&) noexcept = default;
BufferProgram::~BufferProgram() = default;

Result<BufferProgram> BufferProgram::compile(std::span<const BufferMatch> matches) {
  auto steps = Builder(Buffer::payload).build(matches, std::nullopt);
  if (!steps) return tl::unexpected(std::move(steps.error()));
  return BufferProgram(std::move(*steps));
}

Result<BufferProgram> BufferProgram::compile(const BufferMatches& buffer, std::span<const BufferMatch> base64_data) {
  auto steps = Builder(buffer.buffer).build(buffer.matches, base64_data);
  if (!steps) return tl::unexpected(std::move(steps.error()));
  return BufferProgram(std::move(*steps));
}

std::size_t BufferProgram::expression_bytes() const noexcept {
  const auto add_up = [](const auto& self, std::span<const Step> steps) -> std::size_t {
    std::size_t bytes = 0;
    for (const Step& step : steps) {
      if (const auto* const regex = std::get_if<PcreStep>(&step.what)) bytes += regex->program.bytes();
      if (const auto* const target = std::get_if<TargetStep>(&step.what)) bytes += target->program.bytes();
      if (const auto* const base64 = std::get_if<Step::Base64>(&step.what)) bytes += self(self, base64->data);
    }
    return bytes;
  };
  return add_up(add_up, steps_);
}

bool BufferProgram::matches(std::span<const std::uint8_t> buffer, InspectionScratch& scratch,
                            std::uint64_t before) const noexcept {
  if (buffer.data() == nullptr) return false;
  if (steps_.empty()) return true;
  Run run(scratch.parts(), buffer.size(), before);
  const Run::Outcome outcome = run.inspect(steps_.data(), steps_.data() + steps_.size(), buffer);
  if (scratch.parts().work.is_over()) {
    // A search that was not completed may look like "not found", so that negated options would hold.
    scratch.parts().note_over_budget();
    return false;
  }
  scratch.parts().match_end = run.match_end();
  return outcome == Run::Outcome::match;
}

bool BufferProgram::may_match_from(std::span<const std::uint8_t> buffer, std::size_t from,
                                   InspectionScratch& scratch) const noexcept {
  if (!only_contents_) return true;
  return std::ranges::any_of(steps_, [&](const Step& step) {
    const ContentStep& content = *std::get_if<ContentStep>(&step.what);
    if (content.negated) return false;  // a negated content needs no bytes
    const std::size_t reach = std::min(from, content.search.length() - 1);
    std::uint64_t work = buffer.size() - from + reach;
    const bool is_there = content.search.find(buffer.subspan(from - reach), work) >= 0;
    scratch.parts().work.take(work);
    return is_there;
  });
}

}  // namespace penstock::nids
