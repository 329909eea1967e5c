// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule's options that test bytes, compiled: regular expressions by PCRE2's JIT, searches prepared. Immutable and
// shared by all workers; a run keeps its state in the scratch.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "nf/nids/detect/inspection_budget.h"
#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

/// One worker's, for all programs. It keeps variables and the last result of base64_decode from one buffer of a rule to
/// the next.
class InspectionScratch {
 public:
  /// Also begins the first frame.
  explicit InspectionScratch(const InspectionBudget& budget = {});
  ~InspectionScratch();

  /// Call it before the first rule of a frame. Resets the frame's budget.
  void begin_frame() noexcept;
  /// Adds to the frame's budget for more inspected bytes.
  void add_bytes(std::uint64_t bytes) noexcept;
  /// Takes a rule's work from the frame's budget. False once the budget is used up; no program matches on this frame
  /// from then on.
  [[nodiscard]] bool take(std::uint64_t work) noexcept;
  /// What is left of the frame's budget, for expressions and everything else.
  [[nodiscard]] std::uint64_t work_left() const noexcept;

  /// Call it before the first buffer of a rule.
  void begin_rule() noexcept;
  /// The end of the last program's match: one past the last byte that its options matched; 0 if they matched none.
  [[nodiscard]] std::size_t match_end() const noexcept;
  /// What base64_decode of this rule has decoded.
  [[nodiscard]] std::span<const std::uint8_t> base64() const noexcept;

  struct Counters {
    std::uint64_t pcre_limits = 0;         // matches given up at PCRE2's limits or over the budget; they count as no
                                           // match
    std::uint64_t inspection_limits = 0;   // rules given up after too many steps; they count as no match
    std::uint64_t frames_over_budget = 0;  // frames on which something was given up
  };
  [[nodiscard]] const Counters& counters() const noexcept;
  /// From now on, both add to the counters of `other`. Both are used in one thread.
  void share_counters(InspectionScratch& other) noexcept;

  struct Parts;
  [[nodiscard]] Parts& parts() noexcept { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

class BufferProgram {
 public:
  /// Fails if a regular expression does not compile; the caller sets the error's place. base64_decode holds if it has
  /// decoded anything; the caller then runs the program of the rule's base64_data on InspectionScratch::base64().
  [[nodiscard]] static Result<BufferProgram> compile(std::span<const BufferMatch> matches);
  /// The same, but nested as in Suricata: base64_decode itself runs the options of the rule's base64_data and holds if
  /// they hold; if they do not, an earlier option may match elsewhere. If `base64_data` is empty, base64_decode never
  /// holds. Callers then never run a separate program for base64_data.
  [[nodiscard]] static Result<BufferProgram> compile(const BufferMatches& buffer,
                                                     std::span<const BufferMatch> base64_data);
  BufferProgram(BufferProgram&&) noexcept;
  BufferProgram& operator=(BufferProgram&&) noexcept;
  ~BufferProgram();

  /// The memory that its regular expressions take.
  [[nodiscard]] std::size_t expression_bytes() const noexcept;

  /// Whether all options hold on this buffer, one after the other. It backtracks as Suricata does: on a failure it goes
  /// back to the last content or pcre that a later option is relative to and that may match elsewhere. A null buffer
  /// (`data()` null) means that there is none, and never matches; an empty one may. `before`: how many bytes of the
  /// stream precede the buffer. Absolute positions count from the start of the stream, so they may lie before the
  /// buffer, where nothing matches. If `before` is not 0, the buffer does not start a line (for `^`, and for request
  /// lines).
  [[nodiscard]] bool matches(std::span<const std::uint8_t> buffer, InspectionScratch& scratch,
                             std::uint64_t before = 0) const noexcept;

  /// False if no match can include any of the bytes from `from` on. This is a quick check, for programs that only
  /// search for contents; for others it returns true.
  [[nodiscard]] bool may_match_from(std::span<const std::uint8_t> buffer, std::size_t from,
                                    InspectionScratch& scratch) const noexcept;

 private:
  struct Step;
  class Builder;
  class Run;
  explicit BufferProgram(std::vector<Step> steps);
  std::vector<Step> steps_;
  bool only_contents_;  // only contents, none of which depends on where the buffer ends
};

}  // namespace penstock::nids
