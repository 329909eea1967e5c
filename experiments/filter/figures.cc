// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/figures.h"

#include <string>
#include <utility>

namespace penstock::experiments {
namespace {

const LimitLine kPcie{.label = "PCIe limit", .key = "limit_mpps"};
const Axis kRate{"mpps", "million packets/s", AxisKind::logarithmic};

std::vector<Reference> bpf_speedups() {
  const char* const source = "Hung & Guo §5.1: \"20x ~25x speedup over CPU-based BPF algorithm\"";
  return {{"paper, least", 20, std::nullopt, source}, {"paper, most", 25, std::nullopt, source}};
}

std::vector<Reference> rfc_speedups() {
  const char* const source = "Hung & Guo §5.2: \"5x~7x speedup over CPU-based RFC algorithm\"";
  return {{"paper, least", 5, std::nullopt, source}, {"paper, most", 7, std::nullopt, source}};
}

Figure throughput(const char* algorithm, const char* match, const char* title) {
  return {.id = std::string(algorithm) + "-throughput-" + match,
          .title = title,
          .where = {{"sweep", {"combinations"}}, {"algorithm", {algorithm}}, {"match", {match}}},
          .x = {"memories", "memory of packets + memory of rules"},
          .y = kRate,
          .series = {"transfer", "engine"},
          .limit = kPcie,
          .references = {}};
}

/// Of the last match, which is what figure 6 shows.
Figure speedup(const char* algorithm, const char* cores, const char* key, const char* title,
               std::vector<Reference> references) {
  return {
      .id = std::string(algorithm) + "-speedup-" + cores,
      .title = title,
      .where = {{"sweep", {"combinations"}}, {"algorithm", {algorithm}}, {"processor", {"gpu"}}, {"match", {"last"}}},
      .x = {"memories", "memory of packets + memory of rules"},
      .y = {key, "times as fast", AxisKind::logarithmic},
      .series = {"transfer"},
      .limit = std::nullopt,
      .references = std::move(references)};
}

/// Of one sweep, with a panel for each method.
Figure by(const char* sweep, const char* key, const char* label, const char* title, std::vector<std::string> series,
          AxisKind kind = AxisKind::logarithmic) {
  return {.id = sweep,
          .title = title,
          .where = {{"sweep", {sweep}}},
          .x = {key, label, kind},
          .y = kRate,
          .series = std::move(series),
          .limit = kPcie,
          .references = {},
          .panels = "method"};
}

Figure unrolled(const std::string& match, const char* title) {
  return {.id = "unroll-" + match,
          .title = title,
          .where = {{"sweep", {"unroll"}}, {"match", {match}}},
          .x = {"unroll", "rules in an iteration", AxisKind::logarithmic},
          .y = kRate,
          .series = {"storage", "transfer"},
          .limit = kPcie,
          .references = {},
          .panels = "storage"};
}

Figure by_engine(const char* sweep, const char* key, const char* label, const char* title) {
  return {.id = sweep,
          .title = title,
          .where = {{"sweep", {sweep}}},
          .x = {key, label, AxisKind::logarithmic},
          .y = kRate,
          .series = {"engine", "processor", "cores", "measured"},
          .limit = kPcie,
          .references = {},
          .panels = "engine"};
}

}  // namespace

const std::vector<Figure>& filter_figures() {
  static const std::vector<Figure> kFigures{
      speedup("bpf", "one-core", "times_one_core",
              "Linear matching on a GPU, compared with one core (Hung & Guo, table 3, figure 9)", bpf_speedups()),
      speedup("bpf", "all-cores", "times_all_cores", "Linear matching on a GPU, compared with all cores", {}),
      unrolled("last", "Loop over 1,000 rules in constant memory, unrolled, last match (Hung & Guo, figure 10)"),
      unrolled("first", "Loop over 1,000 rules in constant memory, unrolled, first match (Hung & Guo, figure 10)"),
      speedup("rfc", "one-core", "times_one_core",
              "RFC on a GPU, compared with one core (Hung & Guo, table 4, figure 11)", rfc_speedups()),
      speedup("rfc", "all-cores", "times_all_cores", "RFC on a GPU, compared with all cores", {}),
      throughput("bpf", "last", "Linear matching by 1,000 rules, last match (Hung & Guo, table 3, figure 12)"),
      throughput("bpf", "first", "Linear matching by 1,000 rules, first match (Hung & Guo, table 3, figure 12)"),
      throughput("rfc", "last", "RFC with 1,000 rules, last match (Hung & Guo, table 4, figure 13)"),
      throughput("rfc", "first", "RFC with 1,000 rules, first match (Hung & Guo, table 4, figure 13)"),
      by("devices", "share", "percent of the GPU's multiprocessors",
         "Part of a GPU, by green contexts (in place of the three GPUs of Hung & Guo, figure 14)",
         {"method", "transfer"}, AxisKind::linear),
      by("chunks", "chunk", "packets in a chunk", "Streamed transfer by chunk and number of streams",
         {"method", "streams"}),
      by("blocks", "block", "threads in a block", "Kernels by threads in a block", {"method"}),
      by("results", "result_bits", "bits that come back for a packet", "Streamed transfer by the size of a result",
         {"method"}),
      by("hits", "hits", "percent of packets that match a rule", "Kernels by packets that match a rule",
         {"method", "match"}, AxisKind::linear),
      by("readings", "reading", "reading of table 2", "Kernels by the reading of the paper's rules", {"method"}),
      by("rules", "rules", "rules", "By number of rules", {"method", "transfer", "cores"}),
      by_engine("classbench", "rules", "rules", "Synthetic rules in ClassBench's format, by number of rules"),
      {.id = "thinned",
       .title = "A filter before intrusion detection, by the packets that it keeps (Hung & Guo, §6: future work)",
       .where = {{"sweep", {"thinned"}}},
       .x = {"kept", "percent of packets that the filter keeps"},
       .y = kRate,
       .series = {"processor", "mode", "workers"},
       .limit = std::nullopt,
       .references = {},
       .panels = "processor"},
      by_engine("filters", "filters", "BPF filters", "Many BPF filters at once over 64-byte headers"),
  };
  return kFigures;
}

}  // namespace penstock::experiments
