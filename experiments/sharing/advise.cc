// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/units.h"
#include "experiments/sharing/arrangement.h"
#include "experiments/sharing/recommend.h"

namespace penstock::experiments {
namespace {

constexpr unsigned kWhole = 16;   // sixteenths
constexpr double kNearly = 1e-6;  // against rounding
/// Rates that differ by less say nothing: runs of the same tenants do.
constexpr double kSameRate = 0.03;
constexpr const char* kForm = "FUNCTION[:RATE[:BOUND]], such as ipsec, ipsec:60Gbps, nids:100Gbps:2ms or nids::2ms";

Error wrong_wish(std::string_view text) { return {{}, "unknown form of a tenant", in_quotes(text), kForm}; }

double gbps_of(const Point& point) { return point.number("gbps").value_or(0); }

/// Points with several batches in flight, without training.
std::vector<const Point*> points_of(const Record& record, const Conditions& where) {
  std::vector<const Point*> found;
  for (const Point& point : record.points) {
    if (point.number("gbps") && satisfies(point, where) && is_proxied(point)) found.push_back(&point);
  }
  return found;
}

/// The fastest of several tenants of this function, or of one. Null: none was measured.
const Point* fastest_of(const Record& record, const std::string& function) {
  const auto points = points_of(record, {{"sweep", {"tenants", "profiles"}}, {"function", {function}}});
  const auto best = std::ranges::max_element(points, {}, [](const Point* point) { return gbps_of(*point); });
  return best == points.end() ? nullptr : *best;
}

/// What tenants of this function, which was measured, reach together at most.
double whole_of(const Record& record, const std::string& function) { return gbps_of(*fastest_of(record, function)); }

/// What each of their workers reaches then, beside the others.
double worker_of(const Record& record, const std::string& function) {
  const Point& fastest = *fastest_of(record, function);
  unsigned workers = 0;
  for (const TenantPlan& tenant : tenants_of(fastest)) workers += tenant.workers;
  return gbps_of(fastest) / workers;
}

/// The smallest profile with at least this part; 0: none.
unsigned units_for(double part) {
  // A share that holds within 5 % may be that much less.
  const double needed = part * (1 + kShareTolerancePercent / 100) * kWhole;
  for (unsigned units = 1; units <= kWhole; units *= 2) {
    if (units >= needed - kNearly) return units;
  }
  return part <= 1 ? kWhole : 0;
}

class Adviser {
 public:
  Adviser(const Record& record, const SharingWish& wish, const std::string& file)
      : record_(record), wish_(wish), file_(file) {
    for (const TenantWish& tenant : wish.tenants) functions_.insert(tenant.function);
  }

  Result<SharingAdvice> advise() {
    if (Errors errors = find_functions(); !errors.empty()) return failure(std::move(errors));
    if (Errors errors = choose_profiles(); !errors.empty()) return failure(std::move(errors));
    if (Errors errors = choose_scheduler(); !errors.empty()) return failure(std::move(errors));
    expect_rates();
    choose_on_device();
    if (wish_.trainings == 0) return std::move(advice_);
    if (Errors errors = choose_training(); !errors.empty()) return failure(std::move(errors));
    return std::move(advice_);
  }

 private:
  [[nodiscard]] Error error(std::string message, std::string found = "", std::string expected = "") const {
    return {{file_, 0, 0}, std::move(message), std::move(found), std::move(expected)};
  }
  void because(std::string reason) { advice_.reasons.push_back(std::move(reason)); }

  Errors find_functions() {
    if (record_.experiment != "sharing")
      return {error("the record is from another experiment", in_quotes(record_.experiment), "sharing")};
    if (wish_.tenants.empty()) return {error("no tenants", "", kForm)};
    std::set<std::string> known;
    for (const Point* const point : points_of(record_, {{"sweep", {"tenants", "profiles"}}})) {
      if (point->text("function").find('+') == std::string::npos) known.insert(point->text("function"));
    }
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    Errors errors;
    for (const std::string& function : functions_) {
      if (known.contains(function)) continue;
      errors.push_back(error("no tenants with this function were measured", in_quotes(function), names));
    }
    return errors;
  }

