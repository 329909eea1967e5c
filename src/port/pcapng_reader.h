// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads pcapng (draft-ietf-opsawg-pcapng). A file has sections of either byte order, and their interfaces each have a
// link type, a snapshot length and a clock. Memory is bounded whatever the file contains: packet and interface blocks
// may have at most BufferedSource::kMostPeeked bytes, other blocks are skipped while reading, and only a few words are
// stored per interface.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/buffered_source.h"
#include "port/capture_format.h"

namespace penstock::port {

class PcapngReader final : public CaptureFormat {
 public:
  static constexpr std::size_t kMostInterfaces = std::size_t{1} << 20;  // per section
  static constexpr std::uint32_t kMostFrameBytes = 262'144;             // like libpcap and Wireshark

  [[nodiscard]] static bool recognises(std::span<const std::uint8_t> first) noexcept;

  /// Reads from the start of the first section. `source` must outlive the reader.
  explicit PcapngReader(BufferedSource& source) noexcept : source_(&source) {}

  /// Reads up to the first interface or, with `read_ahead`, up to the first packet. Fails if the file is not a capture,
  /// or no interface has a supported link type. Call it once, before `next`.
  [[nodiscard]] Result<void> begin(const std::string& path, bool read_ahead);

  Status next(CapturedFrame& frame) noexcept override;
  [[nodiscard]] std::string reason() const override { return reason_; }
  [[nodiscard]] std::uint64_t packets() const noexcept override { return packets_; }
  [[nodiscard]] Errors left_out(const std::string& path) const override;

 private:
  struct Interface {
    std::uint64_t ticks_per_second = 1'000'000;
    std::int64_t offset_seconds = 0;
    std::uint32_t snap_length = 0;
    std::uint16_t number = 0;  // the link type's number in the file
    std::optional<LinkType> type;
  };
  /// What read_block found. A packet with an unsupported link type is `other`.
  enum class Block : std::uint8_t { packet, other, end, broken };

  [[nodiscard]] Block read_block() noexcept;
  [[nodiscard]] Block read_section() noexcept;
  [[nodiscard]] Block read_interface(std::span<const std::uint8_t> body) noexcept;
  [[nodiscard]] bool read_options(std::span<const std::uint8_t> options, Interface& interface) noexcept;
  [[nodiscard]] Block read_packet(std::uint32_t type, std::span<const std::uint8_t> body) noexcept;
  [[nodiscard]] Block broken(std::string why) noexcept;
  [[nodiscard]] Block cut() noexcept;
  [[nodiscard]] std::uint16_t u16(const std::uint8_t* at) const noexcept;
  [[nodiscard]] std::uint32_t u32(const std::uint8_t* at) const noexcept;
  [[nodiscard]] std::uint64_t u64(const std::uint8_t* at) const noexcept;

  BufferedSource* source_;
  bool big_endian_ = false;  // of the current section
  std::vector<Interface> interfaces_;
  std::size_t taken_ = 0;  // bytes of the block that contains the last returned frame
  CapturedFrame frame_;
  std::optional<Block> ahead_;  // the block that `begin` read ahead, for `next`
  std::uint64_t packets_ = 0;
  std::uint64_t left_out_ = 0;
  std::uint16_t left_out_number_ = 0;  // link type of the first skipped packet
  std::string reason_;
};

}  // namespace penstock::port
