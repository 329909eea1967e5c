// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/plan.h"

#include <string>
#include <string_view>

namespace penstock::experiments {
namespace {

using Names = std::vector<const char*>;

/// Where packets and rules are, and how packets come there: a row of table 3 or 4.
struct Way {
  const char* algorithm;
  const char* storage;
  const char* rules_in;
  const char* transfer;
};

/// Table 3, and what it lacks: global memory with streams, which §5.1 compares with zero copy, and kernels alone.
const std::vector<Way>& bpf_ways() {
  static const std::vector<Way> kWays = [] {
    std::vector<Way> ways;
    for (const char* rules_in : {"constant", "code"}) {
      for (const char* storage : {"global", "texture"}) {
        for (const char* transfer : {"none", "direct", "zero_copy", "streamed"}) {
          ways.push_back({"bpf", storage, rules_in, transfer});
        }
      }
    }
    return ways;
  }();
  return kWays;
}

/// Table 4, and the same with all tables in global memory.
const std::vector<Way>& rfc_ways() {
  static const std::vector<Way> kWays = [] {
    std::vector<Way> ways;
    for (const char* rules_in : {"constant", "global"}) {
      for (const char* storage : {"global", "texture"}) {
        for (const char* transfer : {"none", "zero_copy", "streamed"}) {
          ways.push_back({"rfc", storage, rules_in, transfer});
        }
      }
    }
    return ways;
  }();
  return kWays;
}

class Plan {
 public:
  Plan(bool quick, unsigned workers) : quick_(quick), workers_(workers) {}

  std::vector<Point> make() && {
    combinations();
    unrolling();
    chunks();
    blocks();
    results();
    devices();
    hits();
    readings();
    numbers_of_rules();
    classbench();
    many_filters();
    return std::move(points_);
  }

 private:
  [[nodiscard]] Names matches() const { return quick_ ? Names{"last"} : Names{"first", "last"}; }

  Point& on_gpu(const char* sweep, const Way& way, const char* match, std::size_t rules = kTemplateRules) {
    const std::string rules_in = way.rules_in;
    Point& point = points_.emplace_back();
    point.set("sweep", sweep)
        .set("algorithm", way.algorithm)
        .set("processor", "gpu")
        .set("method", std::string_view(way.algorithm) == "copies" ? way.algorithm : way.algorithm + ("+" + rules_in))
        .set("storage", way.storage)
        .set("rules_in", way.rules_in)
        .set("memories", way.storage + ("+" + rules_in))
        .set("transfer", way.transfer)
        .set("match", match)
        .set("rules", rules)
        .set("result_bits", 16);
    if (std::string_view(way.transfer) == "streamed") point.set("chunk", kChunk).set("streams", kStreams);
    return point;
  }

  /// One point for a core, and one for all cores.
  void on_cores(const char* sweep, const char* algorithm, const char* engine, const char* match, std::size_t rules) {
    for (const unsigned cores : {1U, workers_}) {
      points_.emplace_back()
          .set("sweep", sweep)
          .set("algorithm", algorithm)
          .set("processor", "cpu")
          .set("method", std::string_view(algorithm) == engine ? engine : algorithm + std::string("+") + engine)
          .set("memories", cores == 1 ? "one core" : "all cores")
          .set("engine", engine)
          .set("cores", cores)
          .set("match", match)
          .set("rules", rules);
      if (workers_ == 1) break;
    }
  }

  void combinations() {
    for (const char* match : matches()) {
      on_cores("combinations", "bpf", "scalar", match, kTemplateRules);
      on_cores("combinations", "bpf", "vector", match, kTemplateRules);
      on_cores("combinations", "rfc", "rfc", match, kTemplateRules);
      for (const Way& way : bpf_ways()) on_gpu("combinations", way, match);
      for (const Way& way : rfc_ways()) on_gpu("combinations", way, match);
    }
  }

  void unrolling() {
    for (const char* storage : {"global", "texture"}) {
      for (const char* transfer : {"none", "direct", "zero_copy", "streamed"}) {
        for (const char* match : matches()) {
          for (const unsigned unroll : {1U, 4U, kUnrolled}) {
            if (quick_ && (unroll == 4 || std::string_view(transfer) == "direct")) continue;
            on_gpu("unroll", {"bpf", storage, "constant", transfer}, match).set("unroll", unroll);
          }
        }
      }
    }
  }

