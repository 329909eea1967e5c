// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/capture_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/nanoseconds.h"
#include "base/units.h"
#include "port/link_types.h"

namespace penstock::port {

namespace {

// Both formats are written in host byte order; readers swap if necessary (draft-ietf-opsawg-pcap,
// draft-ietf-opsawg-pcapng).

struct PcapHeader {
  std::uint32_t magic;
  std::uint16_t major = 2, minor = 4;
  std::int32_t zone = 0;
  std::uint32_t accuracy = 0;
  std::uint32_t snap_length = CaptureWriter::kSnapLength;
  std::uint32_t link_type;
};
static_assert(sizeof(PcapHeader) == 24);
constexpr std::uint32_t kMicrosecondMagic = 0xa1b2c3d4;
constexpr std::uint32_t kNanosecondMagic = 0xa1b23c4d;

struct PcapRecord {
  std::uint32_t seconds, fraction, length, wire_length;
};
static_assert(sizeof(PcapRecord) == 16);

struct PcapngSection {
  std::uint32_t type = 0x0a0d0d0a;
  std::uint32_t block_length = 28;
  std::uint32_t magic = 0x1a2b3c4d;
  std::uint16_t major = 1, minor = 0;
  std::uint32_t section_length[2] = {0xffffffff, 0xffffffff};  // unknown
  std::uint32_t block_length_again = 28;
};
static_assert(sizeof(PcapngSection) == 28);

struct PcapngInterface {
  std::uint32_t type = 1;
  std::uint32_t block_length = 32;
  std::uint16_t link_type;
  std::uint16_t reserved = 0;
  std::uint32_t snap_length = CaptureWriter::kSnapLength;
  std::uint16_t resolution_code = 9, resolution_length = 1;  // if_tsresol
  std::uint8_t resolution = 9, padding[3] = {};              // 10^-9 s
  std::uint32_t end_of_options = 0;
  std::uint32_t block_length_again = 32;
};
static_assert(sizeof(PcapngInterface) == 32);

/// Followed by the packet, padding to 4 bytes, and the block length again.
struct PcapngPacket {
  std::uint32_t type = 6;
  std::uint32_t block_length;
  std::uint32_t interface;
  std::uint32_t time_high, time_low;
  std::uint32_t length, wire_length;
};
static_assert(sizeof(PcapngPacket) == 28);

constexpr std::size_t kMostOverhead = sizeof(PcapngPacket) + 3 + 4;
constexpr std::size_t kBufferBytes = 1 << 20;
static_assert(kBufferBytes >= CaptureWriter::kSnapLength + kMostOverhead);

template <typename T>
std::span<const std::uint8_t> bytes_of(const T& block) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(&block), sizeof(T)};
}

bool is_pcapng_name(std::string_view path) {
  for (const std::string_view suffix : ByteSink::kCompressions) {
    if (path.ends_with(suffix)) path.remove_suffix(suffix.size());
  }
  return path.ends_with(".pcapng") || path.ends_with(".ntar");
}

}  // namespace

Result<std::unique_ptr<CaptureWriter>> CaptureWriter::open(const std::string& path, Precision precision, int stop_fd) {
  auto sink = ByteSink::open(path, stop_fd);
  if (!sink) return tl::unexpected(std::move(sink.error()));
  return std::unique_ptr<CaptureWriter>(
      new CaptureWriter(path == "-" ? "standard output" : path, std::move(*sink), is_pcapng_name(path), precision));
}

CaptureWriter::CaptureWriter(std::string path, std::unique_ptr<ByteSink> sink, bool pcapng,
                             Precision precision) noexcept
    : path_(std::move(path)), pcapng_(pcapng), precision_(precision), sink_(std::move(sink)) {
  for (auto& interface : interfaces_) interface.store(kNoInterface, std::memory_order_relaxed);
}

void CaptureWriter::begin() noexcept {
  const std::lock_guard lock(mutex_);
  sink_->begin();
  begun_ = true;
}

