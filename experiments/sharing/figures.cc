// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/figures.h"

#include <optional>
#include <string>
#include <utility>

namespace penstock::experiments {
namespace {

const Axis kSize{"size", "frame size in bytes, with FCS", AxisKind::logarithmic};
const Axis kTenants{"tenants", "tenants"};
const Axis kSharing{"sharing", "how the GPU is shared"};
const Axis kOnDevice{"on_device", "MiB on the device at a time"};
const Axis kBound{"bound_us", "bound of a batch's time in the proxy, in us", AxisKind::logarithmic};
const Axis kBits{"gbps", "Gbit/s received by all tenants"};
const Axis kLatency{"p99_us", "us, of the slowest tenant", AxisKind::logarithmic};
const Axis kError{"share_error_percent", "% of the share"};
const Axis kAttach{"attach_ms", "ms, from hello to the first batch"};
const Axis kDetach{"detach_ms", "ms, to release what the tenant had"};
const Axis kKept{"kept_percent", "% of the rate without a change"};
const Axis kOthers{"others_gbps", "Gbit/s received by the other three together"};
const Axis kOthersLatency{"others_p99_us", "us, of the slowest of the other three", AxisKind::logarithmic};
const Axis kVisitedLatency{"visited_p99_us", "us, of the slowest tenant", AxisKind::logarithmic};
const LimitLine kPcieBits{.label = "PCIe limit", .key = "limit_gbps"};

Figure figure(const char* id, const char* title, std::vector<Condition> where, Axis x, Axis y,
              std::vector<std::string> series, std::vector<Reference> references = {}) {
  const bool of_rates = y.key == kBits.key;
  std::string panels = series.size() > 1 ? series.front() : "";
  return {.id = id,
          .title = title,
          .where = std::move(where),
          .x = std::move(x),
          .y = std::move(y),
          .series = std::move(series),
          .limit = of_rates ? std::optional(kPcieBits) : std::nullopt,
          .references = std::move(references),
          .bars = std::nullopt,
          .panels = std::move(panels)};
}

/// Figures 5a to 5d. Other ways of sharing have one size only, which figure 6 shows.
Figure beside_learners(const char* id, const char* title, const char* function, const char* mode) {
  return figure(id, title,
                {{"sweep", {"learning"}}, {"sharing", {"best-effort"}}, {"function", {function}}, {"mode", {mode}}},
                kSize, kBits, {"learners"});
}

}  // namespace

const std::vector<Figure>& sharing_figures() {
  static const char* const kWhole =
      "Chaurasia §V.A, on a Tesla P100: IPsec 8.32 and 15 Gbit/s, NIDS 3.96 and 14.29 Gbit/s, without and with streams";
  static const char* const kOne = "Chaurasia §V.B: \"13.55Gbps throughput is obtained in vGPU configuration\"";
  static const std::vector<Condition> kProxyTenants{
      {"sweep", {"tenants"}}, {"sharing", {"best-effort", "equal", "fixed", "weighted", "deadline"}}};
  static const std::vector<Condition> kProcesses{{"sweep", {"tenants"}}, {"sharing", {"time-slicing", "mps"}}};
  static const std::vector<Condition> kVisits{{"sweep", {"attach"}}};
  static const std::vector<Condition> kProfiles{{"sweep", {"profiles"}}};
  static const std::vector<Condition> kMostOnDevice{{"sweep", {"on-device", "on-device-greedy"}}};
  static const std::vector<Condition> kBesideGreedy{{"sweep", {"greedy", "modest"}}};
  static const std::vector<Condition> kBounds{{"sweep", {"bounds"}}};
  static const std::vector<Figure> kFigures{
      figure("alone", "One process on the whole GPU (Chaurasia, figure 2a)",
             {{"sweep", {"size"}}, {"sharing", {"alone"}}}, kSize, kBits, {"function", "mode"},
             {{"paper, default stream", 8.32, 1522, kWhole, "ipsec"},
              {"paper, several streams", 15, 1522, kWhole, "ipsec"},
              {"paper, default stream", 3.96, 1522, kWhole, "nids"},
              {"paper, several streams", 14.29, 1522, kWhole, "nids"}}),
      figure("one-tenant", "One tenant of a proxy, profile 4q, best effort (Chaurasia, figure 2b)",
             {{"sweep", {"size"}}, {"sharing", {"best-effort"}}}, kSize, kBits, {"function", "mode"},
             {{"paper, several streams", 13.55, 1522, kOne, "ipsec"}}),
      figure("tenants",
             "Combined rate of 1 to 4 tenants of a proxy, profile 4q, 1522-byte frames (Chaurasia, figure 3)",
             kProxyTenants, kTenants, kBits, {"function", "sharing"}),
      figure("tenants-p99", "Latency, 99th percentile, of 1 to 4 tenants of a proxy, profile 4q, 1522-byte frames",
             kProxyTenants, kTenants, kLatency, {"function", "sharing"}),
      figure("tenants-error", "Share error of 1 to 4 equal tenants of a proxy, profile 4q, 1522-byte frames",
             kProxyTenants, kTenants, kError, {"function", "sharing"}),
      figure("processes", "Combined rate of 1 to 4 processes without a proxy, 1522-byte frames", kProcesses, kTenants,
             kBits, {"function", "sharing"}),
      figure("processes-p99", "Latency, 99th percentile, of 1 to 4 processes without a proxy, 1522-byte frames",
             kProcesses, kTenants, kLatency, {"function", "sharing"}),
      figure("processes-error", "Share error of 1 to 4 processes without a proxy, 1522-byte frames", kProcesses,
             kTenants, kError, {"function", "sharing"}),
      figure("profiles", "Combined rate by profile, 16q to 1q: as many tenants as fit (Chaurasia, figure 4)", kProfiles,
             kTenants, kBits, {"function", "sharing"}),
      figure("profiles-p99", "Latency, 99th percentile, by profile, 16q to 1q: as many tenants as fit", kProfiles,
             kTenants, kLatency, {"function", "sharing"}),
      figure("profiles-error", "Share error by profile, 16q to 1q: as many tenants as fit", kProfiles, kTenants, kError,
             {"function", "sharing"}),
      figure("greedy", "Combined rate of four tenants, one with four streams beside three with one",
             {{"sweep", {"greedy"}}}, kSharing, kBits, {"function"}),
      figure("greedy-error", "Share error of four tenants, one with four streams beside three with one",
             {{"sweep", {"greedy"}}}, kSharing, kError, {"function"}),
      figure("greedy-others", "What three tenants with one stream get, beside a greedy one and beside one like them",
             kBesideGreedy, kSharing, kOthers, {"function", "sweep"}),
      figure("greedy-others-p99",
             "Latency, 99th percentile, of three tenants with one stream, beside a greedy one and beside one like them",
             kBesideGreedy, kSharing, kOthersLatency, {"function", "sweep"}),
      figure("one-batch", "Combined rate of four tenants with one batch at a time for each worker",
             {{"sweep", {"one-batch"}}}, kSharing, kBits, {"function"}),
      figure("mixed", "Combined rate of four tenants, profiles 8q, 4q, 2q and 2q", {{"sweep", {"mixed"}}}, kSharing,
             kBits, {"function"}),
      figure("mixed-error", "Share error of four tenants, profiles 8q, 4q, 2q and 2q", {{"sweep", {"mixed"}}}, kSharing,
             kError, {"function"}),
      figure("on-device", "Combined rate of four tenants with equal shares, by what the proxy lets onto the device",
             kMostOnDevice, kOnDevice, kBits, {"function", "sweep"}),
      figure("on-device-error", "Share error of four tenants with equal shares, by what the proxy lets onto the device",
             kMostOnDevice, kOnDevice, kError, {"function", "sweep"}),
      figure("workers", "Combined rate of four tenants, profile 4q, by the workers of each", {{"sweep", {"workers"}}},
             {"workers", "workers of each tenant"}, kBits, {"function", "sharing"}),
      figure("bounds", "Batches later than the bound, of a tenant beside one that takes what it gets, 8q each", kBounds,
             kBound, {"late_percent", "% of the batches"}, {"function", "sharing"}),
      figure("bounds-p99", "Latency of a packet, 99th percentile, of a tenant with a bound for its batches, 8q",
             kBounds, kBound, {"first_p99_us", "us", AxisKind::logarithmic}, {"function", "sharing"}),
      figure("bounds-others", "What the tenant without a bound gets, 8q", kBounds, kBound,
             {"others_gbps", "Gbit/s received"}, {"function", "sharing"}),
      figure("attach", "Time to attach a third tenant to a proxy beside two, profile 4q", kVisits, kSharing, kAttach,
             {"function"}),
      figure("detach", "Time to detach a third tenant from a proxy beside two, profile 4q", kVisits, kSharing, kDetach,
             {"function"}),
      figure("attach-rate", "Combined rate of two tenants while a third attaches and detaches", kVisits, kSharing,
             kKept, {"function"}),
      figure("attach-p99", "Latency, 99th percentile, of two tenants while a third attaches and detaches", kVisits,
             kSharing, kVisitedLatency, {"function"}),
      figure("spatial", "Combined rate of a tenant that computes much beside a router, 8q each, and of each alone",
             {{"sweep", {"spatial"}}}, kSharing, kBits, {"function"}),
      figure("spatial-p99",
             "Latency, 99th percentile, of a tenant that computes much beside a router, 8q each, and of each alone",
             {{"sweep", {"spatial"}}}, kSharing, kLatency, {"function"}),
      beside_learners("learning-ipsec-default",
                      "IPsec, default stream, best effort, beside training (Chaurasia, figure 5a)", "ipsec",
                      "default_stream"),
      beside_learners("learning-ipsec-streams",
                      "IPsec, several streams, best effort, beside training (Chaurasia, figure 5b)", "ipsec",
                      "streams"),
      beside_learners("learning-nids-default",
                      "NIDS, default stream, best effort, beside training (Chaurasia, figure 5c)", "nids",
                      "default_stream"),
      beside_learners("learning-nids-streams",
                      "NIDS, several streams, best effort, beside training (Chaurasia, figure 5d)", "nids", "streams"),
      figure("learners", "1522-byte frames beside 0 to 3 training processes (Chaurasia, figure 6)",
             {{"sweep", {"learning"}}, {"size", {"1522"}}}, {"learners", "training processes"}, kBits,
             {"sharing", "function", "mode"}),
      figure("learners-steps", "What the training processes get beside 1522-byte frames",
             {{"sweep", {"learning"}}, {"size", {"1522"}}}, {"learners", "training processes"},
             {"steps_per_s", "training steps/s of all"}, {"sharing", "function", "mode"}),
  };
  return kFigures;
}

}  // namespace penstock::experiments
