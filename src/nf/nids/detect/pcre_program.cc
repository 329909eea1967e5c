// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/pcre_program.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <string>
#include <string_view>

namespace penstock::nids {

namespace {

// Suricata's defaults (pcre.match-limit and match-limit-recursion): rules are written to fit them.
constexpr std::uint32_t kMatchLimit = 3500;
constexpr std::uint32_t kDepthLimit = 1500;
// What the JIT cannot compile is interpreted, in memory that the match data keep from then on.
constexpr std::uint32_t kHeapLimitKib = 1024;
constexpr std::size_t kJitStackFirst = std::size_t{32} << 10;
constexpr std::size_t kJitStackMost = std::size_t{512} << 10;
// The clock is looked at between calls, so that each is to be short whatever the expression is. It may take as many
// steps as PCRE2's limit says from each of its places, and each step may run over all bytes behind it: this many at a
// quarter of a nanosecond each. With the least limit, an Ethernet frame's payload is one call.
constexpr std::uint64_t kMostBytesRunOver = std::uint64_t{18} << 20;
constexpr std::uint32_t kLeastLimit = 8;  // what does to begin with for most places; few expressions are dear
constexpr int kUnknownGroup = 115;        // "reference to non-existent subpattern"

std::uint32_t options_of(const Pcre& pcre) {
  std::uint32_t options = 0;
  if (pcre.caseless) options |= PCRE2_CASELESS;
  if (pcre.multiline) options |= PCRE2_MULTILINE;
  if (pcre.dotall) options |= PCRE2_DOTALL;
  if (pcre.extended) options |= PCRE2_EXTENDED;
  if (pcre.anchored) options |= PCRE2_ANCHORED;
  if (pcre.dollar_endonly) options |= PCRE2_DOLLAR_ENDONLY;
  if (pcre.ungreedy) options |= PCRE2_UNGREEDY;
  return options;
}

/// It does not look at where a run began, nor end it by a verb.
bool may_run_in_parts(std::string_view pattern) {
  return pattern.find("(*") == pattern.npos && pattern.find("\\G") == pattern.npos;
}

/// Asked for, or by itself: `^`, `.*` over all bytes.
bool is_anchored(const pcre2_code* code) {
  std::uint32_t options = 0;
  pcre2_pattern_info(code, PCRE2_INFO_ALLOPTIONS, &options);
  return (options & PCRE2_ANCHORED) != 0;
}

template <typename T>
T* made(T* object) {
  if (object == nullptr) throw std::bad_alloc();
  return object;
}

}  // namespace

void PcreDeleter::operator()(pcre2_code_8* code) const noexcept { pcre2_code_free(code); }
void PcreDeleter::operator()(pcre2_match_data_8* data) const noexcept { pcre2_match_data_free(data); }
void PcreDeleter::operator()(pcre2_match_context_8* context) const noexcept { pcre2_match_context_free(context); }
void PcreDeleter::operator()(pcre2_jit_stack_8* stack) const noexcept { pcre2_jit_stack_free(stack); }

PcreScratch::PcreScratch(const ThreadClock& clock)
    : clock_(clock),
      data_(made(pcre2_match_data_create(1, nullptr))),
      context_(made(pcre2_match_context_create(nullptr))),
      stack_(made(pcre2_jit_stack_create(kJitStackFirst, kJitStackMost, nullptr))) {
  pcre2_set_depth_limit(context_.get(), kDepthLimit);
  pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
  pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
}

bool PcreScratch::may_go_on() noexcept {
  const std::uint64_t now = clock_.elapsed_ns();
  return !of_frame_.is_over(clock_, now) && !of_rule_.is_over(clock_, now);
}

Result<PcreProgram> PcreProgram::compile(const Pcre& pcre) {
  const auto* const pattern = reinterpret_cast<PCRE2_SPTR>(pcre.pattern.data());
  int number = 0;
  PCRE2_SIZE offset = 0;
  // Nobody asks for groups: without them it is faster. Where the expression itself refers to one they are needed.
  const bool in_parts = may_run_in_parts(pcre.pattern);
  const std::uint32_t options = options_of(pcre) | (in_parts ? PCRE2_USE_OFFSET_LIMIT : 0);
  pcre2_code* code =
      pcre2_compile(pattern, pcre.pattern.size(), options | PCRE2_NO_AUTO_CAPTURE, &number, &offset, nullptr);
  if (code == nullptr && number == kUnknownGroup) {
    code = pcre2_compile(pattern, pcre.pattern.size(), options, &number, &offset, nullptr);
  }
  if (code == nullptr) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(number, text.data(), text.size());
    return failure(Error{{},
                         "regular expression: " + std::string(reinterpret_cast<const char*>(text.data())) +
                             " at byte " + std::to_string(offset),
                         in_quotes(pcre.pattern),
                         {}});
  }
  PcreProgram program(code, is_anchored(code) ? Places::one : in_parts ? Places::in_parts : Places::whole);
  // Where it fails the expression is interpreted.
  static_cast<void>(pcre2_jit_compile(code, PCRE2_JIT_COMPLETE));
  return program;
}

// A part is run with as high a limit as a call may take. Where that is not enough, fewer places leave more to each;
// only what takes too many steps by PCRE2's own limit, or too long, is given up.
PcreProgram::Match PcreProgram::find(std::span<const std::uint8_t> subject, std::size_t from, PcreScratch& scratch,
                                     bool begins_line) const noexcept {
  if (from > subject.size()) return {Outcome::failed, 0, 0};
  const std::uint32_t options = begins_line ? 0 : PCRE2_NOTBOL;
  std::size_t most_places = std::numeric_limits<std::size_t>::max();
  std::uint64_t times = 1;  // over what a call may take: there is but one place
  for (;;) {
    if (!scratch.may_go_on()) return {Outcome::failed, 0, 0};
    const std::size_t left = subject.size() - from + 1;
    std::size_t places = places_ == Places::one ? 1 : left;
    if (places_ == Places::in_parts) {
      const std::size_t most = std::min<std::uint64_t>(most_places, kMostBytesRunOver / (kLeastLimit * left));
      places = std::clamp<std::size_t>(most, 1, left);
    }
    const bool last = places_ != Places::in_parts || places == left;
    const std::uint64_t limit =
        std::clamp<std::uint64_t>(kMostBytesRunOver / (places * left) * times, kLeastLimit * times, kMatchLimit);
    pcre2_set_match_limit(scratch.context_.get(), static_cast<std::uint32_t>(limit));
    pcre2_set_offset_limit(scratch.context_.get(), last ? PCRE2_UNSET : from + places - 1);
    const int found = pcre2_match(code_.get(), subject.data(), subject.size(), from, options, scratch.data_.get(),
                                  scratch.context_.get());
    if (found >= 0) {
      const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(scratch.data_.get());
      return {Outcome::match, ends[0], ends[1]};
    }
    if (found == PCRE2_ERROR_MATCHLIMIT && limit < kMatchLimit) {
      if (places_ == Places::in_parts && places > 1) {
        most_places = (places + 3) / 4;
      } else {
        times *= 2;
      }
      continue;
    }
    if (found != PCRE2_ERROR_NOMATCH) return {Outcome::failed, 0, 0};
    if (last) return {};
    from += places;
    most_places = places * 2;
    times = 1;
  }
}

}  // namespace penstock::nids
