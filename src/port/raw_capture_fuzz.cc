// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary bytes as a capture, from a file and from a pipe. The packets and the error must be those that libpcap
// reads.

#include <fcntl.h>
#include <pcap/pcap.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "port/raw_capture_reader.h"

using namespace penstock;
using namespace penstock::port;

namespace {

struct Reading {
  bool opened = false;
  std::string packets;  // what a capture of them contains
  std::string reason;
};

std::string text_of(const void* data, std::size_t size) { return {static_cast<const char*>(data), size}; }

Reading read_by_libpcap(const std::uint8_t* data, std::size_t size) {
  Reading reading;
  std::FILE* const stream = ::fmemopen(const_cast<std::uint8_t*>(data), size, "rb");
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

Reading read_by_us(const std::string& path) {
  Reading reading;
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
    }
  }
  reading.reason = (*reader)->reason();
  if (file_header) reading.packets = text_of(file_header->data(), file_header->size()) + packets;
  return reading;
}

void compare(const Reading& theirs, const Reading& ours) {
  if (theirs.opened != ours.opened || theirs.packets != ours.packets || theirs.reason != ours.reason) {
    std::fprintf(stderr, "libpcap: %d, %zu bytes, '%s'; ours: %d, %zu bytes, '%s'\n", theirs.opened,
                 theirs.packets.size(), theirs.reason.c_str(), ours.opened, ours.packets.size(), ours.reason.c_str());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A compressed capture: libpcap cannot read it.
  if (size < 4 || (data[0] == 0x1f && data[1] == 0x8b) || std::memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0) return 0;
  const Reading theirs = read_by_libpcap(data, size);

  const int fd = ::memfd_create("capture", 0);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  compare(theirs, read_by_us("/proc/self/fd/" + std::to_string(fd)));
  ::close(fd);

  constexpr std::size_t kPipe = 60'000;  // a pipe takes this much without a reader
  int ends[2];
  if (size > kPipe || ::pipe(ends) != 0) return 0;
  if (::write(ends[1], data, size) != static_cast<ssize_t>(size)) std::abort();
  ::close(ends[1]);
  compare(theirs, read_by_us("/proc/self/fd/" + std::to_string(ends[0])));
  ::close(ends[0]);
  return 0;
}
