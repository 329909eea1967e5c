// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/raw_classic_reader.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "port/raw_libpcap_reader.h"
#include "port/record_finder.h"
#include "port/record_formats.h"

namespace penstock::port {

namespace {

using FileHeader = RawCaptureReader::FileHeader;

constexpr std::size_t kMostCaptured = ClassicRecords::kMostCaptured;

/// libpcap's view of a capture that ends after its header. `header` must outlive it.
Result<PcapHandle> open_header(FileHeader& header, const std::string& path) {
  return open_stream(FileHandle(::fmemopen(header.data(), header.size(), "rb")), path);
}

/// The most bytes of a packet that libpcap accepts for the link type; 0 if it refuses the link type.
std::uint32_t most_captured(std::uint32_t link_type) {
  // A snapshot length of 0 means the most.
  const ClassicHeader fields{ClassicHeader::kMicroseconds, 2, 4, 0, 0, 0, link_type};
  FileHeader header{};
  std::memcpy(header.data(), &fields, sizeof fields);
  const auto pcap = open_header(header, "");
  return pcap ? static_cast<std::uint32_t>(pcap_snapshot(pcap->get())) : 0;
}

/// Parses the records of a plain capture where they lie.
class PlainReader final : public RawCaptureReader {
 public:
  PlainReader(std::string path, PcapHandle pcap, std::unique_ptr<FileHeader> header,
              std::unique_ptr<CaptureWindow> window, const ReadControl& control)
      : RawCaptureReader(std::move(path), std::move(pcap)),
        header_(std::move(header)),
        window_(std::move(window)),
        control_(&control),
        snap_length_(static_cast<std::uint32_t>(pcap_snapshot(pcap_.get()))),
        nanoseconds_(load<ClassicHeader>(header_->data()).magic == ClassicHeader::kNanoseconds) {
    records_.reserve(kMostRecords);
    headers_.reserve(kMostRecords);
    window_->advance(header_->size());
  }
  ~PlainReader() override { pcap_.reset(); }  // it reads from the header

  std::span<const RawRecord> next() noexcept override {
    records_.clear();
    headers_.clear();
    if (!reason_.empty() || control_->stopped.load(std::memory_order_relaxed)) return {};
    if (find_records()) return records_;
    std::span<const std::uint8_t> bytes = window_->view(sizeof(RecordHeader));
    std::size_t at = 0;  // in `bytes`
    // Moving the window would invalidate the records that were found in it.
    const auto reaches = [&](std::size_t length) {
      if (bytes.size() - at >= length) return true;
      if (!records_.empty()) return false;
      bytes = window_->view(length);
      return bytes.size() >= length;
    };
    const std::size_t most = window_->is_in_cache() ? kMostRecords : 1;
    while (records_.size() < most) {
      if (!reaches(sizeof(RecordHeader))) {
        if (records_.empty() && !bytes.empty()) truncated("header", sizeof(RecordHeader), bytes.size());
        break;
      }
      const auto header = load<RecordHeader>(bytes.data() + at);
      if (header.length > kMostCaptured) {
        if (records_.empty()) too_long(header.length);
        break;
      }
      if (!reaches(sizeof(RecordHeader) + header.length)) {
        if (records_.empty()) truncated_packet(header.length, bytes.size() - sizeof(RecordHeader));
        break;
      }
      add(header, bytes.data() + at);
      at += sizeof(RecordHeader) + header.length;
    }
    window_->advance(at);
    packets_ += records_.size();
    return records_;
  }

  std::string reason() const override {
    if (!window_->reason().empty()) return window_->reason();
    return control_->stopped.load() ? "" : reason_;
  }
  std::uint64_t size_on_disk() const noexcept override { return window_->size_on_disk(); }
  bool is_live() const noexcept override { return window_->is_live(); }

 private:
  void add(RecordHeader header, const std::uint8_t* at) noexcept {
    const std::uint8_t* written = at;
    if (nanoseconds_ || header.length > snap_length_) {
      header.length = std::min(header.length, snap_length_);
      if (nanoseconds_) header.fraction /= 1000;
      headers_.push_back(header);  // never reallocates
      written = reinterpret_cast<const std::uint8_t*>(&headers_.back());
    }
    records_.push_back({written, at + sizeof(RecordHeader), header.length, header.wire_length});
  }

  /// Takes records from a piece that is not in the cache yet. False if the next record must be looked at more closely.
  bool find_records() noexcept {
    if (window_->is_in_cache()) return false;
    if (taken_ == finder_.places().size()) {
      const std::span<const std::uint8_t> bytes = window_->view(RawRecord::kHeaderBytes);
      finder_.find(bytes);
      piece_ = bytes.data();
      taken_ = 0;
      window_->advance(finder_.end());
    }
    const auto places = finder_.places().subspan(taken_);
    const std::size_t count = std::min(places.size(), kMostRecords);
    for (std::size_t i = 0; i < count; ++i) add(load<RecordHeader>(piece_ + places[i]), piece_ + places[i]);
    taken_ += count;
    packets_ += count;
    return count > 0;
  }

  // In libpcap's words.
  void truncated_packet(std::uint32_t length, std::size_t got) {
    truncated("captured", got < snap_length_ ? std::min(length, snap_length_) : length, got);
  }
  void truncated(const char* part, std::size_t wanted, std::size_t got) {
    reason_ = fmt::format("truncated dump file; tried to read {} {} bytes, only got {}", wanted, part, got);
  }
  void too_long(std::uint32_t length) {
    reason_ = length > snap_length_
                  ? fmt::format("invalid packet capture length {}, bigger than snaplen of {}", length, snap_length_)
                  : fmt::format("invalid packet capture length {}, bigger than maximum of {}", length, kMostCaptured);
  }

  std::unique_ptr<FileHeader> header_;
  std::unique_ptr<CaptureWindow> window_;
  const ReadControl* control_;
  RecordFinder<ClassicRecords> finder_;
  const std::uint8_t* piece_ = nullptr;  // in which `finder_` has found records
  std::size_t taken_ = 0;                // of them
  std::uint32_t snap_length_;
  bool nanoseconds_;
  std::vector<RawRecord> records_;
  std::vector<RecordHeader> headers_;  // those that differ from the capture's
  std::string reason_;
};

}  // namespace

bool is_plain_link_type(std::uint32_t link_type) {
  // libpcap corrects lengths of USB packets.
  constexpr std::uint32_t kLinkTypeBits = 0x03ffffff, kUsbLinux = 189, kUsbLinuxMmapped = 220;
  const std::uint32_t number = link_type & kLinkTypeBits;
  return number != kUsbLinux && number != kUsbLinuxMmapped && most_captured(link_type) == kMostCaptured;
}

bool is_plain(std::span<const std::uint8_t> first) {
  if (first.size() < sizeof(ClassicHeader)) return false;
  const auto header = load<ClassicHeader>(first.data());
  const bool is_known = header.magic == ClassicHeader::kMicroseconds || header.magic == ClassicHeader::kNanoseconds;
  return is_known && header.major == 2 && header.minor == 4 && is_plain_link_type(header.link_type);
}

Result<std::unique_ptr<RawCaptureReader>> open_classic(const std::string& path, const FileHeader& first,
                                                       std::unique_ptr<CaptureWindow> window,
                                                       const ReadControl& control) {
  auto header = std::make_unique<FileHeader>(first);
  auto pcap = open_header(*header, path);
  if (!pcap) return tl::unexpected(std::move(pcap.error()));
  return std::make_unique<PlainReader>(path, std::move(*pcap), std::move(header), std::move(window), control);
}

}  // namespace penstock::port
