// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/device_numbers.h"

#include <algorithm>
#include <utility>

namespace penstock::ipsec {

std::unique_ptr<DeviceCounting::Joined> DeviceCounting::join(std::span<const std::shared_ptr<SaState>> sas,
                                                             std::uint32_t batch_packets) {
  std::unique_ptr<Joined> joined;  // outlives the lock, which its destructor needs
  const std::lock_guard joining(joining_);
  DeviceNumbers& device = device_to_join();
  reach_(device.device());
  {
    std::vector<std::uint32_t> cells = cells_for(sas, device);
    joined.reset(new Joined(*this, device, std::move(cells), batch_packets));
  }
  {
    const std::lock_guard lock(mutex_);
    in_flight_ += batch_packets;  // a batch may have taken that many without publishing them
    for (std::size_t i = 0; i < sas.size(); ++i) {
      const std::uint32_t cell = joined->cells_[i];
      if (cell == DeviceNumbers::kNoCell) continue;
      ++cells_[cell].stages;
      // If a CPU stage has just lost the device, the host counts, and batches are refused.
      if (!is_lost_ && sas[i]->device_cell_.load() == SaState::kNoCell) move_to_device(sas[i], cell);
    }
  }
  device.settle();
  return joined;
}

/// The device that counts, or a new one if there is none or it is lost.
DeviceNumbers& DeviceCounting::device_to_join() {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_) {
      lost_.push_back(std::move(device_));
      cells_.clear();
      in_flight_ = 0;
      is_lost_ = false;
    }
    if (device_ != nullptr) return *device_;
  }
  auto made = make_();
  const std::lock_guard lock(mutex_);
  device_ = std::move(made);
  return *device_;
}

/// The counter of each SA: its own, or a free one for an SA that the host counts so far.
std::vector<std::uint32_t> DeviceCounting::cells_for(std::span<const std::shared_ptr<SaState>> sas,
                                                     DeviceNumbers& device) {
  std::vector<std::uint32_t> cells;
  std::uint32_t there = 0;
  std::uint32_t next = 0;  // the cells before it are in use
  {
    const std::lock_guard lock(mutex_);
    there = static_cast<std::uint32_t>(cells_.size());
    for (const auto& sa : sas) {
      std::uint32_t cell = sa->counting_.get() == this ? sa->device_cell_.load() : DeviceNumbers::kNoCell;
      if (sa->counting_.get() == this && cell == SaState::kNoCell) {
        while (next < there && (cells_[next].stages != 0 || !cells_[next].sa.expired())) ++next;
        cell = next++;
      }
      cells.push_back(cell);
    }
  }
  if (next <= there) return cells;
  device.add(next - there);
  const std::lock_guard lock(mutex_);
  cells_.resize(next);
  return cells;
}

/// CPU stages may be taking numbers at the same time. Those that see the cell wait for `mutex_`, and then ask the
/// device. Those that do not are stopped by `freeze`, which returns the last number that they got. So the device
/// continues exactly there.
void DeviceCounting::move_to_device(const std::shared_ptr<SaState>& sa, std::uint32_t cell) noexcept {
  cells_[cell].sa = sa;
  sa->device_cell_.store(cell);
  const std::uint64_t sent = sa->numbers.freeze();
  // A caller that reserves more meanwhile either is seen here, or sees the cell and waits for `mutex_`.
  device_->start(cell, {sent, sa->numbers.reserved(), sa->numbers.most()});
}

void DeviceCounting::leave(const Joined& stage) noexcept {
  const std::lock_guard joining(joining_);
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_ || device_.get() != &stage.device_) return;  // its memory is kept
    in_flight_ -= stage.batch_packets_;
    for (const std::uint32_t cell : stage.cells_) {
      if (cell != DeviceNumbers::kNoCell) --cells_[cell].stages;
    }
  }
  stage.device_.leave(stage.view_);
}

SequenceRange DeviceCounting::take(SaState& sa, std::uint32_t count) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const std::uint32_t cell = sa.device_cell_.load();
    if (cell != SaState::kNoCell) {
      SequenceRange taken;
      if (device_->take(cell, count, taken)) return taken;
      in_flight_ += count;  // the device may still have executed the request
      lose_device();
    }
  }
  return sa.numbers.take(count);
}

std::uint64_t DeviceCounting::sent(const SaState& sa) const noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint32_t cell = sa.device_cell_.load();
  return cell == SaState::kNoCell ? 0 : device_->published(cell);
}

void DeviceCounting::reserve(const SaState& sa) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint32_t cell = sa.device_cell_.load();
  if (cell != SaState::kNoCell) device_->reserve(cell, sa.numbers.reserved());
}

void DeviceCounting::leave(SaState& sa) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint32_t cell = sa.device_cell_.load();
  if (cell == SaState::kNoCell) return;
  sa.numbers.advance_to(device_->published(cell));
  sa.numbers.thaw();
  sa.device_cell_.store(SaState::kNoCell);
  cells_[cell].sa.reset();
}

void DeviceCounting::lose_device() noexcept {
  device_->close();
  for (std::uint32_t cell = 0; cell < cells_.size(); ++cell) {
    const auto sa = cells_[cell].sa.lock();
    if (sa == nullptr) continue;
    const std::uint64_t known = device_->published(cell);
    sa->numbers.advance_to(sa->numbers.most() - known < in_flight_ ? sa->numbers.most() : known + in_flight_);
    sa->numbers.thaw();
    sa->device_cell_.store(SaState::kNoCell);
  }
  is_lost_ = true;
}

}  // namespace penstock::ipsec
