// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/status.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/text_file.h"
#include "base/version.h"
#include "report/error_json.h"

namespace penstock::control {

namespace {

using Json = nlohmann::ordered_json;

Json program_json() { return {{"version", build_info().version}, {"commit", build_info().commit}}; }

std::string_view name_of(port::LinkState state) {
  switch (state) {
    case port::LinkState::absent: return "absent";
    case port::LinkState::down: return "down";
    case port::LinkState::up: break;
  }
  return "up";
}

Json port_json(const run::NamedPort& named, const config::FixedParts& parts, bool started) {
  const auto kind = std::ranges::find(parts.values, "ports." + named.name, &config::FixedParts::Part::name);
  Json json{{"name", named.name},           {"kind", kind == parts.values.end() ? Json() : Json(kind->form)},
            {"reads", named.port->reads()}, {"writes", named.port->writes()},
            {"interface", nullptr},         {"link", nullptr}};
  if (const auto interface = named.port->interface()) json["interface"] = interface->name;
  if (started) {
    if (const auto link = named.port->link()) json["link"] = name_of(*link);
  }
  return json;
}

/// What the run has in other processes.
Json processes_json(const config::LoadedChain& loaded, const report::RunReport& report) {
  Json processes = Json::array();
  if (report.gpu && report.gpu->proxy) {
    processes.push_back({{"function", nullptr},
                         {"socket", loaded.chain.settings.proxy},
                         {"connected", report.gpu->proxy->connected},
                         {"losses", report.gpu->proxy->losses}});
  }
  for (const report::FunctionReport& function : report.functions) {
    const auto process = function.details.find("process");
    if (!function.details.is_object() || process == function.details.end()) continue;
    processes.push_back({{"function", function.name},
                         {"socket", process->at("socket")},
                         {"connected", process->at("connected")},
                         {"losses", process->at("losses")}});
  }
  return processes;
}

void add_warnings(Json& json, const Warnings& warnings) {
  json["unsupported"] = report::to_json(warnings.unsupported);
  json["without_effect"] = report::to_json(warnings.without_effect);
  json["cautions"] = report::to_json(warnings.cautions);
}

}  // namespace

std::string utc_text(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

Json report_json(const report::RunReport& report, const std::string& chain_file, const Errors& errors) {
  Json json{{"penstock", program_json()}, {"chain", chain_file}};
  json.update(report::to_json(report));
  json["errors"] = Json::array();
  for (const Error& error : errors) json["errors"].push_back(to_string(error));
  return json;
}

Json to_json(const ReloadOutcome& outcome) {
  constexpr std::string_view kNames[] = {"reload", "dry_run", "rollback"};
  Json changes = Json::array();
  for (const config::Reload::Change& change : outcome.changes)
    changes.push_back({{"function", change.function}, {"change", change.what}});
  Json json{{"what", kNames[static_cast<std::size_t>(outcome.what)]},
            {"outcome", name_of_result(outcome)},
            {"at", utc_text(outcome.at)},
            {"elapsed_s", outcome.elapsed.count()},
            {"changes", changes}};
  add_warnings(json, outcome.warnings);
  json["errors"] = report::to_json(outcome.errors);
  return json;
}

Json status_json(const config::LoadedChain& loaded, const Reloader& reloader, const RunState& state) {
  const run::Chain& chain = loaded.chain;
  Json ports = Json::array();
  for (const run::NamedPort& port : chain.ports) ports.push_back(port_json(port, loaded.fixed, state.ports_started));
  Json functions = Json::array();
  for (const run::NamedFunction& function : chain.functions) functions.push_back(function.name);
  const auto last = reloader.last();
  Json json{{"penstock", program_json()},
            {"pid", ::getpid()},
            {"chain", resolved_path(state.chain_file)},
            {"state", state.name},
            {"started", utc_text(state.started)},
            {"elapsed_s", state.report == nullptr ? 0.0 : state.report->elapsed_s()},
            {"processor", function::name(chain.settings.processor)},
            {"gpus", chain.settings.gpus},
            {"workers", chain.settings.workers},
            {"functions", functions},
            {"ports", ports},
            {"processes", state.report == nullptr ? Json::array() : processes_json(loaded, *state.report)},
            {"reloads", state.report == nullptr ? 0 : state.report->reloads},
            {"last_reload", last ? to_json(*last) : Json()}};
  add_warnings(json, reloader.warnings());
  return json;
}

}  // namespace penstock::control
