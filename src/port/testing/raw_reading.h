// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What libpcap reads from a capture, and what RawCaptureReader does.

#pragma once

#include <pcap/pcap.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "port/raw_capture_reader.h"

namespace penstock::port::testing {

struct RawReading {
  bool opened = false;
  std::string packets;       // what a capture of them contains; empty if there is none for the link type
  std::string reason;        // why reading ended early
  std::size_t in_place = 0;  // packets that were not copied

  /// Whether both have the same packets and end alike.
  friend bool operator==(const RawReading& a, const RawReading& b) {
    return a.opened == b.opened && a.packets == b.packets && a.reason == b.reason;
  }
};

inline std::string text_of(const void* data, std::size_t size) { return {static_cast<const char*>(data), size}; }

/// `capture` is not empty.
inline RawReading read_by_libpcap(std::span<const std::uint8_t> capture) {
  RawReading reading;
  std::FILE* const stream = ::fmemopen(const_cast<std::uint8_t*>(capture.data()), capture.size(), "rb");
  if (stream == nullptr) std::abort();
  char reason[PCAP_ERRBUF_SIZE] = "";
  pcap_t* const pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_MICRO, reason);
  if (pcap == nullptr) {
    std::fclose(stream);
    return reading;
  }
  reading.opened = true;
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* const out = ::open_memstream(&text, &length);
  pcap_dumper_t* const dumper = pcap_dump_fopen(pcap, out);
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(pcap, &header, &bytes)) == 1) {
    if (dumper != nullptr) pcap_dump(reinterpret_cast<u_char*>(dumper), header, bytes);
  }
  if (status != PCAP_ERROR_BREAK) reading.reason = pcap_geterr(pcap);
  std::fclose(out);
  if (dumper != nullptr) reading.packets.assign(text, length);
  std::free(text);
  pcap_close(pcap);
  return reading;
}

inline RawReading read_by_us(const std::string& path) {
  RawReading reading;
  ReadControl control;
  const auto reader = RawCaptureReader::open(path, control);
  if (!reader) return reading;
  reading.opened = true;
  const auto file_header = (*reader)->file_header();
  std::string packets;
  for (;;) {
    const auto records = (*reader)->next();
    if (records.empty()) break;
    for (const RawRecord& record : records) {
      packets += text_of(record.header, RawRecord::kHeaderBytes);
      if (record.length > 0) packets += text_of(record.data, record.length);
      reading.in_place += record.header + RawRecord::kHeaderBytes != record.data ? 1 : 0;
    }
  }
  reading.reason = (*reader)->reason();
  if (file_header) reading.packets = text_of(file_header->data(), file_header->size()) + packets;
  return reading;
}

/// Reads the capture as a regular file.
inline RawReading read_by_us(std::span<const std::uint8_t> capture) {
  const int fd = ::memfd_create("capture", 0);
  if (fd < 0 || ::write(fd, capture.data(), capture.size()) != static_cast<ssize_t>(capture.size())) std::abort();
  RawReading reading = read_by_us("/proc/self/fd/" + std::to_string(fd));
  ::close(fd);
  return reading;
}

}  // namespace penstock::port::testing
