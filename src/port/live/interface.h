// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network interface of the system: what it is now, and what happens to it during a run.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/capabilities.h"
#include "base/error.h"
#include "packet/ethernet.h"
#include "port/live/file_descriptor.h"
#include "port/port.h"
#include "port/stop_event.h"

namespace penstock::port {

struct Interface {
  int index = 0;
  bool up = false;       // administratively
  bool carrier = false;  // up, and the other end is there
  std::uint32_t mtu = 0;
  bool is_ethernet = false;  // or the loopback interface, whose frames have an Ethernet header too
  bool is_loopback = false;
  MacAddress mac{};
};

/// The names of all interfaces in the network namespace of the calling thread.
[[nodiscard]] std::vector<std::string> interface_names();

/// Empty if there is none with this name in the network namespace of the calling thread.
[[nodiscard]] std::optional<Interface> find_interface(const std::string& name);
/// An error says which interfaces there are.
[[nodiscard]] Result<Interface> require_interface(const std::string& name, const Place& place);
/// Whether there is one in this network namespace (namespace_thread.h).
[[nodiscard]] Errors check_interface(const std::string& name, const std::string& netns, const Place& place);

/// The bridge or bond that it belongs to, which takes its frames too; empty if there is none, or that is unknown.
[[nodiscard]] std::string master_of(const Interface& interface);

/// The name of its driver, such as "veth" or "ixgbe"; empty if unknown.
[[nodiscard]] std::string driver_of(const std::string& name);

/// How many queues its driver uses now.
struct QueueCounts {
  std::uint32_t receive = 0;
  std::uint32_t send = 0;
};
/// Empty if the driver does not say.
[[nodiscard]] std::optional<QueueCounts> queues_of(const std::string& name);

/// Follows an interface by its name, in a thread of its own. Members that return states are thread-safe.
class InterfaceWatch {
 public:
  using Callback = std::function<bool(const Interface&)>;
  /// `returned`: called in that thread when the interface has been deleted, and another one with its name is there.
  /// If it returns false, it is called again after a second.
  /// `mtu_grown`: called there when the MTU of the same interface has become larger.
  /// `needs`: the capabilities that the callbacks need. The thread gives up all others.
  explicit InterfaceWatch(std::string name, Callback returned = {}, Callback mtu_grown = {},
                          std::vector<Capability> needs = {});
  ~InterfaceWatch();
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  /// Before `start`: `changed` is called in that thread when addresses of the network namespace may have changed.
  void also_watch_addresses(std::function<void()> changed) { addresses_changed_ = std::move(changed); }
  /// Opens the socket in the calling thread's network namespace, and starts the thread.
  [[nodiscard]] Result<void> start();

  /// Whether frames can be sent: it exists, is up and has a carrier.
  [[nodiscard]] bool can_send() const noexcept { return can_send_.load(std::memory_order_relaxed); }
  /// Whether there is one with this name in the network namespace where it was at the start.
  [[nodiscard]] bool exists() const noexcept { return exists_.load(std::memory_order_relaxed); }
  [[nodiscard]] LinkState link() const noexcept {
    return !exists() ? LinkState::absent : can_send() ? LinkState::up : LinkState::down;
  }
  [[nodiscard]] std::uint32_t mtu() const noexcept { return mtu_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool was_deleted() const noexcept { return deletions_.load(std::memory_order_relaxed) > 0; }
  /// Changes so far, and what the driver and the system have counted since the start.
  [[nodiscard]] InterfaceCounts::Counts events() const;

 private:
  void run();
  void note_deletion(std::span<const std::uint8_t> messages);
  void update();
  void note(const std::optional<Interface>& now);

  const std::string name_;
  const Callback returned_, mtu_grown_;
  const std::vector<Capability> needs_;
  std::function<void()> addresses_changed_;
  FileDescriptor changes_;  // netlink
  FileDescriptor queries_;  // for questions, in the same namespace
  StopEvent stop_;
  std::thread thread_;
  std::optional<Interface> last_;  // used by the thread, once it has started
  bool is_new_ = false;            // the port's sockets are for one that has been deleted
  std::atomic<bool> can_send_{false}, exists_{false};
  std::atomic<std::uint32_t> mtu_{0};
  std::atomic<std::uint64_t> downs_{0}, lost_carriers_{0}, deletions_{0}, returns_{0};
  InterfaceCounts::Counts statistics_at_start_;
};

}  // namespace penstock::port
