// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/arrangement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/text_file.h"
#include "base/units.h"
#include "experiments/measured_chain.h"

namespace penstock::experiments {
namespace {

constexpr double kUnits = 16;                                                   // of the whole GPU, in profiles
constexpr std::array<unsigned, 7> kSizes{64, 128, 256, 512, 1024, 1280, 1522};  // as in the paper
constexpr std::array<const char*, 5> kSchedulers{"best-effort", "equal", "fixed", "weighted", "deadline"};
constexpr std::string_view kProxyInMps = "proxy-mps";
constexpr std::array<std::string_view, 2> kDivided{"blocks", "green-contexts"};  // of multiprocessors
using Names = std::vector<const char*>;

/// By the paper: one host thread.
bool has_one_worker(const std::string& sweep) { return sweep == "size" || sweep == "learning"; }

/// A worker cannot use more than about two sixteenths of an H200.
unsigned workers_of(unsigned units) { return std::max(1U, units / 2); }

/// Two for each worker keep the GPU busy; more only wait.
unsigned streams_of(unsigned workers) { return std::max(2U, kSharingStreams / workers); }

struct Plan {
  const char* sweep;
  const char* function;
  unsigned size = kSharingSize;
  const char* mode = "streams";
  const char* sharing = "best-effort";
  unsigned tenants = 1;
  std::string profile = "4q";
  unsigned learners = 0;
  unsigned workers = 0;   // of each tenant; 0: by its profile
  unsigned bound_us = 0;  // of the first tenant; 0: none
};

class Planner {
 public:
  void add(const Plan& plan) {
    points_.push_back(Point()
                          .set("sweep", plan.sweep)
                          .set("function", plan.function)
                          .set("processor", "gpu")
                          .set("size", plan.size)
                          .set("mode", plan.mode)
                          .set("sharing", plan.sharing)
                          .set("tenants", plan.tenants)
                          .set("profile", plan.profile)
                          .set("learners", plan.learners));
    if (plan.workers > 0) points_.back().set("workers", plan.workers);
    if (plan.bound_us > 0) points_.back().set("bound_us", plan.bound_us);
  }

  /// Figures 2a and 2b.
  void sizes(const char* function, const std::vector<unsigned>& sizes) {
    for (const char* const sharing : {"alone", "best-effort"}) {
      for (const unsigned size : sizes) {
        for (const char* const mode : {"default_stream", "streams"})
          add({.sweep = "size", .function = function, .size = size, .mode = mode, .sharing = sharing});
      }
    }
  }

  /// Figure 3.
  void tenants(const char* function, const Names& ways, std::initializer_list<unsigned> numbers) {
    for (const char* const sharing : ways) {
      for (const unsigned number : numbers)
        add({.sweep = "tenants", .function = function, .sharing = sharing, .tenants = number});
    }
  }

  /// Figure 4.
  void profiles(const char* function, const Names& ways, std::initializer_list<unsigned> units) {
    for (const char* const sharing : ways) {
      for (const unsigned of_each : units)
        add({.sweep = "profiles",
             .function = function,
             .sharing = sharing,
             .tenants = static_cast<unsigned>(kUnits) / of_each,
             .profile = fmt::format("{}q", of_each)});
    }
  }

  void four(const char* sweep, const char* function, const Names& ways, const char* profile,
            const char* mode = "streams") {
    for (const char* const sharing : ways)
      add({.sweep = sweep, .function = function, .mode = mode, .sharing = sharing, .tenants = 4, .profile = profile});
  }

  /// What the proxy lets onto the device at a time: how much it takes to fill PCIe, and what it costs shares.
  void on_device(const char* function, std::initializer_list<unsigned> mebibytes) {
    for (const unsigned most : mebibytes) {
      for (const char* const sweep : {"on-device", "on-device-greedy"}) {
        add({.sweep = sweep, .function = function, .sharing = "equal", .tenants = 4});
        points_.back().set("on_device", most);
      }
    }
  }

  /// Whether four tenants fill PCIe if they have more workers.
  void workers(const char* function, const Names& ways, std::initializer_list<unsigned> numbers) {
    for (const char* const sharing : ways) {
      for (const unsigned of_each : numbers)
        add({.sweep = "workers", .function = function, .sharing = sharing, .tenants = 4, .workers = of_each});
    }
  }

