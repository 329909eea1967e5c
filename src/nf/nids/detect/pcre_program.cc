// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/pcre_program.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <new>
#include <string>

namespace penstock::nids {

namespace {

// Suricata's defaults (pcre.match-limit and match-limit-recursion): rules are written to fit them.
constexpr std::uint32_t kMatchLimit = 3500;
constexpr std::uint32_t kDepthLimit = 1500;
// What the JIT cannot compile is interpreted, in memory that the match data keep from then on.
constexpr std::uint32_t kHeapLimitKib = 1024;
constexpr std::size_t kJitStackFirst = std::size_t{32} << 10;
constexpr std::size_t kJitStackMost = std::size_t{512} << 10;
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

Result<PcreProgram> PcreProgram::compile(const Pcre& pcre) {
  const auto* const pattern = reinterpret_cast<PCRE2_SPTR>(pcre.pattern.data());
  int number = 0;
  PCRE2_SIZE offset = 0;
  // Nobody asks for groups: without them it is faster. Where the expression itself refers to one they are needed.
  const std::uint32_t options = options_of(pcre);
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
  PcreProgram program(code);
  // Where it fails the expression is interpreted.
  static_cast<void>(pcre2_jit_compile(code, PCRE2_JIT_COMPLETE));
  return program;
}

PcreProgram::Match PcreProgram::find(std::span<const std::uint8_t> subject, std::size_t from,
                                     PcreScratch& scratch) const noexcept {
  const int found =
      pcre2_match(code_.get(), subject.data(), subject.size(), from, 0, scratch.data_.get(), scratch.context_.get());
  if (found == PCRE2_ERROR_NOMATCH) return {};
  if (found < 0) return {Outcome::failed, 0, 0};
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(scratch.data_.get());
  return {Outcome::match, ends[0], ends[1]};
}

}  // namespace penstock::nids
