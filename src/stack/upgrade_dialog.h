// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The plain beginning of a connection, read to where both sides agree on something else:
//
//   SMTP (RFC 3207)    STARTTLS                        220          then TLS
//   FTP (RFC 4217)     AUTH TLS, AUTH SSL              234          then TLS
//   POP3 (RFC 2595)    STLS                            +OK          then TLS
//   IMAP (RFC 9051)    tag STARTTLS                    tag OK       then TLS
//   LDAP (RFC 4511)    the extended request StartTLS   success      then TLS
//   HTTP (RFC 9110)    CONNECT                         2xx          then anything
//
// It takes the client's question and the server's answer to just that question: answers are counted, or told by their
// tag. Whatever it does not know for sure fails: a command with an answer of a form of its own, bytes that the client
// sends behind its question before the answer. Follows the dialog alone; what comes of it proves what the sides meant.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stack/flow.h"

namespace penstock::stack {

class UpgradeDialog {
 public:
  enum class Kind : std::uint8_t { none, replies, pop3, imap, ldap, connect };  // replies: SMTP, FTP
  static constexpr std::size_t kEnoughToRecognise = 4;

  /// By the first bytes that a side sends.
  [[nodiscard]] static Kind recognise(Direction side, Bytes first) noexcept;
  void begin(Kind kind) noexcept { kind_ = kind; }

  /// What a side sends, in order, until it has left. Returns what is behind that.
  Bytes read(Direction side, Bytes bytes) noexcept;

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// What this side sends from now on is what they agreed on. The server has once it has said yes; the client, too,
  /// where it goes on so without waiting.
  [[nodiscard]] bool left(Direction side) const noexcept { return left_[static_cast<std::size_t>(side)]; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  static constexpr std::size_t kLine = 24;  // of a line that are kept

  Bytes read_line(Direction side, Bytes bytes) noexcept;
  Bytes read_ldap(Direction side, Bytes bytes) noexcept;
  [[nodiscard]] bool starts_anew(std::uint8_t first) const noexcept;
  [[nodiscard]] std::string_view line(Direction side) const noexcept;

  void command(std::string_view line) noexcept;
  void pop3_command(std::string_view line) noexcept;
  void imap_command(std::string_view line) noexcept;
  void http_request_line(std::string_view line) noexcept;
  void reply(std::string_view line) noexcept;
  void pop3_reply(std::string_view line) noexcept;
  void imap_reply(std::string_view line) noexcept;
  void http_response_line(std::string_view line) noexcept;

  void ask() noexcept;
  void answer(bool yes) noexcept;
  void fail() noexcept { failed_ = true; }

  // The lines of client and server; of LDAP the client's message takes both, as it comes before the server's.
  std::array<char, 2 * kLine> text_{};
  std::array<std::uint16_t, 2> length_{};  // of the lines so far, kept or not
  std::array<bool, 2> left_{};
  Kind kind_ = Kind::none;
  bool failed_ = false;
  bool greeted_ = false;
  bool asked_ = false;                       // and not answered
  bool in_request_ = false;                  // HTTP: the client's request line is over
  bool no_length_ = false;                   // HTTP: the response's end cannot be told
  char last_ = 0;                            // of the client's line, but for its end
  std::uint8_t commands_ = 0, replies_ = 0;  // the greeting is no reply
  std::uint8_t question_ = 0;                // the number of that command
  std::uint16_t wanted_code_ = 0;            // of its answer
  std::uint16_t code_ = 0;                   // of the reply, or HTTP's response, that has begun
  std::uint16_t long_replies_ = 0;           // POP3: by the number of the command, those of several lines
  std::uint32_t skip_ = 0;                   // HTTP: bytes of the server that are no lines, but a body
};

}  // namespace penstock::stack
