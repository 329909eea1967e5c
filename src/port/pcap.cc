// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/pcap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/text_file.h"
#include "port/capture_reader.h"
#include "port/capture_writer.h"
#include "port/flow_feeder.h"
#include "port/stop_event.h"

namespace penstock::port {

namespace {

constexpr std::array kParameters{
    Parameter{"read", ParameterType::paths, "", "",
              "captures to read, one after the other: pcap or pcapng, also gzip or zstd; - is standard input"},
    Parameter{"write", ParameterType::output, "", "",
              "capture to write: pcapng if its name has .pcapng, else pcap; compressed if it ends in .gz or .zst; - is "
              "standard output"},
    Parameter{"precision", ParameterType::choice, "auto", "auto|us|ns",
              "precision of timestamps in a pcap file; auto: ns if the first packets need it"},
    Parameter{"bad_capture", ParameterType::choice, "stop", "stop|skip",
              "what to do with an unreadable capture among several. stop: refuse one that cannot be opened, and stop "
              "reading where one is broken; skip: report it and read the others"},
};

Precision precision_of(const std::string& name) {
  return name == "us" ? Precision::microseconds : name == "ns" ? Precision::nanoseconds : Precision::automatic;
}

constexpr std::uint64_t kAnyTime = std::numeric_limits<std::uint64_t>::max();

/// The queue of a single worker that reads the files itself.
class DirectRx final : public RxQueue {
 public:
  DirectRx(CaptureSequence& captures, PortIndex port) noexcept : captures_(&captures), port_(port) {}

  RxStatus poll(Batch& batch) noexcept override { return poll_until(batch, kAnyTime); }
  RxStatus poll_until(Batch& batch, std::uint64_t time_ns) noexcept override {
    for (;;) {
      if (!read_ahead()) return RxStatus::end;
      if (frame_.timestamp_ns > time_ns) return RxStatus::idle;
      pending_ = !batch.append(frame_.bytes, {frame_.timestamp_ns, frame_.wire_length, port_, frame_.link_type,
                                              static_cast<std::uint32_t>(frame_.number)});
      if (!pending_) continue;
      if (!batch.empty()) return RxStatus::more;
      oversized_ = {frame_.bytes.size(), frame_.number};
      return RxStatus::end;
    }
  }
  std::optional<std::uint64_t> next_time_ns() noexcept override {
    return read_ahead() ? frame_.timestamp_ns : kAnyTime;
  }
  [[nodiscard]] OversizedFrame oversized() const noexcept { return oversized_; }

 private:
  /// Whether there is a frame that was not delivered yet.
  bool read_ahead() noexcept {
    if (!pending_ && !ended_) {
      pending_ = captures_->next(frame_);
      ended_ = !pending_;
    }
    return pending_;
  }

  CaptureSequence* captures_;
  PortIndex port_;
  CapturedFrame frame_;
  bool pending_ = false;  // `frame_` was read but is not in a batch yet
  bool ended_ = false;
  OversizedFrame oversized_;
};

class FedRx final : public RxQueue {
 public:
  /// `on_disk`: all captures are regular files.
  FedRx(FlowFeeder& feeder, unsigned worker, PortIndex port, bool on_disk) noexcept
      : feeder_(&feeder), worker_(worker), port_(port), on_disk_(on_disk) {}
  RxStatus poll(Batch& batch) noexcept override { return feeder_->poll(worker_, batch, port_, kAnyTime); }
  RxStatus poll_until(Batch& batch, std::uint64_t time_ns) noexcept override {
    return feeder_->poll(worker_, batch, port_, time_ns);
  }
  /// For packets that are captured while they are read. Measured at each poll, since the system clock can be set;
  /// differences below 1 ms are measurement errors.
  std::optional<std::chrono::nanoseconds> arrivals_to_clock() noexcept override {
    if (on_disk_) return std::nullopt;
    const std::chrono::nanoseconds measured =
        Batch::Clock::now().time_since_epoch() - std::chrono::system_clock::now().time_since_epoch();
    if (std::chrono::abs(measured - to_clock_) > std::chrono::milliseconds{1}) to_clock_ = measured;
    return to_clock_;
  }
  std::optional<std::uint64_t> next_time_ns() noexcept override {
    return on_disk_ ? std::optional(feeder_->next_time_ns(worker_)) : std::nullopt;
  }

 private:
  FlowFeeder* feeder_;
  unsigned worker_;
  PortIndex port_;
  bool on_disk_;
  std::chrono::nanoseconds to_clock_{};
};

class Tx final : public TxQueue {
 public:
  explicit Tx(CaptureWriter& writer) : buffer_(writer) {}
  std::size_t send(std::span<const PacketView> packets) noexcept override { return buffer_.add(packets); }
  Lost flush() noexcept override { return buffer_.flush(); }

