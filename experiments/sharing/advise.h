// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which scheduler and profiles suit given tenants and loads, by a record of `sharing`: the conclusion of Chaurasia
// (§VI), as a method.
//
//   1. What a tenant takes of the GPU is its rate divided by what several tenants of its function reach together. All
//      tenants together must not take more than there is.
//   2. A tenant's profile is the smallest whose share is that much. Tenants without a rate divide what is left. A
//      tenant has as many workers as its rate needs, by what a worker reached among several tenants.
//   3. Bounds of latency need `deadline`. If shares are to hold, since tenants may send more than they say or have
//      unlike profiles, it is the fastest of the schedulers whose shares held in the record, beside a greedy tenant or
//      among unlike ones. Otherwise it is the fastest of all. Of
//      schedulers that are about as fast, it is the simplest.
//   4. Beside training, the proxy is a client of MPS, and the trainings have the part of the multiprocessors with which
//      tenants kept most of their rate.
//
// Rates are those of the record: of its machine, and of frames of 1,522 bytes.

#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "experiments/record.h"

namespace penstock::experiments {

struct TenantWish {
  std::string function;              // of the record
  std::optional<double> gbps;        // received; empty: what it gets
  std::chrono::nanoseconds bound{};  // of a batch's time in the proxy; 0: none
};
/// "ipsec", "ipsec:60Gbps", "nids:100Gbps:2ms", "nids::2ms". The error has no place.
[[nodiscard]] Result<TenantWish> tenant_wish_of(std::string_view text);

struct SharingWish {
  std::vector<TenantWish> tenants;
  bool holds_shares = false;  // also if tenants send more than they say
  unsigned trainings = 0;     // processes that train beside them
};

struct SharingAdvice {
  struct Tenant {
    TenantWish wish;
    unsigned units = 0;  // sixteenths of the GPU: the profile
    unsigned workers = 1;
    double part = 0;  // of the GPU, 0..1, that it is expected to take
    double expected_gbps = 0;
  };
  std::vector<Tenant> tenants;  // as wished
  std::string scheduler;
  double fixed_gbps = 0;       // for `fixed`: what the GPU carries, in both directions; else 0
  unsigned on_device_mib = 0;  // 0: the record does not say
  bool in_mps = false;
  unsigned training_percent = 100;   // of the multiprocessors, for each training
  std::vector<std::string> reasons;  // sentences, with figures of the record
};

/// `file` is the record's, which errors name. Errors: an unknown function, tenants that do not fit, a record without
/// the points that are needed.
[[nodiscard]] Result<SharingAdvice> advise(const Record& record, const SharingWish& wish, const std::string& file);

}  // namespace penstock::experiments
