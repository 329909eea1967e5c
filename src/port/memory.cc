// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "port/capture_reader.h"
#include "port/stop_event.h"
#include "port/worker_chooser.h"

namespace penstock::port {

namespace {

constexpr std::array kParameters{
    Parameter{"read", ParameterType::paths, "", "", "captures to load, as the pcap port reads them", true},
    Parameter{"loop", ParameterType::integer, "1", "", "how many times to play them; 0: until the run ends"},
    Parameter{"limit", ParameterType::size, "4GiB", "1B..", "maximum memory for the captures"},
};

/// A worker's packets in playing order, contiguous in memory: a header, the frame, and padding to align the next
/// header.
class FrameStore {
 public:
  struct Header {
    std::uint64_t timestamp_ns;
    std::uint32_t length;
    std::uint32_t wire_length;
    std::uint32_t number;  // CapturedFrame::number
    LinkType link_type;
    bool copy;
  };
  struct Chunk {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::size_t used = 0;
    std::size_t size = 0;
  };

  static constexpr std::size_t bytes_of(std::size_t frame) noexcept {
    return (sizeof(Header) + frame + alignof(Header) - 1) / alignof(Header) * alignof(Header);
  }

  void add(const CapturedFrame& frame) {
    const std::size_t need = bytes_of(frame.bytes.size());
    if (chunks_.empty() || chunks_.back().size - chunks_.back().used < need) {
      // Small first, so that small captures use little memory. Full chunks stay in place, so that large captures are
      // not copied.
      const std::size_t size = std::max(need, chunks_.empty() ? std::size_t{64} << 10 : std::size_t{16} << 20);
      chunks_.push_back({std::make_unique_for_overwrite<std::uint8_t[]>(size), 0, size});
    }
    Chunk& chunk = chunks_.back();
    std::uint8_t* to = chunk.bytes.get() + chunk.used;
    const Header header{frame.timestamp_ns, static_cast<std::uint32_t>(frame.bytes.size()),
                        frame.wire_length,  static_cast<std::uint32_t>(frame.number),
                        frame.link_type,    frame.copy};
    std::memcpy(to, &header, sizeof header);
    std::memcpy(to + sizeof header, frame.bytes.data(), frame.bytes.size());
    chunk.used += need;
    ++packets_;
  }

  [[nodiscard]] const std::vector<Chunk>& chunks() const noexcept { return chunks_; }
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }

 private:
  std::vector<Chunk> chunks_;
  std::uint64_t packets_ = 0;
};

/// Parameters of the replay, shared by all workers.
struct Replay {
  std::uint64_t passes = 1;
  /// Added to the times for each further pass, so that time continues: the duration of the capture and one mean gap.
  std::uint64_t pass_ns = 0;
  PortIndex port = 0;
};

class MemoryRx final : public RxQueue {
 public:
  MemoryRx(FrameStore store, Replay replay) noexcept : store_(std::move(store)), replay_(replay) {
    if (store_.packets() == 0) replay_.passes = 0;
    start_pass();
  }

  RxStatus poll(Batch& batch) noexcept override {
    const std::size_t before = batch.size();
    const RxStatus status = fill(batch);
    played_.store(played_.load(std::memory_order_relaxed) + batch.size() - before, std::memory_order_relaxed);
    return status;
  }

  /// Thread-safe.
  [[nodiscard]] std::uint64_t played() const noexcept { return played_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t packets() const noexcept { return store_.packets(); }
  [[nodiscard]] OversizedFrame oversized() const noexcept { return oversized_; }

 private:
  RxStatus fill(Batch& batch) noexcept {
    while (pass_ < replay_.passes) {
      for (; at_ != end_; at_ += FrameStore::bytes_of(header().length)) {
        const FrameStore::Header next = header();
        const std::span<const std::uint8_t> frame(at_ + sizeof next, next.length);
        if (next.copy && !batch.empty()) return RxStatus::more;
        if (batch.append(frame, {next.timestamp_ns + shift_ns_, next.wire_length, replay_.port, next.link_type})) {
          if (!next.copy) continue;
          at_ += FrameStore::bytes_of(next.length);
          return RxStatus::copy;
        }
        if (!batch.empty()) return RxStatus::more;
        oversized_ = {next.length, next.number};
        return RxStatus::end;
      }
      next_chunk();
    }
    return RxStatus::end;
  }

  [[nodiscard]] FrameStore::Header header() const noexcept {
    FrameStore::Header header;
    std::memcpy(&header, at_, sizeof header);
    return header;
  }
  void next_chunk() noexcept {
    if (++chunk_ < store_.chunks().size()) return start_chunk();
    ++pass_;
    shift_ns_ += replay_.pass_ns;
    start_pass();
  }
  void start_pass() noexcept {
    chunk_ = 0;
    if (!store_.chunks().empty()) start_chunk();
  }
  void start_chunk() noexcept {
    const FrameStore::Chunk& chunk = store_.chunks()[chunk_];
    at_ = chunk.bytes.get();
    end_ = at_ + chunk.used;
  }

  FrameStore store_;
  Replay replay_;
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  std::size_t chunk_ = 0;
  std::uint64_t pass_ = 0;
  std::uint64_t shift_ns_ = 0;
  OversizedFrame oversized_;
  std::atomic<std::uint64_t> played_{0};
};

class MemoryPort final : public Port {
 public:
  MemoryPort(std::vector<std::string> paths, std::uint64_t loop, std::uint64_t limit, PortIndex index)
      : paths_(std::move(paths)), loop_(loop), limit_(limit), index_(index) {}

