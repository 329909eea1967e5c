// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// In the order of a packet's way: frames come in blocks of the receive ring; a frame's VLAN tag, which the kernel has
// removed, is inserted again; the intake takes it; and on the way out it is copied into a slot of the send ring.
//
// If the interface is deleted and comes back, a thread opens sockets on the new one, and each queue changes to its own
// once the frames that it has lent from the old ring are back.

#include "port/live/af_packet.h"

#include <fmt/format.h>
#include <linux/if_ether.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "port/live/exchange.h"
#include "port/live/intake.h"
#include "port/live/interface.h"
#include "port/live/namespace_thread.h"
#include "port/live/packet_rings.h"
#include "port/live/realtime_offset.h"
#include "port/live/steering.h"

namespace penstock::port {

namespace {

constexpr std::array kParameters{
    Parameter{"interface", ParameterType::text, "", "", "the interface's name", true},
    Parameter{"netns", ParameterType::text, "", "", "its network namespace, by the name of `ip netns`"},
    Parameter{"direction", ParameterType::choice, "both", "both|read|write",
              "read: the port only receives; write: it only sends"},
    Parameter{"promiscuous", ParameterType::flag, "true", "",
              "receive frames for other hosts' MAC addresses too; false: they are left out and counted"},
    Parameter{"memory", ParameterType::size, "8MiB", "1MiB..2GiB",
              "of each worker's receive ring; when it is full, the kernel drops frames, which are counted"},
    Parameter{"block_timeout", ParameterType::duration, "1ms", "1ms..1s",
              "how long the kernel collects frames before it hands them over, unless a block of 256KiB is full first"},
    Parameter{"send_slots", ParameterType::integer, "1024", "64..65536",
              "frames that each worker's send ring holds; when it is full, packets are refused and counted"},
    Parameter{"bypass_qdisc", ParameterType::flag, "false", "",
              "send without the interface's queueing discipline (PACKET_QDISC_BYPASS): faster, without tc"},
};

struct Settings {
  std::string interface, netns;
  Place place;
  bool reads = true, writes = true, bypass_qdisc = false;
  std::size_t send_slots = 0;
  ReceiveShape receive;
};

class PacketRx final : public RxQueue {
 public:
  PacketRx(unsigned worker, PortIndex port, Exchange* exchange, bool promiscuous, ReceiveRing ring,
           std::optional<PacketMemory::Region> region, std::size_t region_offset)
      : worker_(worker),
        port_(port),
        exchange_(exchange),
        promiscuous_(promiscuous),
        intake_(worker, port, exchange),
        ring_(std::move(ring)),
        region_(region),
        region_offset_(region_offset) {}
  ~PacketRx() override { delete next_.load(); }

  RxStatus poll(Batch& batch) noexcept override {
    if (exchange_ == nullptr) return receive(batch);
    // In turns, so that a full batch of one kind does not keep out the other.
    own_first_ = !own_first_;
    RxStatus status = own_first_ ? receive(batch) : exchange_->poll(worker_, batch, port_);
    if (status == RxStatus::idle) status = own_first_ ? exchange_->poll(worker_, batch, port_) : receive(batch);
    exchange_->wake_others(worker_);
    return status;
  }

  void take_back(std::size_t frames) noexcept override { ring_.take_back(frames); }

  bool add_wake_ups(std::vector<pollfd>& to) noexcept override {
    // An interface that goes down leaves an error, which would wake the worker again and again.
    int error = 0;
    socklen_t length = sizeof error;
    static_cast<void>(::getsockopt(ring_.fd(), SOL_SOCKET, SO_ERROR, &error, &length));
    to.push_back({ring_.fd(), POLLIN, 0});
    if (exchange_ != nullptr) to.push_back({exchange_->wait_fd(worker_), POLLIN, 0});
    return true;
  }

  std::optional<std::chrono::nanoseconds> arrivals_to_clock() noexcept override { return offset_.get(); }

  Discarded discard(std::size_t most) noexcept override {
    Discarded all;
    if (exchange_ != nullptr) all = exchange_->discard(worker_, most);
    while (all.packets < most && open_frame()) {
      const Discarded left = intake_.give_up(frame_);
      all.packets += left.packets;
      all.bytes += left.bytes;
      pop(false);
    }
    all.status = all.packets >= most ? RxStatus::more : RxStatus::idle;
    return all;
  }

