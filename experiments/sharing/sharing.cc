// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "config/chain_file.h"
#include "experiments/conversations.h"
#include "experiments/limits.h"
#include "experiments/repeats.h"
#include "experiments/sharing/arrangement.h"
#include "experiments/sharing/differences.h"
#include "experiments/sharing/figures.h"
#include "experiments/sharing/learners.h"
#include "experiments/sharing/mps.h"
#include "experiments/sharing/recommend.h"
#include "experiments/sharing/running_proxy.h"
#include "experiments/sharing/tenants.h"
#include "experiments/sharing/visitor.h"
#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kState =
    "src 192.0.2.1 dst 198.51.100.2\n\tproto esp spi 0x00000100 reqid 1 mode tunnel\n\treplay-window 32 \n"
    "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
    "\tenc cbc(aes) 0x202122232425262728292a2b2c2d2e2f\n";
constexpr const char* kPolicy =
    "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out priority 1 ptype main \n"
    "\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid 1 mode tunnel\n";

/// "3.21 3.18": a value of each tenant.
std::string list_text(const std::vector<double>& values) {
  constexpr double kLarge = 1000;
  std::string text;
  for (const double value : values) {
    if (!text.empty()) text += ' ';
    text += value < kLarge ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
  }
  return text;
}

/// What the tenants did in each repeat.
struct Measured {
  std::vector<std::vector<Window>> windows;  // by repeat and tenant
  Repeats steps_per_s;                       // of all learners
  Repeats late_percent;                      // of the batches of a tenant with a bound
};

/// Batches of a tenant with a bound, since it attached.
struct Batches {
  double all = 0, late = 0;
};

/// From the proxy's status. Empty: there is no such tenant, or it has no bound.
std::optional<Batches> batches_of(const nlohmann::json& status, const std::string& name) {
  const auto all = tenant_number(status, name, "batches"), late = tenant_number(status, name, "late_batches");
  return all && late ? std::optional(Batches{*all, *late}) : std::nullopt;
}

/// What happened while another tenant came and went, as often as there are repeats.
struct Visited {
  std::vector<Visit> visits;
  std::vector<std::vector<Window>> during;      // by visit and tenant
  std::vector<std::vector<Window>> beside_cpu;  // the same, of a run on the CPU that comes and goes
};

double sum(const std::vector<Window>& windows, double Window::*of) {
  double all = 0;
  for (const Window& window : windows) all += window.*of;
  return all;
}

/// The median of all repeats, of each tenant.
std::vector<double> of_tenants(const Measured& measured, double Window::*of) {
  std::vector<double> medians;
  for (std::size_t tenant = 0; tenant < measured.windows.front().size(); ++tenant) {
    std::vector<double> repeats;
    for (const auto& windows : measured.windows) repeats.push_back(windows[tenant].*of);
    medians.push_back(median_of(std::move(repeats)));
  }
  return medians;
}

class SharingTrial final : public Trial {
 public:
  SharingTrial(const Setting& setting, SharingPrograms programs) : setting_(setting), programs_(std::move(programs)) {}

  std::vector<Point> plan() override { return sharing_points(setting_.quick); }

  std::string make_ready(const Point& point) override {
    tenants_.reset();
    if (uses_mps(point) && !no_mps_.empty()) return no_mps_;
    if (point.text("sharing") == "fixed" && !rate_of(point)) {
      if (std::string why = measure_rate(point); !why.empty()) return why;
    }
    return arrange(point);
  }

  Result<void> measure(Point& point, const Point& limits) override {
    return with_point(measure_tenants(point, limits), point);
  }

 private:
  const SharingFiles& files() {
    if (!files_.state.empty()) return files_;
    files_.state = folder_.put("state.txt", kState);
    files_.policy = folder_.put("policy.txt", kPolicy);
    files_.rules = folder_.put("nids.rules", detection_rules_text(kSharingRules, true));
    files_.pages = folder_.put("pages.pcap", conversations_capture({.connections = 500, .responses = 16}));
    files_.routes = folder_.put("routes.txt", routes_text(kSharingRoutes));
    return files_;
  }

  [[nodiscard]] int gpu() const { return setting_.gpus.empty() ? 0 : setting_.gpus.front().index; }

