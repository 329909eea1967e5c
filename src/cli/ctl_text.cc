// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/ctl_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "report/error_json.h"
#include "report/text_table.h"

namespace penstock::cli {

namespace {

using Json = nlohmann::ordered_json;
using Pointer = Json::json_pointer;

std::string word(const Json& text) { return printable(text.get<std::string>()); }

std::string processor_text(const Json& processor) {
  return processor == "cpu" ? "CPU" : processor == "gpu" ? "GPU" : word(processor);
}

std::string warnings_text(const Json& json) {
  std::string text;
  for (const char* const kind : {"without_effect", "cautions", "unsupported"}) {
    for (const Error& error : report::errors_of(json.at(kind))) text += fmt::format("warning: {}\n", to_string(error));
  }
  return text;
}

std::string changes_text(const Json& outcome) {
  std::string text;
  for (const Json& change : outcome.at("changes"))
    text += fmt::format("  {}: {}\n", word(change.at("function")), word(change.at("change")));
  return text;
}

/// Counts of a run: as they are, or per second since an earlier time.
class Counts {
 public:
  explicit Counts(const Json& now) : now_(now) {}
  Counts(const Json& before, const Json& now)
      : now_(now),
        before_(&before),
        seconds_(now.at("elapsed_s").get<double>() - before.at("elapsed_s").get<double>()) {}

  [[nodiscard]] const Json& now() const noexcept { return now_; }
  [[nodiscard]] bool are_rates() const noexcept { return before_ != nullptr; }
  /// "packets", or "packets/s"
  [[nodiscard]] std::string unit(std::string_view thing) const {
    return fmt::format("{}{}", thing, are_rates() ? "/s" : "");
  }

  /// What the counter has grown by. One that was not there before (a function's new reason) began at 0.
  [[nodiscard]] std::uint64_t growth(const Pointer& at) const {
    const std::uint64_t now = now_.at(at).get<std::uint64_t>();
    if (!are_rates() || !before_->contains(at)) return now;
    const std::uint64_t before = before_->at(at).get<std::uint64_t>();
    return now < before ? 0 : now - before;
  }
  [[nodiscard]] double per_second(std::uint64_t count) const {
    return seconds_ > 0 ? static_cast<double>(count) / seconds_ : 0.0;
  }
  /// The counter as a cell of a table, times `factor` (8: bits of bytes).
  [[nodiscard]] std::string text(const Pointer& at, unsigned factor = 1) const {
    const std::uint64_t count = growth(at) * factor;
    return are_rates() ? format_si(per_second(count)) : format_count(count);
  }

 private:
  const Json& now_;
  const Json* before_ = nullptr;
  double seconds_ = 0;
};

std::string ports_text(const Counts& counts) {
  const std::string packets = counts.unit("packets");
  const std::string bits = counts.unit("bits");
  const std::string headings[] = {">" + packets + " in", ">" + bits + " in", ">" + packets + " out",
                                  ">" + bits + " out"};
  report::TextTable table({"port", headings[0], headings[1], headings[2], headings[3], ">lost"});
  for (const auto& [name, port] : counts.now().at("ports").items()) {
    const Pointer at = Pointer("/ports") / name;
    std::uint64_t lost = 0;
    if (port.contains("lost")) {
      for (const auto& [reason, unused] : port.at("lost").items()) lost += counts.growth(at / "lost" / reason);
    }
    table.add_row({printable(name), counts.text(at / "in" / "packets"), counts.text(at / "in" / "bytes", 8),
                   counts.text(at / "out" / "packets"), counts.text(at / "out" / "bytes", 8),
                   counts.are_rates() ? format_si(counts.per_second(lost)) : format_count(lost)});
  }
  return table.text();
}

std::string functions_text(const Counts& counts) {
  const std::string in = ">" + counts.unit("packets") + " in";
  report::TextTable table({"function", in, ">forwarded", ">dropped", ">consumed"});
  const Json& functions = counts.now().at("functions");
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Pointer at = Pointer("/functions") / i;
    table.add_row({word(functions[i].at("name")), counts.text(at / "in" / "packets"),
                   counts.text(at / "forwarded" / "packets"), counts.text(at / "dropped" / "packets"),
                   counts.text(at / "consumed" / "packets")});
  }
  const Pointer chain("/packets");
  table.add_row({"chain", counts.text(chain / "in"), counts.text(chain / "forwarded"), counts.text(chain / "dropped"),
                 counts.text(chain / "consumed")});
  std::string text = table.text();
  for (const Json& function : functions) {
    if (!function.contains("held")) continue;  // a run of an earlier version
    const auto held = function.at("held").at("packets").get<std::uint64_t>();
    if (held > 0) text += fmt::format("{} holds {}\n", word(function.at("name")), format_count(held, "packet"));
  }
  return text;
}

/// The reasons for which packets were dropped, the most frequent first.
std::string drops_text(const Counts& counts) {
  constexpr std::size_t kMost = 12;
  std::vector<std::pair<std::string, std::uint64_t>> drops;
  const auto add = [&](const std::string& where, const std::string& reason, const Pointer& at) {
    if (const std::uint64_t count = counts.growth(at); count > 0)
      drops.emplace_back(fmt::format("{}: {}", where, printable(reason)), count);
  };
  const Json& functions = counts.now().at("functions");
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Pointer at = Pointer("/functions") / i / "dropped" / "reasons";
    for (const auto& [reason, unused] : counts.now().at(at).items())
      add(word(functions[i].at("name")), reason, at / reason);
  }
  for (const auto& [reason, unused] : counts.now().at("dropped_by_chain").items())
    add("chain", reason, Pointer("/dropped_by_chain") / reason);
  if (drops.empty()) return "";
  std::ranges::stable_sort(drops, std::greater<>{}, [](const auto& drop) { return drop.second; });
  const std::string heading = ">" + counts.unit("packets");
  report::TextTable table({"dropped", heading});
  for (std::size_t i = 0; i < std::min(drops.size(), kMost); ++i) {
    table.add_row({drops[i].first,
                   counts.are_rates() ? format_si(counts.per_second(drops[i].second)) : format_count(drops[i].second)});
  }
  return '\n' + table.text();
}