  /// From another thread: the ring of the interface that has come back.
  void change_to(std::unique_ptr<ReceiveRing> ring) noexcept { delete next_.exchange(ring.release()); }

  [[nodiscard]] bool start() noexcept { return ring_.start(); }
  void stop() noexcept {
    const std::lock_guard lock(changing_);
    ring_.stop();
  }

  struct Counts {
    std::uint64_t dropped = 0;  // by the kernel
    std::uint64_t waiting = 0;  // in the ring, not taken yet
    std::uint64_t other_hosts = 0;
  };
  [[nodiscard]] Counts counts() noexcept {
    const std::lock_guard lock(changing_);
    count_arrivals();
    const std::uint64_t taken = popped_.get();
    return {dropped_, arrived_ > dropped_ + taken ? arrived_ - dropped_ - taken : 0, other_hosts_.get()};
  }
  [[nodiscard]] const Intake::Counts& intake() const noexcept { return intake_.counts(); }

 private:
  RxStatus receive(Batch& batch) noexcept {
    while (open_frame()) {
      const Intake::Taken taken = intake_.take(batch, frame_);
      if (taken == Intake::Taken::full) return RxStatus::more;
      pop(taken == Intake::Taken::lent);
    }
    return ring_.starved() ? RxStatus::starved : RxStatus::idle;
  }

  /// Makes `frame_` the next frame, unless it is one that has not been taken completely. False: there is none.
  bool open_frame() noexcept {
    if (is_open_) return true;
    while (tpacket3_hdr* const header = next_frame()) {
      if (!is_ignored(*header)) {
        frame_ = frame_of(*header);
        is_open_ = true;
        return true;
      }
      other_hosts_.add(1);
      pop(false);
    }
    return false;
  }
  void pop(bool lent) noexcept {
    is_open_ = false;
    ring_.pop(lent);
    popped_.add(1);
  }

  /// With `changing_` held.
  void count_arrivals() noexcept {
    const ReceiveRing::Arrivals arrivals = ring_.arrivals();
    arrived_ += arrivals.frames;
    dropped_ += arrivals.dropped;
  }

  tpacket3_hdr* next_frame() noexcept {
    tpacket3_hdr* const header = ring_.front();
    if (header != nullptr || next_.load(std::memory_order_relaxed) == nullptr || ring_.lent() > 0) return header;
    const std::lock_guard lock(changing_);
    count_arrivals();
    const std::unique_ptr<ReceiveRing> next(next_.exchange(nullptr));
    ring_ = std::move(*next);
    region_.reset();  // the chain's devices do not know the new memory
    return ring_.front();
  }

  [[nodiscard]] bool is_ignored(const tpacket3_hdr& header) const noexcept {
    if (promiscuous_) return false;
    const auto& address = *reinterpret_cast<const sockaddr_ll*>(reinterpret_cast<const std::uint8_t*>(&header) +
                                                                TPACKET_ALIGN(sizeof(tpacket3_hdr)));
    return address.sll_pkttype == PACKET_OTHERHOST;
  }

