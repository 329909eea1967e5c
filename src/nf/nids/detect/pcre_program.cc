// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/pcre_program.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <string_view>

#include "nf/nids/detect/counted_expression.h"

namespace penstock::nids {

namespace {

// Suricata's defaults (pcre.match-limit and match-limit-recursion), which rules are written for.
constexpr std::uint32_t kMatchLimit = 3500;
constexpr std::uint32_t kDepthLimit = 1500;
// Expressions that the JIT cannot compile are interpreted, in memory that the match data then keep.
constexpr std::uint32_t kHeapLimitKib = 1024;
constexpr std::size_t kJitStackFirst = std::size_t{32} << 10;
constexpr std::size_t kJitStackMost = std::size_t{512} << 10;
constexpr std::uint64_t kWorkOfRun = 64;
constexpr std::uint64_t kWorkOfCallout = 4;
constexpr std::size_t kBytesOfWork = 4;           // bytes tested per unit
constexpr std::size_t kPatternBytesOfWork = 32;   // an attempt at a position costs more for longer patterns
constexpr std::uint64_t kWorthCounting = 65'536;  // smaller amounts are charged without checking where a match may
                                                  // begin
constexpr int kUnknownGroup = 115;                // "reference to non-existent subpattern"

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

bool is_anchored(const pcre2_code* code) {
  std::uint32_t options = 0;
  pcre2_pattern_info(code, PCRE2_INFO_ALLOPTIONS, &options);
  return (options & PCRE2_ANCHORED) != 0;
}

/// Null if it does not compile; `number` and `offset` then have the error and its position. Capturing is disabled,
/// since no caller needs groups and it is faster, unless the expression itself refers to a group.
pcre2_code* compiled(std::string_view pattern, std::uint32_t options, int& number, PCRE2_SIZE& offset) {
  const auto* const text = reinterpret_cast<PCRE2_SPTR>(pattern.data());
  pcre2_code* code = pcre2_compile(text, pattern.size(), options | PCRE2_NO_AUTO_CAPTURE, &number, &offset, nullptr);
  if (code != nullptr || number != kUnknownGroup) return code;
  return pcre2_compile(text, pattern.size(), options, &number, &offset, nullptr);
}

/// The bytes with which a match may begin, according to PCRE2; all if it does not know.
std::array<std::uint8_t, 256> bytes_that_begin(const pcre2_code* code) {
  std::array<std::uint8_t, 256> begins{};
  std::uint32_t kind = 0, byte = 0;
  const std::uint8_t* bits = nullptr;
  pcre2_pattern_info(code, PCRE2_INFO_FIRSTCODETYPE, &kind);
  pcre2_pattern_info(code, PCRE2_INFO_FIRSTCODEUNIT, &byte);
  pcre2_pattern_info(code, PCRE2_INFO_FIRSTBITMAP, &bits);
  constexpr std::uint32_t kOneByte = 1;
  if (kind == kOneByte) {
    // In either case, since PCRE2 does not tell whether case matters.
    for (unsigned i = 0; i < begins.size(); ++i) begins[i] = (i | 0x20U) == (byte | 0x20U) ? 1 : 0;
  } else if (bits != nullptr) {
    for (unsigned i = 0; i < begins.size(); ++i) begins[i] = (bits[i / 8] >> i % 8) & 1U;
  } else {
    begins.fill(1);
  }
  return begins;
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

PcreProgram::PcreProgram(pcre2_code_8* code, std::size_t length, std::uint32_t longest_repeat)
    : code_(code),
      work_per_place_(static_cast<std::uint32_t>(1 + length / kPatternBytesOfWork)),
      longest_repeat_(longest_repeat),
      is_anchored_(is_anchored(code)),
      may_begin_(bytes_that_begin(code)) {
  // If this fails, the expression is interpreted.
  static_cast<void>(pcre2_jit_compile(code, PCRE2_JIT_COMPLETE));
}

Result<PcreProgram> PcreProgram::compile(const Pcre& pcre) {
  const std::uint32_t options = options_of(pcre);
  int number = 0;
  PCRE2_SIZE offset = 0;
  if (const auto counted = with_callouts(pcre.pattern, pcre.extended)) {
    pcre2_code* const code = compiled(counted->pattern, options, number, offset);
    if (code != nullptr) return PcreProgram(code, pcre.pattern.size(), counted->longest_repeat);
  }
  pcre2_code* const code = compiled(pcre.pattern, options | PCRE2_AUTO_CALLOUT, number, offset);
  if (code != nullptr) return PcreProgram(code, pcre.pattern.size(), 0);
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(number, text.data(), text.size());
  return failure(Error{{},
                       "regular expression: " + std::string(reinterpret_cast<const char*>(text.data())) + " at byte " +
                           std::to_string(offset),
                       in_quotes(pcre.pattern),
                       {}});
}

std::size_t PcreProgram::bytes() const noexcept {
  std::size_t of_code = 0, of_machine_code = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_SIZE, &of_code);
  pcre2_pattern_info(code_.get(), PCRE2_INFO_JITSIZE, &of_machine_code);
  return of_code + of_machine_code;
}

std::uint64_t PcreProgram::work_of_places(std::span<const std::uint8_t> text) const noexcept {
  if (is_anchored_) return kWorkOfRun + work_per_place_;
  std::uint64_t places = text.size();
  if (work_per_place_ > 1 && places * work_per_place_ > kWorthCounting) {
    places = 0;
    for (const std::uint8_t byte : text) places += may_begin_[byte];
  }
  return kWorkOfRun + (text.size() + places * (work_per_place_ - 1)) / kBytesOfWork;
}

struct PcreProgram::Run {
  PcreScratch& scratch;
  std::size_t longest_repeat;
  std::size_t position;  // in the subject, at the previous callout

  /// PCRE2 calls it at each callout.
  static int count(pcre2_callout_block* block, void* data) noexcept {
    Run& run = *static_cast<Run*>(data);
    const std::size_t position = block->current_position;
    std::size_t bytes = position > run.position ? position - run.position : run.position - position;
    run.position = position;
    if (block->callout_number == CountedExpression::kBeforeRepeat) {
      bytes += std::min(run.longest_repeat, block->subject_length - position);
    }
    return run.scratch.take(kWorkOfCallout + bytes / kBytesOfWork) ? 0 : PCRE2_ERROR_CALLOUT;
  }
};

PcreProgram::Match PcreProgram::find(std::span<const std::uint8_t> subject, std::size_t from, PcreScratch& scratch,
                                     bool begins_line) const noexcept {
  if (from > subject.size() || !scratch.take(work_of_places(subject.subspan(from)))) return {Outcome::failed, 0, 0};
  Run run{scratch, longest_repeat_, from};
  pcre2_set_callout(scratch.context_.get(), &Run::count, &run);
  const int found = pcre2_match(code_.get(), subject.data(), subject.size(), from, begins_line ? 0 : PCRE2_NOTBOL,
                                scratch.data_.get(), scratch.context_.get());
  if (found == PCRE2_ERROR_NOMATCH) return {};
  if (found < 0) return {Outcome::failed, 0, 0};
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(scratch.data_.get());
  return {Outcome::match, ends[0], ends[1]};
}

}  // namespace penstock::nids
