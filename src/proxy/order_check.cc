// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/order_check.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "packet/field_range.h"
#include "ring/lane_memory.h"

namespace penstock::proxy {

namespace {

constexpr LinkType kLastLinkType = LinkType::cisco_hdlc;
constexpr std::uint64_t kOffsetBits = 48;

bool carries_frames(const ring::SegmentShape& segment) noexcept { return segment.frames_up || segment.frames_down; }

bool is_for_device(const std::shared_ptr<const TenantMemory>& memory) noexcept {
  return memory != nullptr && memory->is_for_device();
}

/// The memory of a listed frame, and its offset there. Empty: there is none.
std::span<std::uint8_t> memory_of(std::uint64_t listed, const TenantMemories& memories, std::span<std::uint8_t> packed,
                                  std::uint64_t& offset) noexcept {
  const std::uint64_t id = listed >> kOffsetBits;
  offset = listed & ((std::uint64_t{1} << kOffsetBits) - 1);
  if (id == kPackedMemory) return packed;
  return id < kPackedMemory && is_for_device(memories[id]) ? memories[id]->bytes() : std::span<std::uint8_t>();
}

/// What crosses for each packet beside frames and headers: the larger of both directions.
std::uint64_t bytes_beside_frames(const ring::SegmentShape& segment) noexcept {
  std::uint64_t up = segment.sends_packets ? ring::kIndexBytes : 0;
  if (segment.verdicts_up) up += ring::kVerdictBytes + segment.up.bytes;
  std::uint64_t down = ring::kVerdictBytes + segment.down.bytes;
  for (const ring::SegmentShape::Stage& stage : segment.stages) {
    up += stage.state_bytes;
    down += stage.findings_bytes + (stage.changes_shape ? ring::kLengthBytes : 0);
  }
  return std::max(up, down);
}

}  // namespace

TenantMemory::TenantMemory(int file, std::size_t bytes) {
  const std::size_t length = LaneLayout::pages(bytes);
  void* const memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::uint8_t*>(memory), length};
}

TenantMemory::~TenantMemory() {
  opening_.reset();
  if (counter_ != nullptr) counter_->fetch_sub(bytes_.size());
  ::munmap(bytes_.data(), bytes_.size());
}

OrderCheck::OrderCheck(const ring::LaneShape& shape)
    : shape_(shape),
      most_frame_bytes_(ring::LaneSizes(shape).frames),
      most_counted_(std::ranges::any_of(shape.segments, carries_frames) ? Batch::kNoLimit : ring::kHeaderBytes),
      descriptors_(std::max<std::size_t>(1, shape.batch_packets) * sizeof(PacketDescriptor), /*shared=*/false),
      packets_(reinterpret_cast<PacketDescriptor*>(descriptors_.bytes().data()), shape.batch_packets),
      frames_(shape.batch_packets) {}

const char* OrderCheck::check(const Order& order, const TenantMemories& memories, const std::uint64_t* list,
                              std::span<std::uint8_t> packed) noexcept {
  if (order.segment >= shape_.segments.size()) return "no such segment";
  const ring::SegmentShape& segment = shape_.segments[order.segment];
  if (order.segment > 0 && (!follows_ || order.segment <= segment_ || order.packets != count_))
    return "a segment that does not follow";
  follows_ = false;
  std::uint32_t sends = order.segment;
  while (!shape_.segments[sends].sends_packets) --sends;
  // Stages rely on what this one sends: whole frames, or headers only.
  if (sends != order.segment && sends != sent_by_) return "a segment whose packets were not sent";
  if (order.packets > shape_.batch_packets) return "more packets than a batch can have";
  if (order.used_bytes > shape_.batch_bytes) return "more bytes than a batch can have";
  if (order.pictured > ring::kMostPictured) return "too many pictures";
  for (std::uint32_t p = 0; p < order.pictured; ++p) {
    if (order.pictures[p] >= order.packets) return "a picture of no packet";
  }
  if (order.frame_memory >= kMostMemories || order.packet_memory >= kMostMemories ||
      !is_for_device(memories[order.frame_memory]) || memories[order.packet_memory] == nullptr)
    return "memory that is not open";
  const TenantMemory& frame_memory = *memories[order.frame_memory];
  const TenantMemory& packet_memory = *memories[order.packet_memory];
  if (order.frames_at % kFrameAlignment != 0 || !frame_memory.has(order.frames_at, aligned_frame(order.used_bytes)))
    return "a batch outside its memory";
  const std::size_t packet_bytes = std::size_t{order.packets} * sizeof(PacketDescriptor);
  if (!packet_memory.has(order.packets_at, packet_bytes)) return "descriptors outside their memory";
  if (packet_bytes > 0) std::memcpy(packets_.data(), packet_memory.bytes().data() + order.packets_at, packet_bytes);
  bytes_ = 0;
  batch_ = Batch(frame_memory.bytes().subspan(order.frames_at, order.used_bytes), packets_.first(order.packets), {},
                 &gathered_);
  batch_.adopt(order.packets, order.used_bytes);
  if (order.frames > Order::Frames::gathered) return "frames nowhere";
  lists_frames_ = order.frames != Order::Frames::in_batch && order.packets > 0;
  const bool gathers = order.frames == Order::Frames::gathered && segment.sends_packets;
  const char* const wrong = !lists_frames_ ? check_frames(order)
                            : gathers      ? gather_frames(segment, memories, list, packed)
                                           : check_listed(segment, memories, list, packed);
  if (wrong != nullptr) return wrong;
  if (segment.verdicts_up && !segment.up.empty() && !records_fit(segment)) return "headers outside a frame";
  bytes_ = std::max(bytes_, order.packets * bytes_beside_frames(segment));
  segment_ = order.segment;
  sent_by_ = sends;
  count_ = order.packets;
  return nullptr;
}

