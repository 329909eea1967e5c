// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/detection/figures.h"

namespace penstock::experiments {
namespace {

const Axis kBits{"gbps", "Gbit/s received"};
const LimitLine kPcieBits{.label = "PCIe limit", .key = "limit_gbps"};

Figure by_size(const char* id, const char* title, std::vector<std::string> modes, Axis y,
               std::optional<LimitLine> limit) {
  return {.id = id,
          .title = title,
          .where = {{"sweep", {"size"}}, {"mode", std::move(modes)}},
          .x = {"size", "frame size in bytes, with FCS", AxisKind::logarithmic},
          .y = std::move(y),
          .series = {"mode"},
          .limit = std::move(limit),
          .references = {}};
}

Figure of_connections(const char* id, const char* title, Axis y, std::optional<LimitLine> limit) {
  return {.id = id,
          .title = title,
          .where = {{"sweep", {"connections"}}},
          .x = {"workers", "workers, one host core each"},
          .y = std::move(y),
          .series = {"mode"},
          .limit = std::move(limit),
          .references = {}};
}

}  // namespace

const std::vector<Figure>& detection_figures() {
  static const std::vector<Figure> kFigures{
      {.id = "rules",
       .title = "Intrusion detection by number of rules, 1518-byte packets (hyperscan: payloads alone)",
       .where = {{"sweep", {"rules"}}},
       .x = {"rules", "rules", AxisKind::logarithmic},
       .y = kBits,
       .series = {"mode"},
       .limit = kPcieBits,
       .references = {}},
      by_size("size", "Intrusion detection on packets, by frame size", {"gpu", "cpu"}, kBits, kPcieBits),
      by_size("size-rate", "Intrusion detection on packets: packet rate", {"gpu", "cpu"},
              {"mpps", "million packets/s", AxisKind::logarithmic}, std::nullopt),
      by_size("size-of-limit", "Intrusion detection on packets: rate ÷ PCIe limit", {"gpu"},
              {.key = "of_limit", .label = "rate ÷ PCIe limit", .earlier_key = "of_to_device"}, std::nullopt),
      by_size("size-busy-cores", "Intrusion detection on packets: host cores kept busy (CPU time ÷ time)",
              {"gpu", "cpu"}, {"busy_cores", "busy cores"}, std::nullopt),
      of_connections("connections", "Intrusion detection with flows and streams, connections of 1518-byte packets",
                     kBits, kPcieBits),
      of_connections("connections-rate", "Intrusion detection with flows and streams: packet rate",
                     {"mpps", "million packets/s"}, std::nullopt),
  };
  return kFigures;
}

}  // namespace penstock::experiments