  bool reads() const noexcept override { return true; }
  bool writes() const noexcept override { return false; }
  bool is_recorded() const noexcept override { return true; }

  Errors check() const override { return check_captures(paths_); }
  void interrupt() noexcept override { stop_.signal(); }

  Result<void> open(const Opening& opening) override {
    const unsigned workers = opening.workers;
    ReadControl control;
    control.stop_fd = stop_.fd();
    auto captures = CaptureSequence::open(paths_, control);
    if (!captures) return tl::unexpected(std::move(captures.error()));
    std::vector<FrameStore> stores(workers);
    WorkerChooser chooser(workers);
    bool has_memory = true;
    std::uint64_t bytes = 0;
    const auto add = [&](unsigned worker, const CapturedFrame& frame) noexcept {
      if (frame.copy) bytes += FrameStore::bytes_of(frame.bytes.size());
      try {
        stores[worker].add(frame);
      } catch (const std::bad_alloc&) {
        has_memory = false;
      }
      return has_memory;
    };
    std::uint64_t packets = 0;
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t last = 0;
    for (CapturedFrame frame; captures->next(frame); ++packets) {
      bytes += FrameStore::bytes_of(frame.bytes.size());
      if (bytes > limit_) {
        return failure({{paths_.front(), 0, 0},
                        "the captures take more memory than allowed",
                        fmt::format("over {} bytes after packet {}", limit_, packets),
                        "a higher limit, or the pcap port"});
      }
      first = std::min(first, frame.timestamp_ns);
      last = std::max(last, frame.timestamp_ns);
      if (!chooser.take(frame, add)) break;
    }
    if (has_memory) chooser.finish(add);
    if (!has_memory) throw std::bad_alloc();
    fragments_ = chooser.counts();
    if (!captures->errors().empty()) return failure(captures->errors());
    if (control.stopped.load()) return failure({{paths_.front(), 0, 0}, "stopped while it was loaded", "", ""});
    const std::uint64_t span = packets == 0 ? 0 : last - first;
    const Replay replay{loop_ == 0 ? std::numeric_limits<std::uint64_t>::max() : loop_,
                        packets < 2 ? span + 1000 : span + std::max<std::uint64_t>(span / (packets - 1), 1), index_};
    places_ = captures->places();
    for (FrameStore& store : stores) queues_.push_back(std::make_unique<MemoryRx>(std::move(store), replay));
    return {};
  }

  RxQueue* rx(unsigned worker) noexcept override { return worker < queues_.size() ? queues_[worker].get() : nullptr; }
  TxQueue* tx(unsigned) noexcept override { return nullptr; }

  Errors close() override {
    for (const auto& queue : queues_) {
      if (queue->oversized().bytes != 0) return {places_.fits_no_batch(queue->oversized(), "playing")};
    }
    return {};
  }

  /// Of a single pass.
  std::optional<FragmentCounts> fragments() const noexcept override { return fragments_; }

  std::optional<double> progress() const noexcept override {
    if (loop_ == 0) return std::nullopt;
    double played = 0;
    double packets = 0;
    for (const auto& queue : queues_) {
      played += static_cast<double>(queue->played());
      packets += static_cast<double>(queue->packets()) * static_cast<double>(loop_);
    }
    return packets == 0 ? 1.0 : played / packets;
  }

 private:
  const std::vector<std::string> paths_;
  const std::uint64_t loop_, limit_;
  const PortIndex index_;
  StopEvent stop_;
  PacketPlaces places_;
  std::optional<FragmentCounts> fragments_;
  std::vector<std::unique_ptr<MemoryRx>> queues_;
};

Result<std::unique_ptr<Port>> make(const Parameters& parameters, PortIndex index) {
  return std::make_unique<MemoryPort>(parameters.texts("read"), parameters.integer("loop"), parameters.integer("limit"),
                                      index);
}

}  // namespace

PortKind memory_kind() noexcept {
  return {"memory", "plays captures from memory, once or many times, as fast as the chain accepts packets", kParameters,
          make};
}

}  // namespace penstock::port