/// Frames follow each other: where they overlapped, stages of one packet would change what parsing has found in another
/// one. So their sum, which is what the device packs, is bounded too.
const char* OrderCheck::check_frames(const Order& order) noexcept {
  std::size_t last_end = 0;
  const std::size_t end = aligned_frame(order.used_bytes);
  bytes_ = order.used_bytes;
  for (const PacketDescriptor& packet : batch_.packets()) {
    const std::size_t length = aligned_frame(packet.length);
    if (packet.region != PacketMemory::kBatch) return "a lent frame";
    if (packet.link_type > kLastLinkType) return "an unknown link type";
    if (packet.offset % kFrameAlignment != 0 || packet.offset > end || length > end - packet.offset)
      return "a frame outside its batch";
    if (packet.offset < last_end) return "frames that overlap";
    last_end = packet.offset + length;
  }
  return nullptr;
}

/// What the descriptor says of its frame does not count: the list does.
PacketDescriptor& OrderCheck::without_frame(std::size_t i) noexcept {
  frames_[i] = nullptr;
  packets_[i].region = PacketMemory::kBatch;
  packets_[i].offset = 0;
  return packets_[i];
}

/// Those of packets that are not forwarded are not read.
const char* OrderCheck::check_listed(const ring::SegmentShape& segment, const TenantMemories& memories,
                                     const std::uint64_t* list, std::span<std::uint8_t> packed) noexcept {
  std::size_t sum = 0;
  std::uint64_t span = 0;  // that is sent
  const std::uint8_t* in = nullptr;
  std::uint64_t first = 0, end = 0;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    PacketDescriptor& packet = without_frame(i);
    if (packet.link_type > kLastLinkType) return "an unknown link type";
    if (!packet.verdict.alive()) continue;
    std::uint64_t offset = 0;
    const std::span<std::uint8_t> memory =
        memory_of(__atomic_load_n(list + i, __ATOMIC_RELAXED), memories, packed, offset);
    if (memory.empty()) return "a frame in memory that is not open";
    const std::size_t length = aligned_frame(packet.length);
    if (offset > memory.size() || length > memory.size() - offset) return "a frame outside its memory";
    frames_[i] = memory.data() + offset;
    sum += length;
    if (!segment.sends_packets) continue;
    // All that is between the first and the last frame is sent.
    if (in == nullptr) {
      in = memory.data();
      first = offset / kFrameAlignment * kFrameAlignment;
    } else if (in != memory.data() || offset < end) {
      return "frames that are not in order in one memory";
    }
    end = offset + packet.length;
    span = offset - first + length;
    if (span > most_frame_bytes_) return "frames that are too far apart";
  }
  bytes_ = std::max<std::uint64_t>(sum, span);
  return sum > most_frame_bytes_ ? "frames that overlap" : nullptr;
}

/// Makes them frames that are lent: the device copies each to a place of its own, so they may lie anywhere, and
/// overlap.
const char* OrderCheck::gather_frames(const ring::SegmentShape& segment, const TenantMemories& memories,
                                      const std::uint64_t* list, std::span<std::uint8_t> packed) noexcept {
  gathered_ = PacketMemory();
  std::array<PacketMemory::Region, kPackedMemory + 1> regions{};  // by memory; kBatch: not used yet
  std::size_t sum = 0;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    PacketDescriptor& packet = without_frame(i);
    if (packet.link_type > kLastLinkType) return "an unknown link type";
    if (!packet.verdict.alive()) continue;
    const std::uint64_t listed = __atomic_load_n(list + i, __ATOMIC_RELAXED);
    std::uint64_t offset = 0;
    std::span<std::uint8_t> memory = memory_of(listed, memories, packed, offset);
    memory = memory.first(std::min(memory.size(), PacketMemory::kMostBytes));
    if (memory.empty()) return "a frame in memory that is not open";
    // Kernels read whole words, also around a frame.
    const std::size_t length = aligned_frame(packet.length + offset % kFrameAlignment);
    if (offset > memory.size() || length > memory.size() - offset / kFrameAlignment * kFrameAlignment)
      return "a frame outside its memory";
    PacketMemory::Region& region = regions[listed >> kOffsetBits];
    if (region == PacketMemory::kBatch) {
      if (gathered_.regions() == PacketMemory::kMostRegions) return "frames in too many memories";
      region = gathered_.add(memory).value();
    }
    packet.region = region;
    packet.offset = static_cast<std::uint32_t>(offset);
    frames_[i] = memory.data() + offset;
    sum += aligned_frame(std::min(packet.length, most_counted_));
    bytes_ += segment.frames_up ? length : std::min<std::size_t>(length, ring::kHeaderBytes);
  }
  batch_.adopt(batch_.size(), batch_.used_bytes(), batch_.size());
  return sum > most_frame_bytes_ ? "more bytes than a batch can have" : nullptr;
}

/// Whether the proxy can gather the records of all packets.
bool OrderCheck::records_fit(const ring::SegmentShape& segment) const noexcept {
  for (const PacketDescriptor& packet : packets_.first(batch_.size())) {
    if (!packet.verdict.alive()) continue;
    for (std::uint32_t f = 0; f < segment.up.count; ++f) {
      const ring::RecordLayout::Place place = segment.up.places[f];
      const FieldRange range = field_range(place.field, packet.layout, packet.link_type, packet.length);
      if (range.length > place.length || std::uint64_t{range.offset} + range.length > packet.length) return false;
    }
  }
  return true;
}

}  // namespace penstock::proxy
