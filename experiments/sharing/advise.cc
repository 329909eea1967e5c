// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/advise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/text_file.h"
#include "base/units.h"
#include "experiments/sharing/arrangement.h"
#include "experiments/sharing/recommend.h"

namespace penstock::experiments {
namespace {

constexpr unsigned kWhole = 16;  // sixteenths
/// Rates that differ by less say nothing: runs of the same tenants differ as much.
constexpr double kSameRate = 0.03;
/// Workers are not to be what limits a tenant.
constexpr double kSpareWorkers = 1.25;
constexpr const char* kForm = "FUNCTION[:RATE[:BOUND]], such as ipsec, ipsec:60Gbps, nids:100Gbps:2ms or nids::2ms";

double gbps_of(const Point& point) { return point.number("gbps").value_or(0); }
std::size_t tenants_in(const Point& point) { return static_cast<std::size_t>(point.number("tenants").value_or(0)); }

/// Whether the point is of a proxy, and says how many tenants received what.
bool is_usable(const Point& point) {
  const double tenants = point.number("tenants").value_or(0);
  const double workers = point.number("workers").value_or(1);
  constexpr std::array<std::string_view, 5> kProfiles{"1q", "2q", "4q", "8q", "16q"};
  const auto is_profile = [&](std::string_view text) { return std::ranges::find(kProfiles, text) != kProfiles.end(); };
  const std::string profiles = point.text("profile");
  return is_proxied(point) && std::ranges::all_of(split(profiles, '+'), is_profile) && gbps_of(point) > 0 &&
         tenants >= 1 && tenants <= kWhole && tenants == std::floor(tenants) && workers >= 1 && workers <= kWhole;
}

std::vector<const Point*> points_of(const Record& record, const Conditions& where) {
  std::vector<const Point*> found;
  for (const Point& point : record.points) {
    if (satisfies(point, where) && is_usable(point)) found.push_back(&point);
  }
  return found;
}

/// Simplest first. The first two know no profiles, and the first one no shares.
constexpr std::array<const char*, 5> kSchedulers{"best-effort", "equal", "weighted", "fixed", "deadline"};
constexpr std::size_t kWithShares = 1, kWithProfiles = 2;

class Adviser {
 public:
  Adviser(const Record& record, const SharingWish& wish, const std::string& file)
      : record_(record), wish_(wish), file_(file) {
    for (const TenantWish& tenant : wish.tenants) functions_.insert(tenant.function);
    for (const TenantWish& tenant : wish.tenants) has_bound_ |= tenant.bound.count() > 0;
  }

  Result<SharingAdvice> advise() {
    if (Errors errors = find_functions(); !errors.empty()) return failure(std::move(errors));
    Errors why_none;
    std::vector<Candidate> candidates;
    for (std::size_t s = has_bound_ ? kSchedulers.size() - 1 : 0; s < kSchedulers.size(); ++s) {
      auto candidate = candidate_with(s);
      if (candidate) {
        candidates.push_back(std::move(*candidate));
      } else if (why_none.empty() || why_none.front().found.empty()) {
        why_none = std::move(candidate.error());
      }
    }
    if (candidates.empty()) return failure(std::move(why_none));
    Candidate& best = best_of(candidates);
    advice_.tenants = std::move(best.tenants);
    advice_.scheduler = best.scheduler;
    say_why(best);
    if (has_bound_) say_of_bounds();
    if (best.scheduler == "fixed") advice_.fixed_gbps = fixed_gbps();
    if (best.scheduler != kSchedulers.front()) choose_on_device();
    choose_workers();
    if (wish_.trainings == 0) return std::move(advice_);
    if (Errors errors = choose_training(); !errors.empty()) return failure(std::move(errors));
    return std::move(advice_);
  }

