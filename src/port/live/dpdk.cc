// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// In the order of a packet's way: a burst of frames comes from the device (dpdk/queues.h), each is lent where DPDK has
// received it, or copied; and on the way out it is copied into a buffer of DPDK's.

#include "port/live/dpdk.h"

#include <array>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "port/live/dpdk/environment.h"
#include "port/live/dpdk/queues.h"

namespace penstock::port {

namespace {

using dpdk::DpdkRx;
using dpdk::DpdkTx;

constexpr std::array kParameters{
    Parameter{"device", ParameterType::text, "", "",
              "a PCI address, or a virtual device with its arguments: 0000:81:00.0, \"net_tap0,iface=tap0\"", true},
    Parameter{"eal", ParameterType::texts, "", "",
              "arguments of DPDK's environment, which all ports share: [--no-huge, -m, 512]"},
    Parameter{"direction", ParameterType::choice, "both", "both|read|write",
              "read: the port only receives; write: it only sends"},
    Parameter{"promiscuous", ParameterType::flag, "true", "", "receive frames for other hosts' MAC addresses too"},
    Parameter{"mtu", ParameterType::integer, "1500", "68..16128", "the longest packet, without its Ethernet header"},
    Parameter{"receive_slots", ParameterType::integer, "1024", "64..32768",
              "frames that each receive queue of the device holds; when it is full, the device drops frames"},
    Parameter{"send_slots", ParameterType::integer, "1024", "64..32768",
              "frames that each send queue of the device holds, and as many wait for it; then packets are refused"},
    Parameter{"lent_frames", ParameterType::integer, "4096", "0..1048576",
              "frames of each receive queue that the chain may have without copying them; further ones are copied"},
};

struct Settings {
  dpdk::DeviceSettings device;
  std::string given;  // the device as the user names it
  Place place;
};

class DpdkPort final : public Port {
 public:
  DpdkPort(Settings settings, dpdk::PortArguments arguments, PortIndex index)
      : settings_(std::move(settings)), index_(index), environment_(std::move(arguments)) {}

  bool reads() const noexcept override { return settings_.device.reads; }
  bool writes() const noexcept override { return settings_.device.writes; }
  bool lossless() const noexcept override { return false; }

  Errors check() const override { return environment_.check(); }

  Result<void> open(const Opening& opening) override {
    const auto module = environment_.start();
    if (!module) return failure(module.error());
    workers_ = opening.workers;
    dpdk::DeviceSettings& wanted = settings_.device;
    wanted.workers = workers_;
    auto device = (*module)->open(wanted);
    if (!device) return refused(device.error());
    device_ = std::move(*device);
    if (wanted.reads) make_receive_queues(opening);
    if (wanted.writes) make_send_queues();
    return {};
  }

  Result<void> start() override {
    if (std::string wrong = device_->start(); !wrong.empty()) return refused(wrong);
    return {};
  }

  void interrupt() noexcept override {
    for (const auto& queue : tx_) queue->stop();
  }

  RxQueue* rx(unsigned worker) noexcept override { return worker < rx_.size() ? rx_[worker].get() : nullptr; }
  TxQueue* tx(unsigned worker) noexcept override { return worker < tx_.size() ? tx_[worker].get() : nullptr; }

  Errors close() override {
    const std::lock_guard lock(counting_);
    for (const auto& queue : rx_) left_ += queue->end();
    for (const auto& queue : tx_) queue->end();
    if (device_ == nullptr) return {};
    device_->stop();
    last_ = device_->counts();
    device_.reset();
    return {};
  }

  std::optional<FragmentCounts> fragments() const noexcept override {
    if (!exchange_) return std::nullopt;
    return exchange_->counts().fragments;
  }

  /// DPDK's drivers may use them at any time, for example to set up the device again or to close it.
  std::optional<CapabilityNeeds> capabilities() const override {
    const std::string_view device = settings_.device.device;
    const bool is_interface = device.find("iface=") != std::string_view::npos;
    for (const std::string_view driver : {"net_pcap", "net_ring", "net_null"}) {
      if (device.starts_with(driver) && !is_interface) return CapabilityNeeds{};
    }
    std::vector<Capability> needed{Capability::net_admin, Capability::net_raw};
    // Locked memory for DMA, and the physical addresses of huge pages.
    if (!device.starts_with("net_")) needed.insert(needed.end(), {Capability::ipc_lock, Capability::sys_admin});
    return CapabilityNeeds{needed, needed};
  }

  std::optional<InterfaceCounts> interface_counts() const override;

