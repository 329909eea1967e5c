// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "base/machine.h"
#include "base/parameter.h"
#include "base/text_file.h"
#include "base/units.h"
#include "base/version.h"
#include "experiments/limits.h"
#include "gpu/devices.h"

namespace penstock::experiments {
namespace {

std::string now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// The distinct values of the key in the points, in order.
std::vector<std::string> values_of(const std::vector<Point>& points, const std::string& key) {
  std::vector<std::string> values;
  for (const Point& point : points) {
    if (point.find(key) == nullptr) continue;
    std::string value = point.text(key);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
  }
  return values;
}

/// A condition that matches no point would select nothing; usually it is a typo.
void check(const Condition& condition, const std::vector<Point>& points, Errors& errors) {
  const std::vector<std::string> known = values_of(points, condition.key);
  if (known.empty()) {
    std::set<std::string_view> keys;
    for (const Point& point : points) {
      for (const auto& [name, value] : point) keys.insert(name);
    }
    const std::vector<std::string_view> names(keys.begin(), keys.end());
    errors.push_back({{"--only", 0, 0}, "unknown key", in_quotes(condition.key), expected_name(condition.key, names)});
    return;
  }
  for (const std::string& value : condition.values) {
    if (std::find(known.begin(), known.end(), value) != known.end()) continue;
    errors.push_back({{"--only", 0, 0},
                      condition.key + ": no point has this value",
                      in_quotes(value),
                      fmt::format("one of {}", fmt::join(known, ", "))});
  }
}

void check_files(const Experiment& experiment, const Options& options, Errors& errors) {
  if (!options.rules.empty() && !experiment.takes_rules) {
    errors.push_back({{"--rules", 0, 0}, fmt::format("the experiment {} takes no rules", experiment.name), "", ""});
  }
  if (!options.routes.empty() && !experiment.takes_routes) {
    errors.push_back({{"--routes", 0, 0}, fmt::format("the experiment {} takes no routes", experiment.name), "", ""});
  }
  if (options.rules == "-" && options.routes == "-") {
    errors.push_back({{"--routes", 0, 0}, "standard input is already used for --rules", "", ""});
  }
}

/// Whether `measured` is the planned point with its results.
bool is_result_of(const Point& measured, const Point& planned) {
  return std::ranges::all_of(planned, [&](const auto& parameter) {
    const Value* const value = measured.find(parameter.first);
    return value != nullptr && *value == parameter.second;
  });
}

bool is_on_gpu(const Point& point) { return point.text("processor") == "gpu"; }

}  // namespace

Result<Session> Session::open(const Experiment& experiment, const Options& options, const std::atomic<bool>& stop) {
  const Machine machine = look_at_machine();
  Session session;
  session.setting_ = std::make_unique<Setting>();
  Setting& setting = *session.setting_;
  setting.quick = options.quick;
  setting.repeats = options.repeats.value_or(experiment.repeats);
  session.repeats_ = session.headline_repeats_ = setting.repeats;
  if (!options.repeats && !options.quick) session.headline_repeats_ = std::max(setting.repeats, kHeadlineRepeats);
  setting.duration = options.duration.value_or(options.quick ? experiment.quick_duration : experiment.duration);
  setting.workers = options.workers.value_or(std::max(machine.threads, 1U));
  setting.rules = options.rules;
  setting.routes = options.routes;
  setting.stop = &stop;

  Record& record = session.record_;
  record.version = build_info().version;
  record.commit = build_info().commit;
  record.experiment = experiment.name;
  record.command = options.command;
  record.date = now();
  record.machine = {machine.cpu_model, machine.threads, machine.memory_bytes, {}, ""};

  Errors errors = session.choose_gpus(experiment, options);
  check_files(experiment, options, errors);
  if (!errors.empty()) return failure(std::move(errors));
  auto trial = experiment.start(setting);
  if (!trial) return tl::unexpected(std::move(trial.error()));
  session.trial_ = std::move(*trial);
  session.plan_ = session.trial_->plan();
  session.mark_headlines(experiment);
  if (!options.resume.empty()) {
    session.all_ = session.plan_;
    if (errors = session.resume(options.resume); !errors.empty()) return failure(std::move(errors));
  }
  if (errors = session.choose_points(options); !errors.empty()) return failure(std::move(errors));
  return session;
}

Errors Session::choose_gpus(const Experiment& experiment, const Options& options) {
  const gpu::DeviceList list = gpu::list_devices();
  std::vector<gpu::Device>& chosen = setting_->gpus;
  Errors errors;
  const Place place{"--gpus", 0, 0};
  if (options.gpus.size() > experiment.most_gpus) {
    errors.push_back({place, fmt::format("the experiment {} uses fewer GPUs", experiment.name),
                      std::to_string(options.gpus.size()), fmt::format("at most {}", experiment.most_gpus)});
  }
  for (const int index : options.gpus) {
    const auto there = std::find_if(list.devices.begin(), list.devices.end(),
                                    [&](const gpu::Device& device) { return device.index == index; });
    const bool twice = std::any_of(chosen.begin(), chosen.end(), [&](const auto& d) { return d.index == index; });
    if (there == list.devices.end() || !there->supported || twice) {
      const std::string reason = twice                         ? "it is given twice"
                                 : there != list.devices.end() ? "it is too old for this program"
                                 : list.reason.empty()         ? "`penstock devices` lists the GPUs of this machine"
                                                               : list.reason;
      errors.push_back({place, "this GPU cannot be used: " + reason, std::to_string(index), ""});
    } else {
      chosen.push_back(*there);
    }
  }
  if (options.gpus.empty() && experiment.most_gpus > 0) {
    const auto first =
        std::find_if(list.devices.begin(), list.devices.end(), [](const auto& d) { return d.supported; });
    if (first != list.devices.end()) chosen.push_back(*first);
  }
  no_gpu_ = list.reason;
  for (const gpu::Device& device : chosen) record_.machine.gpus.push_back({device.index, device.name});
  if (!chosen.empty()) record_.machine.driver = list.driver;
  return errors;
}

void Session::mark_headlines(const Experiment& experiment) {
  for (Point& point : plan_) {
    const bool is_headline = std::ranges::any_of(
        experiment.headlines(), [&](const Conditions& conditions) { return satisfies(point, conditions); });
    if (is_headline) point.set("headline", true);
  }
}

Errors Session::choose_points(const Options& options) {
  Errors errors;
  for (const Condition& condition : options.only) check(condition, plan_, errors);
  if (!errors.empty()) return errors;
  std::erase_if(plan_, [&](const Point& point) { return !satisfies(point, options.only); });
  if (plan_.empty()) return {{{"--only", 0, 0}, "no point has all of these values", "", ""}};
  std::erase_if(plan_, [&](const Point& planned) {
    return std::ranges::any_of(record_.points, [&](const Point& kept) { return is_result_of(kept, planned); });
  });
  if (plan_.empty()) return errors;  // the resumed record has them all
  if (!setting_->gpus.empty()) return errors;
  const auto left_out = std::erase_if(plan_, is_on_gpu);
  if (left_out == 0) return errors;
  if (plan_.empty() && record_.points.empty()) return {{{}, "all requested points need a GPU", no_gpu_, ""}};
  record_.left_out.push_back(
      fmt::format("{} of {}, those on a GPU: {}", left_out, format_count(left_out + plan_.size(), "point"), no_gpu_));
  return errors;
}

/// Takes the points of a record of the same experiment on the same machine. It may have been measured with other GPUs
/// or none, but no point may be from a GPU other than those of this run.
Errors Session::resume(const std::string& path) {
  const auto text = read_input(path);
  auto earlier = text ? parse_record(*text, input_name(path)) : tl::unexpected(text.error());
  if (!earlier) return earlier.error();
  Errors errors;
  const auto expect_same = [&](const char* what, const std::string& found, const std::string& expected) {
    if (found != expected)
      errors.push_back({{path, 0, 0},
                        fmt::format("the record to resume has another {}", what),
                        in_quotes(found),
                        in_quotes(expected)});
  };
  expect_same("experiment", earlier->experiment, record_.experiment);
  expect_same("program (commit)", earlier->commit, record_.commit);
  expect_same("CPU", earlier->machine.cpu, record_.machine.cpu);
  expect_same("number of cores", std::to_string(earlier->machine.cores), std::to_string(record_.machine.cores));
  const bool any_on_gpu = std::ranges::any_of(earlier->points, is_on_gpu);
  if (any_on_gpu && !record_.machine.gpus.empty() && earlier->machine.gpus != record_.machine.gpus)
    errors.push_back({{path, 0, 0}, "the record to resume has points of other GPUs", "", "the same GPUs"});
  if (!errors.empty()) return errors;
  record_.points = std::move(earlier->points);
  // The kept points may be of other repeats, durations or rules than those of this run.
  const bool is_named = earlier->command.ends_with(record_.command);
  record_.command = earlier->command + (is_named ? "" : "; " + record_.command);
  if (any_on_gpu && record_.machine.gpus.empty()) {
    record_.machine.gpus = std::move(earlier->machine.gpus);
    record_.machine.driver = std::move(earlier->machine.driver);
  }
  return {};
}

/// In the order of the plan, which tables and plots keep for values that are not numbers.
void Session::sort_points() {
  const auto place = [&](const Point& point) {
    return std::ranges::find_if(all_, [&](const Point& planned) { return is_result_of(point, planned); }) -
           all_.begin();
  };
  std::ranges::stable_sort(record_.points, {}, place);
}

Errors Session::run(const std::function<void(const Progress&)>& on_progress) {
  const std::atomic<bool>& stop = *setting_->stop;
  const auto tell = [&](std::size_t number, std::string what) {
    if (on_progress) on_progress({number, plan_.size(), std::move(what)});
  };
  tell(0, "the machine's limits");
  record_.limits = measure_limits(std::max(record_.machine.cores, 1U), setting_->gpus, stop);
  if (!all_.empty()) sort_points();
  for (const Point& kept : record_.points) trial_->remember(kept);
  std::map<std::string, std::size_t> left_out;  // points, by reason
  const auto note_left_out = [&] {
    for (const auto& [why, count] : left_out) {
      record_.left_out.push_back(fmt::format("{} of {}: {}", count, format_count(plan_.size(), "point"), why));
      left_out_ += count;
    }
  };
  for (std::size_t i = 0; i < plan_.size() && !stop.load(); ++i) {
    tell(i + 1, describe(plan_[i]));
    Point point = plan_[i];
    setting_->repeats = point.find("headline") != nullptr ? headline_repeats_ : repeats_;
    const std::string why_not = trial_->make_ready(point);
    if (stop.load()) break;
    if (!why_not.empty()) {
      ++left_out[why_not];
      continue;
    }
    const Result<void> measured = trial_->measure(point, record_.limits);
    // A measurement that was stopped early may have a wrong result, which must not be reported.
    if (stop.load()) break;
    if (!measured) {
      note_left_out();
      for (const Error& error : measured.error()) record_.errors.push_back(to_string(error));
      return measured.error();
    }
    record_.points.push_back(std::move(point));
    ++measured_;
    if (!all_.empty()) sort_points();
  }
  note_left_out();
  record_.complete = measured_ + left_out_ == plan_.size();
  return {};
}

}  // namespace penstock::experiments