 private:
  /// A scheduler with which the tenants fit.
  struct Candidate {
    std::string scheduler;
    std::vector<SharingAdvice::Tenant> tenants;
    double rate = 0;              // mean of its rates, relative to the fastest scheduler's
    bool is_unlike = false;       // profiles
    std::optional<double> error;  // the largest of a share, in percent, where shares are to hold; empty: not measured
    [[nodiscard]] bool holds() const noexcept { return error && *error <= kShareTolerancePercent; }
  };

  [[nodiscard]] Error error(std::string message, std::string found = "", std::string expected = "") const {
    return {{file_, 0, 0}, std::move(message), std::move(found), std::move(expected)};
  }
  void because(std::string reason) { advice_.reasons.push_back(std::move(reason)); }

  Errors find_functions() const {
    if (record_.experiment != "sharing")
      return {error("the record is from another experiment", in_quotes(record_.experiment), "sharing")};
    if (wish_.tenants.empty()) return {error("no tenants", "", kForm)};
    if (wish_.tenants.size() > kWhole) {
      return {error("the tenants do not fit", fmt::format("{} tenants", wish_.tenants.size()),
                    fmt::format("at most {}", kWhole))};
    }
    std::set<std::string> known;
    for (const Point* const point : points_of(record_, {{"sweep", {"tenants", "profiles"}}}))
      known.insert(point->text("function"));
    if (known.empty()) {
      return {error("no tenants were measured", "no usable points of the sweeps 'tenants' and 'profiles'",
                    "a record of `penstock bench sharing --only sweep=tenants --only sweep=profiles`")};
    }
    Errors errors;
    for (const std::string& function : functions_) {
      if (known.contains(function)) continue;
      errors.push_back(error("no tenants with this function were measured", in_quotes(function),
                             fmt::format("{}", fmt::join(known, ", "))));
    }
    return errors;
  }

  /// What several tenants of this function reach together with this scheduler, or, if there is only one, what one
  /// reaches. 0: it was not measured.
  [[nodiscard]] double whole_of(const std::string& function, const std::string& scheduler) const {
    const bool alone = wish_.tenants.size() == 1;
    double most = 0;
    for (const Point* const point :
         points_of(record_, {{"sweep", {"tenants", "profiles"}}, {"function", {function}}, {"sharing", {scheduler}}})) {
      if ((tenants_in(*point) == 1) == alone) most = std::max(most, gbps_of(*point));
    }
    return most;
  }
  /// What a tenant that has the GPU for itself reaches with any scheduler, and with any profile; 0: not measured.
  [[nodiscard]] double alone_of(const std::string& function, bool by_worker = false) const {
    double most = 0;
    const Conditions one{{"sweep", {"tenants", "profiles"}}, {"function", {function}}, {"tenants", {"1"}}};
    for (const Point* const point : points_of(record_, one))
      most = std::max(most, gbps_of(*point) / (by_worker ? tenants_of(*point).front().workers : 1));
    return most;
  }

