// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// In the order of a packet's way: the XDP program (xdp_program.h) hands frames of each receive queue to its socket
// (xdp_socket.h); a worker takes them from its sockets (xdp_queues.h, xdp_receiver.h); they go through the intake; and
// on the way out they are copied to the memory of the socket by which the worker sends (xdp_sender.h).

#include "port/live/af_xdp.h"

#include <fmt/format.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <limits>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/shared_memory.h"
#include "port/live/namespace_thread.h"
#include "port/live/xdp_program.h"
#include "port/live/xdp_queues.h"

namespace penstock::port {

namespace {

constexpr std::array kParameters{
    Parameter{"interface", ParameterType::text, "", "", "the interface's name", true},
    Parameter{"netns", ParameterType::text, "", "", "its network namespace, by the name of `ip netns`"},
    Parameter{"direction", ParameterType::choice, "both", "both|read|write",
              "read: the port only receives; write: it only sends, and frames that come go to the system"},
    Parameter{"promiscuous", ParameterType::flag, "true", "",
              "set the interface promiscuous during the run; false: leave it as it is"},
    Parameter{"for_host", ParameterType::choice, "port", "port|kernel",
              "where ARP, neighbour discovery, multicasts and packets to the host's own addresses go"},
    Parameter{"mode", ParameterType::choice, "auto", "auto|native|generic",
              "native: take frames in the driver; generic: later, with any driver; auto: native if possible"},
    Parameter{"zero_copy", ParameterType::choice, "auto", "auto|on|off",
              "on: only if the driver can use the port's memory for frames; auto: if it can, else copy"},
    Parameter{"memory", ParameterType::size, "8MiB", "1MiB..2GiB",
              "for the frames of each queue; when it is full, frames are dropped and counted"},
    Parameter{"checksums", ParameterType::choice, "auto", "auto|complete|as_received",
              "complete: do what senders on this host left to the NIC; auto: if the driver is of a virtual interface"},
    Parameter{"busy_poll", ParameterType::integer, "0", "0..65535",
              "run the driver from the worker (SO_PREFER_BUSY_POLL), with this budget of frames; 0: by interrupts"},
};

struct Settings {
  std::string interface, netns;
  Place place;
  bool reads = true, writes = true, promiscuous = true, leaves_to_kernel = false;
  XdpMode mode = XdpMode::automatic;
  XdpCopies copies = XdpCopies::automatic;
  std::string checksums;
  std::size_t memory = 0;
  unsigned busy_poll_budget = 0;
};

/// Drivers through which frames come from senders on this host, or on the host of this virtual machine.
bool is_virtual(std::string_view driver) noexcept {
  constexpr std::array<std::string_view, 5> kDrivers{"veth", "tun", "bridge", "macvlan", "virtio_net"};
  return std::ranges::find(kDrivers, driver) != kDrivers.end();
}

class AfXdpPort final : public Port {
 public:
  AfXdpPort(Settings settings, PortIndex index)
      : settings_(std::move(settings)), index_(index), watch_(settings_.interface) {}

  bool reads() const noexcept override { return settings_.reads; }
  bool writes() const noexcept override { return settings_.writes; }
  bool lossless() const noexcept override { return false; }

  Errors check() const override { return check_interface(settings_.interface, settings_.netns, settings_.place); }
  std::optional<InterfaceName> interface() const override {
    return InterfaceName{settings_.interface, settings_.netns};
  }

  Result<void> open(const Opening& opening) override {
    return in_network_namespace(settings_.netns, [&]() -> Result<void> {
      auto opened = open_here(opening);
      if (opened) return {};
      for (Error& error : opened.error()) error.place = settings_.place;
      return opened;
    });
  }

  /// Until now, all frames have gone to the system.
  Result<void> start() override {
    for (std::uint32_t q = 0; settings_.reads && q < receive_queues_; ++q) {
      if (auto done = program_.hand_over(settings_.interface, q, sockets_[q].fd()); !done) return done;
    }
    return {};
  }

  void interrupt() noexcept override {
    for (const auto& queue : tx_) queue->stop();
  }

  std::optional<CapabilityNeeds> capabilities() const override {
    CapabilityNeeds needs{{Capability::net_raw, Capability::net_admin, Capability::bpf, Capability::ipc_lock}, {}};
    if (!settings_.netns.empty()) needs.to_open.push_back(Capability::sys_admin);
    return needs;
  }

  RxQueue* rx(unsigned worker) noexcept override { return worker < rx_.size() ? rx_[worker].get() : nullptr; }
  TxQueue* tx(unsigned worker) noexcept override { return worker < tx_.size() ? tx_[worker].get() : nullptr; }

