// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/offload/figures.h"

#include <string>
#include <string_view>

namespace penstock::experiments {
namespace {

constexpr double kHeavyBatch = 65536;

const LimitLine kPcie{.label = "PCIe limit", .key = "limit_mpps"};

std::vector<Reference> routing_references() {
  return {{"paper's GPU, peak", 500, kHeavyBatch, "Alonistioti §III: \"a peak performance of more than 500Mpkts/s\""},
          {"paper's FPGA", 330, std::nullopt, "Alonistioti §III: \"a peak performance of 330 Mpkts/s\""},
          {"paper's CPU, one core", 49, std::nullopt, "Alonistioti §III: \"a performance of 49Mpkts/s\""}};
}

std::vector<Reference> firewall_references() {
  return {{"paper's GPU, peak", 35, kHeavyBatch, "Alonistioti §III: \"a peak performance of more than 35Mpkts/s\""},
          {"paper's FPGA", 32, std::nullopt, "Alonistioti §III: \"a peak performance of 32 Mpkts/s\""},
          {"paper's CPU, one core", 2.48, std::nullopt, "Alonistioti §III: \"only 2.48 Mpkts/s\""}};
}

/// For figures whose x axis is the batch, where the paper only gives peaks: drops the x, so they hold for the whole
/// axis.
std::vector<Reference> everywhere(std::vector<Reference> references) {
  for (Reference& reference : references) reference.x.reset();
  return references;
}

Figure by_batch(const char* function, const char* number, const char* what, const char* engine,
                std::vector<Reference> references) {
  return {.id = std::string(function) + "-batch-" + engine,
          .title = std::string(what) + " by batch size, " + engine + " (Alonistioti, figure " + number +
                   (std::string_view(engine) == "dir24" ? ", which has tries)" : ")"),
          .where = {{"function", {function}}, {"sweep", {"batch"}}, {"engine", {engine}}},
          .x = {"batch", "packets in a batch", AxisKind::logarithmic},
          .y = {"mpps", "million packets/s", AxisKind::logarithmic},
          .series = {"processor", "cores", "measured", "streams"},
          .limit = kPcie,
          .references = std::move(references)};
}

Figure by_size(const char* function, const char* number, const char* title, const char* key, const char* label,
               std::vector<Reference> references) {
  return {.id = std::string(function) + '-' + key,
          .title = std::string(title) + " (Alonistioti, figure " + number + ")",
          .where = {{"function", {function}}, {"sweep", {key}}},
          .x = {key, label, AxisKind::logarithmic},
          .y = {"mpps", "million packets/s", AxisKind::logarithmic},
          .series = {"engine", "processor", "cores", "measured", "streams"},
          .limit = kPcie,
          .references = everywhere(std::move(references)),
          .panels = "engine"};
}

Figure by_traffic(const char* function, const char* title) {
  return {.id = std::string(function) + "-traffic",
          .title = title,
          .where = {{"function", {function}}, {"sweep", {"traffic"}}},
          .x = {"traffic", "traffic"},
          .y = {"mpps", "million packets/s", AxisKind::logarithmic},
          .series = {"engine", "processor", "cores", "measured", "streams"},
          .limit = kPcie,
          .references = {},
          .panels = "engine"};
}

Figure of_frames(const char* function, const char* title) {
  return {.id = std::string(function) + "-frames",
          .title = title,
          .where = {{"function", {function}}, {"sweep", {"frames"}}},
          .x = {"size", "frame size in bytes, with FCS"},
          .y = {"mpps", "million packets/s", AxisKind::logarithmic},
          .series = {"processor", "frames", "workers"},
          .limit = kPcie,
          .references = {}};
}

Figure of_memory(const char* function, const char* title, const char* key, const char* label,
                 std::vector<Reference> references) {
  return {.id = std::string(function) + "-memory",
          .title = title,
          .where = {{"function", {function}}, {"sweep", {key}}, {"measured", {"kernel"}}},
          .x = {key, label, AxisKind::logarithmic},
          .y = {"memory_percent", "percent of the GPU's memory", AxisKind::logarithmic},
          .series = {"engine"},
          .limit = std::nullopt,
          .references = std::move(references)};
}

}  // namespace

const std::vector<Figure>& offload_figures() {
  static const std::vector<Figure> kFigures{
      by_batch("router", "3", "Routing look-ups", "dir24", routing_references()),
      by_batch("router", "3", "Routing look-ups", "trie4", routing_references()),
      by_batch("router", "3", "Routing look-ups", "trie1", routing_references()),
      by_size("router", "4", "Routing look-ups by table size, batches of 65,536", "routes", "IPv4 routes",
              routing_references()),
      by_batch("firewall", "5", "Firewall classification", "bitvector", firewall_references()),
      by_batch("firewall", "5", "Firewall classification", "linear", firewall_references()),
      by_size("firewall", "6", "Firewall classification by rules, batches of 65,536", "rules", "rules",
              firewall_references()),
      by_traffic("router", "Routing look-ups by traffic, full table, batches of 65,536 (Alonistioti §II.A)"),
      by_traffic("firewall", "Firewall classification by traffic, 1,024 rules, batches of 65,536 (Alonistioti §III)"),
      of_frames("router", "Routing of frames, full table (Alonistioti §III looks up keys alone)"),
      of_frames("firewall", "Firewall of frames, 1,024 rules (Alonistioti §III classifies keys alone)"),
      of_memory("router", "Memory of routing tables (Alonistioti §III)", "routes", "IPv4 routes",
                {{"paper's GPU, largest table", 50, std::nullopt,
                  "Alonistioti §III: \"up to 50% of the available memory in our GPU card\""},
                 {"paper's FPGA", 95, 256'000, "Alonistioti §III: \"about 95% of the chip embedded RAM\""}}),
      of_memory("firewall", "Memory of rules (Alonistioti §III)", "rules", "rules",
                {{"paper's GPU", 2, 1024, "Alonistioti §III: \"almost 2% of the available memory in our GPU card\""},
                 {"paper's FPGA", 18, 1024, "Alonistioti §III: \"about 18% of the chip embedded RAM\""}}),
  };
  return kFigures;
}

}  // namespace penstock::experiments
