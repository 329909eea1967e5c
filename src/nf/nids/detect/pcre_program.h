// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule's regular expression, compiled by PCRE2 for its JIT; and what a worker needs to run them.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "nf/nids/detect/inspection_budget.h"
#include "nf/nids/rules/buffer_match.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace penstock::nids {

struct PcreDeleter {
  void operator()(pcre2_real_code_8* code) const noexcept;
  void operator()(pcre2_real_match_data_8* data) const noexcept;
  void operator()(pcre2_real_match_context_8* context) const noexcept;
  void operator()(pcre2_real_jit_stack_8* stack) const noexcept;
};

/// A worker's own.
class PcreScratch {
 public:
  explicit PcreScratch(const ThreadClock& clock = system_clock());

  /// Before the expressions of a frame, and before those of a rule on one buffer: what time they may take. PCRE2's
  /// limits bound what a match costs from each place on; this bounds all places, and how often they are tried again.
  void begin_frame(std::uint64_t allowed_ns) noexcept { of_frame_.begin(allowed_ns); }
  void allow_frame(std::uint64_t more_ns) noexcept { of_frame_.add(more_ns); }
  void begin_rule(std::uint64_t allowed_ns) noexcept { of_rule_.begin(allowed_ns); }
  /// Expressions were given up since then.
  [[nodiscard]] bool frame_was_over() const noexcept { return of_frame_.was_over(); }

 private:
  friend class PcreProgram;
  [[nodiscard]] bool may_go_on() noexcept;

  ThreadClock clock_;
  TimeAllowance of_frame_, of_rule_;
  std::unique_ptr<pcre2_real_match_data_8, PcreDeleter> data_;
  std::unique_ptr<pcre2_real_match_context_8, PcreDeleter> context_;
  std::unique_ptr<pcre2_real_jit_stack_8, PcreDeleter> stack_;
};

/// Immutable, shared by all workers.
class PcreProgram {
 public:
  /// Fails where the expression does not compile; the error's place is left to the caller.
  [[nodiscard]] static Result<PcreProgram> compile(const Pcre& pcre);

  /// `failed`: given up at a limit.
  enum class Outcome : std::uint8_t { match, no_match, failed };
  struct Match {
    Outcome outcome = Outcome::no_match;
    std::size_t begin = 0, end = 0;  // in the subject
  };
  /// The first match that begins at or behind `from`, which may lie behind the subject's end (`failed`). Without
  /// `begins_line`, `^` does not match at the subject's start.
  [[nodiscard]] Match find(std::span<const std::uint8_t> subject, std::size_t from, PcreScratch& scratch,
                           bool begins_line = true) const noexcept;

 private:
  /// Where it may begin to match.
  enum class Places : std::uint8_t {
    one,       // at the first one alone
    in_parts,  // it finds the same where it is run from one range of places after the other
    whole,     // it does not
  };
  PcreProgram(pcre2_real_code_8* code, Places places) : code_(code), places_(places) {}
  std::unique_ptr<pcre2_real_code_8, PcreDeleter> code_;
  Places places_;
};

}  // namespace penstock::nids
