// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A capture as libpcap reads it, without any of our code: what golden tests compare.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace penstock::golden {

struct Record {
  std::uint64_t time_ns = 0;
  std::uint32_t wire_length = 0;
  std::string bytes;

  friend auto operator<=>(const Record&, const Record&) = default;
};

struct CaptureFile {
  int link_type = 0;
  std::vector<Record> records;
};

/// Reads pcap or pcapng, also compressed with gzip or Zstandard. Throws std::runtime_error with the reason.
[[nodiscard]] CaptureFile read_capture_file(const std::string& path);

/// The records of each flow, in order. A flow is the unit that must stay in order: for IP packets, addresses, protocol
/// and ports; for fragments, their datagram, because fragments before the first one wait for it. Any other packet is a
/// flow of its own.
[[nodiscard]] std::map<std::string, std::vector<Record>> flows_of(const CaptureFile& capture);

/// For messages: "1795211903.664114000 98 of 98 bytes 0200…".
[[nodiscard]] std::string to_string(const Record& record);

}  // namespace penstock::golden
