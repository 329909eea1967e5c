// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON on one line, written straight into a buffer: for records that come too often for a tree of values. Commas are
// put where they belong; that braces match is the caller's to see to.

#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::report {

/// `text` without its quotes: what JSON wants escaped is, and a byte that is no UTF-8 becomes \xHH, as text, as it does
/// in Suricata's logs.
void append_json_escaped(std::string& out, std::string_view text);
/// With padding (RFC 4648 §4).
void append_base64(std::string& out, std::span<const std::uint8_t> bytes);
void append_number(std::string& out, std::uint64_t number);

class JsonText {
 public:
  /// Appends to `out`, which it borrows.
  explicit JsonText(std::string& out) noexcept : out_(&out) {}

  /// The outermost object, whatever stands before it in the buffer.
  void begin() { out_->push_back('{'); }
  /// Objects and arrays as members. Keys are written as they are, but for `escaped`.
  void open(std::string_view key) { name(key), out_->push_back('{'); }
  void open_array(std::string_view key) { name(key), out_->push_back('['); }
  void open_array_escaped(std::string_view key);
  void close() { out_->push_back('}'); }
  void close_array() { out_->push_back(']'); }

  void member(std::string_view key, std::uint64_t number) { name(key), append_number(*out_, number); }
  void member(std::string_view key, std::string_view text) { name(key), quoted(text); }
  /// What `write` (void(std::string&)) appends, in quotes: it has to be JSON's.
  template <typename Write>
  requires std::is_invocable_v<Write, std::string&>
  void member(std::string_view key, Write&& write) {
    name(key);
    out_->push_back('"');
    write(*out_);
    out_->push_back('"');
  }
  void element(std::uint64_t number) { comma(), append_number(*out_, number); }
  void element(std::string_view text) { comma(), quoted(text); }

  [[nodiscard]] std::string& out() noexcept { return *out_; }

 private:
  /// A value never ends in an opening brace: texts end in quotes.
  void comma() {
    if (const char last = out_->back(); last != '{' && last != '[') out_->push_back(',');
  }
  void name(std::string_view key) {
    comma();
    out_->push_back('"');
    out_->append(key);
    out_->append("\":");
  }
  void quoted(std::string_view text) {
    out_->push_back('"');
    append_json_escaped(*out_, text);
    out_->push_back('"');
  }

  std::string* out_;
};

}  // namespace penstock::report
