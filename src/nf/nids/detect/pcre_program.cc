// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/pcre_program.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <ctime>
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
// A run from one place may take some microseconds, and there may be a million places.
constexpr std::uint64_t kFreePlaces = 32768;
constexpr std::size_t kPlacesAtOnce = 32768;  // each part searches the rest for what every match holds
constexpr std::uint64_t kMostNs = 50'000'000;
constexpr int kUnknownGroup = 115;  // "reference to non-existent subpattern"

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

/// Not what is asked for at its first place alone, nor what looks at where a run began or ends it by a verb.
bool runs_in_parts(const Pcre& pcre) {
  const std::string_view pattern = pcre.pattern;
  return !pcre.anchored && pattern.find("(*") == pattern.npos && pattern.find("\\G") == pattern.npos;
}

std::uint64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
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

PcreScratch::PcreScratch()
    : data_(made(pcre2_match_data_create(1, nullptr))),
      context_(made(pcre2_match_context_create(nullptr))),
      stack_(made(pcre2_jit_stack_create(kJitStackFirst, kJitStackMost, nullptr))) {
  pcre2_set_match_limit(context_.get(), kMatchLimit);
  pcre2_set_depth_limit(context_.get(), kDepthLimit);
  pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
  pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
}

void PcreScratch::begin() noexcept {
  places_ = 0;
  deadline_ns_ = 0;
  next_look_ns_ = 0;
}

bool PcreScratch::may_go_on() noexcept {
  if (places_ < kFreePlaces) return true;
  // A thread's own clock is a system call, dearer than most searches; the monotonic one is not, and is never the
  // slower.
  const std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  if (now < next_look_ns_) return true;
  const std::uint64_t used = now_ns(CLOCK_THREAD_CPUTIME_ID);
  if (deadline_ns_ == 0) deadline_ns_ = used + kMostNs;
  if (used >= deadline_ns_) return false;
  next_look_ns_ = now + (deadline_ns_ - used);
  return true;
}

Result<PcreProgram> PcreProgram::compile(const Pcre& pcre) {
  const auto* const pattern = reinterpret_cast<PCRE2_SPTR>(pcre.pattern.data());
  int number = 0;
  PCRE2_SIZE offset = 0;
  // Nobody asks for groups: without them it is faster. Where the expression itself refers to one they are needed.
  const bool in_parts = runs_in_parts(pcre);
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
  PcreProgram program(code, in_parts);
  // Where it fails the expression is interpreted.
  static_cast<void>(pcre2_jit_compile(code, PCRE2_JIT_COMPLETE));
  return program;
}

PcreProgram::Match PcreProgram::find(std::span<const std::uint8_t> subject, std::size_t from, PcreScratch& scratch,
                                     bool begins_line) const noexcept {
  const std::uint32_t options = begins_line ? 0 : PCRE2_NOTBOL;
  for (;;) {
    if (!scratch.may_go_on()) return {Outcome::failed, 0, 0};
    const bool last = !in_parts_ || from + kPlacesAtOnce > subject.size();
    pcre2_set_offset_limit(scratch.context_.get(), last ? PCRE2_UNSET : from + kPlacesAtOnce - 1);
    const int found = pcre2_match(code_.get(), subject.data(), subject.size(), from, options, scratch.data_.get(),
                                  scratch.context_.get());
    if (found >= 0) {
      const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(scratch.data_.get());
      scratch.places_ += ends[0] - from + 1;
      return {Outcome::match, ends[0], ends[1]};
    }
    if (found != PCRE2_ERROR_NOMATCH) return {Outcome::failed, 0, 0};
    scratch.places_ += last ? subject.size() - from + 1 : kPlacesAtOnce;
    if (last) return {};
    from += kPlacesAtOnce;
  }
}

}  // namespace penstock::nids