  /// Starts what the point needs, and ends what it does not. Returns why that is impossible; "": it runs.
  std::string arrange(const Point& point) {
    if (uses_mps(point)) {
      if (std::string why = start_mps(); !why.empty()) return why;
    } else if (mps_ != nullptr) {
      proxy_.reset();  // its clients
      learners_.reset();
      mps_.reset();
    }
    if (is_proxied(point)) {
      if (std::string why = start_proxy(point); !why.empty()) return why;
    } else {
      proxy_.reset();  // and its memory on the GPU
    }
    if (std::string why = start_learners(point); !why.empty()) return why;
    return start_tenants(point);
  }

  /// The words before those of a program that runs beside the others, with this part of the GPU's threads at most.
  [[nodiscard]] Words client(unsigned percent = 100) const { return mps_ == nullptr ? Words() : mps_->client(percent); }

  std::string start_mps() {
    if (mps_ != nullptr) return {};
    proxy_.reset();
    learners_.reset();
    auto mps = Mps::start(folder_, *setting_.stop);
    if (!mps) return no_mps_ = "MPS: " + to_string(mps.error());
    mps_ = std::move(*mps);
    return {};
  }

  std::string start_proxy(const Point& point) {
    ProxySettings settings{.gpu = gpu(),
                           .scheduler = scheduler_of(point),
                           .multiprocessors = multiprocessor_shares_of(point),
                           .on_device_mib = on_device_of(point),
                           .before = client()};
    if (settings.scheduler == "fixed") settings.bits_per_second = rate_of(point).value_or(0);
    if (proxy_ != nullptr && proxy_->settings() == settings && proxy_->runs() &&
        proxy_->wait_until_empty(*setting_.stop))
      return {};
    proxy_.reset();
    auto proxy = RunningProxy::start(programs_.proxy, settings, folder_, *setting_.stop);
    if (!proxy) {
      std::string why = to_string(proxy.error());
      return mps_ == nullptr ? why : no_mps_ = "MPS: " + why;
    }
    proxy_ = std::move(*proxy);
    return {};
  }

  std::string start_learners(const Point& point) {
    const auto count = static_cast<unsigned>(point.number("learners").value_or(0));
    if (count == 0) {
      learners_.reset();
      return {};
    }
    const Words before = client(learner_percent(point));
    if (learners_ != nullptr && learners_->are(count, before)) return {};
    std::string& none = no_learners_[mps_ != nullptr];
    if (!none.empty()) return none;
    learners_.reset();
    auto learners = Learners::start(count, before, gpu(), folder_, *setting_.stop);
    if (!learners) return none = to_string(learners.error());
    learners_ = std::move(*learners);
    return {};
  }

  std::string start_tenants(const Point& point) {
    std::vector<std::string> chains;
    std::vector<TenantPlan> plans = tenants_of(point);
    limit_workers(plans);
    chains.reserve(plans.size());
    for (const TenantPlan& tenant : plans) chains.push_back(chain_of(point, tenant, folder_, chains.size()));
    if (std::string why = refusal_of(chains.front()); !why.empty()) return why;
    auto tenants = Tenants::start(joined(client(), programs_.run), chains, folder_, *setting_.stop);
    if (tenants) {
      tenants_ = std::move(*tenants);
      return {};
    }
    std::string why = to_string(tenants.error());
    // If one client cannot start, none can, and each costs time.
    if (mps_ != nullptr && chains.size() == 1) why = no_mps_ = "MPS: " + why;
    return why;
  }

  /// Of tenant `index` of those in the folder.
  std::string chain_of(const Point& point, const TenantPlan& tenant, const Workplace& folder, std::size_t index) {
    return tenant_chain(point, tenant, files(),
                        {.control = Tenants::control_of(folder, index),
                         .proxy = proxy_ == nullptr ? "" : proxy_->socket(),
                         .gpus = std::to_string(gpu()),
                         .longest_s = longest_s()});
  }

  /// A worker polls, and so does its thread in the proxy: with too few cores for all, tenants have fewer workers.
  void limit_workers(std::vector<TenantPlan>& tenants) const {
    unsigned all = 0;
    for (const TenantPlan& tenant : tenants) all += 2 * tenant.workers;
    if (all <= setting_.workers) return;
    for (TenantPlan& tenant : tenants) tenant.workers = std::max(1U, tenant.workers * setting_.workers / all);
  }