  /// The frame as it was on the wire, but for what is left for the NIC. Moves its MAC addresses if it has a tag.
  [[nodiscard]] ReceivedFrame frame_of(tpacket3_hdr& header) const noexcept {
    constexpr std::size_t kMacs = 12;
    std::uint8_t* start = reinterpret_cast<std::uint8_t*>(&header) + header.tp_mac;
    std::size_t length = header.tp_snaplen;
    ReceivedFrame frame;
    std::memcpy(&frame.offload, start - sizeof frame.offload, sizeof frame.offload);
    frame.wire_length = header.tp_len;
    if ((header.tp_status & TP_STATUS_VLAN_VALID) != 0 && length >= kMacs) {
      start -= sizeof(VlanTag);
      std::memmove(start, start + sizeof(VlanTag), kMacs);
      auto& type = *reinterpret_cast<Be16*>(start + kMacs);
      type.set((header.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? header.hv1.tp_vlan_tpid : ETH_P_8021Q);
      reinterpret_cast<Be16*>(start + kMacs + 2)->set(static_cast<std::uint16_t>(header.hv1.tp_vlan_tci));
      length += sizeof(VlanTag);
      frame.wire_length += sizeof(VlanTag);
      frame.offload_shift = sizeof(VlanTag);
    }
    frame.bytes = {start, length};
    frame.timestamp_ns = std::uint64_t{header.tp_sec} * 1'000'000'000 + header.tp_nsec;
    if (region_) {
      frame.can_be_lent = true;
      frame.region = *region_;
      frame.offset = static_cast<std::uint32_t>(region_offset_ + static_cast<std::size_t>(start - ring_.memory()));
    }
    return frame;
  }

  const unsigned worker_;
  const PortIndex port_;
  Exchange* const exchange_;
  const bool promiscuous_;
  Intake intake_;
  ReceiveRing ring_;
  std::optional<PacketMemory::Region> region_;  // of the ring's memory; empty: frames are copied
  std::size_t region_offset_;
  ReceivedFrame frame_;   // that is being taken, if
  bool is_open_ = false;  // it has not been taken completely
  RealtimeOffset offset_;
  bool own_first_ = false;
  Counter other_hosts_, popped_;
  std::atomic<ReceiveRing*> next_{nullptr};
  std::mutex changing_;        // guards the change of the ring, and the next members
  std::uint64_t arrived_ = 0;  // frames, at this ring and former ones
  std::uint64_t dropped_ = 0;
};

class PacketTx final : public TxQueue {
 public:
  PacketTx(SendRing ring, const InterfaceWatch& watch) : ring_(std::move(ring)), watch_(watch) {}
  ~PacketTx() override { delete next_.load(); }

  std::size_t send(std::span<const PacketView> packets) noexcept override {
    take_next();
    std::size_t accepted = 0;
    for (const PacketView& view : packets) {
      if (!put(view)) {
        view.packet->verdict = Verdict::drop(0);
        continue;
      }
      ++accepted;
      accepted_bytes_ += view.length();
    }
    accepted_ += accepted;
    return accepted;
  }

  Lost flush() noexcept override {
    offer();
    // Frames of earlier batches have been counted as sent.
    Lost lost = std::exchange(lost_, {});
    if (lost.packets > accepted_ - flushed_) {
      refusals_.after_flush.add(lost.packets - (accepted_ - flushed_));
      lost = {accepted_ - flushed_, accepted_bytes_};
    }
    flushed_ = accepted_;
    accepted_bytes_ = 0;
    return lost;
  }

  /// Frames were copied, but those that the kernel has not taken are to be offered again.
  Departures departures() noexcept override {
    if (ring_.pending() > 0) offer();
    return {accepted_, accepted_ - ring_.pending()};
  }

  /// From another thread: the ring of the interface that has come back.
  void change_to(std::unique_ptr<SendRing> ring) noexcept { delete next_.exchange(ring.release()); }
  /// From another thread: the run ends, and frames that the kernel does not take are given up.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }

  struct Refusals {
    Counter down, too_long, ring_full;
    Counter after_flush;  // of these, frames that had been counted as sent
  };
  [[nodiscard]] const Refusals& refusals() const noexcept { return refusals_; }

 private:
  bool put(const PacketView& view) noexcept {
    if (!watch_.can_send()) {
      refusals_.down.add(1);
      return false;
    }
    const std::size_t length = view.length();
    const bool tagged = length >= sizeof(EthernetHeader) && view.ethernet().type.value() == ether_type::kVlan;
    const std::size_t most = watch_.mtu() + sizeof(EthernetHeader) + (tagged ? sizeof(VlanTag) : 0);
    if (length > most || length > ring_.longest_frame() || length < sizeof(EthernetHeader) ||
        view.packet->link_type != LinkType::ethernet) {
      refusals_.too_long.add(1);
      return false;
    }
    const std::span<const std::uint8_t> frame(view.frame, length);
    if (ring_.put(frame)) return true;
    offer();
    if (ring_.put(frame)) return true;
    refusals_.ring_full.add(1);
    return false;
  }

