// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands and replies of FTP that announce a data connection (RFC 959 §4.1.2, RFC 1123 §4.1.2.6, RFC 2428), read
// and written as Linux does (nf_conntrack_ftp, nf_nat_ftp). Pure: knows nothing of connections.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ip_address.h"
#include "conntrack/connection.h"
#include "conntrack/tuple.h"

namespace penstock::conntrack {

enum class FtpCommand : std::uint8_t { port, eprt, pasv, epsv };  // the last two: the replies 227 and 229

struct FtpAnnouncement {
  enum class Kind : std::uint8_t {
    none,        // the line says something else
    incomplete,  // it begins like one, but is not all there, or not of its form
    found,
  };

  Kind kind = Kind::none;
  FtpCommand command = FtpCommand::port;
  Ipv6Address address;                   // IPv4: {0, address}; `otherwise` if the line has none
  std::uint16_t port = 0;                // of what is found; 0 only in PORT and 227
  std::uint32_t offset = 0, length = 0;  // of the numbers in the payload
};

/// What the line says with which `payload` begins. `direction` is that of its sender: clients send commands, and
/// servers replies. `otherwise` is the sender's address.
[[nodiscard]] FtpAnnouncement read_ftp(Bytes payload, Direction direction, std::uint8_t ip_version,
                                       const Ipv6Address& otherwise) noexcept;

/// The longest numbers: |2|ADDRESS|PORT|.
inline constexpr std::size_t kMostFtpNumbers = 3 + 39 + 1 + 5 + 1;
/// More than any numbers can be longer than those in whose place they come.
inline constexpr std::uint32_t kMostFtpGrowth = 48;

/// Writes numbers for a command. Returns their length.
[[nodiscard]] std::size_t write_ftp(std::span<char, kMostFtpNumbers + 1> to, FtpCommand command,
                                    std::uint8_t ip_version, const Ipv6Address& address, std::uint16_t port) noexcept;

}  // namespace penstock::conntrack