  /// Why no run would accept the chain, such as a function that cannot run in a proxy; "": it would.
  [[nodiscard]] std::string refusal_of(const std::string& chain) const {
    const auto loaded = config::load_chain(folder_.put("chain.yaml", chain), {.overrides = {}, .only_plan = true});
    if (loaded) return {};
    Error refusal = loaded.error().front();
    refusal.place = {};  // in a file that is gone when somebody reads this
    return to_string(refusal);
  }

  /// Until a tenant that nobody ends does so itself.
  [[nodiscard]] unsigned longest_s() const {
    constexpr unsigned kStarting = 180;
    return kStarting + static_cast<unsigned>(
                           std::chrono::ceil<std::chrono::seconds>(setting_.duration * (setting_.repeats + 1)).count());
  }

  void rest(std::chrono::nanoseconds time) const {
    constexpr std::chrono::milliseconds kLook{20};
    const auto end = Clock::now() + time;
    while (Clock::now() < end && !setting_.stop->load())
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kLook, end - Clock::now()));
  }

  /// What each tenant did between two looks.
  static Result<std::vector<Window>> windows_between(const std::vector<Usage>& before,
                                                     const std::vector<Usage>& after) {
    std::vector<Window> windows;
    for (std::size_t tenant = 0; tenant < after.size(); ++tenant) {
      const auto window = between(before[tenant], after[tenant]);
      if (!window) return tl::unexpected(window.error());
      windows.push_back(*window);
    }
    return windows;
  }

  /// Consecutive times in which all tenants run.
  Result<Measured> watch(unsigned repeats, bool bounded = false) {
    constexpr int kLearning = 7;                       // times the duration
    rest(setting_.duration / 2);                       // until what their start has disturbed is over
    if (bounded) rest(setting_.duration * kLearning);  // in which `deadline` finds out what others may do
    Measured measured;
    auto before = tenants_->look();
    if (!before) return tl::unexpected(std::move(before.error()));
    Result<std::vector<Learners::Progress>> learnt_before;
    if (learners_ != nullptr) learnt_before = learners_->progress();
    auto batches_before = bounded ? bounded_batches() : Result<Batches>();
    if (!batches_before) return tl::unexpected(std::move(batches_before.error()));
    for (unsigned i = 0; i < repeats && !setting_.stop->load(); ++i) {
      rest(setting_.duration);
      auto now = tenants_->look();
      if (!now) return tl::unexpected(std::move(now.error()));
      auto windows = windows_between(*before, *now);
      if (!windows) return tl::unexpected(std::move(windows.error()));
      measured.windows.push_back(std::move(*windows));
      before = std::move(now);
      if (bounded) {
        auto batches = bounded_batches();
        if (!batches) return tl::unexpected(std::move(batches.error()));
        // Without any batch, nothing can be said.
        if (const double more = batches->all - batches_before->all; more > 0)
          measured.late_percent.push_back((batches->late - batches_before->late) / more * 100);
        batches_before = batches;
      }
      if (learners_ == nullptr) continue;
      auto learnt = learners_->progress();
      if (!learnt) return tl::unexpected(std::move(learnt.error()));
      if (!learnt_before) return tl::unexpected(std::move(learnt_before.error()));
      measured.steps_per_s.push_back(steps_per_second(*learnt_before, *learnt));
      learnt_before = std::move(learnt);
    }
    return measured;
  }

  /// Of the first tenant.
  [[nodiscard]] Result<Batches> bounded_batches() const {
    const std::string name = Tenants::chain_of(folder_, 0);
    const auto found =
        proxy_->wait_for(*setting_.stop, [&](const nlohmann::json& status) { return batches_of(status, name); });
    if (!found)
      return failure(
          {{}, "the proxy does not say which batches of a tenant were late", in_quotes(name), "late_batches"});
    return *found;
  }

  /// What the tenants did while something happened: at least as long as without.
  Result<std::vector<Window>> watch_while(const std::function<Result<void>()>& happens) {
    const auto end = Clock::now() + setting_.duration;
    const auto before = tenants_->look();
    if (!before) return tl::unexpected(before.error());
    if (auto happened = happens(); !happened) return tl::unexpected(std::move(happened.error()));
    rest(end - Clock::now());
    const auto after = tenants_->look();
    if (!after) return tl::unexpected(after.error());
    return windows_between(*before, *after);
  }

  /// The tenants while another one comes and goes, and while a run on the CPU does so, which the proxy does not know.
  Result<Visited> watch_visits(const Point& point, unsigned repeats) {
    Visited visited;
    const std::string chain = chain_of(point, visitor_of(point), visitors_folder_, 0);
    for (unsigned i = 0; i < repeats && !setting_.stop->load(); ++i) {
      auto during = watch_while([&]() -> Result<void> {
        auto visited_once = visit(*proxy_, programs_.run, chain, visitors_folder_, *setting_.stop);
        if (!visited_once) return tl::unexpected(std::move(visited_once.error()));
        visited.visits.push_back(*visited_once);
        return {};
      });
      if (setting_.stop->load()) break;
      if (!during) return tl::unexpected(std::move(during.error()));
      auto beside = watch_while([&]() -> Result<void> {
        auto run =
            Tenants::start(joined(programs_.run, {"--processor", "cpu"}), {chain}, visitors_folder_, *setting_.stop);
        return run ? (*run)->end() : tl::unexpected(std::move(run.error()));
      });
      if (setting_.stop->load()) break;
      if (!beside) return tl::unexpected(std::move(beside.error()));
      visited.during.push_back(std::move(*during));
      visited.beside_cpu.push_back(std::move(*beside));
    }
    return visited;
  }

  Result<void> measure_tenants(Point& point, const Point& limits) {
    auto measured = watch(setting_.repeats, point.text("sweep") == "bounds");
    if (!measured) return tl::unexpected(std::move(measured.error()));
    Result<Visited> visited;
    if (point.text("sweep") == "attach") visited = watch_visits(point, setting_.repeats);
    if (!visited) return tl::unexpected(std::move(visited.error()));
    if (setting_.stop->load()) return {};
    if (auto ended = tenants_->end(); !ended) return ended;
    tenants_.reset();
    note(point, *measured, limits);
    if (!visited->visits.empty()) note_visits(point, *visited);
    return {};
  }

  /// Beside what the same tenants did without visits, which is noted.
  static void note_visits(Point& point, const Visited& visited) {
    std::map<std::string, Repeats> results;
    for (const Visit& visit : visited.visits) {
      results["start_ms"].push_back(visit.start_ms);
      results["attach_ms"].push_back(visit.attach_ms);
      results["detach_ms"].push_back(visit.detach_ms);
    }
    for (const std::vector<Window>& windows : visited.during) {
      results["visited_gbps"].push_back(sum(windows, &Window::gbps));
      results["visited_p99_us"].push_back(std::ranges::max(windows, {}, &Window::p99_us).p99_us);
    }
    for (const std::vector<Window>& windows : visited.beside_cpu)
      results["beside_cpu_gbps"].push_back(sum(windows, &Window::gbps));
    for (const auto& [name, values] : results) set_repeats(point, name, values);
    point.set("kept_percent", *point.number("visited_gbps") / *point.number("gbps") * 100);
    point.set("kept_beside_cpu_percent", *point.number("beside_cpu_gbps") / *point.number("gbps") * 100);
  }

  void note(Point& point, const Measured& measured, const Point& limits) {
    std::vector<double> promised;
    for (const TenantPlan& tenant : tenants_of(point)) promised.push_back(tenant.promised);
    std::map<std::string, Repeats> results;
    double packets = 0, up = 0, down = 0;
    for (const std::vector<Window>& windows : measured.windows) {
      std::vector<double> rates, slowest;
      for (const Window& window : windows) {
        rates.push_back(window.gbps);
        slowest.push_back(window.p99_us);
      }
      results["mpps"].push_back(sum(windows, &Window::mpps));
      results["gbps"].push_back(sum(windows, &Window::gbps));
      results["least_gbps"].push_back(std::ranges::min(rates));
      results["most_gbps"].push_back(std::ranges::max(rates));
      if (promises_shares(point)) results["share_error_percent"].push_back(share_error_percent(rates, promised));
      results["p99_us"].push_back(std::ranges::max(slowest));
      results["first_p99_us"].push_back(slowest.front());
      if (rates.size() > 1) {
        results["others_gbps"].push_back(std::accumulate(rates.begin() + 1, rates.end(), 0.0));
        results["others_p99_us"].push_back(*std::max_element(slowest.begin() + 1, slowest.end()));
      }
      packets += sum(windows, &Window::mpps) * 1e6;
      up += sum(windows, &Window::to_device);
      down += sum(windows, &Window::to_host);
    }
    if (!measured.steps_per_s.empty()) results["steps_per_s"] = measured.steps_per_s;
    if (!measured.late_percent.empty()) results["late_percent"] = measured.late_percent;
    for (const auto& [name, values] : results) set_repeats(point, name, values);
    point.set("tenant_gbps", list_text(of_tenants(measured, &Window::gbps)))
        .set("tenant_p99_us", list_text(of_tenants(measured, &Window::p99_us)))
        .set("bytes_up", up / packets)
        .set("bytes_down", down / packets);
    if (up + down > 0) {
      if (const auto limit = pcie_limit_mpps(limits, up / packets, down / packets)) {
        const double of_limit = *point.number("mpps") / *limit;
        point.set("limit_mpps", *limit).set("limit_gbps", *point.number("gbps") / of_limit).set("of_limit", of_limit);
      }
    }
    if (const auto rate = rate_of(point); rate && point.text("sharing") == "fixed")
      point.set("fixed_gbps", *rate / 1e9);
  }

  // ---- What the GPU carries of a function, which the scheduler `fixed` divides

  static std::string rate_key(const Point& point) { return point.text("function") + ' ' + point.text("size"); }

  /// Bits per second in both directions.
  [[nodiscard]] std::optional<double> rate_of(const Point& point) const {
    const auto found = rates_.find(rate_key(point));
    return found == rates_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Measures what four tenants get without a scheduler.
  std::string measure_rate(const Point& fixed) {
    Point point = fixed;
    point.set("sweep", "tenants").set("sharing", "best-effort").set("tenants", 4).set("profile", "4q");
    if (std::string why = arrange(point); !why.empty()) return why;
    const auto measured = watch(1);
    tenants_.reset();
    if (!measured) return to_string(measured.error());
    if (measured->windows.empty()) return "stopped";
    const std::vector<Window>& windows = measured->windows.front();
    rates_[rate_key(fixed)] = 8 * (sum(windows, &Window::to_device) + sum(windows, &Window::to_host));
    return {};
  }

  const Setting& setting_;
  const SharingPrograms programs_;
  Workplace folder_;
  Workplace visitors_folder_;
  SharingFiles files_;                       // written when they are first needed
  std::map<std::string, double> rates_;      // by function and size
  std::string no_mps_;                       // why there is none
  std::map<bool, std::string> no_learners_;  // why there are none, by whether they are clients of MPS
  // Ended in the opposite order.
  std::unique_ptr<Mps> mps_;
  std::unique_ptr<RunningProxy> proxy_;
  std::unique_ptr<Learners> learners_;
  std::unique_ptr<Tenants> tenants_;
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return failure({{}, "cannot find this program", error.message(), ""});
  return make_sharing_trial(setting, {{program, "run", "--quiet"}, {program, "proxy", "serve"}});
}