  void offer() noexcept {
    SendRing::Sent sent;
    if (ring_.pending() > 0 && !watch_.can_send()) {
      sent = ring_.discard(SendRing::Refused::down);
    } else {
      sent = ring_.send();
      constexpr unsigned kMostTries = 1000;
      if (ring_.pending() > 0 && stopping_.load(std::memory_order_relaxed) && ++tries_ > kMostTries)
        sent = ring_.discard(SendRing::Refused::down);
    }
    lost_.packets += sent.lost;
    lost_.bytes += sent.lost_bytes;
    if (sent.lost > 0)
      (sent.reason == SendRing::Refused::too_long ? refusals_.too_long : refusals_.down).add(sent.lost);
  }

  void take_next() noexcept {
    if (next_.load(std::memory_order_relaxed) == nullptr) return;
    const std::unique_ptr<SendRing> next(next_.exchange(nullptr));
    const SendRing::Sent sent = ring_.discard(SendRing::Refused::down);
    lost_.packets += sent.lost;
    lost_.bytes += sent.lost_bytes;
    refusals_.down.add(sent.lost);
    ring_ = std::move(*next);
  }

  SendRing ring_;
  const InterfaceWatch& watch_;
  std::uint64_t accepted_ = 0, flushed_ = 0;  // frames; up to the last flush
  std::uint64_t accepted_bytes_ = 0;          // since then
  unsigned tries_ = 0;
  Lost lost_;
  Refusals refusals_;
  std::atomic<SendRing*> next_{nullptr};
  std::atomic<bool> stopping_{false};
};

/// Memory for all workers' receive rings, one after another, so that the chain knows it as one region.
class ReservedMemory {
 public:
  ReservedMemory() = default;
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;
  ~ReservedMemory() {
    if (bytes_ > 0) ::munmap(memory_, bytes_);
  }
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    void* const memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    memory_ = static_cast<std::uint8_t*>(memory);
    bytes_ = bytes;
    return true;
  }
  [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return {memory_, bytes_}; }

 private:
  std::uint8_t* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

class AfPacketPort final : public Port {
 public:
  AfPacketPort(Settings settings, PortIndex index)
      : settings_(std::move(settings)),
        index_(index),
        watch_(
            settings_.interface, [this](const Interface& interface) { return reopen(interface); },
            [this](const Interface& interface) { return lengthen_slots(interface); }) {}

  bool reads() const noexcept override { return settings_.reads; }
  bool writes() const noexcept override { return settings_.writes; }
  bool lossless() const noexcept override { return false; }

  Errors check() const override {
    auto found = in_network_namespace(settings_.netns, [this]() -> Result<void> {
      if (auto interface = require_interface(settings_.interface, settings_.place); !interface)
        return failure(std::move(interface.error()));
      return {};
    });
    return found ? Errors{} : std::move(found.error());
  }

  Result<void> open(const Opening& opening) override {
    return in_network_namespace(settings_.netns, [&]() -> Result<void> { return open_here(opening); });
  }

  Result<void> start() override {
    for (const auto& queue : rx_) {
      if (!queue->start())
        return failure(Error{settings_.place, "cannot let packets in", std::system_category().message(errno), ""});
    }
    return {};
  }

  void interrupt() noexcept override {
    for (const auto& queue : tx_) queue->stop();
  }

  std::optional<std::vector<Capability>> capabilities() const override {
    std::vector<Capability> needed{Capability::net_raw};
    if (settings_.reads) needed.push_back(Capability::bpf);  // a program spreads frames to several workers better
    if (!settings_.netns.empty()) needed.push_back(Capability::sys_admin);
    return needed;
  }

  RxQueue* rx(unsigned worker) noexcept override { return worker < rx_.size() ? rx_[worker].get() : nullptr; }
  TxQueue* tx(unsigned worker) noexcept override { return worker < tx_.size() ? tx_[worker].get() : nullptr; }

  Errors close() override {
    for (const auto& queue : rx_) queue->stop();
    closed_.store(true);
    return {};
  }

  std::optional<FragmentCounts> fragments() const noexcept override {
    if (!exchange_) return std::nullopt;
    return exchange_->counts().fragments;
  }

