// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/raw_pcapng_reader.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "port/pcapng_blocks.h"
#include "port/pcapng_interface.h"
#include "port/raw_classic_reader.h"
#include "port/raw_libpcap_reader.h"
#include "port/record_finder.h"
#include "port/record_formats.h"

namespace penstock::port {

namespace {

using Bytes = std::span<const std::uint8_t>;

struct BlockHead {
  std::uint32_t type, length;
};

struct EnhancedPacket {
  BlockHead head;
  std::uint32_t interface, time_high, time_low, length, wire_length;
};
static_assert(sizeof(EnhancedPacket) == pcapng::kEnhancedBytes - pcapng::kTail);

/// The obsolete form of it.
struct ObsoletePacket {
  BlockHead head;
  std::uint16_t interface, drops;
  std::uint32_t time_high, time_low, length, wire_length;
};

/// From the first interface, at no time, and cut to the snapshot length.
struct SimplePacket {
  BlockHead head;
  std::uint32_t wire_length;
};

class PcapngPagesReader final : public RawCaptureReader {
 public:
  PcapngPagesReader(std::string path, PcapHandle pcap, std::unique_ptr<LibpcapInput> input,
                    std::unique_ptr<MappedWindow> pages, const PcapngInterface& first, const ReadControl& control)
      : RawCaptureReader(std::move(path), std::move(pcap)),
        input_(std::move(input)),
        pages_(std::move(pages)),
        control_(&control),
        interfaces_{first},
        snap_length_(static_cast<std::uint32_t>(pcap_snapshot(pcap_.get()))) {
    records_.reserve(kMostRecords);
    headers_.reserve(kMostRecords);
    pages_->advance(input_->ahead.size());
  }
  ~PcapngPagesReader() override { pcap_.reset(); }  // it reads from the input

  std::span<const RawRecord> next() noexcept override {
    records_.clear();
    headers_.clear();
    if (control_->stopped.load(std::memory_order_relaxed)) return {};
    while (records_.empty() && !rest_) {
      if (taken_ < finder_.places().size()) {
        take_blocks();
      } else if (!find_blocks()) {
        leave_to_libpcap(0);
      }
    }
    const std::span<const RawRecord> records = rest_ ? rest_->next(pcap_.get(), kMostRecords) : records_;
    packets_ += records.size();
    return records;
  }

  std::string reason() const override {
    if (!pages_->reason().empty()) return pages_->reason();
    return rest_ && rest_->broken() && !control_->stopped.load() ? pcap_geterr(pcap_.get()) : "";
  }
  std::uint64_t size_on_disk() const noexcept override { return pages_->size_on_disk(); }
  bool is_live() const noexcept override { return false; }

 private:
  /// For libpcap, interfaces are kept up to this size.
  static constexpr std::size_t kMostAhead = 1 << 20;

  /// Finds the blocks of the next piece. False at the end of the capture, or if the next block has a wrong length.
  bool find_blocks() noexcept {
    pages_->advance(finder_.end());
    taken_ = 0;
    piece_ = pages_->view(pcapng::kHead);
    finder_.find(piece_);
    if (finder_.places().empty() && piece_.size() >= pcapng::kHead) {
      // The block may continue beyond the mapped pages.
      const std::size_t length = load<BlockHead>(piece_.data()).length;
      if (length > CaptureWindow::kMostViewed) return false;
      piece_ = pages_->view(length);
      finder_.find(piece_);
    }
    return !finder_.places().empty();
  }

  /// Takes the packets of the blocks that were found. An unusual block ends them; if it is the first, libpcap reads on.
  void take_blocks() noexcept {
    const std::span<const std::uint32_t> places = finder_.places();
    while (taken_ < places.size() && records_.size() < kMostRecords) {
      if (!take(piece_.data() + places[taken_])) {
        if (records_.empty()) leave_to_libpcap(places[taken_]);
        return;
      }
      ++taken_;
    }
  }

  void leave_to_libpcap(std::size_t at) {
    pages_->advance(at);
    input_->continues = true;
    rest_.emplace();
  }

  /// False if the block is unusual.
  bool take(const std::uint8_t* block) noexcept {
    const auto head = load<BlockHead>(block);
    switch (head.type) {
      case pcapng::kEnhancedPacket: return take_timed<EnhancedPacket>(block, head.length);
      case pcapng::kObsoletePacket: return take_timed<ObsoletePacket>(block, head.length);
      case pcapng::kSimplePacket: return take_simple(block, head.length);
      case pcapng::kInterface: return take_interface({block, head.length});
      case pcapng::kSection: return false;
      default: return true;
    }
  }

