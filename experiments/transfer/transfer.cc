// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/transfer/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "experiments/measured_chain.h"
#include "experiments/repeats.h"
#include "experiments/transfer/differences.h"
#include "experiments/transfer/return_schemes.h"
#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

constexpr std::size_t kRoutes = 10'000;
constexpr std::size_t kReturnedBytes = std::size_t{160} << 20;  // per repeat, including dropped packets

// Gaviss's buffer of 200 KB, that is, 200 packets of 1,024 bytes (§5.6), and one as large as a batch.
constexpr std::size_t kPacketBytes = 1024;
constexpr std::array<std::size_t, 2> kBufferBytes{200 * kPacketBytes, 4096 * kPacketBytes};

constexpr std::array kModes{"direct", "streamed", "zero_copy", "auto"};

Figure returns(const char* id, const char* title, const char* buffer) {
  return {.id = id,
          .title = title,
          .where = {{"part", {"return"}}, {"buffer_bytes", {buffer}}},
          .x = {"dropped_percent", "percent of packets dropped"},
          .y = {"kept_gbytes_s", "GB/s of packets kept"},
          .series = {"scheme", "spread"},
          .limit = LimitLine{.label = "PCIe to the host", .key = "pcie_to_host", .of = LimitLine::Of::machine},
          .references = {},
          .panels = "spread"};
}

Figure modes(const char* id, const char* title, const char* frames, const char* dropped) {
  return {.id = id,
          .title = title,
          .where = {{"part", {"modes"}}, {"frames", {frames}}, {"dropped_percent", {dropped}}},
          .x = {"size", "frame size in bytes, with FCS", AxisKind::logarithmic},
          .y = {"mpps", "million packets/s, one worker", AxisKind::logarithmic},
          .series = {"transfer"},
          .limit = LimitLine{.label = "PCIe limit", .key = "limit_mpps"},
          .references = {}};
}

const std::vector<Figure>& figures() {
  static const std::vector<Figure> kFigures{
      returns("return-200k", "1,024-byte packets back from a 200 KB buffer on the GPU (Gaviss, figure 13)", "204800"),
      returns("return-4m", "1,024-byte packets back from a 4 MiB buffer on the GPU", "4194304"),
      modes("modes-whole", "Whole frames by transfer mode, none dropped (Hung & Guo, table 3: its column of transfers)",
            "whole", "0"),
      modes("modes-whole-half", "Whole frames by transfer mode, half of them dropped", "whole", "50"),
      modes("modes-whole-most", "Whole frames by transfer mode, nine of ten dropped", "whole", "90"),
      modes("modes-planned", "Headers to the GPU, changes back, by transfer mode", "planned", "0"),
  };
  return kFigures;
}

class TransferTrial final : public Trial {
 public:
  explicit TransferTrial(const Setting& setting) : setting_(setting), runner_(*setting.stop) {
    routes_ = runner_.workplace().put("routes.txt", routes_text(kRoutes));
  }

  std::vector<Point> plan() override {
    for (const std::size_t buffer : kBufferBytes) {
      for (const char* spread : {"uniform", "random", "cluster"}) {
        for (const char* scheme : {"all", "selective", "pack", "pack_zero"}) {
          for (unsigned percent = 0; percent <= 90; percent += setting_.quick ? 40 : 10) {
            Point& point = points_.emplace_back();
            point.set("part", "return").set("processor", "gpu").set("scheme", scheme).set("spread", spread);
            point.set("buffer_bytes", buffer).set("packet_bytes", kPacketBytes).set("dropped_percent", percent);
          }
        }
      }
    }
    const std::vector<const char*> sizes =
        setting_.quick ? std::vector{"64", "1518"} : std::vector{"64", "256", "512", "1518"};
    for (const char* size : sizes) {
      for (const char* mode : kModes) {
        for (const unsigned percent : {0U, 50U, 90U}) add_mode(size, mode, "whole", percent);
        add_mode(size, mode, "planned", 0);
      }
    }
    return std::move(points_);
  }

  Result<void> measure(Point& point, const Point& limits) override {
    auto measured = point.text("part") == "return" ? measure_return(point) : measure_mode(point, limits);
    if (measured) return {};
    for (Error& error : measured.error()) error.message = describe(point) + ": " + error.message;
    return measured;
  }

