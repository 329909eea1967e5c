// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "golden/capture_file.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace penstock::golden {

namespace {

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string gunzipped(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  std::string all;
  std::array<char, 65536> part{};
  int got = 0;
  while ((got = ::gzread(file.get(), part.data(), part.size())) > 0)
    all.append(part.data(), static_cast<unsigned>(got));
  if (got < 0) throw std::runtime_error(path + ": broken gzip");
  return all;
}

std::string unzstd(const std::string& path, const std::string& packed) {
  const std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  std::string all;
  std::array<char, 65536> part{};
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  for (std::size_t left = 1; in.pos < in.size || left != 0;) {
    ZSTD_outBuffer out{part.data(), part.size(), 0};
    left = ZSTD_decompressStream(stream.get(), &out, &in);
    all.append(part.data(), out.pos);
    if (ZSTD_isError(left) != 0 || (in.pos == in.size && out.pos == 0 && left != 0)) {
      throw std::runtime_error(path + ": broken Zstandard");
    }
  }
  return all;
}

std::string unpacked(const std::string& path) {
  std::string bytes = file_bytes(path);
  if (bytes.starts_with("\x1f\x8b")) return gunzipped(path);
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return unzstd(path, bytes);
  return bytes;
}

/// Length of the link header, for frames that belong to flows.
std::size_t link_header_length(int link_type, std::string_view frame) {
  switch (link_type) {
    case DLT_NULL:
    case DLT_LOOP:
    case DLT_C_HDLC:
    case DLT_PPP: return 4;
    case DLT_LINUX_SLL: return 16;
    case DLT_LINUX_SLL2: return 20;
    case DLT_EN10MB: break;
    default: return 0;
  }
  std::size_t at = 12;
  const auto is_tag = [&] {
    const std::string_view type = frame.substr(at, 2);
    return type == std::string_view("\x81\x00", 2) || type == "\x88\xa8" || type == std::string_view("\x91\x00", 2);
  };
  while (at + 6 <= frame.size() && is_tag()) at += 4;
  return at + 2;
}

bool has_ports(char protocol) { return protocol == 6 || protocol == 17 || protocol == '\x84'; }

/// What an ICMP error quotes, up to the ports; empty for other messages. Errors about different flows have no order.
std::string quoted_by(std::string_view icmp, int version) {
  if (icmp.size() < 8) return {};
  const auto type = static_cast<unsigned char>(icmp[0]);
  const bool error = version == 6 ? type < 128 : type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
  if (!error) return {};
  const std::string_view quoted = icmp.substr(8);
  if (version == 6) return std::string(quoted.substr(0, 44)).substr(std::min<std::size_t>(quoted.size(), 8));
  if (quoted.size() < 20) return {};
  const std::size_t ports = static_cast<std::size_t>(quoted[0] & 0xf) * 4;
  return std::string(quoted.substr(12, 8)) + std::string(quoted.substr(std::min(ports, quoted.size()), 4));
}

std::string flow_of(int link_type, const std::string& frame) {
  const std::string_view ip =
      std::string_view(frame).substr(std::min(frame.size(), link_header_length(link_type, frame)));
  if (ip.size() >= 20 && ip[0] >> 4 == 4) {
    const std::string addresses(ip.substr(12, 8));
    const bool fragment = (ip[6] & 0x3f) != 0 || ip[7] != 0;
    if (fragment) return addresses + ip[9] + std::string(ip.substr(4, 2));
    const std::size_t ports = static_cast<std::size_t>(ip[0] & 0xf) * 4;
    if (ip[9] == 1) return addresses + ip[9] + quoted_by(ip.substr(std::min(ports, ip.size())), 4);
    if (!has_ports(ip[9])) return addresses + ip[9];
    if (ip.size() >= ports + 8) return addresses + ip[9] + std::string(ip.substr(ports, 4));
  } else if (ip.size() >= 48 && (ip[0] >> 4 & 0xf) == 6) {
    const std::string addresses(ip.substr(8, 32));
    if (has_ports(ip[6])) return addresses + ip[6] + std::string(ip.substr(40, 4));
    if (ip[6] == 58) return addresses + ip[6] + quoted_by(ip.substr(40), 6);
  }
  return frame;
}

}  // namespace

CaptureFile read_capture_file(const std::string& path) {
  const std::string bytes = unpacked(path);
  std::array<char, PCAP_ERRBUF_SIZE> message{};
  std::FILE* const file = ::fmemopen(const_cast<char*>(bytes.data()), bytes.size(), "rb");
  if (file == nullptr) throw std::runtime_error(path + ": empty");
  const std::unique_ptr<pcap_t, void (*)(pcap_t*)> capture(
      pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, message.data()), pcap_close);
  if (capture == nullptr) {
    std::fclose(file);
    throw std::runtime_error(path + ": " + message.data());
  }
  CaptureFile all{pcap_datalink(capture.get()), {}};
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int got = 0;
  while ((got = pcap_next_ex(capture.get(), &header, &data)) == 1) {
    all.records.push_back(
        {static_cast<std::uint64_t>(header->ts.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(header->ts.tv_usec),
         header->len, std::string(reinterpret_cast<const char*>(data), header->caplen)});
  }
  if (got != PCAP_ERROR_BREAK) throw std::runtime_error(path + ": " + pcap_geterr(capture.get()));
  return all;
}

std::map<std::string, std::vector<Record>> flows_of(const CaptureFile& capture) {
  std::map<std::string, std::vector<Record>> flows;
  for (const Record& record : capture.records) flows[flow_of(capture.link_type, record.bytes)].push_back(record);
  return flows;
}

std::string to_string(const Record& record) {
  std::string text = fmt::format("{}.{:09} {} of {} bytes ", record.time_ns / 1'000'000'000,
                                 record.time_ns % 1'000'000'000, record.bytes.size(), record.wire_length);
  for (const char byte : record.bytes.substr(0, 80)) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace penstock::golden
