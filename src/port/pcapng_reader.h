// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads pcapng (draft-ietf-opsawg-pcapng): sections of either byte order, each with interfaces of their own link type,
// snapshot length and clock. Memory is bounded whatever the file says: a block of packets or of an interface is at
// most BufferedSource::kMostPeeked bytes, other blocks are skipped as they are read, and of an interface a few words
// are kept.

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
  static constexpr std::size_t kMostInterfaces = std::size_t{1} << 20;  // of a section
  static constexpr std::uint32_t kMostFrameBytes = 262'144;             // as libpcap's and Wireshark's

  [[nodiscard]] static bool recognises(std::span<const std::uint8_t> first) noexcept;

  /// Reads from the start of the first section. `source` outlives the reader.
  explicit PcapngReader(BufferedSource& source) noexcept : source_(&source) {}

  /// Reads up to the first interface; with `read_ahead` up to the first packet. An error where the file is no capture,
  /// or none of the interfaces has a link type that Penstock reads. Called once, before `next`.
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
    std::uint16_t number = 0;  // of the link type, in the file
    std::optional<LinkType> type;
  };
  /// What read_block came upon. A packet of a link type that is not read is `other`.
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
  bool big_endian_ = false;  // this section
  std::vector<Interface> interfaces_;
  std::size_t taken_ = 0;  // bytes of the block whose frame was given last
  CapturedFrame frame_;
  std::optional<Block> ahead_;  // what `begin` came upon, for `next`
  std::uint64_t packets_ = 0;
  std::uint64_t left_out_ = 0;
  std::uint16_t left_out_number_ = 0;  // the first one's link type
  std::string reason_;
};

}  // namespace penstock::port