  template <typename Packet>
  bool take_timed(const std::uint8_t* block, std::size_t block_length) noexcept {
    if (block_length < sizeof(Packet) + pcapng::kTail) return false;
    const auto packet = load<Packet>(block);
    return add(packet.interface, std::uint64_t{packet.time_high} << 32 | packet.time_low, packet.length,
               packet.wire_length, {block + sizeof packet, block_length - sizeof packet - pcapng::kTail});
  }

  bool take_simple(const std::uint8_t* block, std::size_t block_length) noexcept {
    if (block_length < sizeof(SimplePacket) + pcapng::kTail) return false;
    const auto packet = load<SimplePacket>(block);
    return add(0, 0, std::min(packet.wire_length, snap_length_), packet.wire_length,
               {block + sizeof packet, block_length - sizeof packet - pcapng::kTail});
  }

  bool add(std::size_t interface, std::uint64_t time, std::uint32_t length, std::uint32_t wire_length,
           Bytes data) noexcept {
    if (interface >= interfaces_.size() || length > data.size() || length > snap_length_ ||
        length > ClassicRecords::kMostCaptured) {
      return false;
    }
    RecordHeader header{0, 0, length, wire_length};
    interfaces_[interface].clock.convert(time, header);
    headers_.push_back(header);  // never reallocates
    records_.push_back({reinterpret_cast<const std::uint8_t*>(&headers_.back()), data.data(), length, wire_length});
    return true;
  }

  bool take_interface(Bytes block) noexcept {
    const auto interface = PcapngInterface::read(block);
    const PcapngInterface& first = interfaces_.front();
    // libpcap compares the link type in the file with its own number for the first one.
    if (!interface || interface->link_type != first.link_type || interface->snap_length != first.snap_length ||
        pcap_datalink(pcap_.get()) != first.link_type || input_->ahead.size() + block.size() > kMostAhead) {
      return false;
    }
    interfaces_.push_back(*interface);
    input_->ahead.insert(input_->ahead.end(), block.begin(), block.end());
    return true;
  }

  std::unique_ptr<LibpcapInput> input_;
  std::unique_ptr<MappedWindow> pages_;
  const ReadControl* control_;
  RecordFinder<PcapngBlocks> finder_;
  Bytes piece_;            // in which `finder_` has found blocks
  std::size_t taken_ = 0;  // of them
  std::vector<PcapngInterface> interfaces_;
  std::uint32_t snap_length_;
  std::vector<RawRecord> records_;
  std::vector<RecordHeader> headers_;
  std::optional<CopiedRecords> rest_;  // what libpcap reads
};

/// Whether a section begins here, in this machine's byte order.
bool begins_section(Bytes bytes) noexcept {
  return bytes.size() >= pcapng::kHead + 4 && load<std::uint32_t>(bytes.data()) == pcapng::kSection &&
         load<std::uint32_t>(bytes.data() + pcapng::kHead) == pcapng::kByteOrderMagic;
}

/// A section's blocks up to the first interface, with it; empty if there is none, or a block is unusual.
Bytes until_interface(Bytes bytes) noexcept {
  if (!begins_section(bytes)) return {};
  std::size_t at = PcapngBlocks::end_of(bytes, 0);
  while (at != 0 && at < bytes.size()) {
    const std::size_t end = PcapngBlocks::end_of(bytes, at);
    if (end == 0) return {};
    switch (load<BlockHead>(bytes.data() + at).type) {
      case pcapng::kInterface: return bytes.first(end);
      case pcapng::kSection:
      case pcapng::kEnhancedPacket:
      case pcapng::kObsoletePacket:
      case pcapng::kSimplePacket: return {};
      default: at = end;
    }
  }
  return {};
}

/// The last block of these.
Bytes last_block(Bytes blocks) noexcept {
  return blocks.last(load<std::uint32_t>(blocks.data() + blocks.size() - pcapng::kTail));
}

}  // namespace

std::unique_ptr<RawCaptureReader> open_pcapng(const std::string& path, std::unique_ptr<MappedWindow>& pages,
                                              const ReadControl& control) {
  const Bytes bytes = pages->view(CaptureWindow::kMostViewed);
  const Bytes begin = until_interface(bytes.first(std::min(bytes.size(), CaptureWindow::kMostViewed)));
  const auto interface = begin.empty() ? std::nullopt : PcapngInterface::read(last_block(begin));
  if (!interface || !is_plain_link_type(interface->link_type)) return nullptr;
  auto input = std::make_unique<LibpcapInput>();
  input->window = pages.get();
  input->continues = false;
  input->ahead.assign(begin.begin(), begin.end());
  auto pcap = open_stream(input->stream(), path);
  if (!pcap) return nullptr;
  return std::make_unique<PcapngPagesReader>(path, std::move(*pcap), std::move(input), std::move(pages), *interface,
                                             control);
}

}  // namespace penstock::port