  /// Sockets and program end with their interface.
  bool failed() const noexcept override { return watch_.was_deleted(); }
  Errors close() override {
    for (std::uint32_t q = 0; settings_.reads && q < receive_queues_; ++q) program_.give_to_system(q);
    std::this_thread::sleep_for(std::chrono::milliseconds{2});  // for frames that are on their way to a socket
    for (const auto& queue : rx_) left_ += queue->discard(std::numeric_limits<std::size_t>::max()).packets;
    if (!failed()) return {};
    return {{settings_.place, "the interface was deleted during the run", in_quotes(settings_.interface), ""}};
  }

  std::optional<FragmentCounts> fragments() const noexcept override {
    if (!exchange_) return std::nullopt;
    return exchange_->counts().fragments;
  }

  std::optional<LinkState> link() const noexcept override { return watch_.link(); }
  std::optional<std::uint32_t> mtu() const noexcept override { return watch_.mtu(); }
  std::optional<InterfaceCounts> interface_counts() const override {
    InterfaceCounts counts;
    if (settings_.reads) add_received(counts);
    std::uint64_t left = left_.load();
    if (exchange_) {
      const Exchange::Counts exchange = exchange_->counts();
      left += exchange.left;
      exchange.add_to(counts);
    }
    if (settings_.reads) counts.lost.emplace_back("left_at_the_end", left);
    if (settings_.writes) add_sent(counts);
    const auto zero_copy = std::ranges::count_if(sockets_, [](const XdpSocket& one) { return one.is_zero_copy(); });
    counts.events.insert(counts.events.end(), {{"queues", sockets_.size()},
                                               {"queues_in_native_mode", program_.is_native() ? sockets_.size() : 0},
                                               {"queues_with_zero_copy", static_cast<std::uint64_t>(zero_copy)}});
    for (auto& event : watch_.events()) counts.events.push_back(std::move(event));
    return counts;
  }

 private:
  void add_received(InterfaceCounts& counts) const {
    std::uint64_t dropped = 0, full = 0, no_chunk = 0, invalid = 0;
    for (const XdpSocket& socket : sockets_) {
      const XdpStatistics one = socket.statistics();
      dropped += one.dropped;
      full += one.receive_ring_full;
      no_chunk += one.fill_ring_empty;
      invalid += one.invalid_chunks;
    }
    std::uint64_t wrong_length = 0;
    Intake::Sums sums;
    for (const auto& queue : rx_) {
      sums.add(queue->counts());
      wrong_length += queue->wrong_length();
    }
    counts.lost = {{"no_memory", dropped},
                   {"receive_ring_full", full},
                   {"malformed_offload", sums.malformed},
                   {"wrong_length", wrong_length}};
    counts.events = {
        {"fill_ring_empty", no_chunk}, {"invalid_chunks", invalid}, {"checksums_completed", sums.checksums},
        {"frames_split", sums.split},  {"segments", sums.segments}, {"frames_lent", sums.lent}};
    if (host_) counts.events.emplace_back("host_addresses_missed", host_missed_.load());
  }

  void add_sent(InterfaceCounts& counts) const {
    std::uint64_t down = 0, too_long = 0, full = 0, dropped = 0, invalid = 0;
    for (const auto& queue : tx_) {
      down += queue->refusals().down.get();
      too_long += queue->refusals().too_long.get();
      full += queue->refusals().ring_full.get();
      dropped += queue->refusals().dropped.get();
    }
    for (const XdpSocket& socket : sockets_) invalid += socket.statistics().invalid_send_frames;
    counts.events.insert(counts.events.end(), {{"refused_down", down},
                                               {"refused_too_long", too_long},
                                               {"refused_ring_full", full},
                                               {"refused_by_driver", dropped},
                                               {"invalid_send_frames", invalid}});
  }

