// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule while its options are read one after the other. It holds what an option may refer to (the previous content,
// the current buffer, variables), and the first complaint, which ends the reading.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nf/nids/rules/rule.h"
#include "nf/nids/rules/rule_set.h"
#include "nf/nids/rules/rule_text.h"
#include "nf/nids/rules/side_files.h"

namespace penstock::nids {

/// Assigns numbers to the names of a rule set's flowbits, flowints or xbits.
class NameTable {
 public:
  [[nodiscard]] std::uint32_t number(std::string_view name);
  [[nodiscard]] std::vector<std::string> take() && { return std::move(names_); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

/// State that all rules of a set share while they are read.
struct RuleNames {
  NameTable flowbits, flowints, xbits;
  const ClassTable* classes = nullptr;
};

class RuleDraft {
 public:
  explicit RuleDraft(RuleNames& shared) noexcept : names(shared) {}

  Rule rule;
  RuleNames& names;
  Complaint complaint;

  // Options seen so far, of those that may occur only once.
  bool has_sid = false, has_gid = false, has_rev = false, has_priority = false, has_flow = false;
  bool has_fast_pattern = false, has_base64_decode = false, has_prefilter = false;
  std::string_view unknown_class;   // the first classtype that classification.config does not define
  std::string_view last_condition;  // the last option that added a condition or an effect; for `prefilter`

  /// Records a complaint. Always returns false, so that a reader can return it.
  bool fail(std::string_view at, std::string message, std::string found = {}, std::string expected = {},
            std::string reason = "syntax");
  /// The same for valid options that exclude each other or are not allowed at their place.
  bool fail_combination(std::string_view at, std::string message, std::string expected = {});
  /// The same for an option or value that is not supported, such as "http.uri".
  bool fail_unsupported(std::string_view at, std::string_view what);

  /// The conditions on the current buffer: the one named last, or else the payload.
  [[nodiscard]] std::vector<BufferMatch>& matches();
  void add(BufferMatch match);
  /// Makes this the current buffer.
  void look_at(Buffer buffer);
  [[nodiscard]] Buffer buffer() const noexcept { return buffers_[current_].buffer; }

  /// How many conditions and effects the rule has so far.
  [[nodiscard]] std::size_t conditions() const noexcept;

  /// Whether the rule names a buffer in a packet's headers.
  [[nodiscard]] bool has_header_buffer() const noexcept;

  /// The content that was read last; null if there is none.
  [[nodiscard]] Content* last_content() noexcept;
  /// What a relative option in the current buffer follows: the last content or pcre before index `before` (npos: the
  /// end).
  [[nodiscard]] const BufferMatch* last_cursor(std::size_t before = std::string_view::npos) noexcept;
  /// The last content's index in its buffer.
  [[nodiscard]] std::size_t last_content_index() const noexcept { return content_.index; }
  [[nodiscard]] std::vector<BufferMatch>& last_content_buffer() noexcept { return buffers_[content_.buffer].matches; }

  /// A variable's index; -1 if the rule has none of this name.
  [[nodiscard]] int variable(std::string_view name) const noexcept;
  /// Finds or creates a variable. False, with a complaint, if there are too many.
  bool make_variable(std::string_view name, int& number);

  /// The rule with its buffers, the payload first.
  [[nodiscard]] Rule take() &&;

 private:
  struct Spot {
    std::size_t buffer = 0, index = 0;
    bool is_set = false;
  };
  std::vector<BufferMatches> buffers_{1};  // the first is the payload
  std::size_t current_ = 0;
  Spot content_;
  std::vector<std::string> variables_;
};

/// One option's value, without quotes and `!`.
struct OptionValue {
  std::string_view name;
  std::string_view text;
  std::string_view rest;  // what follows the closing quote, as in Snort's `content:"x",nocase`
  bool negated = false;
  bool quoted = false;
};

/// Reads one option into the draft. False on error: the draft's complaint has the reason.
using OptionReader = bool (*)(RuleDraft& draft, const OptionValue& value);

// Read numbers in [least, most]. On error they add a complaint about `what` at `text` and return false.
bool read_unsigned(RuleDraft& draft, std::string_view text, std::uint64_t least, std::uint64_t most, const char* what,
                   std::uint64_t& out);
bool read_signed(RuleDraft& draft, std::string_view text, std::int64_t least, std::int64_t most, const char* what,
                 std::int64_t& out);
/// A number, or a variable that the rule has defined before.
bool read_number(RuleDraft& draft, std::string_view text, std::int64_t least, std::int64_t most, const char* what,
                 Number& out);
/// `10`, `=10`, `!10`, `<10`, `>=10`, `10-20` and `10<>20` (both exclude their ends), `!10-20`. With units: `2kb`.
bool read_range(RuleDraft& draft, std::string_view text, std::uint64_t most, const char* what, NumberRange& out);

}  // namespace penstock::nids
