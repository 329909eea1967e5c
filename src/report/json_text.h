// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON on one line directly into a buffer, for records that are too frequent for a tree of values. Commas are
// added automatically. The caller must close what it opens.

#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::report {

/// Appends `text` without quotes. Escapes characters as JSON requires; a byte that is not valid UTF-8 becomes the text
/// \xHH, as in Suricata's logs.
void append_json_escaped(std::string& out, std::string_view text);
/// With padding (RFC 4648 §4).
void append_base64(std::string& out, std::span<const std::uint8_t> bytes);
void append_number(std::string& out, std::uint64_t number);

class JsonText {
 public:
  /// Borrows `out`, and appends to it.
  explicit JsonText(std::string& out) noexcept : out_(&out) {}

  /// Opens the outermost object. The buffer may have other content before it.
  void begin() { out_->push_back('{'); }
  /// Open a member that is an object or array. Keys are not escaped, except by the `escaped` variant.
  void open(std::string_view key) { name(key), out_->push_back('{'); }
  void open_array(std::string_view key) { name(key), out_->push_back('['); }
  void open_array_escaped(std::string_view key);
  void close() { out_->push_back('}'); }
  void close_array() { out_->push_back(']'); }

  void member(std::string_view key, std::uint64_t number) { name(key), append_number(*out_, number); }
  void member(std::string_view key, std::string_view text) { name(key), quoted(text); }
  /// A text that `write` (void(std::string&)) appends, to which quotes are added. It must be valid JSON text.
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
  /// Works because no value ends in an opening brace: texts end in a quote.
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
