// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How long the batches of a tenant take on the device: G-NET's model (Zhang et al., NSDI 2018), which Gaviss's
// scheduler uses too (§5.2), with a part of the device's time in the place of multiprocessors (plan/gpu_shares.h). A
// batch of x bytes takes t(x, s) = a + b x / s on a part s of the device. Fitted by least squares, again and again
// while batches run; older measurements fade.

#pragma once

#include <cstdint>

namespace penstock::proxy {

/// Neither is negative.
struct BatchTime {
  double fixed_ns = 0;  // launches, for example: a larger part of the device does not make it shorter
  double ns_per_byte = 0;

  [[nodiscard]] double spread_ns(std::uint64_t bytes) const noexcept {
    return ns_per_byte * static_cast<double>(bytes);
  }
  /// With the whole device.
  [[nodiscard]] double ns(std::uint64_t bytes) const noexcept { return fixed_ns + spread_ns(bytes); }
};

class BatchTimeFit {
 public:
  /// `ns_per_byte`: until there are measurements.
  explicit BatchTimeFit(double ns_per_byte = 0) noexcept : time_{0, ns_per_byte} {}

  void add(std::uint64_t bytes, double ns) noexcept;
  /// Takes what has been added into account.
  void refit() noexcept;
  [[nodiscard]] const BatchTime& time() const noexcept { return time_; }

 private:
  BatchTime time_;
  double count_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;  // sums over the measurements
};

}  // namespace penstock::proxy