  Result<void> open_here(const Opening& opening) {
    auto interface = require_interface(settings_.interface, settings_.place);
    if (!interface) return failure(std::move(interface.error()));
    if (auto counted = count_queues(*interface); !counted) return counted;
    const XdpShape shape = shape_for(*interface, opening.room);
    try {
      memory_ = MappedMemory(shape.bytes() * queues(), opening.memory != nullptr && opening.memory->is_shared());
    } catch (const std::bad_alloc&) {
      return failure(system_error(settings_.interface, "cannot allocate memory for frames",
                                  std::system_category().message(ENOMEM)));
    }
    if (settings_.leaves_to_kernel) {
      auto addresses = HostAddresses::open();
      if (!addresses) return failure(std::move(addresses.error()));
      host_ = std::move(*addresses);
      watch_.also_watch_addresses([this] { host_missed_.fetch_add(host_->update() ? 0 : 1); });
    }
    auto program =
        XdpProgram::attach(settings_.interface, *interface, queues(), settings_.mode, host_ ? &*host_ : nullptr);
    if (!program) return failure(std::move(program.error()));
    program_ = std::move(*program);
    if (auto opened = open_sockets(*interface, shape); !opened) return opened;
    if (auto done = make_promiscuous(*interface); !done) return done;
    make_receive_queues(opening, shape);
    make_send_queues(opening, shape);
    return watch_.start();
  }

  [[nodiscard]] std::uint32_t queues() const noexcept {
    return std::max(settings_.reads ? receive_queues_ : 0, settings_.writes ? send_queues_ : 0);
  }

  Result<void> count_queues(const Interface& interface) {
    if (const auto counts = queues_of(settings_.interface)) {
      receive_queues_ = counts->receive;
      send_queues_ = counts->send;
      return {};
    }
    // Frames of other queues would bypass the chain.
    if (!XdpSocket::has_queue(settings_.interface, interface, 1)) return {};
    return failure({settings_.place, "the interface has several queues, and its driver does not say how many",
                    in_quotes(settings_.interface), "an interface with one queue, or the port af_packet"});
  }

  [[nodiscard]] XdpShape shape_for(const Interface& interface, const FrameRoom& room) const {
    XdpShape shape;
    shape.headroom = static_cast<std::uint32_t>(
        aligned_frame(room.head > XdpShape::kLeastHeadroom ? room.head - XdpShape::kLeastHeadroom : 0));
    const std::uint32_t longest = interface.mtu + sizeof(EthernetHeader) + 2 * sizeof(VlanTag);
    const std::uint32_t before = XdpShape::kLeastHeadroom + shape.headroom;
    const auto page = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
    shape.chunk_bytes = std::clamp(std::bit_ceil(before + longest + room.tail), 2048U, page);
    shape.needs_several_chunks = before + longest > shape.chunk_bytes;
    shape.reads = settings_.reads;
    shape.writes = settings_.writes;
    shape.busy_poll_budget = settings_.busy_poll_budget;
    const auto chunks = static_cast<std::uint32_t>(settings_.memory / shape.chunk_bytes);
    shape.send_chunks = settings_.writes ? (settings_.reads ? chunks / 4 : chunks) : 0;
    shape.receive_chunks = chunks - shape.send_chunks;
    return shape;
  }

  Result<void> open_sockets(const Interface& interface, const XdpShape& shape) {
    const XdpCopies copies = program_.is_native() ? settings_.copies : XdpCopies::always;
    if (!program_.is_native() && settings_.copies == XdpCopies::never)
      return failure({settings_.place, "zero_copy: on needs XDP in native mode", in_quotes(settings_.interface),
                      "mode: native, or zero_copy: auto"});
    for (std::uint32_t q = 0; q < queues(); ++q) {
      auto socket = XdpSocket::open(settings_.interface, interface, q, memory_of(q, shape), shape, copies);
      if (!socket) return failure(std::move(socket.error()));
      sockets_.push_back(std::move(*socket));
    }
    return {};
  }

  [[nodiscard]] std::span<std::uint8_t> memory_of(std::uint32_t queue, const XdpShape& shape) const {
    return memory_.bytes().subspan(queue * shape.bytes(), shape.bytes());
  }

  /// The interface is promiscuous as long as the packet socket is open, which receives nothing.
  Result<void> make_promiscuous(const Interface& interface) {
    if (!settings_.promiscuous || !settings_.reads) return {};
    promiscuous_ = FileDescriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    packet_mreq membership{};
    membership.mr_ifindex = interface.index;
    membership.mr_type = PACKET_MR_PROMISC;
    if (promiscuous_ &&
        ::setsockopt(promiscuous_.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) == 0) {
      return {};
    }
    Error error = system_error(settings_.interface, "cannot make the interface promiscuous",
                               std::system_category().message(errno));
    if (errno == EPERM || errno == EACCES) error.expected = how_to_get(Capability::net_raw);
    return failure(std::move(error));
  }

