// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/huge_page_allocator.h"
#include "base/shared_memory.h"
#include "port/capture_reader.h"
#include "port/generator_flows.h"
#include "port/generator_frames.h"
#include "port/generator_queue.h"
#include "port/stop_event.h"
#include "port/worker_of.h"

namespace penstock::port {

namespace {

constexpr std::uint32_t kMostSize = 9000;
/// For the frames that one worker's queue lends.
constexpr std::size_t kMostMemory = std::size_t{128} << 20;
constexpr std::size_t kLeastChunks = 8;

constexpr std::array kParameters{
    Parameter{
        "size", ParameterType::text, "64", "",
        "frame size in bytes, including the 4-byte FCS: 64 to 9000; or imix: 64, 594 and 1518 in the ratio 7:4:1"},
    Parameter{"network", ParameterType::choice, "ipv4", "ipv4|ipv6", "network-layer protocol"},
    Parameter{"transport", ParameterType::choice, "udp", "udp|tcp", "transport-layer protocol"},
    Parameter{"vlan", ParameterType::integer, "", "1..4094", "add an 802.1Q tag with this VLAN ID"},
    Parameter{"flows", ParameterType::integer, "1024", "1..16777216", "number of distinct 5-tuples, used in turn"},
    Parameter{"source", ParameterType::text, "", "",
              "prefix of source addresses; default: 10.0.0.0/8 or 2001:db8::/32"},
    Parameter{"destination", ParameterType::text, "", "",
              "prefix of destination addresses; default: 198.18.0.0/15 or 2001:2::/48 (RFC 2544, RFC 5180)"},
    Parameter{"destinations", ParameterType::path, "", "",
              "file with one prefix or address per line; destinations are taken from them in turn"},
    Parameter{"port", ParameterType::integer, "80", "0..65535", "destination port; source ports are 1024 and up"},
    Parameter{"payload", ParameterType::choice, "zero", "zero|random|http|capture", "contents of the packets"},
    Parameter{"capture", ParameterType::path, "", "", "capture to take payloads from, with `payload: capture`"},
    Parameter{"frames", ParameterType::choice, "copied", "copied|kept",
              "kept: lend frames that are written once, and only write their headers again, as if a NIC had written "
              "the rest"},
    Parameter{"rate", ParameterType::rate, "", "",
              "offered load; bits include the FCS; default: as fast as the chain accepts packets"},
    Parameter{"packets", ParameterType::integer, "", "1..", "number of packets; default: until the run ends"},
    Parameter{"seed", ParameterType::integer, "1", "", "the same seed gives the same packets"},
};

/// The "simple IMIX": IP packets of 40, 576 and 1500 bytes, 7:4:1 (Agilent, Journal of Internet Test Methodologies,
/// 2007), with Ethernet's 18 bytes and its minimum size. The order spreads the large packets.
const std::vector<std::uint32_t> kImix{64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64};

struct GeneratorPlan {
  FramePlan frames;
  FlowPlan flows;
  std::optional<Rate> rate;
  std::optional<std::uint64_t> packets;
  bool keeps_frames = false;
};

class GeneratorPort final : public Port {
 public:
  GeneratorPort(GeneratorPlan plan, PortIndex index, NanosecondClock clock)
      : plan_(std::move(plan)), index_(index), clock_(clock) {}

  bool reads() const noexcept override { return true; }
  bool writes() const noexcept override { return false; }
  bool lossless() const noexcept override { return !plan_.rate; }

  Errors check() const override {
    return plan_.frames.capture.empty() ? Errors{} : check_captures({plan_.frames.capture});
  }
  void interrupt() noexcept override { stop_.signal(); }

  Result<void> open(const Opening& opening) override {
    const unsigned workers = opening.workers;
    auto frames = make_frames(plan_.frames, stop_.fd());
    if (!frames) return tl::unexpected(std::move(frames.error()));
    auto flows = make_flows(plan_.flows);
    if (!flows) return tl::unexpected(std::move(flows.error()));
    frames_ = std::move(*frames);

    // Each flow makes one packet per round, and the first flows make one more at the end.
    const std::uint64_t rounds = plan_.packets.value_or(0) / flows->size();
    const std::uint64_t further = plan_.packets.value_or(0) % flows->size();
    std::vector<std::vector<Flow>> share(workers);
    std::vector<std::uint64_t> packets(workers);
    for (std::size_t i = 0; i < flows->size(); ++i) {
      const unsigned worker = worker_of_flow((*flows)[i], workers);
      share[worker].push_back((*flows)[i]);
      packets[worker] += rounds + (i < further ? 1 : 0);
    }
    if (plan_.keeps_frames && opening.memory != nullptr) {
      if (auto made = make_memory(opening); !made) return made;
    }
    for (unsigned i = 0; i < workers; ++i) {
      const double part = static_cast<double>(share[i].size()) / static_cast<double>(flows->size());
      const std::uint64_t count = plan_.packets ? packets[i] : std::numeric_limits<std::uint64_t>::max();
      queues_.push_back(std::make_unique<GeneratorRx>(frames_, std::move(share[i]), count, pace_of(part), clock_,
                                                      index_, plan_.frames.ipv6, plan_.frames.tcp, share_of_memory(i)));
    }
    return {};
  }

