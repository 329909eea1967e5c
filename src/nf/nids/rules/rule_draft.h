// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule while its options are read, one after the other: what an option may refer to (the content before it, the
// buffer that was named last, variables), and the one complaint that ends it.

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

/// Numbers names: flowbits, flowints, xbits of a rule set.
class NameTable {
 public:
  [[nodiscard]] std::uint32_t number(std::string_view name);
  [[nodiscard]] std::vector<std::string> take() && { return std::move(names_); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

/// What the rules of a set share while they are read.
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

  // What was given, where once is all that is allowed.
  bool has_sid = false, has_gid = false, has_rev = false, has_priority = false, has_flow = false;
  bool has_fast_pattern = false, has_base64_decode = false, has_prefilter = false;
  std::string_view unknown_class;  // the first classtype that classification.config does not have
  std::string_view
      last_condition;  // the option that was the last to add something that must hold or happens; for prefilter

  /// Always false, for a reader to return.
  bool fail(std::string_view at, std::string message, std::string found = {}, std::string expected = {},
            std::string reason = "syntax");
  /// What is well written and cannot be: options that exclude each other, or stand where they cannot.
  bool fail_combination(std::string_view at, std::string message, std::string expected = {});
  /// It not supported: "http.uri".
  bool fail_unsupported(std::string_view at, std::string_view what);

  /// Of the buffer that was named last; the payload where none was.
  [[nodiscard]] std::vector<BufferMatch>& matches();
  void add(BufferMatch match);
  /// From here on the options are of this buffer.
  void look_at(Buffer buffer);
  [[nodiscard]] Buffer buffer() const noexcept { return buffers_[current_].buffer; }

  /// How many things the rule has by now that must hold, or happen when they do.
  [[nodiscard]] std::size_t conditions() const noexcept;

  /// Of a packet's headers some buffer was named.
  [[nodiscard]] bool has_header_buffer() const noexcept;

  /// The content of the rule that was read last; null where there is none.
  [[nodiscard]] Content* last_content() noexcept;
  /// In the current buffer, what a relative option would follow: the content or pcre before `before` (npos: the end).
  [[nodiscard]] const BufferMatch* last_cursor(std::size_t before = std::string_view::npos) noexcept;
  /// In its buffer, where the last content lies.
  [[nodiscard]] std::size_t last_content_index() const noexcept { return content_.index; }
  [[nodiscard]] std::vector<BufferMatch>& last_content_buffer() noexcept { return buffers_[content_.buffer].matches; }

  /// The number of a variable; -1 where the rule has none of this name.
  [[nodiscard]] int variable(std::string_view name) const noexcept;
  /// Makes it, or gives that of the name. False where there are too many.
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

/// One option's value, without its quotes and its `!`.
struct OptionValue {
  std::string_view name;
  std::string_view text;
  std::string_view rest;  // behind the closing quote: Snort's `content:"x",nocase`
  bool negated = false;
  bool quoted = false;
};

/// Reads one option into the draft. False: the draft's complaint says why.
using OptionReader = bool (*)(RuleDraft& draft, const OptionValue& value);

// Numbers. Each complains at `text`, as of `what`.
bool read_unsigned(RuleDraft& draft, std::string_view text, std::uint64_t least, std::uint64_t most, const char* what,
                   std::uint64_t& out);
bool read_signed(RuleDraft& draft, std::string_view text, std::int64_t least, std::int64_t most, const char* what,
                 std::int64_t& out);
/// A number, or a variable that the rule has by now.
bool read_number(RuleDraft& draft, std::string_view text, std::int64_t least, std::int64_t most, const char* what,
                 Number& out);
/// `10`, `=10`, `!10`, `<10`, `>=10`, `10-20` and `10<>20` (without their ends), `!10-20`. Units: `2kb`.
bool read_range(RuleDraft& draft, std::string_view text, std::uint64_t most, const char* what, NumberRange& out);

}  // namespace penstock::nids