void CaptureWriter::decide(std::span<const PacketView> first) noexcept {
  const std::lock_guard lock(mutex_);
  if (encoding_.load(std::memory_order_relaxed) != Encoding::undecided) return;
  const bool fine_times = std::any_of(first.begin(), first.end(),
                                      [](const PacketView& view) { return view.packet->timestamp_ns % 1000 != 0; });
  if (pcapng_) {
    write_locked(bytes_of(PcapngSection{}));
    encoding_.store(Encoding::pcapng, std::memory_order_release);
  } else {
    begin_classic(first.front().packet->link_type,
                  precision_ == Precision::nanoseconds || (precision_ == Precision::automatic && fine_times));
  }
}

void CaptureWriter::begin_classic(LinkType type, bool nanoseconds) noexcept {
  write_locked(bytes_of(
      PcapHeader{.magic = nanoseconds ? kNanosecondMagic : kMicrosecondMagic, .link_type = linktype_in_file(type)}));
  first_type_ = type;
  interfaces_[static_cast<std::size_t>(type)].store(0, std::memory_order_relaxed);
  encoding_.store(nanoseconds ? Encoding::nanoseconds : Encoding::microseconds, std::memory_order_release);
}

int CaptureWriter::interface_of(LinkType type) noexcept {
  const int interface = interfaces_[static_cast<std::size_t>(type)].load(std::memory_order_acquire);
  return interface == kNoInterface && pcapng_ ? add_interface(type) : interface;
}

int CaptureWriter::add_interface(LinkType type) noexcept {
  const std::lock_guard lock(mutex_);
  std::atomic<int>& interface = interfaces_[static_cast<std::size_t>(type)];
  if (interface.load(std::memory_order_relaxed) == kNoInterface) {
    // Written immediately, so that it precedes every packet that refers to it.
    write_locked(bytes_of(PcapngInterface{.link_type = linktype_in_file(type)}));
    interface.store(interface_count_++, std::memory_order_release);
  }
  return interface.load(std::memory_order_relaxed);
}

std::size_t CaptureWriter::encode(PacketView view, int interface, std::uint8_t* to) noexcept {
  const PacketDescriptor& packet = *view.packet;
  const std::uint64_t time = packet.timestamp_ns;
  const std::uint32_t wire_length = std::max(packet.wire_length, packet.length);
  const Encoding encoding = encoding_.load(std::memory_order_relaxed);
  if (encoding == Encoding::pcapng) {
    const std::uint32_t padding = (4 - packet.length % 4) % 4;
    const std::uint32_t block_length = static_cast<std::uint32_t>(sizeof(PcapngPacket)) + packet.length + padding + 4;
    const PcapngPacket header{.block_length = block_length,
                              .interface = static_cast<std::uint32_t>(interface),
                              .time_high = static_cast<std::uint32_t>(time >> 32),
                              .time_low = static_cast<std::uint32_t>(time),
                              .length = packet.length,
                              .wire_length = wire_length};
    std::memcpy(to, &header, sizeof header);
    std::memcpy(to + sizeof header, view.frame, packet.length);
    std::memset(to + sizeof header + packet.length, 0, padding);
    std::memcpy(to + block_length - 4, &block_length, 4);
    return block_length;
  }
  const std::uint64_t seconds = time / kNsPerSecond;
  const auto nanoseconds = static_cast<std::uint32_t>(time % kNsPerSecond);
  const PcapRecord record{.seconds = static_cast<std::uint32_t>(seconds),
                          .fraction = encoding == Encoding::nanoseconds ? nanoseconds : nanoseconds / 1000,
                          .length = packet.length,
                          .wire_length = wire_length};
  if (record.seconds != seconds) too_late_.fetch_add(1, std::memory_order_relaxed);
  if (encoding == Encoding::microseconds && nanoseconds % 1000 != 0) {
    digits_lost_.fetch_add(1, std::memory_order_relaxed);
  }
  std::memcpy(to, &record, sizeof record);
  std::memcpy(to + sizeof record, view.frame, packet.length);
  return sizeof record + packet.length;
}

std::size_t CaptureWriter::write_locked(std::span<const std::uint8_t> bytes) noexcept {
  const std::size_t written = sink_->write(bytes);
  if (written < bytes.size()) failed_.store(true, std::memory_order_relaxed);
  return written;
}