  Errors choose_profiles() {
    double taken = 0;
    std::size_t takers = 0;  // of what is left
    for (const TenantWish& tenant : wish_.tenants) {
      SharingAdvice::Tenant& advised = advice_.tenants.emplace_back();
      advised.wish = tenant;
      if (!tenant.gbps) {
        ++takers;
        continue;
      }
      advised.part = *tenant.gbps / whole_of(record_, tenant.function);
      taken += advised.part;
      advised.units = units_for(advised.part);
    }
    if (taken > 1) {
      return {error("the tenants do not fit", fmt::format("rates that take {:.0f} % of the GPU", taken * 100),
                    fmt::format("at most 100 %: {}", wholes_text()))};
    }
    unsigned units = 0;
    for (const SharingAdvice::Tenant& tenant : advice_.tenants) units += tenant.units;
    if (takers > 0) {
      const unsigned left = kWhole - std::min(kWhole, units);
      unsigned each = 0;
      for (unsigned one = 1; one * takers <= left; one *= 2) each = one;
      for (SharingAdvice::Tenant& tenant : advice_.tenants) {
        if (!tenant.wish.gbps) tenant.units = each;
      }
      units += each * static_cast<unsigned>(takers);
      if (each == 0) units = kWhole + 1;
    }
    if (units > kWhole) {
      return {error("the tenants do not fit", profiles_text() + " together",
                    fmt::format("at most {} sixteenths of the GPU; a profile is 1, 2, 4, 8 or 16", kWhole))};
    }
    because(fmt::format("Tenants of one function reach together, at most: {}.", wholes_text()));
    return {};
  }

  /// "ipsec 341 Gbit/s, nids 407 Gbit/s".
  [[nodiscard]] std::string wholes_text() const {
    std::string text;
    for (const std::string& function : functions_)
      text += fmt::format("{}{} {:.0f} Gbit/s", text.empty() ? "" : ", ", function, whole_of(record_, function));
    return text;
  }
  /// "4q, 8q and one without room".
  [[nodiscard]] std::string profiles_text() const {
    std::string text;
    for (const SharingAdvice::Tenant& tenant : advice_.tenants)
      text += (text.empty() ? "" : ", ") + (tenant.units == 0 ? "no room for one" : fmt::format("{}q", tenant.units));
    return text;
  }

  /// Of the function and the scheduler, the rate in this sweep in percent of the best one's; and the largest error of a
  /// share.
  struct Measured {
    double rate = 0;   // 0..1
    double error = 0;  // percent
  };
  [[nodiscard]] std::optional<Measured> measured(const char* sweep, const std::string& function,
                                                 const std::string& scheduler) const {
    double most = 0;
    const Point* found = nullptr;
    for (const Point* const point : points_of(record_, {{"sweep", {sweep}}, {"function", {function}}})) {
      if (point->number("tenants").value_or(0) < 2) continue;
      most = std::max(most, gbps_of(*point));
      const bool is_better = found == nullptr || gbps_of(*point) > gbps_of(*found);
      if (point->text("sharing") == scheduler && is_better) found = point;
    }
    if (found == nullptr) return std::nullopt;
    return Measured{gbps_of(*found) / most, found->number("share_error_percent").value_or(0)};
  }
  /// Of all functions: the sum of rates, and the largest error. Empty: one was not measured.
  [[nodiscard]] std::optional<Measured> measured(const char* sweep, const std::string& scheduler) const {
    Measured all;
    for (const std::string& function : functions_) {
      const auto one = measured(sweep, function, scheduler);
      if (!one) return std::nullopt;
      all.rate += one->rate / static_cast<double>(functions_.size());
      all.error = std::max(all.error, one->error);
    }
    return all;
  }

  [[nodiscard]] bool has_unlike_profiles() const {
    return std::ranges::adjacent_find(advice_.tenants, std::ranges::not_equal_to(), &SharingAdvice::Tenant::units) !=
           advice_.tenants.end();
  }