  Result<Candidate> candidate_with(std::size_t scheduler) const {
    Candidate candidate;
    candidate.scheduler = kSchedulers[scheduler];
    double taken = 0, rates = 0;
    for (const std::string& function : functions_) {
      const double whole = whole_of(function, candidate.scheduler);
      if (whole <= 0) {
        return failure(error(
            fmt::format("no {} of '{}' with the scheduler {}",
                        wish_.tenants.size() == 1 ? "single tenant" : "several tenants", function, candidate.scheduler),
            "", "the sweep 'tenants'"));
      }
      double fastest = 0;
      for (const char* const other : kSchedulers) fastest = std::max(fastest, whole_of(function, other));
      rates += whole / fastest;
    }
    candidate.rate = rates / static_cast<double>(functions_.size());
    for (const TenantWish& tenant : wish_.tenants) {
      SharingAdvice::Tenant& advised = candidate.tenants.emplace_back();
      advised.wish = tenant;
      if (!tenant.gbps) continue;
      const double alone = alone_of(tenant.function);
      if (alone > 0 && *tenant.gbps > alone) {
        return failure(error(fmt::format("a tenant wants more than one of '{}' reached", tenant.function),
                             fmt::format("{:.1f} Gbit/s", *tenant.gbps), fmt::format("at most {:.1f} Gbit/s", alone)));
      }
      advised.part = *tenant.gbps / whole_of(tenant.function, candidate.scheduler);
      taken += advised.part;
    }
    if (taken > 1) {
      return failure(error("the tenants do not fit",
                           fmt::format("rates that take {:.1f} % of the GPU with {}", taken * 100, candidate.scheduler),
                           fmt::format("at most 100 %: {}", wholes_text(candidate.scheduler))));
    }
    if (Errors errors = divide(candidate, scheduler); !errors.empty()) return failure(std::move(errors));
    expect_rates(candidate, 1 - taken);
    if (candidate.scheduler == "fixed" && functions_.size() > 1)
      return failure(error("fixed shares are parts of one rate, which unlike functions do not have"));
    if (wish_.holds_shares || candidate.is_unlike) {
      if (scheduler < kWithShares) return failure(error("best-effort holds no shares"));
      const double equal_part = 1.0 / static_cast<double>(candidate.tenants.size());
      const double largest = std::ranges::max(candidate.tenants, {}, &SharingAdvice::Tenant::part).part;
      if (scheduler < kWithProfiles && largest > equal_part) {
        return failure(error(fmt::format("{} holds no share that is larger than an equal one", candidate.scheduler),
                             fmt::format("{:.1f} %", largest * 100),
                             fmt::format("at most {:.1f} %", equal_part * 100)));
      }
      candidate.error = share_error(candidate);
    }
    return candidate;
  }

  /// Chooses profiles: with shares, the smallest one that is enough; else the same for all.
  Errors divide(Candidate& candidate, std::size_t scheduler) const {
    if (scheduler < kWithProfiles) {  // a profile limits the memory only
      const unsigned same = std::bit_floor(kWhole / static_cast<unsigned>(candidate.tenants.size()));
      for (SharingAdvice::Tenant& tenant : candidate.tenants) tenant.units = same;
      return {};
    }
    unsigned units = 0, takers = 0;
    for (SharingAdvice::Tenant& tenant : candidate.tenants) {
      if (tenant.wish.gbps) {
        tenant.units = std::bit_ceil(static_cast<unsigned>(std::max(1.0, std::ceil(tenant.part * kWhole))));
        units += tenant.units;
      } else {
        ++takers;
      }
    }
    const unsigned each = takers == 0 || units > kWhole ? 0 : std::bit_floor((kWhole - units) / takers);
    if (units > kWhole || (takers > 0 && each == 0)) {
      std::string found;
      for (const SharingAdvice::Tenant& tenant : candidate.tenants) {
        if (tenant.units > 0) found += fmt::format("{}{}q", found.empty() ? "" : ", ", tenant.units);
      }
      if (takers > 0) found += fmt::format("; {} without a rate", takers);
      return {error("the tenants do not fit", std::move(found),
                    fmt::format("profiles of together at most {} sixteenths", kWhole))};
    }
    for (SharingAdvice::Tenant& tenant : candidate.tenants) {
      if (tenant.units == 0) tenant.units = each;
    }
    const auto unlike = [](const SharingAdvice::Tenant& one, const SharingAdvice::Tenant& other) {
      return one.units != other.units;
    };
    candidate.is_unlike = std::ranges::adjacent_find(candidate.tenants, unlike) != candidate.tenants.end();
    return {};
  }

  /// Tenants without a rate divide by profile what the others leave.
  void expect_rates(Candidate& candidate, double left) const {
    unsigned units = 0;
    for (const SharingAdvice::Tenant& tenant : candidate.tenants) units += tenant.wish.gbps ? 0 : tenant.units;
    for (SharingAdvice::Tenant& tenant : candidate.tenants) {
      const double whole = whole_of(tenant.wish.function, candidate.scheduler);
      if (!tenant.wish.gbps) {
        const double most = candidate.scheduler == "fixed" ? static_cast<double>(tenant.units) / kWhole : 1;
        const double alone = alone_of(tenant.wish.function);
        tenant.part = std::min({most, left * tenant.units / units, alone > 0 ? alone / whole : 1});
      }
      tenant.expected_gbps = tenant.part * whole;
    }
  }