Lost CaptureWriter::lost_of(std::span<const std::uint8_t> records, std::size_t written) const noexcept {
  const bool pcapng = encoding_.load(std::memory_order_relaxed) == Encoding::pcapng;
  Lost lost;
  for (std::size_t at = 0; at < records.size();) {
    std::uint32_t length = 0;
    std::size_t end = 0;
    if (pcapng) {
      PcapngPacket header;
      std::memcpy(&header, records.data() + at, sizeof header);
      length = header.length;
      end = at + header.block_length;
    } else {
      PcapRecord header;
      std::memcpy(&header, records.data() + at, sizeof header);
      length = header.length;
      end = at + sizeof header + length;
    }
    if (end > written) {
      ++lost.packets;
      lost.bytes += length;
    }
    at = end;
  }
  return lost;
}

Errors CaptureWriter::close() {
  const std::lock_guard lock(mutex_);
  if (!begun_) {
    sink_.reset();
    return {};
  }
  if (encoding_.load(std::memory_order_relaxed) == Encoding::undecided) {
    if (pcapng_) {
      write_locked(bytes_of(PcapngSection{}));
      write_locked(bytes_of(PcapngInterface{.link_type = linktype_in_file(LinkType::ethernet)}));
    } else {
      begin_classic(LinkType::ethernet, precision_ == Precision::nanoseconds);
    }
  }
  Errors errors;
  const Place place{path_, 0, 0};
  if (!sink_->finish())
    errors.push_back(system_error(place.file, "cannot write; packets are missing", sink_->reason()));
  if (const std::uint64_t count = wrong_type_.load(); count != 0) {
    errors.push_back(
        {place,
         fmt::format("{} left out: the link type differs from that of the first packet", format_count(count, "packet")),
         "", fmt::format("{} only; a .pcapng file can hold several link types", name_of(first_type_))});
  }
  if (const std::uint64_t count = too_long_.load(); count != 0) {
    errors.push_back({place, fmt::format("{} left out: too long for a capture", format_count(count, "packet")), "",
                      fmt::format("at most {} bytes", kSnapLength)});
  }
  if (const std::uint64_t count = digits_lost_.load(); count != 0 && precision_ == Precision::automatic) {
    errors.push_back(
        {place,
         fmt::format("the timestamps of {} were truncated to microseconds, like those of the first packets",
                     format_count(count, "packet")),
         "", "precision: ns"});
  }
  if (const std::uint64_t count = too_late_.load(); count != 0) {
    errors.push_back(
        {place,
         fmt::format("the timestamps of {} are wrong: they do not fit the format", format_count(count, "packet")), "",
         "timestamps before 2106; a .pcapng file holds later ones"});
  }
  return errors;
}

CaptureWriter::Buffer::Buffer(CaptureWriter& writer) : writer_(&writer), bytes_(kBufferBytes) {}

std::size_t CaptureWriter::Buffer::add(std::span<const PacketView> packets) noexcept {
  const auto refuse = [](PacketView view) { view.packet->verdict = Verdict::drop(0); };
  if (packets.empty()) return 0;
  if (writer_->failed()) {
    std::for_each(packets.begin(), packets.end(), refuse);
    return 0;
  }
  if (writer_->encoding_.load(std::memory_order_acquire) == Encoding::undecided) writer_->decide(packets);
  std::size_t taken = 0;
  for (const PacketView& view : packets) {
    const std::uint32_t length = view.packet->length;
    if (length > kSnapLength) {
      writer_->too_long_.fetch_add(1, std::memory_order_relaxed);
      refuse(view);
      continue;
    }
    const int interface = writer_->interface_of(view.packet->link_type);
    if (interface == kNoInterface) {
      writer_->wrong_type_.fetch_add(1, std::memory_order_relaxed);
      refuse(view);
      continue;
    }
    if (bytes_.size() - used_ < length + kMostOverhead) write_out();
    used_ += writer_->encode(view, interface, bytes_.data() + used_);
    ++taken;
  }
  return taken;
}

Lost CaptureWriter::Buffer::flush() noexcept {
  write_out();
  return std::exchange(lost_, {});
}

void CaptureWriter::Buffer::write_out() noexcept {
  if (used_ == 0) return;
  const auto records = std::span<const std::uint8_t>(bytes_).first(used_);
  used_ = 0;
  const std::lock_guard lock(writer_->mutex_);
  const std::size_t written = writer_->write_locked(records);
  if (written == records.size()) return;
  const Lost lost = writer_->lost_of(records, written);
  lost_.packets += lost.packets;
  lost_.bytes += lost.bytes;
}

}  // namespace penstock::port