  /// A tenant with a bound of latency beside one that takes what it gets.
  void bounds(const char* function, const Names& ways, std::initializer_list<unsigned> microseconds) {
    for (const char* const sharing : ways) {
      for (const unsigned bound : microseconds)
        add({.sweep = "bounds",
             .function = function,
             .sharing = sharing,
             .tenants = 2,
             .profile = "8q",
             .bound_us = bound});
    }
  }

  /// Beside two tenants, a third attaches and detaches.
  void visits(const Names& functions, const Names& ways) {
    for (const char* const sharing : ways) {
      for (const char* const function : functions)
        add({.sweep = "attach", .function = function, .sharing = sharing, .tenants = 2});
    }
  }

  /// A function that computes much beside one that does not, and each alone.
  void spatial(const Names& heavy, const char* light) {
    Names all = heavy;
    all.push_back(light);
    for (const char* const sharing : {"weighted", "blocks", "green-contexts"}) {
      for (const char* const function : all)
        add({.sweep = "spatial", .function = function, .sharing = sharing, .profile = "8q"});
      besides(heavy, light, sharing);
    }
    for (const char* const sharing : {"time-slicing", "mps"}) besides(heavy, light, sharing);
  }

  /// Figures 5 and 6.
  void learning(const char* sharing, unsigned learners, const Names& functions, std::initializer_list<unsigned> sizes,
                const Names& modes) {
    for (const char* const function : functions) {
      for (const char* const mode : modes) {
        for (const unsigned size : sizes)
          add({.sweep = "learning",
               .function = function,
               .size = size,
               .mode = mode,
               .sharing = sharing,
               .learners = learners});
      }
    }
  }

  [[nodiscard]] std::vector<Point> take() && { return std::move(points_); }

 private:
  void besides(const Names& heavy, const char* light, const char* sharing) {
    for (const char* const function : heavy) {
      const std::string both = fmt::format("{}+{}", function, light);
      add({.sweep = "spatial", .function = both.c_str(), .sharing = sharing, .tenants = 2, .profile = "8q"});
    }
  }