  /// Of the tenants that are most like these; empty: there are none.
  [[nodiscard]] std::optional<double> share_error(const Candidate& candidate) const {
    std::vector<std::string> sweeps;
    if (wish_.holds_shares) sweeps.emplace_back("greedy");
    if (candidate.is_unlike) sweeps.emplace_back("mixed");
    std::optional<double> largest;
    for (const std::string& sweep : sweeps) {
      for (const std::string& function : functions_) {
        const auto points =
            points_of(record_, {{"sweep", {sweep}}, {"function", {function}}, {"sharing", {candidate.scheduler}}});
        std::optional<double> found;
        for (const Point* const point : points) {
          const auto one = point->number("share_error_percent");
          if (one && *one >= 0) found = std::max(found.value_or(0), *one);
        }
        if (!found) return std::nullopt;
        largest = std::max(largest.value_or(0), *found);
      }
    }
    return largest;
  }

  /// The fastest of those that hold shares where they are to hold, or a simpler one that is about as fast. If none
  /// holds them, the one that comes closest.
  static Candidate& best_of(std::vector<Candidate>& candidates) {
    const bool needs = std::ranges::any_of(candidates, [](const Candidate& one) { return one.error.has_value(); });
    if (needs && std::ranges::none_of(candidates, &Candidate::holds)) {
      const auto error = [](const Candidate& one) {
        return one.error.value_or(std::numeric_limits<double>::infinity());
      };
      return *std::ranges::min_element(candidates, {}, error);
    }
    double fastest = 0;
    for (const Candidate& one : candidates) {
      if (!needs || one.holds()) fastest = std::max(fastest, one.rate);
    }
    return *std::ranges::find_if(
        candidates, [&](const Candidate& one) { return (!needs || one.holds()) && one.rate >= fastest - kSameRate; });
  }

  void say_why(const Candidate& best) {
    because(fmt::format("With {}, {} {}: {}.", best.scheduler,
                        wish_.tenants.size() == 1 ? "one tenant of a function reached"
                                                  : "several tenants of one function reached together",
                        "at most", wholes_text(best.scheduler)));
    if (has_bound_) because("Only deadline knows of bounds. `penstock proxy status` says whether they hold.");
    if (!wish_.holds_shares && !best.is_unlike) {
      if (!has_bound_)
        because(
            fmt::format("The tenants are alike and are trusted with their loads, so {} was chosen: the fastest "
                        "scheduler, or a simpler one within 3 %.",
                        best.scheduler));
      return;
    }
    const std::string where = wish_.holds_shares && best.is_unlike ? "beside a greedy tenant or among unlike profiles"
                              : wish_.holds_shares                 ? "beside a greedy tenant"
                                                                   : "among unlike profiles";
    if (!best.error) {
      because(fmt::format("Whether {} holds shares {} was not measured for these functions.", best.scheduler, where));
    } else if (best.holds()) {
      because(
          fmt::format("Shares held within {:.1f} % {} with {}{}.", *best.error, where, best.scheduler,
                      has_bound_ ? "" : ", the fastest scheduler of which that is true, or a simpler one within 3 %"));
    } else {
      because(fmt::format("SHARES DO NOT HOLD within 5 %: {} came closest, with an error of {:.1f} % {}.",
                          best.scheduler, *best.error, where));
    }
  }

  /// "ipsec 341 Gbit/s, nids 407 Gbit/s".
  [[nodiscard]] std::string wholes_text(const std::string& scheduler) const {
    std::string text;
    for (const std::string& function : functions_)
      text += fmt::format("{}{} {:.1f} Gbit/s", text.empty() ? "" : ", ", function, whole_of(function, scheduler));
    return text;
  }

