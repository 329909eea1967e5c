// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/connection_inquiry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "conntrack/saved_connections.h"
#include "control/connection_filter.h"

namespace penstock::control {

namespace {

/// In one part, so that the other clients get their turns.
constexpr std::uint32_t kMostLines = 512;

std::string_view event_name(conntrack::EventKind kind) {
  switch (kind) {
    case conntrack::EventKind::begun: return "new";
    case conntrack::EventKind::changed: return "update";
    case conntrack::EventKind::ended: break;
  }
  return "destroy";
}

Error without_meaning(std::string_view member, std::string_view action, std::string expected) {
  return {{}, fmt::format("{}: not of {}", member, action), "", std::move(expected)};
}

}  // namespace

Result<std::unique_ptr<ConnectionInquiry>> ConnectionInquiry::make(
    const Request& request, const std::vector<run::TrackedConnections>& tracked) {
  const std::string text = request.text("action");
  const Action action = text == "list"    ? Action::list
                        : text == "save"  ? Action::save
                        : text == "count" ? Action::count
                        : text == "flush" ? Action::flush
                                          : Action::events;
  const auto filter = filter_of(request);
  if (!filter) return failure(filter.error());
  if (request.number("limit") && action != Action::list && action != Action::events)
    return failure(without_meaning("limit", text, "list or events"));
  if (request.number("timeout") && action != Action::events) return failure(without_meaning("timeout", text, "events"));
  return std::unique_ptr<ConnectionInquiry>(new ConnectionInquiry(request, action, *filter, tracked));
}

ConnectionInquiry::ConnectionInquiry(const Request& request, Action action, const conntrack::Filter& filter,
                                     const std::vector<run::TrackedConnections>& tracked)
    : id_(request.id), action_(action), filter_(filter), limit_(request.number("limit")) {
  for (const run::TrackedConnections& of_function : tracked) {
    for (auto& access : of_function.connections->workers())
      tables_.push_back({of_function.function, std::move(access)});
  }
  if (const auto seconds = request.number("timeout")) until_ = SteadyClock::now() + std::chrono::seconds(*seconds);
  if (action != Action::events) return;
  for (const OfWorker& table : tables_) table.access->events().begin();
}

ConnectionInquiry::~ConnectionInquiry() {
  if (asked_) tables_[at_].access->release();
  if (action_ != Action::events) return;
  for (const OfWorker& table : tables_) table.access->events().end();
}

LineHandler::Part ConnectionInquiry::next_part(bool run_goes_on) {
  if (action_ == Action::events) return next_events(run_goes_on);
  if (is_done()) return result();
  if (!run_goes_on) return failed(Failure::not_running, "the run has ended", "a request while packets flow");
  return next_of_table();
}

LineHandler::Part ConnectionInquiry::next_events(bool run_goes_on) {
  LineHandler::Part part;
  const std::uint64_t before = count_;
  std::uint32_t taken = 0;
  std::uint64_t lost = 0;
  for (const OfWorker& table : tables_) {
    conntrack::Event event;
    while (taken < kMostLines && (!limit_ || count_ < *limit_) && table.access->events().take(event)) {
      ++taken;
      if (!filter_.matches(event.record)) continue;
      ++count_;
      Json json{{"kind", event_name(event.kind)}};
      json.update(to_json(event.record, table.function));
      part.text += event_text(id_, json);
    }
    lost += table.access->events().take_lost();
  }
  if (lost > 0) {
    lost_ += lost;
    part.text += event_text(id_, {{"kind", "lost"}, {"events", lost}});
  }
  const std::string_view ended = limit_ && count_ >= *limit_               ? "count"
                                 : until_ && SteadyClock::now() >= *until_ ? "timeout"
                                 : !run_goes_on && count_ == before        ? "run"
                                                                           : "";
  if (ended.empty()) return part;
  part.text += result_text(id_, {{"events", count_}, {"lost", lost_}, {"ended", ended}});
  part.last = true;
  return part;
}

LineHandler::Part ConnectionInquiry::next_of_table() {
  if (records_.empty() && saved_.empty()) {
    conntrack::TableAccess& access = *tables_[at_].access;
    using Kind = conntrack::TableAccess::Request::Kind;
    const Kind kind = action_ == Action::list    ? Kind::list
                      : action_ == Action::save  ? Kind::save
                      : action_ == Action::count ? Kind::count
                                                 : Kind::flush;
    if (!asked_) asked_ = access.ask({kind, filter_, from_});  // else another client's request is served first
    const conntrack::TableAccess::Answer* const answer = asked_ ? access.answer() : nullptr;
    if (answer == nullptr) {
      const SteadyClock::time_point now = SteadyClock::now();
      if (!waits_since_) waits_since_ = now;
      if (now - *waits_since_ < kLongestWait) return {};
      return failed(Failure::failed, "a worker does not answer", "one that gets packets done");
    }
    waits_since_.reset();
    take(*answer);
  }
  LineHandler::Part part{action_ == Action::save ? some_saved() : some_lines()};
  if (!is_done()) return part;
  LineHandler::Part last = result();
  part.text += last.text;
  part.last = true;
  return part;
}

void ConnectionInquiry::take(const conntrack::TableAccess::Answer& answer) {
  if (action_ == Action::save) {
    saved_.assign(answer.saved_array.begin(), answer.saved_array.begin() + answer.records);
  } else {
    records_.assign(answer.record_array.begin(), answer.record_array.begin() + answer.records);
  }
  used_ = 0;
  function_ = tables_[at_].function;
  from_ = answer.next;
  for (std::size_t p = 0; p < by_protocol_.size(); ++p) {
    by_protocol_[p] += answer.by_protocol[p];
    if (action_ == Action::count || action_ == Action::flush) count_ += answer.by_protocol[p];
  }
  tables_[at_].access->release();
  asked_ = false;
  if (from_ == 0) ++at_;
}

std::string ConnectionInquiry::some_lines() {
  std::string text;
  const std::size_t end = std::min<std::size_t>(records_.size(), used_ + kMostLines);
  for (; used_ < end && (!limit_ || count_ < *limit_); ++used_, ++count_)
    text += event_text(id_, to_json(records_[used_], function_));
  if (used_ == records_.size()) records_.clear();
  return text;
}

/// {"connections": 2, "lines": "protocol=6 …\nprotocol=17 …\n"}
std::string ConnectionInquiry::some_saved() {
  std::string lines;
  const std::size_t before = used_;
  const std::size_t end = std::min<std::size_t>(saved_.size(), used_ + kMostLines);
  for (; used_ < end; ++used_) conntrack::append_saved(lines, saved_[used_]);
  const std::size_t connections = used_ - before;
  count_ += connections;
  if (used_ == saved_.size()) saved_.clear();
  return connections == 0 ? "" : event_text(id_, {{"connections", connections}, {"lines", std::move(lines)}});
}

LineHandler::Part ConnectionInquiry::result() const {
  Json json{{action_ == Action::flush ? "removed" : "connections", count_}};
  if (action_ == Action::save) json["format"] = conntrack::kSavedVersion;
  if (action_ == Action::count) {
    json["by_protocol"] = Json::object();
    for (std::size_t p = 0; p < by_protocol_.size(); ++p) {
      if (by_protocol_[p] == 0) continue;
      const std::string_view named = conntrack::protocol_name(static_cast<std::uint8_t>(p));
      json["by_protocol"][named == "unknown" ? std::to_string(p) : std::string(named)] = by_protocol_[p];
    }
  }
  return {result_text(id_, json), true};
}

LineHandler::Part ConnectionInquiry::failed(Failure kind, std::string message, std::string expected) const {
  return {failure_text(id_, kind, {Error{{}, std::move(message), "", std::move(expected)}}), true};
}

}  // namespace penstock::control
