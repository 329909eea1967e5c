// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule's regular expression, compiled by PCRE2's JIT, and what a worker needs to run it. The cost of a run is
// counted: the positions at which it starts, and the work seen by its callouts (counted_expression.h).

#pragma once

#include <array>
#include <cstddef>
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

/// Each worker has its own.
class PcreScratch {
 public:
  PcreScratch();

  /// Call these before the expressions of a frame, and before those of a rule on one buffer: they set how much work is
  /// allowed. PCRE2's own limits bound the cost of a match attempt at one position; these bound all positions, and
  /// repeated attempts.
  void begin_frame(std::uint64_t work) noexcept { of_frame_.begin(work); }
  void allow_frame(std::uint64_t more) noexcept { of_frame_.add(more); }
  void begin_rule(std::uint64_t work) noexcept { of_rule_.begin(work); }
  /// Whether the frame's allowance is used up.
  [[nodiscard]] bool frame_is_over() const noexcept { return of_frame_.is_over(); }
  [[nodiscard]] std::uint64_t frame_left() const noexcept { return of_frame_.left(); }

 private:
  friend class PcreProgram;
  /// False if an allowance is used up.
  [[nodiscard]] bool take(std::uint64_t work) noexcept {
    of_frame_.take(work);
    of_rule_.take(work);
    return !of_frame_.is_over() && !of_rule_.is_over();
  }

  WorkAllowance of_frame_, of_rule_;
  std::unique_ptr<pcre2_real_match_data_8, PcreDeleter> data_;
  std::unique_ptr<pcre2_real_match_context_8, PcreDeleter> context_;
  std::unique_ptr<pcre2_real_jit_stack_8, PcreDeleter> stack_;
};

/// Immutable, shared by all workers.
class PcreProgram {
 public:
  /// Fails if the expression does not compile; the caller sets the error's place.
  [[nodiscard]] static Result<PcreProgram> compile(const Pcre& pcre);

  /// The memory of the expression and its machine code.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// `failed`: given up at a limit, or `from` is past the end.
  enum class Outcome : std::uint8_t { match, no_match, failed };
  struct Match {
    Outcome outcome = Outcome::no_match;
    std::size_t begin = 0, end = 0;  // in the subject
  };
  /// The first match that begins at or after `from`. `from` may be past the subject's end (the outcome is then
  /// `failed`). Without `begins_line`, `^` does not match at the start of the subject.
  [[nodiscard]] Match find(std::span<const std::uint8_t> subject, std::size_t from, PcreScratch& scratch,
                           bool begins_line = true) const noexcept;

 private:
  struct Run;

  PcreProgram(pcre2_real_code_8* code, std::size_t length, std::uint32_t longest_repeat);
  /// The work of trying all positions where a match may begin, without the work that callouts count.
  [[nodiscard]] std::uint64_t work_of_places(std::span<const std::uint8_t> text) const noexcept;

  std::unique_ptr<pcre2_real_code_8, PcreDeleter> code_;
  std::uint32_t work_per_place_;
  std::uint32_t longest_repeat_;               // from CountedExpression
  bool is_anchored_ = false;                   // it may only match at the first position
  std::array<std::uint8_t, 256> may_begin_{};  // 1: a match may begin with the byte
};

}  // namespace penstock::nids