  /// There is one function.
  [[nodiscard]] double fixed_gbps() const {
    double rate = 0;
    for (const Point* const point : points_of(record_, {{"sharing", {"fixed"}}, {"function", {*functions_.begin()}}}))
      rate = std::max(rate, point->number("fixed_gbps").value_or(0));
    return rate;
  }

  void say_of_bounds() {
    for (const TenantWish& tenant : wish_.tenants) {
      if (tenant.bound.count() == 0) continue;
      const double bound_us = std::chrono::duration<double, std::micro>(tenant.bound).count();
      const Point* nearest = nullptr;  // of those that are no longer
      const Conditions where{{"sweep", {"bounds"}}, {"sharing", {"deadline"}}, {"function", {tenant.function}}};
      for (const Point* const point : points_of(record_, where)) {
        const auto bound = point->number("bound_us");
        if (!bound || *bound > bound_us || !point->number("late_percent")) continue;
        if (nearest == nullptr || *bound > *nearest->number("bound_us")) nearest = point;
      }
      because(
          nearest == nullptr
              ? fmt::format("Bounds of {} or less were not measured for {}.", format_duration(tenant.bound),
                            tenant.function)
              : fmt::format("With a bound of {} us, {:.1f} % of the batches of a tenant of {} were late, beside one "
                            "that takes what it gets. It offered 1 Mpps in batches of 512 KiB: larger batches are "
                            "later (`batch: {{bytes: …}}`).",
                            nearest->text("bound_us"), *nearest->number("late_percent"), tenant.function));
    }
  }

  void choose_workers() {
    unsigned workers = 0;
    for (SharingAdvice::Tenant& tenant : advice_.tenants) {
      const double each = alone_of(tenant.wish.function, /*by_worker=*/true);
      if (each > 0) {
        const double needed = std::ceil(*tenant.expected_gbps * kSpareWorkers / each);
        tenant.workers = static_cast<unsigned>(std::clamp(needed, 1.0, static_cast<double>(kWhole)));
      }
      workers += tenant.workers;
    }
    because(
        fmt::format("Each worker polls, and so does its thread in the proxy, so that {} cores are busy.{}", 2 * workers,
                    2 * workers > record_.machine.cores
                        ? fmt::format(" The record's host has {}: THESE RATES NEED MORE CORES.", record_.machine.cores)
                        : ""));
  }

  /// The fastest with which shares held beside a greedy tenant, or less that is about as fast.
  void choose_on_device() {
    std::vector<std::pair<unsigned, double>> holding;  // with the mean of relative rates
    double fastest = 0;
    std::set<unsigned> all;
    const Conditions greedy{{"sweep", {"on-device-greedy"}}};
    for (const Point* const point : points_of(record_, greedy)) all.insert(on_device_of(*point));
    for (const unsigned most : all) {
      double rate = 0;
      bool holds = true;
      for (const std::string& function : functions_) {
        Conditions where = greedy;
        where.push_back({"function", {function}});
        double best = 0;
        for (const Point* const point : points_of(record_, where)) best = std::max(best, gbps_of(*point));
        where.push_back({"on_device", {std::to_string(most)}});
        const auto points = points_of(record_, where);
        const auto error = points.empty() ? std::nullopt : points.front()->number("share_error_percent");
        holds = holds && error && *error >= 0 && *error <= kShareTolerancePercent;
        if (holds) rate += gbps_of(*points.front()) / best / static_cast<double>(functions_.size());
      }
      if (!holds) continue;
      holding.emplace_back(most, rate);
      fastest = std::max(fastest, rate);
    }
    const auto found =
        std::ranges::find_if(holding, [&](const auto& one) { return one.second >= fastest - kSameRate; });
    if (found == holding.end()) return;
    advice_.on_device_mib = found->first;
    because(
        fmt::format("In the sweep on-device-greedy (with equal), {} MiB on the device at a time was the fastest with "
                    "which shares held, or less that is about as fast.",
                    found->first));
  }

