// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens the rings of all workers (packet_rings.h), and makes their queues (packet_queues.h). If the interface is
// deleted and comes back, a thread opens sockets on the new one, and each queue changes to its own.

#include "port/live/af_packet.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/system_file.h"
#include "port/live/exchange.h"
#include "port/live/interface.h"
#include "port/live/namespace_thread.h"
#include "port/live/packet_queues.h"
#include "port/live/packet_rings.h"
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
            [this](const Interface& interface) { return lengthen_slots(interface); }, {Capability::net_raw}) {}

  bool reads() const noexcept override { return settings_.reads; }
  bool writes() const noexcept override { return settings_.writes; }
  bool lossless() const noexcept override { return false; }

  Errors check() const override { return check_interface(settings_.interface, settings_.netns, settings_.place); }
  /// A packet socket gets copies: the kernel has the frames too.
  Errors cautions() const override {
    if (!settings_.reads || !settings_.writes) return {};  // it may be there to listen
    const std::lock_guard lock(cautioning_);
    Errors cautions;
    const auto found = in_network_namespace(settings_.netns, [&]() -> Result<void> {
      for (const char* const family : {"ipv4", "ipv6"}) {
        const std::string setting = fmt::format("net/{}/conf/{}/forwarding", family, settings_.interface);
        if (system_file("/proc/sys/" + setting) != "1") continue;
        cautions.push_back({settings_.place, "the kernel forwards the packets of this interface too, past the chain",
                            in_quotes(setting + " = 1"), "0, or a firewall of the kernel that drops what it forwards"});
      }
      if (const auto interface = find_interface(settings_.interface)) {
        if (const std::string master = master_of(*interface); !master.empty()) {
          cautions.push_back({settings_.place, "the kernel takes the frames of this interface too, past the chain",
                              "it belongs to " + in_quotes(master),
                              "`ip link set " + settings_.interface + " nomaster`"});
        }
      }
      return {};
    });
    // A run has given up the capability to enter another namespace.
    if (found) cautions_ = std::move(cautions);
    return cautions_;
  }
  std::optional<InterfaceName> interface() const override {
    return InterfaceName{settings_.interface, settings_.netns};
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

  std::optional<CapabilityNeeds> capabilities() const override {
    CapabilityNeeds needs{{Capability::net_raw}, {}};
    if (settings_.reads)
      needs.to_open.push_back(Capability::bpf);  // a program spreads frames to several workers better
    if (!settings_.netns.empty()) needs.to_open.push_back(Capability::sys_admin);
    return needs;
  }

  Result<std::string> continuity() const override {
    const ReceiveShape& shape = settings_.receive;
    return fmt::format("af_packet interface={} netns={} receives={} blocks={} block_timeout={}ms promiscuous={}",
                       settings_.interface, settings_.netns, settings_.reads, shape.blocks, shape.block_timeout_ms,
                       shape.promiscuous);
  }
  void rest() noexcept override {
    for (const auto& queue : rx_) queue->rest().ask();
  }
  void resume() noexcept override {
    for (const auto& queue : rx_) queue->resume();
  }
  void leave() noexcept override {
    for (const auto& queue : rx_) queue->leave();
  }
  bool rests() const noexcept override {
    return std::ranges::all_of(rx_, [](const auto& queue) { return queue->rest().rests(); }) &&
           (!exchange_ || exchange_->is_empty());
  }

  /// The room before frames and, for each worker, the numbers of PacketRx::Handed.
  HandedPort hand_over() override {
    HandedPort handed;
    handed.numbers.push_back(std::min(settings_.receive.headroom, handed_headroom_));
    for (const auto& queue : rx_) {
      PacketRx::Handed one = queue->hand_over();
      handed.descriptors.push_back(std::move(one.socket));
      handed.numbers.insert(handed.numbers.end(),
                            {one.position.block, one.position.left, one.position.offset, one.waiting});
    }
    return handed;
  }

  Result<void> continue_from(HandedPort handed) override {
    if (handed.is_empty()) return in_network_namespace(settings_.netns, [&] { return begin_anew(); });
    constexpr std::size_t kNumbers = 4;
    if (handed.descriptors.size() != rx_.size() || handed.numbers.size() != 1 + kNumbers * rx_.size())
      return failure(Error{settings_.place, "not what a port of this kind hands over", "", ""});
    const std::size_t ring_bytes = settings_.receive.block_bytes * settings_.receive.blocks;
    std::vector<ReceiveRing> rings;
    for (std::size_t w = 0; w < rx_.size(); ++w) {
      const std::uint64_t* const numbers = handed.numbers.data() + 1 + kNumbers * w;
      auto ring = ReceiveRing::continue_at(settings_.interface, std::move(handed.descriptors[w]),
                                           {numbers[0], numbers[1], numbers[2]}, settings_.receive,
                                           lends_to_ == nullptr ? nullptr : memory_.bytes().data() + w * ring_bytes);
      if (!ring) return failure(placed(std::move(ring.error())));
      rings.push_back(std::move(*ring));
    }
    // Its frames may have less room than this chain needs.
    std::optional<PacketMemory::Region> region;
    if (lends_to_ != nullptr && handed.numbers[0] >= settings_.receive.headroom) region = add_memory(*lends_to_);
    for (std::size_t w = 0; w < rx_.size(); ++w)
      rx_[w]->continue_with(std::move(rings[w]), region, handed.numbers[kNumbers * (w + 1)]);
    handed_headroom_ = static_cast<std::uint32_t>(handed.numbers[0]);
    return {};
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

  std::optional<LinkState> link() const noexcept override { return watch_.link(); }
  std::optional<std::uint32_t> mtu() const noexcept override { return watch_.mtu(); }
  std::optional<InterfaceCounts> interface_counts() const override {
    const std::lock_guard lock(counting_);
    InterfaceCounts counts;
    std::uint64_t drops = 0, left = 0, other_hosts = 0;
    Intake::Sums sums;
    for (const auto& queue : rx_) {
      const PacketRx::Counts own = queue->counts();
      drops += own.dropped;
      left += own.waiting;
      other_hosts += own.other_hosts;
      sums.add(queue->intake());
    }
    Exchange::Counts exchange;
    if (exchange_) exchange = exchange_->counts();
    left += exchange.left;
    if (settings_.reads) {
      counts.lost = {{"receive_ring_full", drops}, {"malformed_offload", sums.malformed}, {"too_long", sums.too_long}};
      if (closed_.load()) counts.lost.emplace_back("left_at_the_end", left);  // before that, they wait
      counts.events = {{"checksums_completed", sums.checksums},
                       {"frames_split", sums.split},
                       {"segments", sums.segments},
                       {"frames_lent", sums.lent},
                       {"for_other_hosts", other_hosts}};
    }
    if (exchange_) exchange.add_to(counts);
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
    // The kernel lets both receive every frame, and both would forward it.
    if (settings_.reads && settings_.writes && !opening.continues && SendRing::exists_on(*interface)) {
      log_warning("{}",
                  to_string(Error{settings_.place, "another program sends through this interface too",
                                  in_quotes(settings_.interface), "one run: two would forward every packet twice"}));
    }
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
    std::vector<ReceiveRing> rings(settings_.reads ? workers_ : 0);
    std::optional<PacketMemory::Region> region;
    if (opening.continues) {
      if (lends) lends_to_ = opening.memory;
    } else {
      auto opened = open_receive_rings(*interface, lends ? memory_.bytes().data() : nullptr);
      if (!opened) return failure(std::move(opened.error()));
      rings = std::move(*opened);
      if (lends) region = add_memory(*opening.memory);
    }
    for (unsigned w = 0; w < rings.size(); ++w) {
      rx_.push_back(std::make_unique<PacketRx>(w, index_, exchange_.get(), shape.promiscuous, std::move(rings[w]),
                                               region, w * ring_bytes));
    }
    auto sends = open_send_rings(*interface);
    if (!sends) return failure(std::move(sends.error()));
    for (SendRing& ring : *sends) tx_.push_back(std::make_unique<PacketTx>(std::move(ring), watch_));
    return watch_.start();
  }

  /// Empty: memory that devices cannot use is copied from.
  [[nodiscard]] std::optional<PacketMemory::Region> add_memory(PacketMemory& chain) const {
    auto added = chain.add(memory_.bytes());
    return added ? std::optional(*added) : std::nullopt;
  }

  Result<void> begin_anew() {
    auto interface = require_interface(settings_.interface, settings_.place);
    if (!interface) return failure(std::move(interface.error()));
    auto rings = open_receive_rings(*interface, lends_to_ == nullptr ? nullptr : memory_.bytes().data());
    if (!rings) return failure(std::move(rings.error()));
    std::optional<PacketMemory::Region> region;
    if (lends_to_ != nullptr) region = add_memory(*lends_to_);
    for (std::size_t w = 0; w < rx_.size(); ++w) rx_[w]->continue_with(std::move((*rings)[w]), region, 0);
    return start();
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
    change_send_rings(*send);
    return true;
  }

  /// In the watch's thread: frames may be longer than the slots of the send rings.
  bool lengthen_slots(const Interface& interface) {
    auto send = open_send_rings(interface);
    if (!send) return false;  // then they are refused as too long
    change_send_rings(*send);
    return true;
  }

  void change_send_rings(std::vector<SendRing>& rings) {
    for (std::size_t w = 0; w < tx_.size(); ++w) tx_[w]->change_to(std::make_unique<SendRing>(std::move(rings[w])));
  }

  Settings settings_;
  const PortIndex index_;
  unsigned workers_ = 1;
  ReservedMemory memory_;  // outlives the rings in it
  // Of sockets from another process. Those that are opened later, if the interface comes back, have this chain's.
  std::uint32_t handed_headroom_ = std::numeric_limits<std::uint32_t>::max();
  PacketMemory* lends_to_ = nullptr;  // where to add the memory in `continue_from`; null: frames are copied
  FileDescriptor program_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<std::unique_ptr<PacketRx>> rx_;
  std::vector<std::unique_ptr<PacketTx>> tx_;
  mutable std::mutex counting_, cautioning_;
  mutable Errors cautions_;  // when they were last found
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