const std::vector<Conditions>& headlines() {
  static const std::vector<Conditions> kHeadlines{
      {{"sweep", {"tenants"}}, {"function", {"ipsec", "nids"}}, {"tenants", {"1", "4"}}},
      {{"sweep", {"greedy", "mixed", "attach"}}},
  };
  return kHeadlines;
}

}  // namespace

std::unique_ptr<Trial> make_sharing_trial(const Setting& setting, SharingPrograms programs) {
  return std::make_unique<SharingTrial>(setting, std::move(programs));
}

const Experiment& sharing_experiment() {
  using std::chrono::milliseconds;
  static const Experiment kExperiment{
      .name = "sharing",
      .summary = "tenants that share a GPU: by the execution proxy, by time slices of the driver, and by MPS",
      .source =
          "Chaurasia et al., Network functions in virtualized GPU environment, §V, figures 2a, 2b, 3, 4, 5 and 6; "
          "Gaviss (Guo et al., TPDS 2022), §3.2",
      .repeats = 3,
      .duration = milliseconds{300},
      .quick_duration = milliseconds{200},
      .most_gpus = 1,
      .takes_rules = false,
      .takes_routes = false,
      .figures = &sharing_figures,
      .differences = &sharing_differences,
      .headlines = &headlines,
      .start = &start,
      .further_tables = &sharing_tables,
  };
  return kExperiment;
}

}  // namespace penstock::experiments