  Errors choose_scheduler() {
    const bool bounded =
        std::ranges::any_of(wish_.tenants, [](const TenantWish& one) { return one.bound.count() > 0; });
    if (bounded) {
      advice_.scheduler = "deadline";
      because("Only the scheduler deadline knows of bounds. `penstock proxy status` says whether they hold.");
      say_of_bounds();
      return {};
    }
    const bool unlike = has_unlike_profiles();
    if (!unlike && !wish_.holds_shares) return choose_fastest();
    // What tenants that may send more do to others is shown beside a greedy one.
    const char* const sweep = wish_.holds_shares ? "greedy" : "mixed";
    // The simplest first. Only the first one knows no profiles.
    std::vector<const char*> candidates{"equal", "weighted", "fixed", "deadline"};
    if (unlike) candidates.erase(candidates.begin());
    std::optional<std::pair<std::string, Measured>> best;
    for (const char* const candidate : candidates) {
      const auto now = measured(sweep, candidate);
      if (!now) continue;
      const bool holds = now->error <= kShareTolerancePercent;
      const bool best_holds = best && best->second.error <= kShareTolerancePercent;
      const bool is_better = !best || (holds != best_holds ? holds
                                       : holds             ? now->rate > best->second.rate + kSameRate
                                                           : now->error < best->second.error);
      if (is_better) best = {candidate, *now};
    }
    if (!best) return {error(fmt::format("the sweep '{}' of these functions is missing", sweep))};
    advice_.scheduler = best->first;
    if (advice_.scheduler == "fixed") {
      for (const Point* const point : points_of(record_, {{"sharing", {"fixed"}}})) {
        if (functions_.contains(point->text("function")))
          advice_.fixed_gbps = std::max(advice_.fixed_gbps, point->number("fixed_gbps").value_or(0));
      }
    }
    because(fmt::format("Of the schedulers that share {}, {} is {}: the largest share error was {:.1f} % {}.",
                        unlike ? "by profile" : "equally or by profile", best->first,
                        best->second.error <= kShareTolerancePercent
                            ? "the fastest one that holds shares within 5 %"
                            : "the one that comes closest to holding shares, although none does within 5 %",
                        best->second.error, wish_.holds_shares ? "beside a greedy tenant" : "among unlike profiles"));
    return {};
  }

  Errors choose_fastest() {
    constexpr std::array<const char*, 5> kAll{"best-effort", "equal", "weighted", "fixed",
                                              "deadline"};  // simplest first
    std::optional<std::pair<std::string, Measured>> best;
    for (const char* const candidate : kAll) {
      const auto now = measured("tenants", candidate);
      if (now && (!best || now->rate > best->second.rate + kSameRate)) best = {candidate, *now};
    }
    if (!best) return {error("the sweep 'tenants' of these functions, with several tenants, is missing")};
    advice_.scheduler = best->first;
    because(
        fmt::format("The tenants are alike and are trusted with their loads, so {} was chosen: for several of them, it "
                    "was the fastest scheduler, or the simplest of those that differed by less than 3 %.",
                    best->first));
    return {};
  }

  void say_of_bounds() {
    for (const SharingAdvice::Tenant& tenant : advice_.tenants) {
      if (tenant.wish.bound.count() == 0) continue;
      const Point* tightest = nullptr;  // of those that are no longer
      const double bound_us = std::chrono::duration<double, std::micro>(tenant.wish.bound).count();
      const Conditions where{{"sweep", {"bounds"}}, {"sharing", {"deadline"}}, {"function", {tenant.wish.function}}};
      for (const Point* const point : points_of(record_, where)) {
        const double bound = point->number("bound_us").value_or(std::numeric_limits<double>::infinity());
        if (bound <= bound_us && (tightest == nullptr || bound > *tightest->number("bound_us"))) tightest = point;
      }
      because(tightest == nullptr
                  ? fmt::format("A bound of {} was not measured for {}.", format_duration(tenant.wish.bound),
                                tenant.wish.function)
                  : fmt::format("Of a bound of {} us for {}, {:.1f} % of the batches were late beside a tenant that "
                                "takes what it gets.",
                                tightest->text("bound_us"), tenant.wish.function,
                                tightest->number("late_percent").value_or(0)));
    }
  }

  /// Tenants without a rate divide by profile what the others leave.
  void expect_rates() {
    double left = 1;
    unsigned units = 0;
    for (const SharingAdvice::Tenant& tenant : advice_.tenants) {
      left -= tenant.part;
      if (!tenant.wish.gbps) units += tenant.units;
    }
    for (SharingAdvice::Tenant& tenant : advice_.tenants) {
      if (!tenant.wish.gbps) {
        const double of_others = advice_.scheduler == "fixed" ? static_cast<double>(tenant.units) / kWhole : 1;
        tenant.part = std::min(of_others, left * tenant.units / units);
      }
      tenant.expected_gbps = tenant.part * whole_of(record_, tenant.wish.function);
      tenant.workers = static_cast<unsigned>(
          std::max(1.0, std::ceil(tenant.expected_gbps / worker_of(record_, tenant.wish.function) - kNearly)));
    }
    unsigned workers = 0;
    for (const SharingAdvice::Tenant& tenant : advice_.tenants) workers += tenant.workers;
    because(
        fmt::format("Each worker polls, and so does its thread in the proxy: {} cores are busy. The record is of {}.",
                    2 * workers, record_.machine.cores));
  }

