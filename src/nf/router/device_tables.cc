// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/device_tables.h"

#include <exception>
#include <utility>
#include <variant>

#include "gpu/devices.h"

namespace penstock::router {

namespace {

/// Makes a device current for this thread while it exists.
class OnDevice {
 public:
  explicit OnDevice(int device) : before_(gpu::current_device()) { gpu::use_device(device); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
    try {
      gpu::use_device(before_);
    } catch (const std::exception&) {
      // The device was current before; if this fails now, so will the next operation on it.
    }
  }

 private:
  int before_;
};

}  // namespace

template <typename T>
void DeviceTables::Array<T>::make_room(std::size_t size) {
  if (size <= buffer.size()) return;
  const bool grows = buffer.size() > 0;
  buffer = {};  // freed first, because the device may be nearly full
  buffer = gpu::DeviceBuffer<T>(size + (grows ? size / 2 : 0));
}

template <typename T>
const T* DeviceTables::Array<T>::assign(std::span<const T> host) {
  make_room(host.size());
  gpu::copy_to_device(buffer.data(), host.data(), host.size_bytes());
  return buffer.data();
}

template <typename T>
const T* DeviceTables::Array<T>::assign(const RunSpans& host) {
  if (host.are_entries()) return assign(host.values);
  make_room(host.size());
  expand_on_device(host, buffer.data());
  return buffer.data();
}

template <template <typename> typename Trie, typename View>
View DeviceTables::Fib::assign(const Trie<View>& host) {
  return {root.assign(host.root), nodes.assign(host.nodes), static_cast<std::uint32_t>(host.nodes.size())};
}

template <template <typename> typename Trie>
void DeviceTables::assign(const TablesOf<Trie>& tables, const TableVersions& versions) {
  if (versions_.v4 != versions.v4) {
    v4_view_ = std::visit([&](const auto& host) { return Fib4View(v4_.assign(host)); }, tables.v4);
  }
  if (versions_.v6 != versions.v6) v6_view_ = v6_.assign(tables.v6);
  if (versions_.hops != versions.hops) view_.hops = hops_.assign(tables.hops);
  if (versions_.neighbours != versions.neighbours) {
    view_.neighbours = {neighbours_.assign(tables.neighbours), tables.view().neighbours.mask};
  }
  if (versions_.ports != versions.ports) view_.ports = ports_.assign(tables.ports);
  versions_ = versions;
}

template void DeviceTables::assign(const TableSpans& tables, const TableVersions& versions);
template void DeviceTables::assign(const TableRuns& tables, const TableVersions& versions);

DeviceSide::DeviceSide(const TableSpans& tables, const TableVersions& versions)
    : device_(gpu::current_device()),
      versions_(versions),
      snapshot_(std::make_unique<DeviceTables>(tables, versions)) {}

DeviceSide::DeviceSide(const TableRuns& tables)
    : device_(gpu::current_device()), versions_{}, snapshot_(std::make_unique<DeviceTables>(tables)) {}

std::unique_ptr<gpu::GpuStage> DeviceSide::make_stage(CheckRules rules) { return make_router_gpu_stage(*this, rules); }

void DeviceSide::replace(const TableRuns& tables, const std::function<void()>& meanwhile) {
  const OnDevice here(device_);
  const std::unique_ptr<const DeviceTables> former =
      snapshot_.publish(std::make_unique<const DeviceTables>(tables), meanwhile);
}

void DeviceSide::follow(const TableSpans& tables, const TableVersions& versions) noexcept {
  versions_ = versions;
  try {
    const OnDevice here(device_);
    if (shadow_ == nullptr) {
      shadow_ = std::make_unique<DeviceTables>(tables, versions);
    } else {
      shadow_->assign(tables, versions);
    }
    std::unique_ptr<const DeviceTables> before = snapshot_.publish(std::move(shadow_));
    // No stage reads it any more, and it was not created as const.
    shadow_.reset(const_cast<DeviceTables*>(before.release()));
    lost_.store(false, std::memory_order_release);
  } catch (const std::exception&) {
    // The CPU twins, which have the newest tables, get the packets. The next update tries again.
    shadow_.reset();
    lost_.store(true, std::memory_order_release);
  }
}

}  // namespace penstock::router
