// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/ftp.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace penstock::conntrack {
namespace {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
/// RFC 2428 §2: what may stand between the parts.
constexpr bool is_delimiter(char c) noexcept { return c >= 33 && c <= 126 && !is_digit(c); }

/// What is left of the line.
class Rest {
 public:
  explicit Rest(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  [[nodiscard]] char first() const noexcept { return text_.front(); }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  void drop(std::size_t count) noexcept { text_.remove_prefix(count); }
  /// Modulo 2^32, and 0 without digits: as in Linux, numbers that are too large, or missing, are not refused. What
  /// counts is that the address is the sender's.
  std::uint32_t number() noexcept {
    std::uint32_t value = 0;
    for (; !empty() && is_digit(first()); drop(1)) value = value * 10 + static_cast<std::uint32_t>(first() - '0');
    return value;
  }
  /// N numbers with a character between them. False if they are not all there, with something after them.
  template <std::size_t n>
  [[nodiscard]] bool numbers(std::array<std::uint32_t, n>& values, char between) noexcept {
    for (std::size_t i = 0; i < n; ++i) {
      if (i != 0) {
        if (empty() || first() != between) return false;
        drop(1);
      }
      values[i] = number();
    }
    return !empty();
  }

 private:
  std::string_view text_;
};

constexpr std::uint32_t address_of(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) noexcept {
  return a << 24 | b << 16 | c << 8 | d;
}

/// h1,h2,h3,h4,p1,p2 (RFC 959 §4.1.2). `end`: the character that must follow; 0: any but a separator.
bool read_host_port(Rest& rest, char end, FtpAnnouncement& said) noexcept {
  std::array<std::uint32_t, 6> values{};
  if (!rest.numbers(values, ',') || rest.first() == ',' || (end != 0 && rest.first() != end)) return false;
  said.address = {0, address_of(values[0], values[1], values[2], values[3])};
  said.port = static_cast<std::uint16_t>(values[4] << 8 | values[5]);
  return true;
}

/// PORT| (RFC 2428 §2, §3)
bool read_port(Rest& rest, char delimiter, FtpAnnouncement& said) noexcept {
  said.port = static_cast<std::uint16_t>(rest.number());
  if (rest.empty() || rest.first() != delimiter || said.port == 0) return false;
  rest.drop(1);
  return true;
}

/// |1|ADDRESS|PORT| or |2|ADDRESS|PORT|
bool read_extended_port(Rest& rest, std::uint8_t ip_version, FtpAnnouncement& said) noexcept {
  const std::string_view text = rest.text();
  if (text.size() <= 3) return false;
  const char delimiter = text[0];
  if (!is_delimiter(delimiter) || text[2] != delimiter || text[1] != (ip_version == 4 ? '1' : '2')) return false;
  rest.drop(3);
  if (ip_version == 4) {
    std::array<std::uint32_t, 4> values{};
    if (!rest.numbers(values, '.') || rest.first() != delimiter || delimiter == '.') return false;
    said.address = {0, address_of(values[0], values[1], values[2], values[3])};
  } else {
    const std::size_t length = rest.text().find(delimiter);
    if (length == std::string_view::npos) return false;
    const auto address = parse_ipv6(rest.text().substr(0, length));
    if (!address) return false;
    said.address = *address;
    rest.drop(length);
  }
  rest.drop(1);
  return read_port(rest, delimiter, said);
}

/// |||PORT|
bool read_extended_passive(Rest& rest, FtpAnnouncement& said) noexcept {
  const std::string_view text = rest.text();
  if (text.size() <= 3) return false;
  const char delimiter = text[0];
  if (!is_delimiter(delimiter) || text[1] != delimiter || text[2] != delimiter) return false;
  rest.drop(3);
  return read_port(rest, delimiter, said);
}

struct Pattern {
  std::string_view begins;
  char skips_to;  // the character before the numbers; 0: they follow at once
  FtpCommand command;
};
constexpr std::array<std::array<Pattern, 2>, 2> kPatterns{{
    {{{"PORT", ' ', FtpCommand::port}, {"EPRT", ' ', FtpCommand::eprt}}},
    {{{"227 ", 0, FtpCommand::pasv}, {"229 ", '(', FtpCommand::epsv}}},
}};

constexpr char to_upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool begins_alike(std::string_view line, std::string_view pattern) noexcept {
  const std::size_t length = std::min(line.size(), pattern.size());
  for (std::size_t i = 0; i < length; ++i) {
    if (to_upper(line[i]) != pattern[i]) return false;
  }
  return true;
}

/// `line` begins with the pattern.
bool read_numbers(std::string_view line, const Pattern& pattern, std::uint8_t ip_version,
                  FtpAnnouncement& said) noexcept {
  std::size_t from = pattern.begins.size();
  if (pattern.skips_to != 0) {
    from = line.find(pattern.skips_to, from);
    if (from == std::string_view::npos) return false;
    ++from;
  } else {
    // RFC 1123 §4.1.2.6: from the first digit on; there need be no parentheses.
    const auto* const digit = std::ranges::find_if(line.substr(from), is_digit);
    if (digit == line.end()) return false;
    from = static_cast<std::size_t>(digit - line.begin());
  }
  Rest rest(line.substr(from));
  bool read = false;
  switch (pattern.command) {
    case FtpCommand::port: read = read_host_port(rest, '\r', said); break;
    case FtpCommand::eprt: read = read_extended_port(rest, ip_version, said); break;
    case FtpCommand::pasv: read = read_host_port(rest, 0, said); break;
    case FtpCommand::epsv: read = read_extended_passive(rest, said); break;
  }
  said.offset = static_cast<std::uint32_t>(from);
  said.length = static_cast<std::uint32_t>(line.size() - from - rest.text().size());
  return read;
}

}  // namespace

FtpAnnouncement read_ftp(Bytes payload, Direction direction, std::uint8_t ip_version,
                         const Ipv6Address& otherwise) noexcept {
  const std::string_view line{reinterpret_cast<const char*>(payload.data()), payload.size()};
  for (const Pattern& pattern : kPatterns[static_cast<unsigned>(direction)]) {
    if (!begins_alike(line, pattern.begins)) continue;
    FtpAnnouncement said{.kind = FtpAnnouncement::Kind::incomplete, .command = pattern.command, .address = otherwise};
    if (line.size() > pattern.begins.size() && read_numbers(line, pattern, ip_version, said))
      said.kind = FtpAnnouncement::Kind::found;
    return said;
  }
  return {};
}

std::size_t write_ftp(std::span<char, kMostFtpNumbers + 1> to, FtpCommand command, std::uint8_t ip_version,
                      const Ipv6Address& address, std::uint16_t port) noexcept {
  const auto octet = [&](unsigned i) { return address.low >> (24 - 8 * i) & 0xff; };
  const auto group = [&](unsigned i) { return (i < 4 ? address.high : address.low) >> (48 - 16 * (i % 4)) & 0xffff; };
  const auto written = [&](const auto& result) { return static_cast<std::size_t>(result.out - to.data()); };
  switch (command) {
    case FtpCommand::port:
    case FtpCommand::pasv:
      return written(fmt::format_to_n(to.data(), to.size(), "{},{},{},{},{},{}", octet(0), octet(1), octet(2), octet(3),
                                      port >> 8, port & 0xff));
    case FtpCommand::eprt:
      if (ip_version == 4) {
        return written(
            fmt::format_to_n(to.data(), to.size(), "|1|{}.{}.{}.{}|{}|", octet(0), octet(1), octet(2), octet(3), port));
      }
      // With all zeros, as Linux writes it.
      return written(fmt::format_to_n(to.data(), to.size(),
                                      "|2|{:04x}:{:04x}:{:04x}:{:04x}:{:04x}:{:04x}:{:04x}:{:04x}|{}|", group(0),
                                      group(1), group(2), group(3), group(4), group(5), group(6), group(7), port));
    case FtpCommand::epsv: return written(fmt::format_to_n(to.data(), to.size(), "|||{}|", port));
  }
  return 0;
}

}  // namespace penstock::conntrack