  RxQueue* rx(unsigned worker) noexcept override { return worker < queues_.size() ? queues_[worker].get() : nullptr; }
  TxQueue* tx(unsigned) noexcept override { return nullptr; }

  Errors close() override {
    for (const auto& queue : queues_) {
      if (queue->oversized() == 0) continue;
      return {{{},
               "generating stopped: a frame does not fit in a batch",
               fmt::format("{} bytes", queue->oversized()),
               "larger batches (run: batch: bytes)"}};
    }
    return {};
  }

  std::optional<OfferedLoad> offered() const noexcept override {
    if (!plan_.rate) return std::nullopt;
    OfferedLoad load;
    for (const auto& queue : queues_) {
      load.packets += queue->made() + queue->missing();
      load.behind = std::max(load.behind, queue->behind());
    }
    return load;
  }

  std::optional<double> progress() const noexcept override {
    if (!plan_.packets) return std::nullopt;
    std::uint64_t made = 0;
    for (const auto& queue : queues_) made += queue->made();
    return static_cast<double>(made) / static_cast<double>(*plan_.packets);
  }

 private:
  /// Uses the hash that any other port would use for these packets.
  [[nodiscard]] unsigned worker_of_flow(const Flow& flow, unsigned workers) const {
    std::vector<std::uint8_t> frame = frames_.templates.front().bytes;
    std::memcpy(frame.data() + frames_.tuple_at, flow.tuple.data(), plan_.flows.address_bytes * 2 + 4);
    return worker_of(frame, static_cast<std::uint32_t>(frame.size()), LinkType::ethernet, workers);
  }

  /// Makes the memory for all queues' frames, and adds it to the chain's packet memory.
  Result<void> make_memory(const Opening& opening) {
    std::size_t longest = 0;
    for (const FrameTemplate& frame : frames_.templates) longest = std::max(longest, frame.bytes.size());
    const std::size_t unit = opening.lent_alignment;
    const auto units = [unit](std::size_t bytes) { return (bytes + unit - 1) / unit; };
    const std::size_t head = units(opening.room.head);
    std::size_t slot = head + units(longest + opening.room.tail);
    // An odd number of cache lines, so that headers do not compete for a few sets of the caches.
    if (unit > kFrameAlignment) slot |= 1U;
    lent_.head = static_cast<std::uint32_t>(head * unit);
    lent_.stride = static_cast<std::uint32_t>(slot * unit);
    // A chunk for each batch, so that few copies bring a batch to a device.
    const std::size_t share = std::min(kMostMemory, PacketMemory::kMostBytes / opening.workers);
    const std::size_t fit = std::max<std::size_t>(1, opening.batch_bytes / lent_.stride);
    const std::size_t slots = std::min(std::min(opening.batch_packets, fit), share / lent_.stride / kLeastChunks);
    const std::size_t turns = frames_.turns.size();
    lent_.chunk_slots = static_cast<std::uint32_t>(std::max<std::size_t>(1, slots / turns) * turns);
    lent_.payload_changes = opening.host_changes_payload;
    const std::size_t chunk = std::size_t{lent_.stride} * lent_.chunk_slots;
    lent_.chunks = static_cast<std::uint32_t>(std::max<std::size_t>(kLeastChunks, share / chunk));
    const std::size_t bytes = chunk * lent_.chunks * opening.workers;
    if (opening.memory->is_shared()) {
      shared_memory_ = MappedMemory(bytes, /*shared=*/true);
      memory_ = shared_memory_.bytes();
    } else {
      own_memory_.resize(bytes);
      memory_ = own_memory_;
    }
    auto region = opening.memory->add(memory_);
    if (!region) {
      for (Error& error : region.error()) error.message = "frames: kept: " + error.message;
      return failure(std::move(region.error()));
    }
    lent_.region = *region;
    return {};
  }

  [[nodiscard]] std::optional<LentFrames> share_of_memory(unsigned worker) {
    if (memory_.empty()) return std::nullopt;
    LentFrames share = lent_;
    share.offset = worker * share.chunks * share.chunk_slots * share.stride;
    share.memory = memory_.data() + share.offset;
    return share;
  }

  [[nodiscard]] Pace pace_of(double part) const {
    if (!plan_.rate) return {};
    return {true, plan_.rate->unit == Rate::Unit::bits_per_second, plan_.rate->value * part / 1e9};
  }