  /// The most with which shares held beside a greedy tenant.
  void choose_on_device() {
    std::set<unsigned> all;
    for (const Point* const point : points_of(record_, {{"sweep", {"on-device-greedy"}}}))
      all.insert(on_device_of(*point));
    for (const unsigned most : all) {
      const bool holds = std::ranges::all_of(functions_, [&](const std::string& function) {
        const auto points = points_of(
            record_,
            {{"sweep", {"on-device-greedy"}}, {"function", {function}}, {"on_device", {std::to_string(most)}}});
        return !points.empty() && points.front()->number("share_error_percent").value_or(0) <= kShareTolerancePercent;
      });
      if (!holds) break;
      advice_.on_device_mib = most;
    }
    if (advice_.on_device_mib > 0 && advice_.scheduler != "best-effort")
      because(fmt::format("{} MiB on the device at a time is the most with which shares held beside a greedy tenant.",
                          advice_.on_device_mib));
  }

  Errors choose_training() {
    const std::string count = std::to_string(wish_.trainings);
    std::optional<std::pair<std::string, double>> best;  // what all functions keep
    std::set<std::string> ways;
    for (const Point* const point : points_of(record_, {{"sweep", {"learning"}}, {"learners", {count}}}))
      ways.insert(point->text("sharing"));
    for (const std::string& way : ways) {
      double kept = std::numeric_limits<double>::infinity();
      for (const std::string& function : functions_) {
        const auto rate = [&](const std::string& learners) {
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
        const double without = rate("0");
        kept = std::min(kept, without > 0 ? rate(count) / without : 0);
      }
      if (!best || kept > best->second) best = {way, kept};
    }
    if (!best || best->second <= 0) {
      return {error("the sweep 'learning' of these functions is missing",
                    fmt::format("no points beside {}", format_count(wish_.trainings, "training")))};
    }
    Point point;
    point.set("sharing", best->first).set("learners", wish_.trainings);
    advice_.in_mps = uses_mps(point);
    advice_.training_percent = learner_percent(point);
    because(
        fmt::format("Beside {}, a tenant kept at least {:.0f} % of its rate with '{}', more than in other ways{}. The "
                    "rates above are those without training.",
                    format_count(wish_.trainings, "training"), std::min(best->second, 1.0) * 100, best->first,
                    advice_.in_mps ? "" : ": time slices, without MPS"));
    return {};
  }

  const Record& record_;
  const SharingWish& wish_;
  const std::string& file_;
  std::set<std::string> functions_;
  SharingAdvice advice_;
};

}  // namespace

Result<TenantWish> tenant_wish_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find(':');
    parts.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest = rest.substr(end + 1);
  }
  constexpr std::size_t kMost = 3;
  if (parts.front().empty() || parts.size() > kMost) return failure(wrong_wish(text));
  TenantWish wish{std::string(parts.front()), {}, {}};
  if (parts.size() > 1 && !parts[1].empty()) {
    const auto rate = parse_rate(parts[1]);
    if (!rate || rate->unit != Rate::Unit::bits_per_second || rate->value <= 0)
      return failure({{}, "wrong rate of a tenant", in_quotes(parts[1]), "bits per second, such as 60Gbps"});
    wish.gbps = rate->value / 1e9;
  }
  if (parts.size() == kMost) {
    const auto bound = parse_duration(parts[2]);
    if (!bound || bound->count() <= 0)
      return failure({{}, "wrong bound of a tenant", in_quotes(parts[2]), "a time such as 500us or 2ms"});
    wish.bound = *bound;
  }
  return wish;
}

Result<SharingAdvice> advise(const Record& record, const SharingWish& wish, const std::string& file) {
  return Adviser(record, wish, file).advise();
}

}  // namespace penstock::experiments
