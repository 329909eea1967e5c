// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of a rule that look at bytes, compiled: regular expressions by PCRE2's JIT, searches prepared. Immutable,
// shared by all workers; what a run needs is in the scratch.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "nf/nids/detect/inspection_budget.h"
#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

/// A worker's, for all programs. Variables and what base64_decode gave last from one buffer of a rule to the next.
class InspectionScratch {
 public:
  /// Begins a frame.
  explicit InspectionScratch(const InspectionBudget& budget = {});
  ~InspectionScratch();

  /// Before the first rule of a frame: its budget begins.
  void begin_frame() noexcept;
  /// The frame has so many bytes more inspected.
  void add_bytes(std::uint64_t bytes) noexcept;
  /// Takes the work of a rule. False: the frame's is over, and no program holds any more on it.
  [[nodiscard]] bool take(std::uint64_t work) noexcept;
  /// What is left of the frame's budget, for expressions and all else.
  [[nodiscard]] std::uint64_t work_left() const noexcept;

  /// Before the first buffer of a rule.
  void begin_rule() noexcept;
  /// Of the last program that matched: behind the last byte of what its options found, or 0.
  [[nodiscard]] std::size_t match_end() const noexcept;
  /// What base64_decode of this rule has decoded.
  [[nodiscard]] std::span<const std::uint8_t> base64() const noexcept;

  struct Counters {
    std::uint64_t pcre_limits = 0;         // matches given up, at PCRE2's limits or over the budget: no match
    std::uint64_t inspection_limits = 0;   // rules given up after too many steps: taken as no match
    std::uint64_t frames_over_budget = 0;  // of which something was given up
  };
  [[nodiscard]] const Counters& counters() const noexcept;

  struct Parts;
  [[nodiscard]] Parts& parts() noexcept { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

class BufferProgram {
 public:
  /// Fails where a regular expression does not compile; the error's place is left to the caller. Where base64_decode
  /// has decoded something the program holds, and the caller runs that of the rule's base64_data on
  /// InspectionScratch::base64().
  [[nodiscard]] static Result<BufferProgram> compile(std::span<const BufferMatch> matches);
  /// The same as Suricata nests them: base64_decode runs the options of the rule's base64_data itself, holds where they
  /// hold, and where they do not an earlier option may match elsewhere. Without any base64_decode never holds. Callers
  /// then never run a program of base64_data.
  [[nodiscard]] static Result<BufferProgram> compile(const BufferMatches& buffer,
                                                     std::span<const BufferMatch> base64_data);
  BufferProgram(BufferProgram&&) noexcept;
  BufferProgram& operator=(BufferProgram&&) noexcept;
  ~BufferProgram();

  /// Of memory, of its regular expressions.
  [[nodiscard]] std::size_t expression_bytes() const noexcept;

  /// Whether all options hold on this buffer, one after the other, with the ways of placing the relative ones tried
  /// that Suricata tries: a later failure goes back to the last content or pcre that another one is relative to and
  /// that may match elsewhere. A buffer without address (`data()` null) is none and does not match; one of no bytes
  /// may. `before`: so many bytes of a stream came before it. Places that count from a start count from the stream's,
  /// so that what they name may lie before the buffer and not be found; and no line begins with the buffer (`^`, a
  /// request's line).
  [[nodiscard]] bool matches(std::span<const std::uint8_t> buffer, InspectionScratch& scratch,
                             std::uint64_t before = 0) const noexcept;

  /// False: no match on the buffer has any of its bytes from `from` on. A quick look, where contents are all that the
  /// program looks for; else it is true.
  [[nodiscard]] bool may_match_from(std::span<const std::uint8_t> buffer, std::size_t from,
                                    InspectionScratch& scratch) const noexcept;

 private:
  struct Step;
  class Builder;
  class Run;
  explicit BufferProgram(std::vector<Step> steps);
  std::vector<Step> steps_;
  bool only_contents_;  // and none that depends on where the buffer ends
};

}  // namespace penstock::nids
