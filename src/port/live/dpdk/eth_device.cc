// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/eth_device.h"

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string_view>

#include "port/live/dpdk/buffer_pool.h"
#include "port/live/dpdk/log.h"

namespace penstock::port::dpdk {

namespace {

/// DPDK knows a worker's thread from its first burst until it ends. Known threads have caches of buffers.
class KnownThread {
 public:
  KnownThread() noexcept : registered_(rte_thread_register() == 0) {}
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;
  ~KnownThread() {
    if (registered_) rte_thread_unregister();
  }

 private:
  bool registered_;
};

void make_thread_known() noexcept {
  if (rte_lcore_id() != LCORE_ID_ANY) [[likely]]
    return;
  static thread_local KnownThread known;
  static_cast<void>(known);
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class EthDevice final : public Device {
 public:
  explicit EthDevice(DeviceSettings settings) : settings_(std::move(settings)) {}
  EthDevice(const EthDevice&) = delete;
  EthDevice& operator=(const EthDevice&) = delete;
  ~EthDevice() override {
    if (!is_there_) return;
    stop();
    rte_eth_dev_info info{};
    const bool known = rte_eth_dev_info_get(port_, &info) == 0;
    rte_eth_dev_close(port_);
    if (known && info.device != nullptr) static_cast<void>(rte_dev_remove(info.device));
  }

  std::string open();

  unsigned receive_queues() const noexcept override { return receive_queues_; }
  unsigned send_queues() const noexcept override { return send_queues_; }
  std::span<std::uint8_t> receive_memory() const noexcept override { return memory_; }

  std::string start() override;
  void stop() noexcept override;

  std::size_t receive(unsigned queue, std::span<Received> to) noexcept override {
    constexpr std::size_t kBurst = 64;
    make_thread_known();
    std::array<rte_mbuf*, kBurst> burst;
    const std::uint16_t count = rte_eth_rx_burst(port_, static_cast<std::uint16_t>(queue), burst.data(),
                                                 static_cast<std::uint16_t>(std::min(kBurst, to.size())));
    for (unsigned i = 0; i < count; ++i) {
      rte_mbuf& buffer = *burst[i];
      to[i] = {&buffer, buffer.nb_segs > 1 ? nullptr : rte_pktmbuf_mtod(&buffer, std::uint8_t*),
               rte_pktmbuf_pkt_len(&buffer), rte_pktmbuf_headroom(&buffer), rte_pktmbuf_tailroom(&buffer)};
    }
    return count;
  }

  void join(const Received& frame, std::uint8_t* to) noexcept override {
    for (const rte_mbuf* part = static_cast<rte_mbuf*>(frame.buffer); part != nullptr; part = part->next) {
      std::memcpy(to, rte_pktmbuf_mtod(part, const std::uint8_t*), part->data_len);
      to += part->data_len;
    }
  }

  void give_back(std::span<const Buffer> buffers) noexcept override {
    // An array of pointers, whose type DPDK knows.
    rte_pktmbuf_free_bulk(reinterpret_cast<rte_mbuf**>(const_cast<Buffer*>(buffers.data())),
                          static_cast<unsigned>(buffers.size()));
  }

  Buffer copy(std::span<const std::uint8_t> frame) noexcept override {
    make_thread_known();
    rte_mbuf* const buffer = rte_pktmbuf_alloc(send_pool_.get());
    if (buffer == nullptr) return nullptr;
    std::memcpy(rte_pktmbuf_append(buffer, static_cast<std::uint16_t>(frame.size())), frame.data(), frame.size());
    return buffer;
  }

  std::size_t send(unsigned queue, std::span<Buffer> frames) noexcept override {
    make_thread_known();
    constexpr std::size_t kMost = 0xffff;
    return rte_eth_tx_burst(port_, static_cast<std::uint16_t>(queue), reinterpret_cast<rte_mbuf**>(frames.data()),
                            static_cast<std::uint16_t>(std::min(frames.size(), kMost)));
  }

  bool is_up() noexcept override {
    // One thread at a time asks the driver, whose answer may take a microsecond.
    constexpr std::int64_t kIntervalNs = 10'000'000;
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    std::int64_t due = next_look_ns_.load(std::memory_order_relaxed);
    if (now >= due && next_look_ns_.compare_exchange_strong(due, now + kIntervalNs)) {
      rte_eth_link link{};
      const bool known = rte_eth_link_get_nowait(port_, &link) == 0;
      up_.store(!known || link.link_status == RTE_ETH_LINK_UP, std::memory_order_relaxed);
    }
    return up_.load(std::memory_order_relaxed);
  }

  DeviceCounts counts() const override {
    const std::lock_guard lock(counting_);
    return is_running_ ? counts_now() : last_;
  }

 private:
  std::string find();
  std::string configure();
  std::string make_pools();
  std::string make_queues();
  [[nodiscard]] DeviceCounts counts_now() const;

  const DeviceSettings settings_;
  std::uint16_t port_ = 0;
  bool is_there_ = false;
  unsigned receive_queues_ = 0, send_queues_ = 0;
  std::uint16_t receive_slots_ = 0, send_slots_ = 0;
  // These outlive the device's queues: it is closed before.
  BufferPool receive_pool_, send_pool_;
  std::span<std::uint8_t> memory_;
  std::atomic<bool> up_{false};
  std::atomic<std::int64_t> next_look_ns_{0};
  mutable std::mutex counting_;  // guards the next two
  bool is_running_ = false;
  DeviceCounts last_;  // when it was stopped
};

std::string EthDevice::open() {
  if (auto wrong = find(); !wrong.empty()) return wrong;
  if (auto wrong = configure(); !wrong.empty()) return wrong;
  if (auto wrong = make_pools(); !wrong.empty()) return wrong;
  return make_queues();
}

/// A PCI device is there since DPDK has started; others are made now.
std::string EthDevice::find() {
  const Log log;
  const auto is_there = [this] {
    for (std::uint16_t port = 0; port < RTE_MAX_ETHPORTS && !is_there_; ++port) {
      rte_eth_dev_info info{};
      std::array<char, RTE_ETH_NAME_MAX_LEN> name{};
      if (rte_eth_dev_is_valid_port(port) == 0 || rte_eth_dev_info_get(port, &info) != 0 ||
          rte_eth_dev_get_name_by_port(port, name.data()) != 0) {
        continue;
      }
      is_there_ = settings_.name == name.data() || settings_.name == rte_dev_name(info.device);
      port_ = port;
    }
    return is_there_;
  };
  if (is_there()) return "";
  const int error = rte_dev_probe(settings_.device.c_str());
  if (error != 0) return log.reason("cannot find or make the device", error);
  if (is_there()) return "";
  return log.reason("DPDK has no driver for the device", ENODEV);
}

std::string EthDevice::configure() {
  const Log log;
  rte_eth_dev_info info{};
  if (const int error = rte_eth_dev_info_get(port_, &info); error != 0)
    return log.reason("cannot read the device's features", error);
  // Some drivers need as many queues in one direction as in the other.
  unsigned queues = settings_.workers;
  for (const unsigned most : {unsigned{info.max_rx_queues}, unsigned{info.max_tx_queues}}) {
    if (most > 0) queues = std::min(queues, most);
  }
  receive_queues_ = std::min<unsigned>(queues, info.max_rx_queues);
  send_queues_ = std::min<unsigned>(queues, info.max_tx_queues);
  // These spread frames to all queues that they have, used or not.
  const std::string_view driver = info.driver_name;
  if (settings_.reads && (driver == "net_af_packet" || driver == "net_pcap") && info.max_rx_queues > queues) {
    return "it has " + std::to_string(info.max_rx_queues) + " receive queues, more than there are workers (" +
           std::to_string(settings_.workers) + ") or send queues";
  }
  if (settings_.reads && receive_queues_ == 0) return "the device cannot receive";
  if (settings_.writes && send_queues_ == 0) return "the device cannot send";

  rte_eth_conf conf{};
  // 0x6d5a repeated: both directions of a flow have the same hash. The exchange moves frames that come to a wrong
  // worker all the same, so any hash works.
  std::vector<std::uint8_t> key(std::max<std::size_t>(info.hash_key_size, 40));
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = i % 2 == 0 ? 0x6d : 0x5a;
  const std::uint64_t hashed =
      info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP);
  if (receive_queues_ > 1 && hashed != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf = {key.data(), static_cast<std::uint8_t>(key.size()), hashed};
    // Drivers without a programmable key have one of their own.
    if (info.hash_key_size == 0) conf.rx_adv_conf.rss_conf = {nullptr, 0, hashed};
  }
  conf.rxmode.mtu = settings_.mtu;
  conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
  if (const int error = rte_eth_dev_configure(port_, static_cast<std::uint16_t>(receive_queues_),
                                              static_cast<std::uint16_t>(send_queues_), &conf);
      error != 0) {
    return log.reason("the device refuses its configuration", error);
  }
  // Virtual devices need not support this.
  if (const int error = rte_eth_dev_set_mtu(port_, settings_.mtu); error != 0 && error != -ENOTSUP)
    return log.reason("the device refuses the MTU", error);
  receive_slots_ = settings_.receive_slots;
  send_slots_ = settings_.send_slots;
  if (const int error = rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receive_slots_, &send_slots_); error != 0)
    return log.reason("the device refuses the number of slots", error);
  return "";
}

std::string EthDevice::make_pools() {
  const int node = rte_eth_dev_socket_id(port_);
  constexpr std::uint32_t kLinkBytes = 14 + 8 + 4;  // Ethernet, two tags, check sequence
  // NICs write whole KiB.
  const std::uint32_t frame = std::max(2048U, (settings_.mtu + kLinkBytes + 1023U) & ~1023U);
  // Beside those that the device has and the caller keeps: bursts on their way, and threads' caches.
  const auto pool_for = [&](unsigned queues, std::uint32_t each) {
    return make_buffer_pool(queues * (each + 128) + (settings_.workers + 1) * kThreadCache * 2, frame, node);
  };
  if (receive_queues_ > 0) {
    auto pool = pool_for(receive_queues_, receive_slots_ + settings_.kept_buffers);
    if (!pool) return pool.error();
    receive_pool_ = std::move(*pool);
    memory_ = memory_of(*receive_pool_);
  }
  if (send_queues_ > 0) {
    // Each worker has as many waiting as the device has slots.
    auto pool = pool_for(std::max(send_queues_, settings_.workers), 2U * std::max(send_slots_, settings_.send_slots));
    if (!pool) return pool.error();
    send_pool_ = std::move(*pool);
  }
  return "";
}

std::string EthDevice::make_queues() {
  const Log log;
  const auto node = static_cast<unsigned>(rte_eth_dev_socket_id(port_));
  for (unsigned q = 0; q < receive_queues_; ++q) {
    const int error = rte_eth_rx_queue_setup(port_, static_cast<std::uint16_t>(q), receive_slots_, node, nullptr,
                                             receive_pool_.get());
    if (error != 0) return log.reason("cannot make a receive queue", error);
  }
  for (unsigned q = 0; q < send_queues_; ++q) {
    const int error = rte_eth_tx_queue_setup(port_, static_cast<std::uint16_t>(q), send_slots_, node, nullptr);
    if (error != 0) return log.reason("cannot make a send queue", error);
  }
  return "";
}

std::string EthDevice::start() {
  const Log log;
  if (const int error = rte_eth_dev_start(port_); error != 0) return log.reason("cannot start the device", error);
  {
    const std::lock_guard lock(counting_);
    is_running_ = true;
  }
  static_cast<void>(rte_eth_stats_reset(port_));
  const int error = settings_.promiscuous ? rte_eth_promiscuous_enable(port_) : rte_eth_promiscuous_disable(port_);
  // Virtual devices receive everything, and need not support this.
  if (error != 0 && error != -ENOTSUP && settings_.promiscuous)
    return log.reason("cannot set the device to promiscuous mode", error);
  return "";
}

void EthDevice::stop() noexcept {
  const std::lock_guard lock(counting_);
  if (!is_running_) return;
  // The device is still sending the last frames.
  for (unsigned q = 0; q < send_queues_; ++q)
    static_cast<void>(rte_eth_tx_done_cleanup(port_, static_cast<std::uint16_t>(q), 0));
  rte_delay_us_sleep(10'000);
  last_ = counts_now();
  is_running_ = false;
  static_cast<void>(rte_eth_dev_stop(port_));
}

DeviceCounts EthDevice::counts_now() const {
  DeviceCounts counts;
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port_, &stats) == 0) {
    counts.missed = stats.imissed;
    counts.receive_errors = stats.ierrors;
    counts.no_buffer = stats.rx_nombuf;
    counts.send_errors = stats.oerrors;
  }
  const int known = rte_eth_xstats_get(port_, nullptr, 0);
  if (known <= 0) return counts;
  std::vector<rte_eth_xstat> values(static_cast<std::size_t>(known));
  std::vector<rte_eth_xstat_name> names(values.size());
  const auto size = static_cast<unsigned>(known);
  if (rte_eth_xstats_get(port_, values.data(), size) != known ||
      rte_eth_xstats_get_names(port_, names.data(), size) != known) {
    return counts;
  }
  // The same as the four above.
  constexpr std::array<std::string_view, 4> kKnown{"rx_missed_errors", "rx_errors", "tx_errors",
                                                   "rx_mbuf_allocation_errors"};
  for (const rte_eth_xstat& value : values) {
    if (value.value == 0 || value.id >= names.size()) continue;
    const std::string name = lower(names[value.id].name);
    const bool tells = std::ranges::any_of(std::array<std::string_view, 4>{"drop", "miss", "err", "discard"},
                                           [&](std::string_view part) { return name.find(part) != std::string::npos; });
    if (tells && std::ranges::find(kKnown, name) == kKnown.end()) counts.errors.emplace_back(name, value.value);
  }
  return counts;
}

}  // namespace

tl::expected<std::unique_ptr<Device>, std::string> open_device(const DeviceSettings& settings) {
  auto device = std::make_unique<EthDevice>(settings);
  if (std::string wrong = device->open(); !wrong.empty()) return tl::unexpected(std::move(wrong));
  return device;
}

}  // namespace penstock::port::dpdk
