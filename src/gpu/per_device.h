// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Owns a network function's data on each device: tables that all GPU stages on the device share.

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "gpu/devices.h"

namespace penstock::gpu {

/// One `T` per device, made when it is first needed. Thread-safe; references stay valid until `clear`.
template <typename T>
class PerDevice {
 public:
  /// The one for the current device. `make()` returns a std::unique_ptr<T>; if it throws, the next call tries again.
  template <typename Make>
  T& of_current(Make&& make) {
    return of(current_device(), std::forward<Make>(make));
  }
  template <typename Make>
  T& of(int device, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<T>& there = devices_[device];
    if (there == nullptr) there = make();
    return *there;
  }
  /// The one for this device, or null.
  T* find(int device) {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(device);
    return found != devices_.end() ? found->second.get() : nullptr;
  }
  /// The first one for which `condition(T&)` is true, or null.
  template <typename Condition>
  T* find_if(Condition&& condition) {
    const std::lock_guard lock(mutex_);
    for (const auto& [device, there] : devices_) {
      if (there != nullptr && condition(*there)) return there.get();
    }
    return nullptr;
  }
  template <typename Use>
  void for_each(Use&& use) {
    static_cast<void>(find_if([&](T& there) {
      use(there);
      return false;
    }));
  }
  /// Only allowed once no stage uses any of them.
  void clear() {
    const std::lock_guard lock(mutex_);
    devices_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<int, std::unique_ptr<T>> devices_;
};

}  // namespace penstock::gpu
