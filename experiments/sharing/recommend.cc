// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/repeats.h"
#include "experiments/sharing/arrangement.h"
#include "experiments/text_rows.h"
#include "report/text_table.h"

namespace penstock::experiments {
namespace {

/// With a line after it. Nothing without rows.
std::string table_text(const std::string& title, const std::vector<std::string>& head, const TableRows& rows,
                       Style style) {
  if (rows.empty()) return {};
  std::string shown = title;
  if (style == Style::terminal) {
    shown = report::wrapped(title, "", "");
    shown.pop_back();  // the end of the last line
  }
  return table_of_texts(shown, head, rows, style) + '\n';
}

/// Distinct texts of the key in the points, in their order.
std::vector<std::string> values_of(const std::vector<const Point*>& points, const char* key) {
  std::vector<std::string> values;
  for (const Point* const point : points) {
    std::string value = point->text(key);
    if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
  }
  return values;
}

std::vector<const Point*> points_of(const Record& record, const Conditions& where) {
  std::vector<const Point*> points;
  for (const Point& point : record.points) {
    if (satisfies(point, where) && point.number("gbps")) points.push_back(&point);
  }
  return points;
}

const Point* first_of(const Record& record, const Conditions& where) {
  const auto points = points_of(record, where);
  return points.empty() ? nullptr : points.front();
}

/// "256 (250 to 262)": the rate of one in percent of that of the other, with its interval if there is one.
std::string percent_text(const Point& rate, const Point& of) {
  const Repeats dividends = repeats_of(rate, "gbps"), divisors = repeats_of(of, "gbps");
  if (const auto quotient = quotient_of(dividends, divisors))
    return fmt::format("{:.0f} ({:.0f} to {:.0f})", quotient->value * 100, quotient->low * 100, quotient->high * 100);
  const double divisor = of.number("gbps").value_or(0);
  return divisor > 0 ? fmt::format("{:.0f}", *rate.number("gbps") / divisor * 100) : "";
}

std::string value_text(const Point* point, const char* key) {
  const auto value = point == nullptr ? std::nullopt : point->number(key);
  constexpr double kLarge = 1000;
  if (!value) return {};
  return *value < kLarge ? fmt::format("{:.3g}", *value) : fmt::format("{:.0f}", *value);
}

std::string costs_of_proxy(const Record& record, Style style) {
  TableRows rows;
  for (const Point* const alone : points_of(record, {{"sweep", {"size"}}, {"sharing", {"alone"}}})) {
    const std::string function = alone->text("function"), mode = alone->text("mode"), size = alone->text("size");
    const Point* const tenant = first_of(record, {{"sweep", {"size"}},
                                                  {"sharing", {"best-effort"}},
                                                  {"function", {function}},
                                                  {"mode", {mode}},
                                                  {"size", {size}}});
    if (tenant == nullptr) continue;
    const bool in_paper = function == "ipsec" && mode == "streams" && size == "1522";
    rows.push_back({function, mode, size, value_text(alone, "gbps"), value_text(tenant, "gbps"),
                    percent_text(*tenant, *alone), in_paper ? "90.3" : ""});
  }
  return table_text("Figure 2b: one tenant of a proxy in percent of a process of its own (medians, quotients of means)",
                    {"function", "mode", "size", "alone, Gbit/s", "tenant, Gbit/s", "%", "paper, %"}, rows, style);
}

/// Of what four tenants get together, in percent of one: §V.C.
const char* of_paper(const std::string& function, const std::string& sharing) {
  if (function == "ipsec") return sharing == "equal" ? "148" : sharing == "best-effort" ? "256" : "";
  if (function == "nids") return sharing == "equal" ? "182" : sharing == "best-effort" ? "288" : "";
  return "";
}

std::string gains(const Record& record, Style style) {
  TableRows rows;
  const auto all = points_of(record, {{"sweep", {"tenants"}}});
  for (const std::string& function : values_of(all, "function")) {
    for (const std::string& sharing : values_of(all, "sharing")) {
      const auto with = [&](const char* tenants) {
        return first_of(
            record, {{"sweep", {"tenants"}}, {"function", {function}}, {"sharing", {sharing}}, {"tenants", {tenants}}});
      };
      const Point* const one = with("1");
      if (one == nullptr) continue;
      std::vector<std::string> row{function, sharing, value_text(one, "gbps")};
      for (const char* const tenants : {"2", "3", "4"}) {
        const Point* const several = with(tenants);
        row.push_back(several == nullptr ? "" : percent_text(*several, *one));
      }
      row.emplace_back(of_paper(function, sharing));
      rows.push_back(std::move(row));
    }
  }
  return table_text("Figure 3: combined rate of tenants in percent of one tenant's (medians, quotients of means)",
                    {"function", "sharing", "1 tenant, Gbit/s", "2, %", "3, %", "4, %", "paper, 4, %"}, rows, style);
}

std::string who_gets_what(const Record& record, Style style) {
  TableRows rows;
  for (const Point* const point : points_of(record, {{"sweep", {"greedy", "mixed", "one-batch"}}}))
    rows.push_back({point->text("sweep"), point->text("function"), point->text("sharing"), point->text("tenant_gbps"),
                    value_text(point, "share_error_percent"), point->text("tenant_p99_us")});
  return table_text(
      "Four tenants: greedy, one with four streams beside three with one; mixed, 8q, 4q, 2q and 2q; one-batch, each "
      "with one batch at a time",
      {"tenants", "function", "sharing", "Gbit/s of each", "share error, %", "p99 of each, us"}, rows, style);
}

std::string visits(const Record& record, Style style) {
  TableRows rows;
  for (const Point* const point : points_of(record, {{"sweep", {"attach"}}}))
    rows.push_back({point->text("function"), point->text("sharing"), value_text(point, "start_ms"),
                    value_text(point, "attach_ms"), value_text(point, "detach_ms"), value_text(point, "gbps"),
                    value_text(point, "kept_percent"), value_text(point, "kept_beside_cpu_percent"),
                    value_text(point, "p99_us"), value_text(point, "visited_p99_us")});
  return table_text(
      "Two tenants of 4q beside which a third attaches and detaches: how long that takes, and what the two have "
      "without and with such a change, and while a run that uses no GPU begins and ends",
      {"function", "sharing", "start, ms", "attach, ms", "detach, ms", "without, Gbit/s", "with, %",
       "beside a run on the CPU, %", "p99 without, us", "p99 with, us"},
      rows, style);
}

/// Who keeps its share beside a neighbour of another kind: with half of the GPU, half of the rate that it has alone on
/// the whole.
std::string unlike_neighbours(const Record& record, Style style) {
  TableRows rows;
  for (const Point* const point : points_of(record, {{"sweep", {"spatial"}}})) {
    std::vector<double> rates;
    std::istringstream text(point->text("tenant_gbps"));
    for (double rate = 0; text >> rate;) rates.push_back(rate);
    const std::vector<TenantPlan> tenants = tenants_of(*point);
    if (rates.size() != tenants.size()) continue;
    std::string of_alone;
    double short_of_share = 0;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
      const Point* const alone = first_of(
          record,
          {{"sweep", {"spatial"}}, {"sharing", {"weighted"}}, {"function", {tenants[i].function}}, {"tenants", {"1"}}});
      const double whole = alone == nullptr ? 0 : alone->number("gbps").value_or(0);
      if (whole <= 0) {
        of_alone.clear();
        break;
      }
      of_alone += fmt::format("{}{:.0f}", of_alone.empty() ? "" : " ", rates[i] / whole * 100);
      short_of_share = std::max(short_of_share, 1 - rates[i] / (whole / static_cast<double>(tenants.size())));
    }
    const bool compares = tenants.size() > 1 && !of_alone.empty();
    rows.push_back({point->text("function"), point->text("sharing"), point->text("tenant_gbps"), of_alone,
                    compares ? fmt::format("{:.0f}", short_of_share * 100) : "", point->text("tenant_p99_us")});
  }
  return table_text(
      "Spatial and temporal sharing: a tenant that computes much beside a router, 8q each. The rate of each in percent "
      "of its rate alone with `weighted`, and the share error: by how much the one that loses most falls short of half "
      "of that",
      {"functions", "sharing", "Gbit/s of each", "% of alone", "share error, %", "p99 of each, us"}, rows, style);
}

std::string drops(const Record& record, Style style) {
  TableRows rows;
  for (const Point* const none :
       points_of(record, {{"sweep", {"learning"}}, {"learners", {"0"}}, {"size", {"1522"}}})) {
    std::vector<std::string> row{none->text("function"), none->text("mode"), none->text("sharing"),
                                 value_text(none, "gbps")};
    std::string steps;
    for (const char* const learners : {"1", "2", "3"}) {
      const Point* const some = first_of(record, {{"sweep", {"learning"}},
                                                  {"learners", {learners}},
                                                  {"size", {"1522"}},
                                                  {"function", {none->text("function")}},
                                                  {"mode", {none->text("mode")}},
                                                  {"sharing", {none->text("sharing")}}});
      row.push_back(some == nullptr ? "" : percent_text(*some, *none));
      if (some != nullptr) steps += fmt::format("{}{}", steps.empty() ? "" : " / ", value_text(some, "steps_per_s"));
    }
    row.push_back(steps);
    rows.push_back(std::move(row));
  }
  return table_text("Figure 6: rate beside training processes in percent of that without, 1522-byte frames",
                    {"function", "mode", "sharing", "without, Gbit/s", "1, %", "2, %", "3, %", "training steps/s"},
                    rows, style);
}

/// The highest combined rate of this way of sharing.
std::string best_rate(const Record& record, Conditions where, const char* sharing) {
  where.push_back({"sharing", {sharing}});
  const auto points = points_of(record, where);
  const auto best =
      std::ranges::max_element(points, {}, [](const Point* point) { return point->number("gbps").value_or(0); });
  return best == points.end() ? "" : value_text(*best, "gbps");
}

std::string recommendations(const Record& record, Style style) {
  struct Load {
    const char* what;
    Conditions where;
    bool keeps_shares = false;
  };
  const std::vector<std::string> by_profile{"fixed", "weighted", "deadline"};  // others know no sizes
  std::vector<Load> loads{
      {"equal, up to 4", {{"sweep", {"tenants"}}}},
      {"equal, any number", {{"sweep", {"profiles"}}}},
      {"4, one is greedy", {{"sweep", {"greedy"}}}, true},
      {"4 of several sizes", {{"sweep", {"mixed"}}, {"sharing", by_profile}}, true},
  };
  for (const char* const learners : {"1", "2", "3"})
    loads.push_back({learners[0] == '1'   ? "beside 1 training"
                     : learners[0] == '2' ? "beside 2 trainings"
                                          : "beside 3 trainings",
                     {{"sweep", {"learning"}}, {"learners", {learners}}, {"size", {"1522"}}}});
  TableRows rows;
  std::vector<const Point*> all;
  for (const Point& point : record.points) all.push_back(&point);
  for (const std::string& function : values_of(all, "function")) {
    for (const Load& load : loads) {
      Conditions where = load.where;
      where.push_back({"function", {function}});
      const Point* const best = recommended_sharing(record, where, load.keeps_shares);
      if (best == nullptr) continue;
      const bool broken = load.keeps_shares && best->number("share_error_percent").value_or(0) > kShareTolerancePercent;
      std::erase_if(where, [](const Condition& condition) { return condition.key == "sharing"; });
      rows.push_back({function, load.what, best->text("sharing") + (broken ? " (*)" : ""), best->text("profile"),
                      best->text("tenants"), value_text(best, "gbps"), value_text(best, "share_error_percent"),
                      value_text(best, "p99_us"), best_rate(record, where, "time-slicing"),
                      best_rate(record, where, "mps")});
    }
  }
  return table_text(
      fmt::format(
          "Which scheduler and profile for which tenants: the highest combined rate; for unlike tenants, of the "
          "schedulers that keep all shares within {:.0f} % (*: none does, so the one that comes closest). The last "
          "columns: Gbit/s of the same tenants without a proxy",
          kShareTolerancePercent),
      {"function", "tenants", "scheduler", "profile", "number", "Gbit/s", "error, %", "p99, us", "slices", "MPS"}, rows,
      style);
}

}  // namespace

const Point* recommended_sharing(const Record& record, const Conditions& where, bool keeps_shares) {
  const Point* best = nullptr;
  const auto error = [](const Point& point) {
    return point.number("share_error_percent").value_or(std::numeric_limits<double>::infinity());
  };
  const auto keeps = [&](const Point& point) { return error(point) <= kShareTolerancePercent; };
  const auto is_better = [&](const Point& one, const Point& other) {
    if (keeps_shares && keeps(one) != keeps(other)) return keeps(one);
    if (keeps_shares && !keeps(one)) return error(one) < error(other);
    return one.number("gbps").value_or(0) > other.number("gbps").value_or(0);
  };
  for (const Point& point : record.points) {
    if (!satisfies(point, where) || !is_proxied(point)) continue;
    if (best == nullptr || is_better(point, *best)) best = &point;
  }
  return best;
}

std::string sharing_tables(const Record& record, Style style) {
  return costs_of_proxy(record, style) + gains(record, style) + who_gets_what(record, style) +
         unlike_neighbours(record, style) + visits(record, style) + drops(record, style) +
         recommendations(record, style);
}

}  // namespace penstock::experiments