 private:
  void add_mode(const char* size, const char* mode, const char* frames, unsigned percent) {
    Point& point = points_.emplace_back();
    point.set("part", "modes").set("processor", "gpu").set("size", size).set("transfer", mode).set("frames", frames);
    point.set("dropped_percent", percent).set("workers", 1);
  }

  static unsigned times_of(const ReturnCase& the_case) {
    return static_cast<unsigned>(std::min<std::size_t>(200, kReturnedBytes / the_case.buffer_bytes));
  }

  Result<void> measure_return(Point& point) const {
    const ReturnCase the_case{point.text("scheme"), point.text("spread"),
                              static_cast<std::size_t>(*point.number("buffer_bytes")),
                              static_cast<std::size_t>(*point.number("packet_bytes")),
                              static_cast<unsigned>(*point.number("dropped_percent"))};
    const auto dropped =
        dropped_packets(the_case.buffer_bytes / the_case.packet_bytes, the_case.dropped_percent, the_case.spread);
    const auto kept =
        static_cast<double>(std::ranges::count(dropped, false)) * static_cast<double>(the_case.packet_bytes);
    std::vector<double> rates;
    std::vector<double> times;
    for (unsigned i = 0; i < setting_.repeats; ++i) {
      const ReturnTime time = time_return(setting_.gpus.front().index, the_case, times_of(the_case));
      if (time.first_wrong != 0) {
        return failure({{}, "wrong data came back from the GPU", fmt::format("packet {}", time.first_wrong), ""});
      }
      times.push_back(time.seconds * 1e6);
      rates.push_back(kept / time.seconds / 1e9);
    }
    set_repeats(point, "kept_gbytes_s", rates);
    set_repeats(point, "microseconds", times);
    return {};
  }

  /// A firewall that drops this percentage by source port (the generator draws ports from 1024 to 65535), then a
  /// router.
  std::string functions(unsigned percent) {
    const unsigned last = 1024 + (65536 - 1024) * percent / 100 - 1;
    const std::string drops = percent == 0 ? "" : fmt::format("-A FORWARD -p udp --sport 1024:{} -j DROP\n", last);
    const std::string rules = runner_.workplace().put(fmt::format("drop{}.rules", percent),
                                                      "*filter\n:FORWARD ACCEPT [0:0]\n" + drops + "COMMIT\n");
    return fmt::format("[firewall: {{rules: {}}}, router: {{routes: {}}}]", yaml_text(rules), yaml_text(routes_));
  }

  Result<void> measure_mode(Point& point, const Point& limits) {
    MeasuredChain chain;
    chain.functions = functions(static_cast<unsigned>(*point.number("dropped_percent")));
    chain.destinations = routes_;
    chain.size = point.text("size");
    chain.on_gpu = true;
    chain.gpus = {setting_.gpus.front().index};
    chain.frames = point.text("frames");
    chain.transfer = point.text("transfer");
    if (auto checked = runner_.check(chain); !checked) return checked;
    if (auto measured = runner_.measure(point, chain, limits, setting_); !measured) return measured;
    point.set("checked", true);
    return {};
  }

  const Setting& setting_;
  ChainRunner runner_;
  std::string routes_;
  std::vector<Point> points_;
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) { return std::make_unique<TransferTrial>(setting); }

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"part", {"return"}}, {"spread", {"random"}}, {"dropped_percent", {"0", "40", "80"}}},
  };
  return kHeadlines;
}

}  // namespace

const Experiment& transfer_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "transfer",
      .summary = "return of packets from a GPU when some are dropped, and round trips of batches by transfer mode",
      .source = "Gaviss (Guo et al., TPDS 2022), §5.6, figure 13; Hung & Guo, §3.3 and §4.3",
      .repeats = 3,
      .duration = milliseconds{200},
      .quick_duration = milliseconds{100},
      .most_gpus = 1,
      .takes_rules = false,
      .takes_routes = false,
      .figures = &figures,
      .differences = &transfer_differences,
      .headlines = &headlines,
      .start = &start,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