  void chunks() {
    const std::vector<Way> ways{{"copies", "global", "none", "streamed"},
                                {"bpf", "texture", "constant", "streamed"},
                                {"bpf", "texture", "code", "streamed"},
                                {"rfc", "global", "global", "streamed"}};
    const std::vector<unsigned> streams = quick_ ? std::vector{1U, 4U} : std::vector{1U, 2U, 4U, 8U};
    for (const Way& way : ways) {
      for (const unsigned count : streams) {
        for (unsigned bits = 14; bits <= 24; bits += quick_ ? 5 : 2) {
          on_gpu("chunks", way, "last").set("chunk", std::size_t{1} << bits).set("streams", count);
        }
      }
    }
  }

  void blocks() {
    for (const Way& way : kernels()) {
      for (const unsigned block : {64U, 128U, 256U, 512U, 1024U}) {
        if (!quick_ || block % 256 == 0) on_gpu("blocks", way, "last").set("block", block);
      }
    }
  }

  void results() {
    for (const Way& way : {Way{"bpf", "global", "code", "streamed"}, Way{"rfc", "global", "global", "streamed"},
                           Way{"copies", "global", "none", "streamed"}}) {
      for (const unsigned bits : {1U, 8U, 16U, 32U}) on_gpu("results", way, "last").set("result_bits", bits);
    }
  }

  void devices() {
    for (const char* transfer : {"none", "streamed"}) {
      for (Way way : kernels()) {
        way.transfer = transfer;
        for (const unsigned share : {25U, 50U, 75U, 100U}) on_gpu("devices", way, "last").set("share", share);
      }
    }
  }

  void hits() {
    for (const unsigned percent : {0U, 50U, 100U}) {
      for (const char* match : matches()) {
        for (const Way& way : kernels()) on_gpu("hits", way, match).set("hits", percent);
      }
    }
  }

  void readings() {
    for (const char* reading : {"table", "text"}) {
      for (const Way& way : kernels()) on_gpu("readings", way, "last").set("reading", reading);
    }
  }

  void numbers_of_rules() {
    const std::vector<std::size_t> sizes =
        quick_ ? std::vector<std::size_t>{10, 1000} : std::vector<std::size_t>{10, 30, 100, 300, 1000};
    for (const std::size_t rules : sizes) {
      on_cores("rules", "bpf", "vector", "last", rules);
      on_cores("rules", "rfc", "rfc", "last", rules);
      for (const char* transfer : {"none", "streamed"}) {
        for (Way way : kernels()) {
          way.transfer = transfer;
          on_gpu("rules", way, "last", rules);
        }
      }
    }
  }

  /// Kernels alone, of each method.
  static std::vector<Way> kernels() {
    return {{"bpf", "global", "constant", "none"},
            {"bpf", "global", "code", "none"},
            {"rfc", "global", "constant", "none"},
            {"rfc", "global", "global", "none"}};
  }

  void classbench() {
    for (const std::size_t rules : {std::size_t{1000}, std::size_t{10'000}, std::size_t{100'000}}) {
      if (quick_ && rules > 10'000) continue;
      for (const char* engine : {"linear", "bitvector", "rfc"}) {
        const auto point_on = [&](const char* processor) -> Point& {
          return points_.emplace_back()
              .set("sweep", "classbench")
              .set("processor", processor)
              .set("engine", engine)
              .set("rules", rules);
        };
        point_on("cpu").set("cores", 1);
        if (workers_ > 1) point_on("cpu").set("cores", workers_);
        point_on("gpu").set("measured", "end_to_end");
        point_on("gpu").set("measured", "kernel");
      }
    }
  }

  void many_filters() {
    for (unsigned filters = 1; filters <= 1024; filters *= quick_ ? 32 : 4) {
      const auto point_on = [&](const char* processor, const char* engine) -> Point& {
        return points_.emplace_back()
            .set("sweep", "filters")
            .set("processor", processor)
            .set("engine", engine)
            .set("filters", filters);
      };
      for (const char* engine : {"libpcap", "interpreter", "jit"}) {
        point_on("cpu", engine).set("cores", 1);
        if (workers_ > 1) point_on("cpu", engine).set("cores", workers_);
      }
      for (const char* engine : {"interpreter", "code"}) {
        point_on("gpu", engine).set("measured", "end_to_end");
        point_on("gpu", engine).set("measured", "kernel");
      }
    }
  }

  bool quick_;
  unsigned workers_;
  std::vector<Point> points_;
};

}  // namespace

std::vector<Point> plan_filters(bool quick, unsigned workers) { return Plan(quick, workers).make(); }

}  // namespace penstock::experiments
