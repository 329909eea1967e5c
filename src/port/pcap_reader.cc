// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/pcap_reader.h"

#include <pcap/pcap.h>
#include <stdio_ext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/nanoseconds.h"
#include "port/link_types.h"

namespace penstock::port {

namespace {

constexpr std::size_t kStdioBuffer = 64 << 10;  // small enough to stay in the L2 cache along with a batch

ssize_t read_cookie(void* cookie, char* into, std::size_t size) {
  return static_cast<BufferedSource*>(cookie)->read({reinterpret_cast<std::uint8_t*>(into), size});
}

/// `tv_usec` contains nanoseconds here. In a damaged capture, it may be more than a second.
std::uint64_t nanoseconds_of(const timeval& time) noexcept {
  // libpcap reads the format's unsigned 32-bit seconds as signed, which is wrong from 2038 on.
  const std::uint64_t seconds = static_cast<std::uint32_t>(time.tv_sec);
  return seconds * kNsPerSecond + static_cast<std::uint64_t>(std::max<std::int64_t>(time.tv_usec, 0));
}

}  // namespace

void PcapReader::ClosePcap::operator()(pcap* capture) const noexcept { pcap_close(capture); }

PcapReader::PcapReader(BufferedSource& source, Handle pcap, LinkType link_type) noexcept
    : source_(&source), pcap_(std::move(pcap)), link_type_(link_type) {}

Result<std::unique_ptr<PcapReader>> PcapReader::open(BufferedSource& source, const std::string& path) {
  const cookie_io_functions_t functions{read_cookie, nullptr, nullptr, nullptr};
  std::FILE* stream = fopencookie(&source, "r", functions);
  if (stream == nullptr) return failure(system_error(path, "cannot read", "no memory"));
  std::setvbuf(stream, nullptr, _IOFBF, kStdioBuffer);
  __fsetlocking(stream, FSETLOCKING_BYCALLER);  // only one thread reads, so avoid a lock per packet
  std::array<char, PCAP_ERRBUF_SIZE> reason{};
  Handle pcap(pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason.data()));
  if (!pcap) {
    std::fclose(stream);
    const std::string& deeper = source.source().reason();
    return failure({{path, 0, 0}, "not a readable capture", deeper.empty() ? reason.data() : deeper, "pcap or pcapng"});
  }
  const int dlt = pcap_datalink(pcap.get());
  const auto link_type = link_type_of_dlt(dlt);
  if (!link_type) return failure({{path, 0, 0}, "link type not supported", describe_dlt(dlt), supported_dlts()});
  return std::unique_ptr<PcapReader>(new PcapReader(source, std::move(pcap), *link_type));
}

CaptureFormat::Status PcapReader::next(CapturedFrame& frame) noexcept {
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  const int status = pcap_next_ex(pcap_.get(), &header, &bytes);
  if (status != 1) return status == PCAP_ERROR_BREAK ? Status::end : Status::broken;
  frame.bytes = {bytes, header->caplen};
  frame.timestamp_ns = nanoseconds_of(header->ts);
  frame.wire_length = std::max(header->len, header->caplen);
  frame.link_type = link_type_;
  frame.number = ++packets_;
  return Status::packet;
}

std::string PcapReader::reason() const {
  const std::string& deeper = source_->source().reason();
  return deeper.empty() ? pcap_geterr(pcap_.get()) : deeper;
}

}  // namespace penstock::port
