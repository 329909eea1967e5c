// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the plaintext start of a connection up to where both sides agree to switch protocols:
//
//   SMTP (RFC 3207)    STARTTLS                        220          then TLS
//   FTP (RFC 4217)     AUTH TLS, AUTH SSL              234          then TLS
//   POP3 (RFC 2595)    STLS                            +OK          then TLS
//   IMAP (RFC 9051)    tag STARTTLS                    tag OK       then TLS
//   LDAP (RFC 4511)    the extended request StartTLS   success      then TLS
//   HTTP (RFC 9110)    CONNECT                         2xx          then anything
//
// It matches the client's request with the server's reply to exactly that request, by counting replies or by tag. It
// fails on anything ambiguous, such as a command whose reply has a special form, or bytes that the client sends after
// its request and before the reply. It only follows the dialog; the traffic that follows shows whether the switch is
// real.

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

  /// Recognises the protocol by the first kEnoughToRecognise bytes of a side.
  [[nodiscard]] static Kind recognise(Direction side, Bytes first) noexcept;
  void begin(Kind kind) noexcept { kind_ = kind; }

  /// Reads what a side sends, in order, until it has left the dialog. Returns the bytes after that point.
  Bytes read(Direction side, Bytes bytes) noexcept;

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// Whether this side now sends the new protocol. The server does once it has accepted; so does a client that
  /// continues without waiting for the reply.
  [[nodiscard]] bool left(Direction side) const noexcept { return left_[static_cast<std::size_t>(side)]; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  static constexpr std::size_t kLine = 24;  // bytes of a line that are kept

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

  // The current lines of client and server. LDAP: the client's message uses both halves, since it precedes the
  // server's.
  std::array<char, 2 * kLine> text_{};
  std::array<std::uint16_t, 2> length_{};  // of the current lines, including bytes not kept
  std::array<bool, 2> left_{};
  Kind kind_ = Kind::none;
  bool failed_ = false;
  bool greeted_ = false;
  bool asked_ = false;                       // request pending
  bool in_request_ = false;                  // HTTP: the client's request line is complete
  bool no_length_ = false;                   // HTTP: the end of the response is unknown
  char last_ = 0;                            // last byte of the client's line, without the line end
  std::uint8_t commands_ = 0, replies_ = 0;  // the greeting does not count
  std::uint8_t question_ = 0;                // number of the command that requested the switch
  std::uint16_t wanted_code_ = 0;            // reply code that accepts it
  std::uint16_t code_ = 0;                   // of the current reply or HTTP response
  std::uint16_t long_replies_ = 0;           // POP3: bitmap by command number: multi-line replies
  std::uint32_t skip_ = 0;                   // HTTP: body bytes of the server still to skip
};

}  // namespace penstock::stack