 private:
  void make_receive_queues(const Opening& opening) {
    if (workers_ > 1) exchange_ = std::make_unique<Exchange>(workers_);
    dpdk::ReceiveSide side;
    side.device = device_.get();
    side.exchange = exchange_.get();
    side.port = index_;
    side.memory = device_->receive_memory();
    side.room = opening.room;
    side.most_lent = settings_.device.kept_buffers;
    if (opening.memory != nullptr && !side.memory.empty() && side.memory.size() <= PacketMemory::kMostBytes) {
      // Memory that the chain's devices cannot use is copied from.
      if (auto added = opening.memory->add(side.memory)) side.region = *added;
    }
    for (unsigned w = 0; w < workers_; ++w)
      rx_.push_back(std::make_unique<DpdkRx>(w, w < device_->receive_queues(), side));
  }

  void make_send_queues() {
    const unsigned queues = device_->send_queues();
    turns_ = std::vector<dpdk::SendQueue>(queues);
    for (unsigned w = 0; w < workers_; ++w) {
      tx_.push_back(std::make_unique<DpdkTx>(*device_, w % queues, queues < workers_ ? &turns_[w % queues] : nullptr,
                                             settings_.device.send_slots, settings_.device.mtu));
    }
  }

  [[nodiscard]] tl::unexpected<Errors> refused(const std::string& reason) const {
    const bool lacks_memory = reason.starts_with("no memory");
    return failure({settings_.place, "device: DPDK refuses " + in_quotes(settings_.given), reason,
                    lacks_memory ? "more memory (eal: [-m, MEGABYTES]), or fewer lent_frames and slots" : ""});
  }

  Settings settings_;
  const PortIndex index_;
  unsigned workers_ = 1;
  dpdk::Participant environment_;
  std::unique_ptr<dpdk::Device> device_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<dpdk::SendQueue> turns_;
  std::vector<std::unique_ptr<DpdkRx>> rx_;
  std::vector<std::unique_ptr<DpdkTx>> tx_;
  mutable std::mutex counting_;  // guards `device_` while it is closed, and the next two
  dpdk::DeviceCounts last_;      // when it was closed
  std::uint64_t left_ = 0;       // frames that no worker has taken in
};

std::optional<InterfaceCounts> DpdkPort::interface_counts() const {
  const std::lock_guard lock(counting_);
  const dpdk::DeviceCounts device = device_ != nullptr ? device_->counts() : last_;
  InterfaceCounts counts;
  std::uint64_t lent = 0, too_long = 0;
  for (const auto& queue : rx_) {
    lent += queue->lent();
    too_long += queue->too_long();
  }
  if (settings_.device.reads) {
    counts.lost = {{"missed", device.missed},
                   {"receive_errors", device.receive_errors},
                   {"no_buffer", device.no_buffer},
                   {"too_long", too_long},
                   {"left_at_the_end", left_}};
    counts.events.emplace_back("frames_lent", lent);
  }
  if (exchange_) {
    const Exchange::Counts exchange = exchange_->counts();
    counts.lost.back().second += exchange.left;
    exchange.add_to(counts);
  }
  std::uint64_t down = 0, long_sent = 0, full = 0;
  for (const auto& queue : tx_) {
    down += queue->refusals().down.get();
    long_sent += queue->refusals().too_long.get();
    full += queue->refusals().ring_full.get();
  }
  if (settings_.device.writes) {
    counts.events.insert(counts.events.end(), {{"refused_down", down},
                                               {"refused_too_long", long_sent},
                                               {"refused_ring_full", full},
                                               {"send_errors", device.send_errors}});
  }
  for (const auto& [name, value] : device.errors) counts.events.emplace_back("driver." + name, value);
  return counts;
}

Result<std::unique_ptr<Port>> make(const Parameters& given, PortIndex index) {
  Settings settings;
  settings.given = given.text("device");
  settings.place = given.place("device");
  dpdk::DeviceSettings& device = settings.device;
  const std::string pci = dpdk::pci_address(settings.given);
  device.name = dpdk::device_name(settings.given);
  device.device = pci.empty() ? settings.given : pci;
  device.reads = given.text("direction") != "write";
  device.writes = given.text("direction") != "read";
  device.promiscuous = given.flag("promiscuous");
  device.mtu = static_cast<std::uint16_t>(given.integer("mtu"));
  device.receive_slots = static_cast<std::uint16_t>(given.integer("receive_slots"));
  device.send_slots = static_cast<std::uint16_t>(given.integer("send_slots"));
  device.kept_buffers = static_cast<std::uint32_t>(given.integer("lent_frames"));
  dpdk::PortArguments arguments{settings.given, settings.place, {}, {}};
  if (given.has("eal")) {
    arguments.eal = given.texts("eal");
    for (std::size_t i = 0; i < arguments.eal.size(); ++i) arguments.eal_places.push_back(given.place("eal", i));
  }
  return std::make_unique<DpdkPort>(std::move(settings), std::move(arguments), index);
}

}  // namespace

PortKind dpdk_kind() noexcept {
  return {"dpdk", "receives from and sends to a network device through DPDK, without the kernel", kParameters, make};
}

}  // namespace penstock::port