  std::optional<InterfaceCounts> interface_counts() const override {
    const std::lock_guard lock(counting_);
    InterfaceCounts counts;
    std::uint64_t drops = 0, left = 0, other_hosts = 0, malformed = 0, too_long = 0, checksums = 0, split = 0,
                  segments = 0;
    for (const auto& queue : rx_) {
      const Intake::Counts& intake = queue->intake();
      const PacketRx::Counts own = queue->counts();
      drops += own.dropped;
      left += own.waiting;
      other_hosts += own.other_hosts;
      malformed += intake.malformed.get();
      too_long += intake.too_long.get();
      checksums += intake.checksums.get();
      split += intake.split.get();
      segments += intake.segments.get();
    }
    Exchange::Counts exchange;
    if (exchange_) exchange = exchange_->counts();
    left += exchange.left;
    if (settings_.reads) {
      counts.lost = {{"receive_ring_full", drops}, {"malformed_offload", malformed}, {"too_long", too_long}};
      if (closed_.load()) counts.lost.emplace_back("left_at_the_end", left);  // before that, they wait
      counts.events = {{"checksums_completed", checksums},
                       {"frames_split", split},
                       {"segments", segments},
                       {"for_other_hosts", other_hosts}};
    }
    if (exchange_) {
      counts.lost.insert(counts.lost.end(),
                         {{"worker_ring_full", exchange.ring_full}, {"too_long_for_worker_ring", exchange.too_long}});
      counts.events.emplace_back("handed_over", exchange.handed_over);
    }
    std::uint64_t down = 0, long_sent = 0, full = 0, late = 0;
    for (const auto& queue : tx_) {
      down += queue->refusals().down.get();
      long_sent += queue->refusals().too_long.get();
      full += queue->refusals().ring_full.get();
      late += queue->refusals().after_flush.get();
    }
    if (settings_.writes) {
      counts.events.insert(counts.events.end(), {{"refused_down", down},
                                                 {"refused_too_long", long_sent},
                                                 {"refused_ring_full", full},
                                                 {"refused_after_forwarding", late}});
    }
    for (auto& event : watch_.events()) counts.events.push_back(std::move(event));
    return counts;
  }

 private:
  Result<void> open_here(const Opening& opening) {
    auto interface = require_interface(settings_.interface, settings_.place);
    if (!interface) return failure(std::move(interface.error()));
    workers_ = opening.workers;
    ReceiveShape& shape = settings_.receive;
    shape.headroom = static_cast<std::uint32_t>(aligned_frame(opening.room.head + sizeof(VlanTag)));
    if (workers_ > 1 && settings_.reads) {
      exchange_ = std::make_unique<Exchange>(workers_);
      program_ = load_steering_program(workers_);
    }
    const std::size_t ring_bytes = shape.block_bytes * shape.blocks;
    const bool lends = settings_.reads && opening.memory != nullptr && opening.room.tail == 0 &&
                       ring_bytes * workers_ <= PacketMemory::kMostBytes && memory_.reserve(ring_bytes * workers_);
    auto rings = open_receive_rings(*interface, lends ? memory_.bytes().data() : nullptr);
    if (!rings) return failure(std::move(rings.error()));
    std::optional<PacketMemory::Region> region;
    if (lends) {
      // Memory that devices cannot use is copied from.
      if (auto added = opening.memory->add(memory_.bytes())) region = *added;
    }
    for (unsigned w = 0; w < rings->size(); ++w) {
      rx_.push_back(std::make_unique<PacketRx>(w, index_, exchange_.get(), shape.promiscuous, std::move((*rings)[w]),
                                               region, w * ring_bytes));
    }
    auto sends = open_send_rings(*interface);
    if (!sends) return failure(std::move(sends.error()));
    for (SendRing& ring : *sends) tx_.push_back(std::make_unique<PacketTx>(std::move(ring), watch_));
    return watch_.start();
  }

