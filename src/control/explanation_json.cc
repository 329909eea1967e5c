// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/explanation_json.h"

#include <string>

namespace penstock::control {

namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json step_json(const run::ExplainedPacket::Step& step) {
  if (step.function.empty()) return {{"fork", text_or_null(step.arm)}};
  Json json{{"function", step.function}};
  add_decision(json, step.decision);
  const function::Explanation why = step.explanation.value_or(function::Explanation());
  json["explained"] = step.explanation.has_value();
  json["decided_by"] = text_or_null(why.decided_by);
  Json& passed_over = json["passed_over"] = Json::array();
  for (const auto& other : why.passed_over) passed_over.push_back({{"what", other.what}, {"why", other.why}});
  json["not_listed"] = why.not_listed;
  json["notes"] = why.notes;
  json["changes"] = to_json(step.changes);
  return json;
}

}  // namespace

Json to_json(const std::vector<run::FieldChange>& changes) {
  Json json = Json::array();
  for (const run::FieldChange& change : changes) {
    json.push_back(
        {{"field", change.field}, {"before", text_or_null(change.before)}, {"after", text_or_null(change.after)}});
  }
  return json;
}

void add_decision(Json& to, const run::Decision& decision) {
  to["verdict"] = decision.verdict;
  to["reason"] = text_or_null(decision.reason);
  to["port"] = text_or_null(decision.port);
}

Json to_json(const run::ExplainedPacket& packet) {
  Json json{{"packet", packet.packet}, {"in", packet.in_port}, {"steps", Json::array()}};
  for (const run::ExplainedPacket::Step& step : packet.steps) json["steps"].push_back(step_json(step));
  add_decision(json, packet.outcome);
  json["refused"] = text_or_null(packet.refused);
  json["open_questions"] = packet.open_questions;
  return json;
}

}  // namespace penstock::control
