// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/chain/figures.h"

#include <string>
#include <string_view>
#include <utility>

namespace penstock::experiments {
namespace {

const LimitLine kPcie{.label = "PCIe limit", .key = "limit_mpps"};
const LimitLine kPcieBits{.label = "PCIe limit", .key = "limit_gbps"};
const Axis kSize{"size", "frame size in bytes, with FCS", AxisKind::logarithmic};
const Axis kBits{"gbps", "Gbit/s received"};
const Axis kLatency{"latency_us", "latency in microseconds", AxisKind::logarithmic};
const Axis kStackTime{"stack_percent", "percent of the workers' time"};
const Axis kPercentile{"percentile", "percentile of packets", AxisKind::percentiles};
const std::vector<std::string> kPaperChains{"C1", "C2", "C3", "C4"};
const std::vector<std::string> kStatefulChains{"C1", "C2", "C3-stateful-nic", "C4-stateful-nic"};
const std::vector<std::string> kOtherModes{"no-memshare", "unshared", "own-stacks", "cpu"};

Figure by_size(const char* id, const char* title, const char* frames, Axis y, std::optional<LimitLine> limit) {
  return {.id = std::string(id) + '-' + frames,
          .title = title,
          .where = {{"chain", {"firewall-router"}}, {"sweep", {"size"}}, {"frames", {frames, "host"}}},
          .x = kSize,
          .y = std::move(y),
          .series = {"mode"},
          .limit = std::move(limit),
          .references = {}};
}

/// A figure of the chain firewall-router.
Figure routing(const char* id, const char* title, std::vector<Condition> where, Axis x, Axis y,
               std::vector<std::string> series, std::optional<LimitLine> limit, std::vector<Reference> references) {
  const std::string panels = series.size() > 1 ? series[0] : "";
  where.insert(where.begin(), {"chain", {"firewall-router"}});
  return {.id = id,
          .title = title,
          .where = std::move(where),
          .x = std::move(x),
          .y = std::move(y),
          .series = std::move(series),
          .limit = std::move(limit),
          .references = std::move(references),
          .panels = panels};
}

/// A figure of C1 to C4 with functions that keep state of flows, by size, chain and mode.
Figure of_stateful(const char* id, const char* title, std::vector<std::string> modes, Axis y,
                   std::optional<LimitLine> limit, std::vector<Reference> references) {
  return {.id = std::string("stateful-") + id,
          .title = title,
          .where = {{"chain", kStatefulChains}, {"sweep", {"stateful"}}, {"mode", std::move(modes)}},
          .x = kSize,
          .y = std::move(y),
          .series = {"chain", "mode"},
          .limit = std::move(limit),
          .references = std::move(references),
          .panels = "chain"};
}

/// A figure of C1 to C4, by size and chain.
Figure of_paper(const char* id, const char* title, const char* tables, std::vector<std::string> modes, Axis y,
                std::vector<Reference> references) {
  const bool has_panels = modes.size() > 1;
  std::vector<std::string> series{"chain"};
  if (has_panels) series.emplace_back("mode");
  return {.id = id,
          .title = title,
          .where = {{"chain", kPaperChains}, {"tables", {tables}}, {"sweep", {"size"}}, {"mode", std::move(modes)}},
          .x = kSize,
          .y = std::move(y),
          .series = std::move(series),
          .limit = std::nullopt,
          .references = std::move(references),
          .panels = has_panels ? "chain" : ""};
}

/// A figure of one of C1 to C4, in all ways of sharing.
Figure of_chain(const std::string& chain, const char* tables) {
  const bool heavy = std::string_view(tables) == "heavy";
  return {.id = (heavy ? "heavy-c" : "rate-c") + chain.substr(1),
          .title = chain + (heavy ? " with heavy tables: rate by frame size"
                                  : ", stateless: rate by frame size (Gaviss, figures 5 and 7)"),
          .where = {{"chain", {chain}}, {"tables", {tables}}, {"sweep", {"size"}}},
          .x = kSize,
          .y = kBits,
          .series = {"mode"},
          .limit = kPcieBits,
          .references = {}};
}

Figure latency_at(const char* load) {
  return {.id = std::string("latency-at-") + load,
          .title = std::string("Latency of 1518-byte frames at ") + load +
                   " percent of the highest rate, bound 1 ms (Gaviss, figure 11)",
          .where = {{"chain", kPaperChains}, {"sweep", {"latency"}}, {"load", {load}}},
          .x = kPercentile,
          .y = kLatency,
          .series = {"chain"},
          .limit = std::nullopt,
          .references = {},
          .panels = "chain"};
}

Figure same_load(const std::string& chain) {
  return {.id = "same-load-c" + chain.substr(1),
          .title = chain + ": latency of 1518-byte frames at half of the unshared rate (Gaviss, figure 12)",
          .where = {{"chain", {chain}}, {"sweep", {"same-load"}}},
          .x = kPercentile,
          .y = kLatency,
          .series = {"mode"},
          .limit = std::nullopt,
          .references = {}};
}

Figure of_shares(const char* id, const char* title, const char* sweep, Axis x, Axis y, std::optional<LimitLine> limit) {
  return {.id = id,
          .title = title,
          .where = {{"chain", {"C4"}}, {"sweep", {sweep}}},
          .x = std::move(x),
          .y = std::move(y),
          .series = {"shares"},
          .limit = std::move(limit),
          .references = {}};
}

/// By number of functions, the router among them, each of which transfers its own packets.
Figure of_lengths(const char* id, const char* what, Axis y, std::vector<Reference> references) {
  return {.id = id,
          .title = std::string("A router's ") + what,
          .where = {{"sweep", {"length"}}},
          .x = {"functions", "functions in the chain, each transferring its own packets: R, RI, NRI, FNRI"},
          .y = std::move(y),
          .series = {"mode"},
          .limit = std::nullopt,
          .references = std::move(references)};
}

Figure of_state(const std::string& chain) {
  return {.id = "state-c" + chain.substr(1),
          .title = chain + " over TCP connections: rate with intrusion detection by streams, and by single packets",
          .where = {{"chain", {chain}}, {"sweep", {"state"}}},
          .x = kSize,
          .y = kBits,
          .series = {"mode", "tracking"},
          .limit = kPcieBits,
          .references = {}};
}

/// Latency by size at the same load for all ways of sharing.
Figure same_load_of_sizes(const char* percentile) {
  return {.id = std::string("same-load-p") + percentile,
          .title = std::string("Latency by frame size at half of the rate with own stacks, bound 1 ms: percentile ") +
                   percentile + " (Gaviss, figure 12)",
          .where = {{"sweep", {"same-load-size"}}, {"percentile", {percentile}}},
          .x = kSize,
          .y = kLatency,
          .series = {"chain", "mode"},
          .limit = std::nullopt,
          .references = {},
          .panels = "chain"};
}

/// By number of functions, at a load that the longest chain does not carry without sharing.
Figure of_full_pcie(const char* id, const char* what, Axis y, std::vector<Reference> references) {
  return {.id = id,
          .title = std::string("The router's transfers to the GPU at a load that saturates FNRI without sharing: ") +
                   what + " (Gaviss, figure 2 and §5.4)",
          .where = {{"sweep", {"full"}}},
          .x = {"functions", "functions in the chain: R, RI, NRI, FNRI"},
          .y = std::move(y),
          .series = {"mode"},
          .limit = std::nullopt,
          .references = std::move(references)};
}

/// What is turned off.
Figure of_ablation(const char* id, const char* title, const char* sweep, Axis y, std::vector<std::string> series) {
  return {.id = id,
          .title = title,
          .where = {{"sweep", {sweep}}},
          .x = {"off", "turned off"},
          .y = std::move(y),
          .series = std::move(series),
          .limit = std::nullopt,
          .references = {}};
}

Figure bounded(const char* id, const char* title, Axis y, std::vector<Reference> references) {
  return {.id = id,
          .title = title,
          .where = {{"sweep", {"bounded"}}},
          .x = kSize,
          .y = std::move(y),
          .series = {"chain", "mode"},
          .limit = std::nullopt,
          .references = std::move(references),
          .panels = "chain"};
}

constexpr const char* kFigure5 = "Gaviss §5.2, figure 5, on a Titan X";
constexpr const char* kTable1 = "Gaviss §5.3, table 1, on a Xeon E5-2695 v4";

std::vector<Figure> figures_of_routing() {
  const Axis mpps{"mpps", "million packets/s", AxisKind::logarithmic};
  return {
      by_size(
          "rate",
          "firewall → router, no chain of Gaviss: whole frames to the GPU and back, on the axes of its figures 5 and 7",
          "whole", mpps, kPcie),
      by_size("rate", "firewall → router, only the fields of the transfer plan: headers to the GPU, changes back",
              "planned", mpps, kPcie),
      by_size("bits", "firewall → router, whole frames to the GPU and back", "whole", {"gbps", "Gbit/s"}, std::nullopt),
      routing("ratio",
              "firewall → router: rate with packets shared on the GPU ÷ rate without, on the axes of Gaviss' figure 6",
              {{"sweep", {"size"}}, {"mode", {"unshared"}}}, kSize,
              {.key = "shared_by_this", .label = "shared rate ÷ unshared rate", .earlier_key = "shared_by_unshared"},
              {"frames"}, std::nullopt,
              {{"paper, baseline with own stacks, chains of up to four functions, least", 2.6, std::nullopt,
                "Gaviss §5.2: \"2.6-13.2x higher throughput compared with the baseline system\""}}),
      routing("bytes-up", "firewall → router: bytes per packet over PCIe, from the host to the GPU",
              {{"sweep", {"size"}}, {"processor", {"gpu"}}}, kSize,
              {"bytes_up", "bytes per packet", AxisKind::logarithmic}, {"frames", "mode"}, std::nullopt, {}),
      routing("bytes-down", "firewall → router: bytes per packet over PCIe, from the GPU to the host",
              {{"sweep", {"size"}}, {"processor", {"gpu"}}}, kSize,
              {"bytes_down", "bytes per packet", AxisKind::logarithmic}, {"frames", "mode"}, std::nullopt, {}),
      routing("workers", "firewall → router, whole frames: rate by number of workers", {{"sweep", {"workers"}}},
              {"workers", "workers, one core each"}, mpps, {"size"}, kPcie, {}),
      routing("busy-cores", "Host cores kept busy (CPU time ÷ time)", {{"sweep", {"size"}}}, kSize,
              {"busy_cores", "busy cores"}, {"frames", "mode"}, std::nullopt, {}),
      routing("latency", "firewall → router: latency of whole 1518-byte frames by load, in percent of the highest rate",
              {{"sweep", {"latency"}}}, kPercentile, kLatency, {"load"}, std::nullopt, {}),
  };
}

/// Of the paper's main comparisons, with functions that keep state of flows.
void add_stateful_figures(std::vector<Figure>& figures) {
  figures.push_back(of_stateful("rate", "Functions with state of flows: rate by frame size (Gaviss, figures 5 and 7)",
                                {"shared", "no-memshare", "unshared", "own-stacks", "cpu"}, kBits, kPcieBits,
                                {{"paper, peak", 33.8, std::nullopt, kFigure5, "C1"},
                                 {"paper, peak", 23.5, std::nullopt, kFigure5, "C4-stateful-nic"}}));
  figures.push_back(of_stateful(
      "gain",
      "Functions with state of flows: rate with packets shared on the GPU ÷ rate of each other mode (Gaviss, figures 6 "
      "and 7)",
      kOtherModes, {"shared_by_this", "shared rate ÷ this mode's rate", AxisKind::logarithmic}, std::nullopt,
      {{"paper, baseline, least", 2.6, std::nullopt, "Gaviss §5.2: \"2.6-13.2x\""},
       {"paper, baseline, most", 13.2, std::nullopt, "Gaviss §5.2: \"2.6-13.2x\""},
       {"paper, CPU, least", 1.3, std::nullopt, "Gaviss §5.3: \"1.3-2.8x higher throughput\""},
       {"paper, CPU, most", 2.8, std::nullopt, "Gaviss §5.3: \"1.3-2.8x higher throughput\""}}));
  figures.push_back(of_stateful(
      "moved-up", "Functions with state of flows: bytes per packet over PCIe to the GPU (Gaviss, figure 9)",
      {"shared", "no-memshare", "unshared", "own-stacks"}, {"bytes_up", "bytes per packet"}, std::nullopt, {}));
  figures.push_back(of_stateful(
      "moved-less",
      "Functions with state of flows: share of the bytes to the GPU that sharing packets saves (Gaviss, figure 9)",
      {"no-memshare"}, {"less_up_shared", "percent saved"}, std::nullopt,
      {{"paper, least", 24.3, std::nullopt, "Gaviss §5.4: \"24.3-48.4%\""},
       {"paper, most", 48.4, std::nullopt, "Gaviss §5.4: \"24.3-48.4%\""}}));
  figures.push_back(of_stateful(
      "moved-down", "Functions with state of flows: bytes per packet over PCIe to the host (Gaviss, figure 9)",
      {"shared", "no-memshare", "unshared", "own-stacks"}, {"bytes_down", "bytes per packet"}, std::nullopt, {}));
  figures.push_back(of_stateful("stack-time",
                                "Functions with state of flows: processor time of the workers for the functions' own "
                                "buffers and stacks",
                                {"own-stacks"}, kStackTime, std::nullopt, {}));
  figures.push_back(of_stateful("cores", "Functions with state of flows: host cores kept busy (CPU time ÷ time)",
                                {"shared", "no-memshare", "unshared", "own-stacks", "cpu"},
                                {"busy_cores", "busy cores"}, std::nullopt, {}));
  figures.push_back(of_stateful("by-dollar",
                                "Functions with state of flows: rate per dollar of cores and GPU (Gaviss, figure 8)",
                                {"shared", "cpu"}, {"mbps_per_dollar", "Mbit/s per dollar"}, std::nullopt, {}));
  figures.push_back(of_stateful("by-watt", "Functions with state of flows: rate per watt of cores and GPU",
                                {"shared", "cpu"}, {"mbps_per_watt", "Mbit/s per watt"}, std::nullopt, {}));
}

/// With functions that look at each packet on its own, except where the figure says otherwise.
void add_figures_of_paper(std::vector<Figure>& figures) {
  figures.push_back(
      of_paper("rate", "Stateless: rate with packets shared on the GPU (Gaviss, figure 5)", "paper", {"shared"}, kBits,
               {{"paper, C1, peak", 33.8, std::nullopt, kFigure5}, {"paper, C4, peak", 23.5, std::nullopt, kFigure5}}));
  for (const std::string& chain : kPaperChains) figures.push_back(of_chain(chain, "paper"));
  figures.push_back(of_paper(
      "gain", "Stateless: rate with packets shared on the GPU ÷ rate of each other mode (Gaviss, figures 6 and 7)",
      "paper", kOtherModes, {"shared_by_this", "shared rate ÷ this mode's rate", AxisKind::logarithmic},
      {{"paper, baseline, least", 2.6, std::nullopt, "Gaviss §5.2: \"2.6-13.2x\""},
       {"paper, baseline, most", 13.2, std::nullopt, "Gaviss §5.2: \"2.6-13.2x\""},
       {"paper, CPU, least", 1.3, std::nullopt, "Gaviss §5.3: \"1.3-2.8x higher throughput\""},
       {"paper, CPU, most", 2.8, std::nullopt, "Gaviss §5.3: \"1.3-2.8x higher throughput\""}}));
  figures.push_back(of_paper("moved-up", "Stateless: bytes per packet over PCIe, from the host to the GPU", "paper",
                             {"shared", "no-memshare", "unshared"}, {"bytes_up", "bytes per packet"}, {}));
  figures.push_back(
      of_paper("moved-less",
               "Stateless: share of the bytes to the GPU that sharing packets saves (Gaviss, figure 9, has "
               "states of flows)",
               "paper", {"no-memshare", "unshared"}, {"less_up_shared", "percent saved"},
               {{"paper, no-memshare, least", 24.3, std::nullopt, "Gaviss §5.4: \"24.3-48.4%\""},
                {"paper, no-memshare, most", 48.4, std::nullopt, "Gaviss §5.4: \"24.3-48.4%\""}}));
  figures.push_back(of_paper("moved-down", "Stateless: bytes per packet over PCIe, from the GPU to the host", "paper",
                             {"shared", "no-memshare", "unshared"}, {"bytes_down", "bytes per packet"}, {}));
  figures.push_back(of_paper("cores", "Stateless: host cores kept busy (CPU time ÷ time)", "paper",
                             {"shared", "no-memshare", "unshared", "own-stacks", "cpu"}, {"busy_cores", "busy cores"},
                             {}));
  figures.push_back(of_paper("stack-time",
                             "Stateless: processor time of the workers for the functions' own buffers and stacks",
                             "paper", {"own-stacks"}, kStackTime, {}));
  figures.push_back(
      of_paper("by-dollar", "Stateless: rate per dollar of cores and GPU (Gaviss, figure 8, there relative to the CPU)",
               "paper", {"shared", "cpu"}, {"mbps_per_dollar", "Mbit/s per dollar"}, {}));
  figures.push_back(of_paper("by-watt", "Stateless: rate per watt of cores and GPU", "paper", {"shared", "cpu"},
                             {"mbps_per_watt", "Mbit/s per watt"}, {}));
  for (const std::string& chain : kPaperChains) figures.push_back(of_state(chain));
  figures.push_back({.id = "connections",
                     .title = "Chains with a firewall that tracks connections, and with one that does not",
                     .where = {{"sweep", {"connections"}}},
                     .x = {"chain", "chain"},
                     .y = kBits,
                     .series = {"mode", "size", "workers"},
                     .limit = kPcieBits,
                     .references = {}});
  figures.push_back({.id = "branch",
                     .title = "C4 with a branch, in which every second packet is inspected: rate by frame size",
                     .where = {{"sweep", {"branch"}}},
                     .x = kSize,
                     .y = kBits,
                     .series = {"mode"},
                     .limit = kPcieBits,
                     .references = {}});
  figures.push_back({.id = "branch-gain",
                     .title = "C4 with a branch: rate with packets shared on the GPU ÷ rate of each other mode",
                     .where = {{"sweep", {"branch"}}, {"mode", kOtherModes}},
                     .x = kSize,
                     .y = {"shared_by_this", "shared rate ÷ this mode's rate", AxisKind::logarithmic},
                     .series = {"mode"},
                     .limit = std::nullopt,
                     .references = {}});
  figures.push_back({.id = "workers-c4",
                     .title = "C4: rate by number of workers, and of streams per worker",
                     .where = {{"chain", {"C4"}}, {"sweep", {"workers"}}},
                     .x = {"workers", "workers, one core each"},
                     .y = kBits,
                     .series = {"size", "streams"},
                     .limit = kPcieBits,
                     .references = {},
                     .panels = "size"});
  figures.push_back(
      of_ablation("ablation", "C4: highest rate with one thing turned off, and with all", "ablation", kBits, {"size"}));
  figures.push_back(of_ablation("ablation-percent", "C4: highest rate, in percent of that with everything on",
                                "ablation", {"percent_of_all_on", "percent"}, {"size"}));
  figures.push_back(of_ablation("ablation-latency",
                                "C4: latency at 10 percent of the highest rate with everything on, bound 1 ms",
                                "ablation-latency", kLatency, {"size", "percentile"}));
  figures.push_back(bounded(
      "bounded", "Stateless: highest rate with a bound of 1 ms for each function (Gaviss, figure 5)", kBits,
      {{"paper, peak", 33.8, std::nullopt, kFigure5, "C1"}, {"paper, peak", 23.5, std::nullopt, kFigure5, "C4"}}));
  figures.push_back(
      bounded("bounded-time",
              "Stateless: mean time of a batch to the GPU and back at that rate: of the slowest function, "
              "or where functions share packets, divided by their number",
              {"function_us", "microseconds", AxisKind::logarithmic},
              {{"bound", 1000, std::nullopt, "Gaviss §5.2: \"1 ms as the latency upper bound for each NF\""}}));
  figures.push_back(of_shares("shares", "C4: rate by the share of the GPU that nids and ipsec may each use", "share",
                              kSize, kBits, kPcieBits));
  figures.push_back(of_shares("shares-segment",
                              "C4: time of a batch to the GPU and back, by the share that nids and ipsec may each use",
                              "share", kSize, {"segment_us_firewall", "microseconds"}, std::nullopt));
  figures.push_back(
      of_shares("shares-latency",
                "C4: latency of 1518-byte frames at 50 percent of the highest rate, bound 1 ms, by share of the GPU",
                "share-latency", kPercentile, kLatency, std::nullopt));
  figures.push_back({.id = "share-grid",
                     .title =
                         "C4 at 50 percent of the highest rate, bound 1 ms for each function: latency by the shares of "
                         "the GPU that nids and ipsec may use",
                     .where = {{"sweep", {"share-grid"}}},
                     .x = {"share_of_nids", "share that nids may use"},
                     .y = {"latency_p99", "99th percentile in microseconds", AxisKind::logarithmic},
                     .series = {"size", "share_of_ipsec"},
                     .limit = std::nullopt,
                     .references = {},
                     .panels = "size"});
  figures.push_back(
      {.id = "share-choice",
       .title = "C4: multiprocessors that the model chooses for nids and ipsec ÷ the fewest measured that keep "
                "the bound and lose nothing",
       .where = {{"sweep", {"share-grid"}}, {"share_of_nids", {"auto"}}},
       .x = kSize,
       .y = {"times_fewest", "chosen ÷ fewest"},
       .series = {"chain"},
       .limit = std::nullopt,
       .references = {}});
  for (const char* load : {"10", "50", "80"}) figures.push_back(latency_at(load));
  static constexpr double kMedians[] = {2900, 3400, 3600, 4000};
  static constexpr double kNinetyFifths[] = {3400, 4000, 4100, 4500};
  for (std::size_t i = 0; i < kPaperChains.size(); ++i) {
    const char* const source = "Gaviss §5.5, figure 11; its load is not stated";
    figures.back().references.push_back({"paper", kMedians[i], 50, source, kPaperChains[i]});
    figures.back().references.push_back({"paper", kNinetyFifths[i], 95, source, kPaperChains[i]});
  }
  for (const std::string& chain : kPaperChains) figures.push_back(same_load(chain));
  for (const char* percentile : {"50", "95"}) figures.push_back(same_load_of_sizes(percentile));
  figures.push_back(
      {.id = "latency-less",
       .title =
           "Latency that sharing packets and the stack saves at half of the rate with own stacks (Gaviss, figure 12)",
       .where = {{"sweep", {"same-load-size"}}, {"mode", {"own-stacks"}}},
       .x = kSize,
       .y = {"less_latency_shared", "percent saved"},
       .series = {"chain", "percentile"},
       .limit = std::nullopt,
       .references = {{"paper, p95, least", 14.9, std::nullopt, "Gaviss §5.5: \"14.9-19.8%\"", "C1"},
                      {"paper, p95, most", 19.8, std::nullopt, "Gaviss §5.5: \"14.9-19.8%\"", "C1"},
                      {"paper, p95, least", 35.2, std::nullopt, "Gaviss §5.5: \"35.2-37.9%\"", "C4"},
                      {"paper, p95, most", 37.9, std::nullopt, "Gaviss §5.5: \"35.2-37.9%\"", "C4"}},
       .panels = "chain"});
  figures.push_back(of_lengths("conflicts", "time to the GPU and back, by length of the chain",
                               {"router_by_alone", "time ÷ time of the router alone"}, {}));
  figures.push_back(of_lengths("conflicts-up", "transfer time to the GPU, by length of the chain (Gaviss, figure 2)",
                               {"transfer_by_alone", "time ÷ time of the router alone"},
                               {{"paper", 3.2, 4, "Gaviss §2.2, figure 2"}}));
  figures.push_back(of_full_pcie("full-pcie", "time, whole frames",
                                 {"transfer_by_alone", "time ÷ time of the router alone"},
                                 {{"paper, not shared", 3.2, 4, "Gaviss §2.2, figure 2"},
                                  {"paper, shared", 2.0, 4, "Gaviss §5.4: \"only 2.0x higher\""}}));
  figures.push_back(of_full_pcie("full-pcie-by-byte", "time for a byte, whole frames",
                                 {"transfer_per_byte_by_alone", "time ÷ time of the router alone"}, {}));
  figures.push_back(of_full_pcie("full-pcie-waiting", "part of the time that waits for other transfers, whole frames",
                                 {"router_waiting_percent", "percent"}, {}));
  const char* const transfer_share = "Gaviss §2.2; the frame size is not stated";
  figures.push_back(
      {.id = "transfer-share",
       .title = "Each function alone, one batch at a time: transfers in percent of its time on the GPU (Gaviss "
                "§2.2)",
       .where = {{"sweep", {"transfer-share"}}},
       .x = kSize,
       .y = {"transfer_percent", "percent"},
       .series = {"chain"},
       .limit = std::nullopt,
       .references = {{"paper", 89.0, std::nullopt, transfer_share, "router"},
                      {"paper", 27.3, std::nullopt, transfer_share, "firewall"},
                      {"paper", 46.7, std::nullopt, transfer_share, "ipsec"},
                      {"paper", 28.7, std::nullopt, transfer_share, "nids"}},
       .panels = "chain"});
  figures.push_back(
      {.id = "timeline",
       .title = "C4: transfers to the GPU at half of the unshared rate (Gaviss, figure 10)",
       .where = {{"sweep", {"timeline"}}},
       .x = {"mode", "mode"},
       .y = {"transfers_per_ms", "transfers to the GPU: how many, how large, how long, and how they wait"},
       .series = {},
       .limit = std::nullopt,
       .references = {},
       .bars = BarChart{.key = "transfers",
                        .legend = "transfer in progress",
                        .waits = "waiting for an earlier transfer",
                        .columns = {{"transfers_per_ms", "per ms"},
                                    {"transfer_bytes", "bytes each"},
                                    {"transfer_us", "us each"},
                                    {"waited_us", "us waiting"},
                                    {"waiting", "percent that wait"},
                                    {"mpps", "Mpps"}}}});
  figures.push_back({.id = "gpus",
                     .title = "Chains over several GPUs, 1518-byte frames",
                     .where = {{"sweep", {"gpus"}}},
                     .x = {"workers", "workers, as many for each GPU"},
                     .y = kBits,
                     .series = {"chain", "gpus"},
                     .limit = kPcieBits,
                     .references = {},
                     .panels = "chain"});
  figures.push_back(
      {.id = "functions",
       .title = "Each function alone on one core, without states of flows (Gaviss, table 1, with a stateful stack)",
       .where = {{"sweep", {"function"}}},
       .x = kSize,
       .y = {"gbps", "Gbit/s received", AxisKind::logarithmic},
       .series = {"chain"},
       .limit = std::nullopt,
       .references = {{"paper", 3.8, 64, kTable1, "nids"},
                      {"paper", 7.2, 1518, kTable1, "nids"},
                      {"paper", 0.38, 64, kTable1, "ipsec"},
                      {"paper", 1.7, 1518, kTable1, "ipsec"},
                      {"paper", 6.5, 64, kTable1, "router"},
                      {"paper", 39.7, 1518, kTable1, "router"},
                      {"paper", 1.8, 64, kTable1, "firewall"},
                      {"paper", 39.4, 1518, kTable1, "firewall"}},
       .panels = "chain"});
  for (const std::string& chain : kPaperChains) figures.push_back(of_chain(chain, "heavy"));
  figures.push_back(
      of_paper("heavy-gain", "Heavy tables: rate with packets shared on the GPU ÷ rate of each other mode", "heavy",
               kOtherModes, {"shared_by_this", "shared rate ÷ this mode's rate", AxisKind::logarithmic}, {}));
}

}  // namespace

const std::vector<Figure>& chain_figures() {
  static const std::vector<Figure> kFigures = [] {
    std::vector<Figure> figures = figures_of_routing();
    add_stateful_figures(figures);
    add_figures_of_paper(figures);
    return figures;
  }();
  return kFigures;
}

}  // namespace penstock::experiments