  const GeneratorPlan plan_;
  const PortIndex index_;
  const NanosecondClock clock_;
  StopEvent stop_;
  FrameSet frames_;
  HugeVector<std::uint8_t> own_memory_;  // that is lent, or
  MappedMemory shared_memory_;           // if another process uses it
  std::span<std::uint8_t> memory_;       // either
  LentFrames lent_;                      // of all queues
  std::vector<std::unique_ptr<GeneratorRx>> queues_;
};

/// The sizes in rotation order.
Result<std::vector<std::uint32_t>> read_sizes(const std::string& text, const Place& place, std::uint32_t least) {
  if (text == "imix") {
    std::vector<std::uint32_t> sizes = kImix;
    for (std::uint32_t& size : sizes) size = std::max(size, least);
    return sizes;
  }
  const auto size = parse_size(text);
  if (!size || *size < least || *size > kMostSize) {
    return failure({place, "size: wrong value", in_quotes(text),
                    fmt::format("{} (the size of the headers) to {}, or imix", least, kMostSize)});
  }
  return std::vector{static_cast<std::uint32_t>(*size)};
}

Payload payload_of(const std::string& name) {
  return name == "random"    ? Payload::random
         : name == "http"    ? Payload::http
         : name == "capture" ? Payload::capture
                             : Payload::zero;
}

/// Wall-clock time that stays monotonic when the clock is set.
std::uint64_t wall_clock() noexcept {
  using std::chrono::nanoseconds;
  const auto now = [](auto time) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count());
  };
  static const std::uint64_t kDifference =
      now(std::chrono::system_clock::now()) - now(std::chrono::steady_clock::now());
  return kDifference + now(std::chrono::steady_clock::now());
}

}  // namespace

Result<std::unique_ptr<Port>> make_generator(const Parameters& given, PortIndex index, NanosecondClock clock) {
  GeneratorPlan plan;
  Errors errors;
  FramePlan& frames = plan.frames;
  frames.ipv6 = given.text("network") == "ipv6";
  frames.tcp = given.text("transport") == "tcp";
  if (given.has("vlan")) frames.vlan = static_cast<std::uint16_t>(given.integer("vlan"));
  frames.payload = payload_of(given.text("payload"));
  frames.seed = given.integer("seed");
  auto sizes = read_sizes(given.text("size"), given.place("size"), smallest_size(frames));
  if (sizes) {
    frames.sizes = std::move(*sizes);
  } else {
    append(errors, std::move(sizes.error()));
  }
  if (given.has("capture") != (frames.payload == Payload::capture)) {
    errors.push_back({given.place(given.has("capture") ? "capture" : "payload"),
                      "payload: capture and capture: FILE require each other", "only one of them", ""});
  } else if (given.has("capture")) {
    frames.capture = given.text("capture");
  }

  FlowPlan& flows = plan.flows;
  flows.address_bytes = frames.ipv6 ? 16 : 4;
  flows.flows = given.integer("flows");
  flows.seed = given.integer("seed");
  flows.destination_port = static_cast<std::uint16_t>(given.integer("port"));
  const auto range_of = [&](const char* name, std::string_view fallback) {
    const bool has = given.has(name);
    auto range = read_range(has ? given.text(name) : fallback, flows.address_bytes, has ? given.place(name) : Place{});
    if (!range) append(errors, std::move(range.error()));
    return range.value_or(AddressRange{});
  };
  flows.source = range_of("source", frames.ipv6 ? "2001:db8::/32" : "10.0.0.0/8");
  if (given.has("destination") && given.has("destinations")) {
    errors.push_back({given.place("destinations"), "destination and destinations are mutually exclusive", "both", ""});
  } else if (given.has("destinations")) {
    auto ranges = read_ranges(given.text("destinations"), flows.address_bytes);
    if (ranges) {
      flows.destinations = std::move(*ranges);
    } else {
      append(errors, std::move(ranges.error()));
    }
  } else {
    flows.destinations = {range_of("destination", frames.ipv6 ? "2001:2::/48" : "198.18.0.0/15")};
  }

  plan.keeps_frames = given.text("frames") == "kept";
  if (given.has("rate")) plan.rate = given.rate("rate");
  if (given.has("packets")) plan.packets = given.integer("packets");
  if (!errors.empty()) return failure(std::move(errors));
  return std::make_unique<GeneratorPort>(std::move(plan), index, clock);
}

PortKind generator_kind() noexcept {
  return {"generator", "generates packets: sizes, flows, payloads and an offered rate", kParameters,
          [](const Parameters& parameters, PortIndex index) { return make_generator(parameters, index, wall_clock); }};
}

}  // namespace penstock::port
