// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds valid or invalid capture files byte by byte, independently of our writer and of libpcap.

#pragma once

#include <cstdint>
#include <vector>

namespace penstock::port::testing {

class CaptureBytes {
 public:
  explicit CaptureBytes(bool big_endian = false) : big_endian_(big_endian) {}

  CaptureBytes& u16(std::uint32_t v) {
    if (big_endian_) return u8(v >> 8).u8(v);
    return u8(v).u8(v >> 8);
  }
  CaptureBytes& u32(std::uint32_t v) {
    if (big_endian_) return u16(v >> 16).u16(v);
    return u16(v).u16(v >> 16);
  }
  CaptureBytes& u64(std::uint64_t v) {
    const auto high = static_cast<std::uint32_t>(v >> 32);
    const auto low = static_cast<std::uint32_t>(v);
    return big_endian_ ? u32(high).u32(low) : u32(low).u32(high);
  }
  CaptureBytes& u8(std::uint32_t v) {
    bytes_.push_back(static_cast<std::uint8_t>(v));
    return *this;
  }
  CaptureBytes& raw(const std::vector<std::uint8_t>& more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }

  CaptureBytes& pcap_header(std::uint32_t link_type = 1, std::uint32_t magic = 0xa1b2c3d4,
                            std::uint32_t snap_length = 65535) {
    return u32(magic).u16(2).u16(4).u32(0).u32(0).u32(snap_length).u32(link_type);
  }
  CaptureBytes& pcap_record(std::uint32_t seconds, std::uint32_t fraction, std::uint32_t length,
                            std::uint32_t wire_length) {
    return u32(seconds).u32(fraction).u32(length).u32(wire_length);
  }

  CaptureBytes& section() { return u32(0x0a0d0d0a).u32(28).u32(0x1a2b3c4d).u16(1).u16(0).u32(~0U).u32(~0U).u32(28); }
  /// A pcapng block of any type.
  CaptureBytes& block(std::uint32_t type, const std::vector<std::uint8_t>& body) {
    const auto padding = static_cast<std::uint32_t>(-body.size() % 4);
    const auto length = static_cast<std::uint32_t>(12 + body.size()) + padding;
    u32(type).u32(length).raw(body);
    for (std::uint32_t i = 0; i < padding; ++i) u8(0);
    return u32(length);
  }
  /// `resolution`: the byte of the if_tsresol option; 6 (microseconds) is the format's default.
  CaptureBytes& interface(std::uint32_t link_type, std::uint8_t resolution = 6, std::uint32_t snap_length = 65535) {
    return u32(1)
        .u32(32)
        .u16(link_type)
        .u16(0)
        .u32(snap_length)
        .u16(9)
        .u16(1)
        .u8(resolution)
        .u8(0)
        .u16(0)
        .u32(0)
        .u32(32);
  }
  CaptureBytes& packet(std::uint32_t interface, std::uint64_t time, const std::vector<std::uint8_t>& frame,
                       std::uint32_t wire_length) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    const std::uint32_t padding = (4 - length % 4) % 4;
    u32(6).u32(32 + length + padding).u32(interface);
    u32(static_cast<std::uint32_t>(time >> 32)).u32(static_cast<std::uint32_t>(time)).u32(length).u32(wire_length);
    raw(frame);
    for (std::uint32_t i = 0; i < padding; ++i) u8(0);
    return u32(32 + length + padding);
  }

  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  bool big_endian_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace penstock::port::testing