 private:
  CaptureWriter::Buffer buffer_;
};

class PcapPort final : public Port {
 public:
  PcapPort(std::vector<std::string> read, BadCapture bad, std::string write, Precision precision, PortIndex index)
      : read_(std::move(read)), bad_(bad), write_(std::move(write)), precision_(precision), index_(index) {
    control_.stop_fd = stop_reading_.fd();
  }
  ~PcapPort() override { stop_reading_.signal(); }  // otherwise the feeder could block on a pipe for ever

  bool reads() const noexcept override { return !read_.empty(); }
  bool is_recorded() const noexcept override { return true; }
  bool writes() const noexcept override { return !write_.empty(); }

  Errors check() const override {
    Errors errors = check_captures(read_);
    // As in `open`: the other files can be read.
    if (bad_ == BadCapture::skip && errors.size() < read_.size()) errors.clear();
    if (writes() && write_ != "-") {
      if (auto named = check_compression(write_, ByteSink::kCompressions); !named)
        append(errors, std::move(named.error()));
      if (auto writable = check_writable(write_); !writable) append(errors, std::move(writable.error()));
    }
    return errors;
  }

  Result<void> open(const Opening& opening) override {
    const unsigned workers = opening.workers;
    if (reads()) {
      auto captures = CaptureSequence::open(read_, control_, bad_);
      if (!captures) return tl::unexpected(std::move(captures.error()));
      captures_ = std::move(*captures);
    }
    if (writes()) {
      auto writer = CaptureWriter::open(write_, precision_, stop_writing_.fd());
      if (!writer) return tl::unexpected(std::move(writer.error()));
      writer_ = std::move(*writer);
      for (unsigned i = 0; i < workers; ++i) tx_.push_back(std::make_unique<Tx>(*writer_));
    }
    if (captures_ && (workers > 1 || !captures_->never_waits())) {
      feeder_.emplace(*captures_, workers);
      for (unsigned i = 0; i < workers; ++i) {
        fed_.push_back(std::make_unique<FedRx>(*feeder_, i, index_, captures_->never_waits()));
      }
    } else if (captures_) {
      direct_.emplace(*captures_, index_);
    }
    return {};
  }

  void interrupt() noexcept override {
    stop_reading_.signal();
    stop_writing_.signal();
  }
  Result<void> start() override {
    if (writer_) writer_->begin();
    return {};
  }

  RxQueue* rx(unsigned worker) noexcept override {
    if (direct_) return &*direct_;
    return worker < fed_.size() ? fed_[worker].get() : nullptr;
  }
  TxQueue* tx(unsigned worker) noexcept override { return worker < tx_.size() ? tx_[worker].get() : nullptr; }

  bool failed() const noexcept override { return writer_ && writer_->failed(); }

  Errors close() override {
    stop_reading_.signal();
    if (feeder_) feeder_->stop();
    Errors errors;
    if (captures_) errors = captures_->errors();
    const OversizedFrame oversized = direct_ ? direct_->oversized() : feeder_ ? feeder_->oversized() : OversizedFrame{};
    if (oversized.bytes != 0) errors.push_back(captures_->places().fits_no_batch(oversized, "reading"));
    if (writer_) append(errors, writer_->close());
    return errors;
  }

  std::optional<FragmentCounts> fragments() const noexcept override {
    return feeder_ ? feeder_->fragments() : std::nullopt;
  }

  std::optional<double> progress() const noexcept override {
    const std::uint64_t total = captures_ ? captures_->total_bytes() : 0;
    if (total == 0) return std::nullopt;
    return std::min(1.0, static_cast<double>(control_.bytes_read.load()) / static_cast<double>(total));
  }

 private:
  const std::vector<std::string> read_;
  const BadCapture bad_;
  const std::string write_;
  const Precision precision_;
  const PortIndex index_;

  StopEvent stop_reading_;
  StopEvent stop_writing_;  // not signalled at a normal end, when the reader of the output may take as long as it needs
  ReadControl control_;
  std::optional<CaptureSequence> captures_;
  std::optional<DirectRx> direct_;    // for one worker and regular files
  std::optional<FlowFeeder> feeder_;  // otherwise
  std::vector<std::unique_ptr<FedRx>> fed_;
  std::unique_ptr<CaptureWriter> writer_;
  std::vector<std::unique_ptr<Tx>> tx_;
};

Result<std::unique_ptr<Port>> make(const Parameters& parameters, PortIndex index) {
  auto read = parameters.has("read") ? parameters.texts("read") : std::vector<std::string>{};
  auto write = parameters.has("write") ? parameters.text("write") : std::string{};
  if (read.empty() && write.empty()) {
    return failure({{}, "port pcap has nothing to do", "neither read nor write", "read, write or both"});
  }
  const BadCapture bad = parameters.text("bad_capture") == "skip" ? BadCapture::skip : BadCapture::stop;
  return std::make_unique<PcapPort>(std::move(read), bad, std::move(write), precision_of(parameters.text("precision")),
                                    index);
}

}  // namespace

PortKind pcap_kind() noexcept {
  return {"pcap", "reads captures and writes a capture, in pcap or pcapng, also compressed", kParameters, make};
}

}  // namespace penstock::port