std::string workers_text(const Counts& counts) {
  const std::string in = ">" + counts.unit("packets") + " in";
  const std::string batches = ">" + counts.unit("batches");
  report::TextTable table({"worker", in, ">forwarded", ">dropped", ">consumed", batches});
  for (std::size_t i = 0; i < counts.now().at("by_worker").size(); ++i) {
    const Pointer at = Pointer("/by_worker") / i;
    table.add_row({std::to_string(i), counts.text(at / "in" / "packets"), counts.text(at / "forwarded" / "packets"),
                   counts.text(at / "dropped" / "packets"), counts.text(at / "consumed" / "packets"),
                   counts.text(at / "batches")});
  }
  return '\n' + table.text();
}

std::string gpu_text(const Counts& counts) {
  if (!counts.now().contains("gpu")) return "";
  const Json& gpu = counts.now().at("gpu");
  const Pointer at("/gpu");
  const std::string headings[] = {">" + counts.unit("segments"), ">" + counts.unit("bits") + " to it"};
  report::TextTable table({"GPU", headings[0], headings[1], ">from it", ">punted", ">failures", ">memory"});
  table.add_row({fmt::format("{}", fmt::join(gpu.at("devices").get<std::vector<int>>(), ", ")),
                 counts.text(at / "segments"), counts.text(Pointer("/pcie/to_device_bytes"), 8),
                 counts.text(Pointer("/pcie/to_host_bytes"), 8), counts.text(at / "punted"),
                 counts.text(at / "failures"), format_size(gpu.at("memory_bytes").get<std::uint64_t>())});
  if (!gpu.contains("proxy")) return '\n' + table.text();
  const Json& proxy = gpu.at("proxy");
  return fmt::format("\n{}{} proxy; lost {}, {:.1f} s without it\n", table.text(),
                     proxy.at("connected").get<bool>() ? "connected to the" : "NOT CONNECTED to the",
                     format_count(proxy.at("losses").get<std::uint64_t>(), "time"),
                     proxy.at("without_s").get<double>());
}

std::string head_text(const Json& now) {
  const auto workers = now.at("workers").get<std::uint64_t>();
  const Json& latency = now.at("latency_us");
  return fmt::format("{}: {:.1f} s, {} on the {}, {}; latency p50 {:.1f} us, p99 {:.1f} us\n\n", word(now.at("chain")),
                     now.at("elapsed_s").get<double>(), format_count(workers, "worker"),
                     processor_text(now.at("processor")),
                     format_count(now.at("reloads").get<std::uint64_t>(), "reload"), latency.at("p50").get<double>(),
                     latency.at("p99").get<double>());
}

std::string text_of(const Counts& counts) {
  return head_text(counts.now()) + ports_text(counts) + '\n' + functions_text(counts) + drops_text(counts) +
         workers_text(counts) + gpu_text(counts);
}

/// "forward to wan", "drop: denied", "consume"
std::string decision_text(const Json& decision) {
  std::string text = word(decision.at("verdict"));
  if (!decision.at("port").is_null()) text += " to " + word(decision.at("port"));
  if (!decision.at("reason").is_null()) text += ": " + word(decision.at("reason"));
  return text;
}

std::string fork_text(const Json& step) {
  return fmt::format("fork: {}\n", step.at("fork").is_null() ? "no arm" : word(step.at("fork")));
}

/// What a function does with a packet.
std::string step_text(const Json& step) {
  std::string text = fmt::format("{}: {}\n", word(step.at("function")), decision_text(step));
  for (const Json& other : step.at("passed_over"))
    text += fmt::format("    not {}\n        {}\n", word(other.at("what")), word(other.at("why")));
  if (const auto more = step.at("not_listed").get<std::uint64_t>(); more > 0)
    text += fmt::format("    nor {} that differ more\n", format_count(more, "other"));
  if (!step.at("decided_by").is_null()) text += fmt::format("    by {}\n", word(step.at("decided_by")));
  for (const Json& note : step.at("notes")) text += fmt::format("    {}\n", word(note));
  for (const Json& change : step.at("changes")) {
    const auto value = [](const Json& v) { return v.is_null() ? std::string("none") : word(v); };
    text += fmt::format("    changes {} {} → {}\n", word(change.at("field")), value(change.at("before")),
                        value(change.at("after")));
  }
  return text;
}

}  // namespace