  /// Worker w serves the queues q with q % workers = w.
  void make_receive_queues(const Opening& opening, const XdpShape& shape) {
    if (!settings_.reads) return;
    if (opening.workers > 1) exchange_ = std::make_unique<Exchange>(opening.workers);
    XdpReceiving how;
    how.port = index_;
    how.tailroom = opening.room.tail;
    how.completes = settings_.checksums == "complete" ||
                    (settings_.checksums == "auto" && is_virtual(driver_of(settings_.interface)));
    how.busy_polls = settings_.busy_poll_budget > 0;
    if (opening.memory != nullptr && memory_.bytes().size() <= PacketMemory::kMostBytes) {
      // Memory that devices cannot use is copied from.
      if (auto added = opening.memory->add(memory_.bytes())) how.region = *added;
    }
    for (unsigned w = 0; w < opening.workers; ++w) {
      std::vector<XdpRx::Source> sources;
      for (std::uint32_t q = w; q < receive_queues_; q += opening.workers) {
        XdpSocket& socket = sockets_[q];
        sources.push_back(
            {&socket,
             XdpReceiver(socket.fill(), socket.receive(), memory_of(q, shape), shape.chunk_bytes, shape.receive_chunks),
             q * shape.bytes()});
      }
      const std::size_t chunks = sources.size() * shape.receive_chunks;
      rx_.push_back(std::make_unique<XdpRx>(w, how, exchange_.get(), watch_, std::move(sources), chunks));
    }
  }

  /// Worker w sends by queue w, if there is one. The others share these queues.
  void make_send_queues(const Opening& opening, const XdpShape& shape) {
    if (!settings_.writes) return;
    const std::uint32_t used = std::min<std::uint32_t>(send_queues_, opening.workers);
    sharing_ = std::vector<std::mutex>(used);
    senders_.reserve(used);
    for (std::uint32_t q = 0; q < used; ++q) {
      const XdpSocket& socket = sockets_[q];
      senders_.emplace_back(socket.fd().get(), socket.send(), socket.completion(), memory_of(q, shape),
                            XdpSender::Shape{shape.chunk_bytes, shape.receive_chunks, shape.send_chunks,
                                             socket.has_frags(), socket.is_zero_copy()});
    }
    for (unsigned w = 0; w < opening.workers; ++w) {
      const bool is_shared = w % used + used < opening.workers;
      tx_.push_back(std::make_unique<XdpTx>(senders_[w % used], is_shared ? &sharing_[w % used] : nullptr, watch_));
    }
  }

  const Settings settings_;
  const PortIndex index_;
  std::uint32_t receive_queues_ = 1, send_queues_ = 1;
  MappedMemory memory_;  // of all sockets, one after another, so that it is one region; outlives them
  XdpProgram program_;
  FileDescriptor promiscuous_;
  std::vector<XdpSocket> sockets_;  // by queue
  std::unique_ptr<Exchange> exchange_;
  std::optional<HostAddresses> host_;          // whose frames the kernel gets
  std::atomic<std::uint64_t> host_missed_{0};  // changes of its addresses that could not be followed
  InterfaceWatch watch_;                       // its thread uses the two
  std::vector<XdpSender> senders_;             // by queue, for the workers
  std::vector<std::mutex> sharing_;
  std::vector<std::unique_ptr<XdpRx>> rx_;
  std::vector<std::unique_ptr<XdpTx>> tx_;
  std::atomic<std::uint64_t> left_{0};  // packets that had come when the run ended, and no worker took
};

Result<std::unique_ptr<Port>> make(const Parameters& given, PortIndex index) {
  Settings settings;
  settings.interface = given.text("interface");
  settings.place = given.place("interface");
  if (given.has("netns")) settings.netns = given.text("netns");
  settings.reads = given.text("direction") != "write";
  settings.writes = given.text("direction") != "read";
  settings.promiscuous = given.flag("promiscuous");
  settings.leaves_to_kernel = given.text("for_host") == "kernel";
  if (given.text("mode") == "native") settings.mode = XdpMode::native;
  if (given.text("mode") == "generic") settings.mode = XdpMode::generic;
  if (given.text("zero_copy") == "on") settings.copies = XdpCopies::never;
  if (given.text("zero_copy") == "off") settings.copies = XdpCopies::always;
  settings.checksums = given.text("checksums");
  settings.memory = given.integer("memory");
  settings.busy_poll_budget = static_cast<unsigned>(given.integer("busy_poll"));
  return std::make_unique<AfXdpPort>(std::move(settings), index);
}

}  // namespace

PortKind af_xdp_kind() noexcept {
  return {"af_xdp", "receives from and sends to a network interface, through AF_XDP sockets", kParameters, make};
}

}  // namespace penstock::port
