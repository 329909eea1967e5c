// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/device_numbers.h"

#include <algorithm>
#include <utility>

namespace penstock::ipsec {

DeviceNumbers::View DeviceCounting::join(std::span<const std::shared_ptr<SaState>> sas, std::uint32_t batch_packets) {
  const std::lock_guard lock(mutex_);
  if (is_lost_) {
    lost_.push_back(std::move(device_));
    cells_.clear();
    in_flight_ = 0;
    is_lost_ = false;
  }
  if (device_ == nullptr) device_ = make_();
  reach_(device_->device());
  std::vector<std::uint32_t> cells;
  std::vector<NumberCell> added;
  std::vector<std::shared_ptr<SaState>> moved;
  for (const auto& sa : sas) {
    std::uint32_t cell = DeviceNumbers::kNoCell;
    if (sa->counting_.get() == this) {
      cell = sa->device_cell_.load();
      if (cell == SaState::kNoCell) {
        cell = static_cast<std::uint32_t>(cells_.size() + added.size());
        added.push_back({sa->numbers.sent(), sa->numbers.reserved(), sa->numbers.most()});
        moved.push_back(sa);
      }
    }
    cells.push_back(cell);
  }
  device_->add(added);
  const DeviceNumbers::View view = device_->join(cells);
  in_flight_ += batch_packets;  // a batch may have taken that many without publishing them
  for (const auto& sa : moved) {
    sa->device_cell_.store(static_cast<std::uint32_t>(cells_.size()));
    cells_.emplace_back(sa);
    // More numbers may have been reserved meanwhile by a caller that did not see the cell yet.
    device_->reserve(static_cast<std::uint32_t>(cells_.size() - 1), sa->numbers.reserved());
  }
  return view;
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
  const std::uint32_t cell = sa.device_cell_.exchange(SaState::kNoCell);
  if (cell == SaState::kNoCell) return;
  sa.numbers.advance_to(device_->published(cell));
  cells_[cell].reset();
}

void DeviceCounting::lose_device() noexcept {
  device_->close();
  for (std::uint32_t cell = 0; cell < cells_.size(); ++cell) {
    const auto sa = cells_[cell].lock();
    if (sa == nullptr) continue;
    const std::uint64_t known = device_->published(cell);
    sa->numbers.advance_to(sa->numbers.most() - known < in_flight_ ? sa->numbers.most() : known + in_flight_);
    sa->device_cell_.store(SaState::kNoCell);
  }
  is_lost_ = true;
}

}  // namespace penstock::ipsec