std::string status_text(const Json& status) {
  std::string text = fmt::format("penstock {} ({}), process {}, since {}: {}, {:.1f} s with packets\n",
                                 word(status.at("penstock").at("version")), word(status.at("penstock").at("commit")),
                                 status.at("pid").get<std::int64_t>(), word(status.at("started")),
                                 word(status.at("state")), status.at("elapsed_s").get<double>());
  std::vector<std::string> functions;
  for (const Json& function : status.at("functions")) functions.push_back(word(function));
  text += fmt::format("chain {}: {}; {} on the {}\n", word(status.at("chain")),
                      functions.empty() ? "no functions" : fmt::format("{}", fmt::join(functions, ", ")),
                      format_count(status.at("workers").get<std::uint64_t>(), "worker"),
                      processor_text(status.at("processor")));
  for (const Json& port : status.at("ports")) {
    const bool reads = port.at("reads").get<bool>();
    const bool writes = port.at("writes").get<bool>();
    const Json& kind = port.at("kind");
    const Json& link = port.at("link");
    const Json& interface = port.at("interface");
    text += fmt::format("port {}: {}{}{}{}{}{}{}\n", word(port.at("name")), kind.is_null() ? "" : word(kind),
                        interface.is_null() ? "" : " " + word(interface), kind.is_null() ? "" : ", ",
                        reads ? "reads" : "", reads && writes ? " and " : "", writes ? "writes" : "",
                        link.is_null() ? "" : ", link " + word(link));
  }
  for (const Json& process : status.value("processes", Json::array())) {  // not of a run of an earlier version
    const std::string what = process.at("function").is_null() ? "proxy" : "process of " + word(process.at("function"));
    const auto losses = process.at("losses").get<std::uint64_t>();
    text += fmt::format("{} at {}: {}{}\n", what, word(process.at("socket")),
                        process.at("connected").get<bool>() ? "connected" : "NOT CONNECTED",
                        losses == 0 ? "" : fmt::format("; lost {}", format_count(losses, "time")));
  }
  text += format_count(status.at("reloads").get<std::uint64_t>(), "reload") + '\n';
  if (const Json& last = status.at("last_reload"); !last.is_null()) {
    const std::string outcome = last.at("outcome") == "in_use" ? "in use" : word(last.at("outcome"));
    text +=
        fmt::format("last {} at {}: {}\n{}", word(last.at("what")), word(last.at("at")), outcome, changes_text(last));
    for (const Error& error : report::errors_of(last.at("errors"))) text += fmt::format("  {}\n", to_string(error));
  }
  return text + warnings_text(status);
}

std::string explanation_text(const Json& explanation) {
  std::string text = fmt::format("{}, from {}\n", word(explanation.at("packet")), word(explanation.at("in")));
  for (const Json& step : explanation.at("steps")) text += step.contains("fork") ? fork_text(step) : step_text(step);
  text += decision_text(explanation);
  text += (explanation.at("refused").is_null() ? "" : ": " + word(explanation.at("refused"))) + '\n';
  for (const Json& question : explanation.at("open_questions"))
    text += fmt::format("not certain: {}\n", word(question));
  return text;
}

std::string observation_text(const Json& result) {
  const auto lost = result.at("lost").get<std::uint64_t>();
  const Json& ended = result.at("ended");
  return fmt::format("{}{}{}\n", format_count(result.at("packets").get<std::uint64_t>(), "packet"),
                     lost == 0 ? "" : fmt::format(", {} lost", format_count(lost)),
                     ended == "timeout" ? "; the time is over"
                     : ended == "run"   ? "; the run has ended"
                                        : "");
}

std::string printable_lines(const Json& text) {
  std::string lines;
  const auto& given = text.get_ref<const std::string&>();
  for (std::size_t first = 0; first < given.size();) {
    const std::size_t end = std::min(given.find('\n', first), given.size());
    lines += printable(given.substr(first, end - first)) + '\n';
    first = end + 1;
  }
  return lines;
}

std::string reload_text(const Json& outcome) {
  const Json& what = outcome.at("outcome");
  std::string text = warnings_text(outcome);
  for (const Error& error : report::errors_of(outcome.at("errors"))) text += to_string(error) + '\n';
  if (what == "unchanged")
    return text + (outcome.at("what") == "dry_run" ? "nothing would change\n" : "nothing has changed\n");
  if (what == "would_change") return text + "a reload would change:\n" + changes_text(outcome);
  return text + fmt::format("in use after {:.1f} s\n{}", outcome.at("elapsed_s").get<double>(), changes_text(outcome));
}

std::string stats_text(const Json& now) { return text_of(Counts(now)); }

std::string rates_text(const Json& before, const Json& now) { return text_of(Counts(before, now)); }

}  // namespace penstock::cli