  std::vector<Point> points_;
};

/// In an order in which few programs are started again.
std::vector<Point> quick_points() {
  Planner plan;
  plan.sizes("ipsec", {kSharingSize});
  for (const char* const function : {"ipsec", "router"}) plan.tenants(function, {"best-effort"}, {1, 4});
  plan.profiles("ipsec", {"best-effort"}, {16, 1});
  plan.four("greedy", "ipsec", {"best-effort"}, "4q");
  for (const unsigned learners : {0U, 1U})
    plan.learning("best-effort", learners, {"ipsec"}, {kSharingSize}, {"streams"});
  plan.four("greedy", "ipsec", {"equal"}, "4q");
  plan.tenants("ipsec", {"equal"}, {1, 4});
  plan.four("mixed", "ipsec", {"weighted"}, "8q+4q+2q+2q");
  plan.visits({"ipsec"}, {"weighted"});
  for (const char* const function : {"ipsec", "router"}) plan.tenants(function, {"time-slicing"}, {1, 4});
  plan.tenants("ipsec", {"mps"}, {1, 4});
  return std::move(plan).take();
}

/// In an order in which learners, which take long to start, stay for as many points as they can.
void learning_points(Planner& plan) {
  const Names functions{"ipsec", "nids"};
  for (const unsigned learners : {0U, 1U, 2U, 3U}) {
    plan.learning("best-effort", learners, functions, {64, 512, kSharingSize}, {"default_stream", "streams"});
    plan.learning("time-slicing", learners, functions, {kSharingSize}, {"streams"});
  }
  for (const unsigned learners : {0U, 1U, 2U, 3U}) {
    for (const char* const sharing : {"mps", "proxy-mps"})
      plan.learning(sharing, learners, functions, {kSharingSize}, {"streams"});
  }
  for (const char* const sharing : {"proxy-mps-75", "proxy-mps-50", "proxy-mps-25"}) {
    for (const unsigned learners : {0U, 1U, 3U})
      plan.learning(sharing, learners, functions, {kSharingSize}, {"streams"});
  }
}

std::string function_text(const std::string& function, const SharingFiles& files) {
  if (function == "ipsec")
    return fmt::format("ipsec: {{state: {}, policy: {}, state_dir: none}}", yaml_text(files.state),
                       yaml_text(files.policy));
  if (function == "router") return fmt::format("router: {{routes: {}}}", yaml_text(files.routes));
  return fmt::format("nids: {{rules: [{}], tracking: packets{}}}", yaml_text(files.rules),
                     function == "nids" ? ", gpu_matcher: aho_corasick" : "");
}

}  // namespace

std::vector<Point> sharing_points(bool quick) {
  if (quick) return quick_points();
  const Names all{"best-effort", "equal", "fixed", "weighted", "deadline", "time-slicing", "mps"};
  const Names few{"best-effort", "time-slicing", "mps"};
  Planner plan;
  for (const char* const function : {"ipsec", "nids"}) plan.sizes(function, {kSizes.begin(), kSizes.end()});
  for (const char* const function : {"nids_ours", "router"}) plan.sizes(function, {kSizes.front(), kSizes.back()});
  for (const char* const function : {"ipsec", "nids", "router"}) plan.tenants(function, all, {1, 2, 3, 4});
  plan.tenants("nids_ours", few, {1, 2, 3, 4});
  for (const char* const function : {"ipsec", "nids"}) plan.profiles(function, few, {16, 8, 4, 2, 1});
  for (const char* const function : {"ipsec", "nids"}) {
    plan.four("greedy", function, all, "4q");
    plan.four("modest", function, all, "4q");
  }
  for (const char* const function : {"ipsec", "nids"}) plan.four("one-batch", function, few, "4q", "default_stream");
  for (const char* const function : {"ipsec", "nids"})
    plan.four("mixed", function, {kSchedulers.begin(), kSchedulers.end()}, "8q+4q+2q+2q");
  for (const char* const function : {"ipsec", "nids"}) plan.on_device(function, {16, 24, 32, 40, 48, 64});
  for (const char* const function : {"ipsec", "nids"}) plan.workers(function, {"best-effort", "equal"}, {1, 2, 3, 4});
  for (const char* const function : {"ipsec", "nids"})
    plan.bounds(function, {"deadline", "weighted", "best-effort"}, {500, 1000, 2000});
  plan.visits({"ipsec", "nids", "router"}, {"best-effort", "weighted", "deadline"});
  plan.spatial({"ipsec", "nids"}, "router");
  learning_points(plan);
  return std::move(plan).take();
}

bool promises_shares(const Point& point) {
  const std::string sweep = point.text("sweep");
  return sweep != "spatial" && sweep != "bounds";
}

std::string scheduler_of(const Point& point) {
  const std::string sharing = point.text("sharing");
  if (sharing.starts_with(kProxyInMps)) return "best-effort";
  if (!multiprocessor_shares_of(point).empty()) return "weighted";
  const bool is_one = std::ranges::any_of(kSchedulers, [&](const char* name) { return sharing == name; });
  return is_one ? sharing : "";
}

bool is_proxied(const Point& point) { return !scheduler_of(point).empty(); }

std::string multiprocessor_shares_of(const Point& point) {
  const std::string sharing = point.text("sharing");
  return std::ranges::find(kDivided, sharing) != kDivided.end() ? sharing : "";
}

unsigned on_device_of(const Point& point) {
  constexpr double kUsual = 40;
  return static_cast<unsigned>(point.number("on_device").value_or(kUsual));
}

bool uses_mps(const Point& point) {
  return point.text("sharing") == "mps" || point.text("sharing").starts_with(kProxyInMps);
}

unsigned learner_percent(const Point& point) {
  constexpr unsigned kAll = 100;
  const std::string sharing = point.text("sharing");
  const std::string limited = std::string(kProxyInMps) + '-';
  if (!sharing.starts_with(limited)) return kAll;
  const auto together = parse_integer(sharing.substr(limited.size())).value_or(kAll);
  const double learners = std::max(1.0, point.number("learners").value_or(1));
  return std::clamp(static_cast<unsigned>(static_cast<double>(together) / learners), 1U, kAll);
}

std::vector<TenantPlan> tenants_of(const Point& point) {
  const bool one_batch = point.text("mode") == "default_stream";
  const std::string sweep = point.text("sweep");
  const bool greedy = sweep.ends_with("greedy");
  const auto workers_wanted = static_cast<unsigned>(point.number("workers").value_or(0));
  const auto bound_us = static_cast<unsigned>(point.number("bound_us").value_or(0));
  const std::string profiles = point.text("profile");
  const auto number = static_cast<std::size_t>(point.number("tenants").value_or(1));
  std::vector<std::string_view> names = split(profiles, '+');
  names.resize(number, names.back());
  const std::string function = point.text("function");
  std::vector<std::string_view> functions = split(function, '+');
  functions.resize(number, functions.back());
  const auto units = [](std::string_view name) {
    return static_cast<double>(parse_integer(name.substr(0, name.size() - 1)).value_or(1));
  };
  double all = 0;
  for (const std::string_view name : names) all += units(name);
  // Equal shares are what the others promise, too, or at least what a user expects of them.
  constexpr std::array<std::string_view, 3> kByProfile{"fixed", "weighted", "deadline"};
  const bool by_profile = std::ranges::find(kByProfile, scheduler_of(point)) != kByProfile.end();
  std::vector<TenantPlan> tenants;
  for (const std::string_view name : names) {
    const bool has_one = one_batch || sweep == "modest" || (greedy && !tenants.empty());
    const bool is_bounded = bound_us > 0 && tenants.empty();
    unsigned workers = workers_wanted > 0 ? workers_wanted : workers_of(static_cast<unsigned>(units(name)));
    if (has_one_worker(sweep) || is_bounded) workers = 1;
    const unsigned streams = greedy ? kSharingStreams : streams_of(workers);
    tenants.push_back({std::string(functions[tenants.size()]), std::string(name), workers, has_one ? 1 : streams,
                       by_profile ? units(name) / all : 1 / static_cast<double>(names.size())});
    // Small batches and a rate far below its share: what is late is late because of others.
    if (is_bounded) {
      tenants.back().rate = "1Mpps";
      tenants.back().batch = "512KiB";
      tenants.back().bound_us = bound_us;
    }
  }
  return tenants;
}

TenantPlan visitor_of(const Point& point) {
  return {point.text("function"), point.text("profile"), 1, kSharingStreams, 0, "10kpps"};
}

std::string tenant_chain(const Point& point, const TenantPlan& tenant, const SharingFiles& files,
                         const TenantPlace& place) {
  constexpr unsigned kFlows = 10'000;
  const std::string& function = tenant.function;
  const bool inspects = function.starts_with("nids");
  const bool whole = function == "ipsec";
  return fmt::format(
      "ports:\n  lan: {{generator: {{size: {}, flows: {}, frames: kept{}{}}}}}\n  wan: {{'null': {{}}}}\n"
      "chain:\n  - {}\n"
      "run:\n  processor: gpu\n  {}\n  workers: {}\n  queue: {{bytes: 32MiB}}\n  frames: {}\n  transfer: {}\n"
      "  streams: {}\n{}  gpu_shares: whole\n  duration: {}s\noutputs: {{control: {}}}\n",
      point.text("size"), kFlows,
      inspects ? fmt::format(", payload: capture, capture: {}", yaml_text(files.pages)) : "",
      tenant.rate.empty() ? "" : ", rate: " + tenant.rate, function_text(function, files),
      is_proxied(point)
          ? fmt::format("proxy: {}\n  proxy_profile: {}{}", yaml_text(place.proxy), tenant.profile,
                        tenant.bound_us > 0 ? fmt::format("\n  proxy_latency: {}us", tenant.bound_us) : "")
          : fmt::format("gpus: \"{}\"", place.gpus),
      tenant.workers, whole ? "whole" : "planned", point.text("mode") == "default_stream" ? "direct" : "streamed",
      tenant.streams, point.text("mode") == "streams" ? fmt::format("  batch: {{bytes: {}}}\n", tenant.batch) : "",
      place.longest_s, yaml_text(place.control));
}

}  // namespace penstock::experiments
