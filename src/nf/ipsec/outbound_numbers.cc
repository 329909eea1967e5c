// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/outbound_numbers.h"

#include <algorithm>

#include "gpu/devices.h"

namespace penstock::ipsec {

SequenceRange OutboundNumbers::take(std::uint32_t sa, std::uint32_t count) noexcept {
  if (on_device_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    if (on_device_.load(std::memory_order_relaxed)) {
      SequenceRange taken;
      if (device_->take(sa, count, taken)) return taken;
      in_flight_ += count;  // it may be carried out yet
      lose_device();
    }
  }
  return sas_[sa]->numbers.take(count);
}

DeviceNumbers::View OutboundNumbers::join_device(std::uint32_t batch_packets) {
  const std::lock_guard lock(mutex_);
  if (device_ == nullptr) device_ = make_device_numbers(sas_);
  gpu::reach_memory_of(device_->device());
  const DeviceNumbers::View numbers = device_->join();
  in_flight_ += batch_packets;  // a batch may have taken them and not published that
  on_device_.store(true, std::memory_order_release);
  return numbers;
}

void OutboundNumbers::lose_device() noexcept {
  device_->close();
  for (std::uint32_t sa = 0; sa < sas_.size(); ++sa) {
    SequenceCounter& numbers = sas_[sa]->numbers;
    const std::uint64_t known = device_->published(sa);
    numbers.advance_to(numbers.most() - known < in_flight_ ? numbers.most() : known + in_flight_);
  }
  on_device_.store(false, std::memory_order_release);
}

std::uint64_t OutboundNumbers::sent(std::uint32_t sa) const noexcept {
  const std::uint64_t on_host = sas_[sa]->numbers.sent();
  return on_device_.load(std::memory_order_acquire) ? std::max(on_host, device_->published(sa)) : on_host;
}

}  // namespace penstock::ipsec
