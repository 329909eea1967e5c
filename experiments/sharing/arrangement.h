// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is measured in the experiment `sharing`, as a point's parameters and as the chain files of its tenants:
//
//   sweep      size, tenants, profiles, greedy, modest, mixed, one-batch, learning, attach, spatial, bounds, workers,
//              on-device, on-device-greedy
//   function   ipsec (AES-128-CBC, HMAC-SHA1), nids (Aho-Corasick), nids_ours, router; nids+router: of each tenant
//   sharing    alone: a process of its own on the whole GPU
//              best-effort, equal, fixed, weighted, deadline: tenants of a proxy, by its scheduler
//              blocks, green-contexts: weighted, and multiprocessors divided that way
//              time-slicing: processes of their own; mps: the same as clients of NVIDIA's MPS
//              proxy-mps: tenants of a proxy that is a client of MPS, as the learners are
//              proxy-mps-50: the same, and all learners together may use 50 % of the GPU's threads
//   tenants, profile   4q: of each; without a proxy, profiles only say how many there are
//   mode       default_stream: one batch at a time; streams: several
//   learners   processes that train a neural network on the same GPU
//   on_device  in the sweeps of this name: MiB that the proxy lets onto the device at a time
//   workers    in the sweep of this name: of each tenant
//   bound_us   in the sweep `bounds`: the first tenant's bound of a batch's time in the proxy

#pragma once

#include <string>
#include <vector>

#include "experiments/point.h"

namespace penstock::experiments {

inline constexpr unsigned kSharingRules = 147;  // of intrusion detection
inline constexpr unsigned kSharingStreams = 4;  // of a tenant with one worker, in the mode `streams`
inline constexpr unsigned kSharingRoutes = 10'000;
inline constexpr unsigned kSharingSize = 1522;  // of frames, where it is not varied

[[nodiscard]] std::vector<Point> sharing_points(bool quick);

/// Unlike functions or loads have unlike rates, of which no part is promised.
[[nodiscard]] bool promises_shares(const Point& point);

/// The proxy's; "" without a proxy.
[[nodiscard]] std::string scheduler_of(const Point& point);
[[nodiscard]] bool is_proxied(const Point& point);
/// How the proxy divides multiprocessors by profile; "": it does not.
[[nodiscard]] std::string multiprocessor_shares_of(const Point& point);
/// What the proxy lets onto the device at a time, in MiB. Of batches of 8 MiB, one arrives, one is worked on, and
/// others leave or wait.
[[nodiscard]] unsigned on_device_of(const Point& point);
[[nodiscard]] bool uses_mps(const Point& point);
/// The part of the GPU's threads that each learner may use, 1..100.
[[nodiscard]] unsigned learner_percent(const Point& point);

struct TenantPlan {
  std::string function;
  std::string profile;  // "4q"
  unsigned workers = 1;
  unsigned streams = 1;        // of each worker
  double promised = 1;         // part of what all tenants together get, 0..1
  std::string rate{};          // of its packets: "10kpps"; empty: as fast as they go
  std::string batch = "8MiB";  // with the mode `streams`
  unsigned bound_us = 0;       // of a batch's time in the proxy; 0: none
};
/// In the order of the profiles.
[[nodiscard]] std::vector<TenantPlan> tenants_of(const Point& point);

/// In the sweep `attach`, who comes and goes beside the others. It offers little, so that the others have what they had
/// before, apart from what its attaching and detaching takes.
[[nodiscard]] TenantPlan visitor_of(const Point& point);

/// What the functions read.
struct SharingFiles {
  std::string state, policy;  // ipsec
  std::string rules, pages;   // nids: its rules, and a capture with payloads
  std::string routes;         // router
};

/// Where a tenant's run is found.
struct TenantPlace {
  std::string control;       // its socket
  std::string proxy;         // the proxy's socket; used if the point is proxied
  std::string gpus;          // "0"; used otherwise
  unsigned longest_s = 120;  // the run ends by itself after this time
};
[[nodiscard]] std::string tenant_chain(const Point& point, const TenantPlan& tenant, const SharingFiles& files,
                                       const TenantPlace& place);

}  // namespace penstock::experiments
