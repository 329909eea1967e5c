// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which scheduler and profiles suit given tenants and loads, by a record of `sharing`: the conclusion of Chaurasia
// (§VI), as a method (experiments/README.md, "sharing"). Rates are those of the record: of its machine, and of frames
// of 1,522 bytes.

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "experiments/record.h"

namespace penstock::experiments {

struct TenantWish {
  std::string function;              // of the record
  std::optional<double> gbps;        // received; empty: what it gets
  std::chrono::nanoseconds bound{};  // of a batch's time in the proxy, 1 us to 10 s; 0: none
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
    double part = 0;                      // of what tenants of its function reach with this scheduler, 0..1
    std::optional<double> expected_gbps;  // empty beside training, where the record does not say it
  };
  std::vector<Tenant> tenants;  // as wished
  std::string scheduler;
  double fixed_gbps = 0;       // for `fixed`: what the GPU carries, in both directions; else 0
  unsigned on_device_mib = 0;  // 0: no shares are to hold, or the record does not say
  bool in_mps = false;
  unsigned training_percent = 100;   // of the multiprocessors, for each training
  std::vector<std::string> reasons;  // sentences, with figures of the record
};

/// `file` is the record's, which errors name. Errors: an unknown function, tenants that do not fit, a record without
/// the points that are needed. Points without sensible values count as missing.
[[nodiscard]] Result<SharingAdvice> advise(const Record& record, const SharingWish& wish, const std::string& file);

}  // namespace penstock::experiments
