// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/upgrade_dialog.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace penstock::stack {

namespace {

constexpr std::uint8_t kMostCommands = 15;  // before the request; real clients send fewer
constexpr std::uint8_t kTlsHandshake = 22, kOldHello = 0x80;

constexpr char upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
bool same_word(std::string_view text, std::string_view word) noexcept {
  return std::ranges::equal(text, word, {}, upper);
}
/// Removes and returns the first word, and removes the spaces after it.
std::string_view take_word(std::string_view& text) noexcept {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return word;
}
template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) noexcept {
  return std::ranges::any_of(words, [&](std::string_view one) { return same_word(word, one); });
}

/// The reply code of a line such as "220 text"; 0 unless the line starts with three digits, followed by a space, a
/// hyphen or nothing.
std::uint16_t code_of(std::string_view line) noexcept {
  if (line.size() < 3 || !std::ranges::all_of(line.substr(0, 3), [](char c) { return c >= '0' && c <= '9'; })) return 0;
  if (line.size() > 3 && line[3] != ' ' && line[3] != '-') return 0;
  return static_cast<std::uint16_t>((line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0'));
}

// ---- BER, as restricted for LDAP (RFC 4511 §5.1)

struct Element {
  std::uint8_t tag;
  std::size_t length;  // of its value
  Bytes rest;          // from the value on
};
/// Nullopt if the header is incomplete.
std::optional<Element> element_of(Bytes bytes) noexcept {
  if (bytes.size() < 2) return std::nullopt;
  std::size_t at = 2, length = bytes[1];
  if (length >= 0x80) {
    const std::size_t width = length & 0x7f;
    if (width == 0 || width > 4 || bytes.size() < at + width) return std::nullopt;
    for (length = 0; at < 2 + width; ++at) length = length << 8 | bytes[at];
  }
  return Element{bytes[0], length, bytes.subspan(at)};
}
constexpr std::uint8_t kSequence = 0x30, kInteger = 0x02, kEnumerated = 0x0a, kExtendedRequest = 0x77,
                       kExtendedResponse = 0x78, kRequestName = 0x80;
constexpr std::string_view kStartTls = "1.3.6.1.4.1.1466.20037";

/// The operation in a message, which follows the message ID.
std::optional<Element> operation_of(Bytes message) noexcept {
  const auto sequence = element_of(message);
  if (!sequence || sequence->tag != kSequence) return std::nullopt;
  const auto number = element_of(sequence->rest);
  if (!number || number->tag != kInteger || number->length > number->rest.size()) return std::nullopt;
  return element_of(number->rest.subspan(number->length));
}
bool asks_for_tls(Bytes message) noexcept {
  const auto operation = operation_of(message);
  if (!operation || operation->tag != kExtendedRequest) return false;
  const auto name = element_of(operation->rest);
  if (!name || name->tag != kRequestName || name->length != kStartTls.size()) return false;
  return name->rest.size() >= kStartTls.size() &&
         std::ranges::equal(name->rest.first(kStartTls.size()), kStartTls,
                            [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); });
}
bool agrees_to_tls(Bytes message) noexcept {
  const auto operation = operation_of(message);
  if (!operation || operation->tag != kExtendedResponse) return false;
  const auto result = element_of(operation->rest);
  return result && result->tag == kEnumerated && result->length == 1 && !result->rest.empty() && result->rest[0] == 0;
}

}  // namespace

UpgradeDialog::Kind UpgradeDialog::recognise(Direction side, Bytes first) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (side == Direction::to_server) {
    if (text == "CONN") return Kind::connect;
    const bool is_short = first[1] < 0x80;
    return first[0] == kSequence && (is_short ? first[2] == kInteger : first[1] <= 0x84) ? Kind::ldap : Kind::none;
  }
  if (text == "220 " || text == "220-") return Kind::replies;
  if (text == "+OK " || text == "+OK\r") return Kind::pop3;
  return text == "* OK" ? Kind::imap : Kind::none;
}

Bytes UpgradeDialog::read(Direction side, Bytes bytes) noexcept {
  while (!bytes.empty() && !failed_ && !left(side)) {
    if (kind_ == Kind::ldap) {
      bytes = read_ldap(side, bytes);
    } else if (side == Direction::to_client && skip_ > 0 && code_ == 0) {
      const std::size_t here = std::min<std::size_t>(skip_, bytes.size());
      skip_ -= static_cast<std::uint32_t>(here);
      bytes = bytes.subspan(here);
    } else if (side == Direction::to_server && asked_) {
      // Plaintext after the request could belong before or after the switch (CVE-2011-0411).
      left_[0] = starts_anew(bytes.front());
      failed_ = !left_[0];
    } else {
      bytes = read_line(side, bytes);
    }
  }
  return bytes;
}