  Result<std::vector<ReceiveRing>> open_receive_rings(const Interface& interface, std::uint8_t* memory) {
    std::vector<ReceiveRing> rings;
    Fanout fanout;
    // Unique among the groups of this process; the kernel refuses those of others.
    static std::atomic<std::uint16_t> next_group{static_cast<std::uint16_t>(::getpid() * 8)};
    fanout.group = next_group.fetch_add(1);
    if (program_) {
      fanout.type = PACKET_FANOUT_EBPF;
      fanout.program = program_.get();
    }
    const std::size_t ring_bytes = settings_.receive.block_bytes * settings_.receive.blocks;
    for (unsigned w = 0; settings_.reads && w < workers_; ++w) {
      auto ring = ReceiveRing::open(settings_.interface, interface, settings_.receive, workers_ > 1 ? &fanout : nullptr,
                                    memory == nullptr ? nullptr : memory + w * ring_bytes);
      if (!ring) return failure(placed(std::move(ring.error())));
      rings.push_back(std::move(*ring));
    }
    return rings;
  }

  Result<std::vector<SendRing>> open_send_rings(const Interface& interface) {
    std::vector<SendRing> rings;
    constexpr std::uint32_t kLeast = 1500;
    const auto longest =
        static_cast<std::uint32_t>(std::max(interface.mtu, kLeast) + sizeof(EthernetHeader) + sizeof(VlanTag));
    for (unsigned w = 0; settings_.writes && w < workers_; ++w) {
      auto ring = SendRing::open(settings_.interface, interface, settings_.send_slots, longest, settings_.bypass_qdisc);
      if (!ring) return failure(placed(std::move(ring.error())));
      rings.push_back(std::move(*ring));
    }
    return rings;
  }

  [[nodiscard]] Errors placed(Errors errors) const {
    for (Error& error : errors) error.place = settings_.place;
    return errors;
  }

  /// In the watch's thread: the interface has been deleted, and there is one with its name again.
  bool reopen(const Interface& interface) {
    auto receive = open_receive_rings(interface, nullptr);
    auto send = open_send_rings(interface);
    if (!receive || !send) return false;
    for (ReceiveRing& ring : *receive) {
      if (!ring.start()) return false;
    }
    for (std::size_t w = 0; w < rx_.size(); ++w)
      rx_[w]->change_to(std::make_unique<ReceiveRing>(std::move((*receive)[w])));
    for (std::size_t w = 0; w < tx_.size(); ++w) tx_[w]->change_to(std::make_unique<SendRing>(std::move((*send)[w])));
    return true;
  }

  /// In the watch's thread: frames may be longer than the slots of the send rings.
  bool lengthen_slots(const Interface& interface) {
    auto send = open_send_rings(interface);
    if (!send) return false;  // then they are refused as too long
    for (std::size_t w = 0; w < tx_.size(); ++w) tx_[w]->change_to(std::make_unique<SendRing>(std::move((*send)[w])));
    return true;
  }

  Settings settings_;
  const PortIndex index_;
  unsigned workers_ = 1;
  ReservedMemory memory_;  // outlives the rings in it
  FileDescriptor program_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<std::unique_ptr<PacketRx>> rx_;
  std::vector<std::unique_ptr<PacketTx>> tx_;
  mutable std::mutex counting_;
  std::atomic<bool> closed_{false};
  InterfaceWatch watch_;  // its thread uses the queues
};

Result<std::unique_ptr<Port>> make(const Parameters& given, PortIndex index) {
  Settings settings;
  settings.interface = given.text("interface");
  settings.place = given.place("interface");
  if (given.has("netns")) settings.netns = given.text("netns");
  settings.reads = given.text("direction") != "write";
  settings.writes = given.text("direction") != "read";
  settings.bypass_qdisc = given.flag("bypass_qdisc");
  settings.send_slots = given.integer("send_slots");
  settings.receive.promiscuous = given.flag("promiscuous");
  settings.receive.blocks = std::max<std::size_t>(4, given.integer("memory") / settings.receive.block_bytes);
  settings.receive.block_timeout_ms = static_cast<unsigned>(
      std::chrono::duration_cast<std::chrono::milliseconds>(given.duration("block_timeout")).count());
  return std::make_unique<AfPacketPort>(std::move(settings), index);
}

}  // namespace

PortKind af_packet_kind() noexcept {
  return {"af_packet", "receives from and sends to a network interface, through packet sockets", kParameters, make};
}

}  // namespace penstock::port
