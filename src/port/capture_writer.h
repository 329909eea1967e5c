// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A capture file that several workers write. Each worker encodes its packets into its own buffer, and takes the file's
// lock only to write a full buffer or at the end of a batch, never for a single packet. So the order is kept within a
// worker, and thereby within a flow. A classic pcap file has one link type (that of the first packet) and one
// precision; pcapng supports several of both.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/packet.h"
#include "port/byte_sink.h"
#include "port/port.h"

namespace penstock::port {

enum class Precision : std::uint8_t {
  automatic,  // microseconds, unless a packet of the first buffer needs nanoseconds
  microseconds,
  nanoseconds,
};

class CaptureWriter {
 public:
  static constexpr std::uint32_t kSnapLength = 262144;  // like tcpdump

  /// The file name determines the format (`.pcapng`, otherwise classic pcap) and the compression (a further `.gz` or
  /// `.zst`). `precision` applies to classic pcap; pcapng is written in nanoseconds. Blocks like `ByteSink::open`.
  static Result<std::unique_ptr<CaptureWriter>> open(const std::string& path, Precision precision, int stop_fd = -1);
  /// Truncates the file. Call it before the first packet.
  void begin() noexcept;

  /// The buffer of one worker. The writer must outlive it.
  class Buffer {
   public:
    explicit Buffer(CaptureWriter& writer);
    /// Returns how many packets it took; see `TxQueue::send`.
    std::size_t add(std::span<const PacketView> packets) noexcept;
    /// See `TxQueue::flush`. A packet is only lost if the file lacks some of its bytes.
    Lost flush() noexcept;

   private:
    void write_out() noexcept;

    CaptureWriter* writer_;
    std::vector<std::uint8_t> bytes_;
    std::size_t used_ = 0;
    Lost lost_;  // since the last flush
  };

  /// Whether writing has failed. No packets are accepted from then on.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  /// Completes the file, and returns what went wrong and what could not be written. Call it once all buffers are
  /// flushed. Does nothing if `begin` was not called.
  [[nodiscard]] Errors close();

 private:
  enum class Encoding : std::uint8_t { undecided, microseconds, nanoseconds, pcapng };
  static constexpr int kNoInterface = -1;
  static constexpr std::size_t kLinkTypeCount = static_cast<std::size_t>(LinkType::cisco_hdlc) + 1;

  CaptureWriter(std::string path, std::unique_ptr<ByteSink> sink, bool pcapng, Precision precision) noexcept;

  void decide(std::span<const PacketView> first) noexcept;
  void begin_classic(LinkType type, bool nanoseconds) noexcept;
  /// The number of the interface with this link type; kNoInterface if the file cannot hold it.
  int interface_of(LinkType type) noexcept;
  int add_interface(LinkType type) noexcept;
  std::size_t encode(PacketView packet, int interface, std::uint8_t* to) noexcept;
  std::size_t write_locked(std::span<const std::uint8_t> bytes) noexcept;
  /// The packets of `records` that are not completely within the first `written` bytes.
  [[nodiscard]] Lost lost_of(std::span<const std::uint8_t> records, std::size_t written) const noexcept;

  const std::string path_;
  const bool pcapng_;
  const Precision precision_;
  std::atomic<Encoding> encoding_{Encoding::undecided};
  std::array<std::atomic<int>, kLinkTypeCount> interfaces_;  // by LinkType
  std::atomic<std::uint64_t> wrong_type_{0}, too_long_{0}, digits_lost_{0}, too_late_{0};
  std::atomic<bool> failed_{false};

  std::mutex mutex_;  // guards the members below
  std::unique_ptr<ByteSink> sink_;
  bool begun_ = false;
  int interface_count_ = 0;
  LinkType first_type_ = LinkType::ethernet;
};

}  // namespace penstock::port