/// Whether the client's first byte after its request already belongs to the new protocol.
bool UpgradeDialog::starts_anew(std::uint8_t first) const noexcept {
  if (kind_ == Kind::connect) return first != 'C';
  return first == kTlsHandshake || (first & kOldHello) != 0;
}

std::string_view UpgradeDialog::line(Direction side) const noexcept {
  const auto i = static_cast<std::size_t>(side);
  std::string_view text(text_.data() + i * kLine, std::min<std::size_t>(length_[i], kLine));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

Bytes UpgradeDialog::read_line(Direction side, Bytes bytes) noexcept {
  const auto i = static_cast<std::size_t>(side);
  const bool is_client = side == Direction::to_server;
  std::size_t at = 0;
  for (; at < bytes.size() && bytes[at] != '\n'; ++at) {
    if (length_[i] < kLine) text_[i * kLine + length_[i]] = static_cast<char>(bytes[at]);
    if (length_[i] < std::numeric_limits<std::uint16_t>::max()) ++length_[i];
    if (is_client && bytes[at] != '\r') last_ = static_cast<char>(bytes[at]);
  }
  if (at == bytes.size()) return {};
  const std::string_view text = line(side);
  switch (kind_) {
    case Kind::replies: is_client ? command(text) : reply(text); break;
    case Kind::pop3: is_client ? pop3_command(text) : pop3_reply(text); break;
    case Kind::imap: is_client ? imap_command(text) : imap_reply(text); break;
    case Kind::connect: is_client ? http_request_line(text) : http_response_line(text); break;
    case Kind::none:
    case Kind::ldap: fail(); break;
  }
  // Keep IMAP's tag to match the reply.
  if (!(is_client && asked_ && kind_ == Kind::imap)) length_[i] = 0;
  return bytes.subspan(at + 1);
}

/// The last command was the request to switch.
void UpgradeDialog::ask() noexcept {
  if (kind_ != Kind::ldap && length_[0] > kLine) return fail();
  asked_ = true;
  question_ = commands_;
}

void UpgradeDialog::answer(bool yes) noexcept {
  if (!asked_ || (!yes && left_[0])) return fail();
  asked_ = false;
  if (kind_ == Kind::imap) length_[0] = 0;
  if (yes) left_ = {true, true};
}

// ---- SMTP, FTP: one reply per command

void UpgradeDialog::command(std::string_view text) noexcept {
  static constexpr std::array<std::string_view, 16> kKnown{"EHLO", "HELO", "LHLO", "NOOP", "RSET", "HELP",
                                                           "FEAT", "SYST", "OPTS", "CLNT", "HOST", "LANG",
                                                           "PBSZ", "PROT", "USER", "PASS"};
  static constexpr std::array<std::string_view, 4> kMechanisms{"TLS", "SSL", "TLS-C", "TLS-P"};
  if (++commands_ > kMostCommands) return fail();
  const std::string_view word = take_word(text);
  if (same_word(word, "STARTTLS") && text.empty()) {
    wanted_code_ = 220;
    ask();
  } else if (same_word(word, "AUTH") && is_one_of(take_word(text), kMechanisms) && text.empty()) {
    wanted_code_ = 234;
    ask();
  } else if (!is_one_of(word, kKnown)) {
    fail();
  }
}

/// A multi-line reply ends with a line of the same code and a space (RFC 959 §4.2; in RFC 5321 §4.2.1 all lines have
/// the code).
void UpgradeDialog::reply(std::string_view text) noexcept {
  const std::uint16_t code = code_of(text);
  const bool goes_on = text.size() > 3 && text[3] == '-';
  if (code_ == 0) {
    if (code == 0) return fail();
    if (goes_on) {
      code_ = code;
      return;
    }
  } else if (code != code_ || goes_on) {
    return;
  }
  code_ = 0;
  if (!greeted_) {
    greeted_ = true;
  } else if (++replies_ > commands_) {
    fail();
  } else if (asked_ && replies_ == question_) {
    answer(code == wanted_code_);
  }
}

// ---- POP3

void UpgradeDialog::pop3_command(std::string_view text) noexcept {
  if (++commands_ > kMostCommands) return fail();
  const std::string_view word = take_word(text);
  if (same_word(word, "CAPA") || (same_word(word, "AUTH") && text.empty())) {  // AUTH alone lists mechanisms (RFC 5034)
    long_replies_ = static_cast<std::uint16_t>(long_replies_ | 1U << commands_);
  } else if (same_word(word, "STLS") && text.empty()) {
    ask();
  } else if (!same_word(word, "UTF8") && !same_word(word, "NOOP")) {
    fail();
  }
}

void UpgradeDialog::pop3_reply(std::string_view text) noexcept {
  if (code_ != 0) {  // inside a multi-line reply, which ends with a dot
    if (text == "." && length_[1] <= 2) code_ = 0;
    return;
  }
  const bool yes = text.starts_with("+OK");
  if (!yes && !text.starts_with("-ERR")) return fail();
  if (!greeted_) {
    greeted_ = true;
  } else if (++replies_ > commands_) {
    fail();
  } else if (asked_ && replies_ == question_) {
    answer(yes);
  } else if (yes && (long_replies_ >> replies_ & 1) != 0) {
    code_ = 1;
  }
}

// ---- IMAP: replies have the tag of their command

void UpgradeDialog::imap_command(std::string_view text) noexcept {
  static constexpr std::array<std::string_view, 3> kKnown{"CAPABILITY", "NOOP", "ID"};
  if (++commands_ > kMostCommands) return fail();
  const bool has_literal = last_ == '}';
  const std::string_view tag = take_word(text), word = take_word(text);
  if (tag.empty() || tag == "*" || tag == "+" || has_literal) return fail();
  if (same_word(word, "STARTTLS") && text.empty()) {
    ask();
  } else if (!is_one_of(word, kKnown)) {
    fail();
  }
}

void UpgradeDialog::imap_reply(std::string_view text) noexcept {
  std::string_view question = line(Direction::to_server);
  const std::string_view tag = take_word(text);
  if (tag == "+") return fail();  // the server requests a literal
  if (asked_ && tag == take_word(question)) answer(same_word(take_word(text), "OK"));
}

// ---- HTTP: CONNECT requests, until one is accepted

void UpgradeDialog::http_request_line(std::string_view text) noexcept {
  if (in_request_) {
    in_request_ = !text.empty();
    if (!in_request_) ask();
  } else {
    in_request_ = text.starts_with("CONNECT ");
    if (!in_request_ || ++commands_ > kMostCommands) fail();
  }
}

void UpgradeDialog::http_response_line(std::string_view text) noexcept {
  if (code_ == 0) {
    code_ = text.starts_with("HTTP/1.") && text.size() >= 12 ? code_of(text.substr(9, 4)) : std::uint16_t{0};
    no_length_ = false;
    skip_ = 0;
    if (code_ == 0 && !text.empty()) fail();
    return;
  }
  constexpr std::string_view kLength = "CONTENT-LENGTH:", kEncoding = "TRANSFER-ENCODING:";
  if (!text.empty()) {
    if (same_word(text.substr(0, kEncoding.size()), kEncoding)) no_length_ = true;
    if (!same_word(text.substr(0, kLength.size()), kLength)) return;
    text.remove_prefix(kLength.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    no_length_ = no_length_ || skip_ != 0 || length_[1] > kLine || text.empty();
    for (const char c : text) {
      no_length_ = no_length_ || c < '0' || c > '9';
      skip_ = skip_ * 10 + static_cast<std::uint32_t>(c - '0');
    }
    return;
  }
  const unsigned kind = code_ / 100U;
  code_ = 0;
  if (kind == 1) return;
  if (kind == 2) {
    skip_ = 0;
    return answer(true);
  }
  no_length_ ? fail() : answer(false);
}

// ---- LDAP: one message of the client, one of the server

Bytes UpgradeDialog::read_ldap(Direction side, Bytes bytes) noexcept {
  const auto i = static_cast<std::size_t>(side);
  const bool is_client = side == Direction::to_server;
  if (is_client ? asked_ : !asked_) {
    // Either the client continues without waiting, or the server speaks first.
    if (is_client && starts_anew(bytes.front())) {
      left_[0] = true;
    } else {
      fail();
    }
    return bytes;
  }
  const std::size_t room = is_client ? text_.size() : kLine;
  char* const kept = text_.data() + (is_client ? 0 : kLine);
  while (!bytes.empty()) {
    if (length_[i] < room) kept[length_[i]] = static_cast<char>(bytes.front());
    ++length_[i];
    bytes = bytes.subspan(1);
    const Bytes message(reinterpret_cast<const std::uint8_t*>(kept), std::min<std::size_t>(length_[i], room));
    const auto all = element_of(message);
    if (!all) {
      if (length_[i] > 6) fail();  // no valid header is that long
    } else {
      const std::size_t whole = message.size() - all->rest.size() + all->length;
      if (whole > (is_client ? room : std::size_t{4096})) {
        fail();
      } else if (length_[i] == whole) {
        if (is_client && !asks_for_tls(message)) {
          fail();
        } else {
          is_client ? ask() : answer(agrees_to_tls(message));
          if (!is_client && !left_[1]) fail();  // later messages are not read
        }
        return bytes;
      }
    }
    if (failed_) return bytes;
  }
  return bytes;
}

}  // namespace penstock::stack
