// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finishes frames that Linux hands over with work left for the NIC (virtio 1.2 §5.1.6.2): a
// transport checksum that is not yet computed, and TCP or UDP data of up to 64 KiB that are not yet split into
// segments. Functions thus see the frames that would be on the wire.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "port/live/segment_headers.h"

namespace penstock::port {

/// What the NIC is to do with a frame: `struct virtio_net_hdr`, in the host's byte order. (The kernel's header is not
/// for C++.)
struct VirtioHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t header_length = 0;    // a hint
  std::uint16_t gso_size = 0;         // most bytes of a segment's payload
  std::uint16_t checksum_start = 0;   // in the frame
  std::uint16_t checksum_offset = 0;  // of the checksum, from there

  static constexpr std::uint8_t kNeedsChecksum = 1;                                      // flags
  static constexpr std::uint8_t kNone = 0, kTcp4 = 1, kTcp6 = 4, kUdp = 5, kEcn = 0x80;  // gso_type

  /// Whether the frame has to be split.
  [[nodiscard]] constexpr bool is_segmented() const noexcept { return gso_type != kNone; }
  [[nodiscard]] constexpr bool lacks_checksum() const noexcept { return (flags & kNeedsChecksum) != 0; }
};
static_assert(sizeof(VirtioHeader) == 10);

/// Computes the checksum from `header.checksum_start` to the end of the frame (for SCTP, its CRC32c), and stores it at
/// `header.checksum_offset` from there. `shift`: how many bytes have been inserted before that place since (a VLAN
/// tag). Returns false, and changes nothing, if the places are not in the frame.
[[nodiscard]] bool complete_checksum(std::span<std::uint8_t> frame, const VirtioHeader& header,
                                     std::size_t shift) noexcept;

/// What is left to do with a frame that comes without a `VirtioHeader`, as through XDP: all zero if nothing.
///
/// A sender that leaves a TCP or UDP checksum to the NIC stores the sum of the pseudo header, folded to 16 bits, in its
/// place. A correct checksum may have the same value by chance; completing it gives the same checksum again. TCP
/// frames with such a sum and a packet longer than `mtu` were to be split too; their segments get as long as `mtu`
/// allows.
[[nodiscard]] VirtioHeader find_offload(std::span<const std::uint8_t> frame, std::uint32_t mtu) noexcept;

/// Splits a frame into the segments that a NIC would send: TCP over IPv4 and IPv6, and UDP segmentation
/// (each segment a datagram), also in a tunnel (IP in IP, GRE, and those over UDP). Each has complete headers and
/// checksums. Borrows the frame.
class Segmenter {
 public:
  /// Empty if the frame does not have the headers that `header` says, or is of another kind (UDP fragmentation). The
  /// checksum must not have been completed.
  [[nodiscard]] static std::optional<Segmenter> of(std::span<const std::uint8_t> frame, const VirtioHeader& header,
                                                   std::size_t shift) noexcept;

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Of the frame of a segment, in bytes.
  [[nodiscard]] std::size_t length(std::size_t segment) const noexcept { return headers_ + payload_of(segment); }
  /// Writes `length(segment)` bytes.
  void write(std::size_t segment, std::uint8_t* to) const noexcept;

 private:
  Segmenter() = default;
  [[nodiscard]] std::size_t payload_of(std::size_t segment) const noexcept {
    return segment + 1 < count_ ? size_ : frame_.size() - payload_at_ - segment * size_;
  }
  [[nodiscard]] std::uint32_t pseudo_header_sum(std::size_t ip_layer, const std::uint8_t* frame) const noexcept;
  void write_layer(std::size_t layer, std::size_t segment, std::uint8_t* frame, std::size_t length) const noexcept;

  std::span<const std::uint8_t> frame_;
  SegmentHeaders layers_;
  std::size_t payload_at_ = 0;               // in the frame
  std::size_t transport_ = 0, headers_ = 0;  // in a segment: the offset of the transport header, and of the payload
  std::size_t size_ = 0;                     // of a segment's payload; the last one's may be less
  std::size_t count_ = 0;
  bool tcp_ = false;
};

}  // namespace penstock::port