  Errors choose_training() {
    const std::string count = std::to_string(wish_.trainings);
    const auto rate_of = [&](const std::string& function, const std::string& way, const std::string& learners) {
      double most = 0;
      for (const Point* const point : points_of(record_, {{"sweep", {"learning"}},
                                                          {"mode", {"streams"}},
                                                          {"size", {std::to_string(kSharingSize)}},
                                                          {"function", {function}},
                                                          {"sharing", {way}},
                                                          {"learners", {learners}}})) {
        most = std::max(most, gbps_of(*point));
      }
      return most;
    };
    std::set<std::string> ways;
    for (const Point* const point : points_of(record_, {{"sweep", {"learning"}}, {"learners", {count}}}))
      ways.insert(point->text("sharing"));
    std::optional<std::pair<std::string, double>> best;
    for (const std::string& way : ways) {
      double rate = 0;
      for (const std::string& function : functions_) {
        double fastest = 0;
        for (const std::string& other : ways) fastest = std::max(fastest, rate_of(function, other, count));
        const double one = rate_of(function, way, count);
        if (one <= 0) {
          rate = -1;
          break;
        }
        rate += one / fastest;
      }
      if (rate > 0 && (!best || rate > best->second)) best = {way, rate};
    }
    if (!best) {
      return {error(fmt::format("no tenant of {} beside {} was measured", fmt::join(functions_, ", "),
                                format_count(wish_.trainings, "training")),
                    "", "the sweep 'learning'")};
    }
    Point point;
    point.set("sharing", best->first).set("learners", wish_.trainings);
    advice_.in_mps = uses_mps(point);
    advice_.training_percent = learner_percent(point);
    for (SharingAdvice::Tenant& tenant : advice_.tenants) tenant.expected_gbps.reset();
    for (const std::string& function : functions_) {
      because(fmt::format(
          "Beside {}, one tenant of {} with one worker had {:.0f} Gbit/s with '{}', the most of all ways{}; with best "
          "effort and profile 4q. For several tenants, and with other schedulers, that was not measured.",
          format_count(wish_.trainings, "training"), function, rate_of(function, best->first, count), best->first,
          functions_.size() > 1 ? " for these functions together" : ""));
    }
    because("So what the tenants get is not known; and rates beside training vary much from run to run.");
    return {};
  }

  const Record& record_;
  const SharingWish& wish_;
  const std::string& file_;
  std::set<std::string> functions_;
  bool has_bound_ = false;
  SharingAdvice advice_;
};

}  // namespace

Result<TenantWish> tenant_wish_of(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  constexpr std::size_t kMost = 3;
  if (parts.front().empty() || parts.size() > kMost)
    return failure({{}, "unknown form of a tenant", in_quotes(text), kForm});
  TenantWish wish{std::string(parts.front()), {}, {}};
  if (parts.size() > 1 && !parts[1].empty()) {
    const auto rate = parse_rate(parts[1]);
    if (!rate || rate->unit != Rate::Unit::bits_per_second || rate->value <= 0)
      return failure({{}, "wrong rate of a tenant", in_quotes(parts[1]), "bits per second, such as 60Gbps"});
    wish.gbps = rate->value / 1e9;
  }
  if (parts.size() == kMost) {
    using std::chrono_literals::operator""us, std::chrono_literals::operator""s;
    const auto bound = parse_duration(parts[2]);
    if (!bound || *bound < 1us || *bound > 10s)  // as of `proxy_latency`
      return failure({{}, "wrong bound of a tenant", in_quotes(parts[2]), "a time such as 500us or 2ms in 1us..10s"});
    wish.bound = *bound;
  }
  return wish;
}

Result<SharingAdvice> advise(const Record& record, const SharingWish& wish, const std::string& file) {
  return Adviser(record, wish, file).advise();
}

}  // namespace penstock::experiments
