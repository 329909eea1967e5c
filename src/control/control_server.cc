// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/control_server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

#include "base/capabilities.h"
#include "base/log.h"
#include "base/parameter.h"
#include "base/thread_placement.h"
#include "base/units.h"
#include "control/explanation_json.h"
#include "control/packet_filter.h"
#include "control/probe_packet.h"
#include "control/status.h"

namespace penstock::control {

namespace {

/// Of these, one is done at a time.
bool changes_run(Command command) {
  return command == Command::reload || command == Command::rollback || command == Command::hand_over;
}

Error error_of(std::string message, std::string found = "", std::string expected = "") {
  return {{}, std::move(message), std::move(found), std::move(expected)};
}

std::string text_of(const std::optional<Peer>& peer) {
  return peer ? fmt::format("process {} of user {}", peer->pid, peer->uid) : "an unknown process";
}

void log_request(const tl::expected<Request, BadRequest>& request, const std::optional<Peer>& peer) {
  if (request) {
    log_debug("control: {} {} from {}", kind_of(request->command).name,
              request->arguments.dump(-1, ' ', false, Json::error_handler_t::replace), text_of(peer));
  } else {
    log_debug("control: from {}: {}", text_of(peer), to_string(request.error().error));
  }
}

/// Where workers have no cores of their own, busy clients must not keep them from theirs.
void yield_to_workers() noexcept {
  constexpr int kLess = 10;
  errno = 0;
  const int now = ::getpriority(PRIO_PROCESS, 0);  // of this thread, as everywhere in Linux
  if (errno == 0) static_cast<void>(::setpriority(PRIO_PROCESS, 0, now + kLess));
}

constexpr std::uint64_t kUsualCount = 1000;  // of a capture

Result<std::size_t> find_function(const run::Chain& chain, const std::string& name) {
  std::vector<std::string_view> names;
  for (std::size_t f = 0; f < chain.functions.size(); ++f) {
    if (chain.functions[f].name == name) return f;
    names.push_back(chain.functions[f].name);
  }
  return failure(error_of("function: no such function", in_quotes(name), expected_name(name, names)));
}

/// Empty: any reason, which "" stands for.
Result<std::optional<std::uint16_t>> find_reason(std::span<const std::string_view> reasons, const std::string& name) {
  if (name.empty()) return std::optional<std::uint16_t>();
  const auto found = std::ranges::find(reasons, name);
  if (found != reasons.end()) return std::optional(static_cast<std::uint16_t>(found - reasons.begin()));
  return failure(error_of("reason: the function drops nothing for it", in_quotes(name), expected_name(name, reasons)));
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(UnixListener listener, Subject subject) {
  const ThreadOnCpus off_workers(subject.loaded.chain.settings.placement.other_cores);
  try {
    return std::unique_ptr<ControlServer>(new ControlServer(std::move(listener), std::move(subject)));
  } catch (const std::system_error& error) {
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
}

ControlServer::ControlServer(UnixListener listener, Subject subject)
    : listener_(std::move(listener)), subject_(std::move(subject)), server_(listener_.fd(), {}, *this), thread_([this] {
        static_cast<void>(::pthread_setname_np(::pthread_self(), "control"));
        // It began before the run, which gives up what it does not need, and needs nothing itself.
        static_cast<void>(keep_only({}));
        yield_to_workers();
        server_.run();
      }) {}

ControlServer::~ControlServer() {
  listener_.remove_path();  // whoever waits for the end may start the next run at once
  {
    const std::lock_guard lock(mutex_);
    for (const Asked& asked : queue_) send_failure(asked, Failure::not_running, no_run());
    for (const Asked& asked : draining_) {
      if (!result_) {
        send_failure(asked, Failure::not_running, no_run());
      } else {
        const Json report = report_json(result_->report, subject_.chain_file, result_->errors);
        send_result(asked, {{"state", "ended"}, {"packets", report["packets"]}, {"errors", report["errors"]}});
      }
    }
  }
  server_.stop();
  thread_.join();
}

Result<void> ControlServer::begin(run::Run& run) {
  {
    const std::lock_guard lock(mutex_);
    run_ = &run;
  }
  return listener_.replace();
}

void ControlServer::tick() {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (queue_.empty()) return;
    const Asked asked = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    carry_out(asked, *run_);
  }
}

void ControlServer::end(const run::RunResult& result) {
  const std::lock_guard lock(mutex_);
  run_ = nullptr;
  result_ = result;
}

void ControlServer::outputs_written(const Errors& errors) {
  const std::lock_guard lock(mutex_);
  result_->errors = errors;
}

std::optional<std::string> ControlServer::refuse(int socket) {
  const auto peer = peer_of(socket);
  if (peer && (peer->uid == 0 || peer->uid == ::geteuid())) {
    log_debug("control: {} connects", text_of(peer));
    return std::nullopt;
  }
  log_warning("control: refused {}", text_of(peer));
  return failure_text(nullptr, Failure::refused,
                      {error_of("this user may not control the run", peer ? fmt::format("user {}", peer->uid) : "",
                                ::geteuid() == 0 ? "root" : fmt::format("user {}, or root", ::geteuid()))});
}

LineHandler::Next ControlServer::received(ClientId client, std::string_view line) {
  if (line.empty() || line == "\r") return Next::line;
  auto request = read_request(line);
  if (Log::of_process().writes(LogLevel::debug)) log_request(request, peer_of(server_.share(client).get()));
  if (!request) {
    server_.send(client, failure_text(request.error().id, Failure::request, {request.error().error}));
    return Next::answer;
  }
  const Asked asked{client, std::move(*request)};
  try {
    return answer(asked);
  } catch (const std::exception& error) {  // no memory for a long answer, or a GPU that is lost
    send_failure(asked, Failure::failed, error_of("the run cannot answer", error.what()));
  }
  return Next::answer;
}

std::string ControlServer::farewell(Closing reason) {
  if (reason == Closing::too_many_clients) log_warning("control: refused a client: there are too many");
  const LineServer::Limits& limits = server_.limits();
  const auto text = [](std::string message, std::string found, std::string expected) {
    return failure_text(nullptr, Failure::refused,
                        {error_of(std::move(message), std::move(found), std::move(expected))});
  };
  switch (reason) {
    case Closing::too_many_clients:
      return text(std::string(kTooManyClients), "", fmt::format("at most {} at a time", limits.clients));
    case Closing::line_too_long:
      return text("the request is too long", "", fmt::format("a line of at most {}", format_size(limits.line_bytes)));
    case Closing::line_unfinished:
      return text("the request is not finished", "",
                  fmt::format("the whole line within {}", format_duration(limits.line_time)));
    case Closing::idle: break;
  }
  return text("no request came", "", fmt::format("one within {}", format_duration(limits.idle_time)));
}

LineHandler::Next ControlServer::answer(const Asked& asked) {
  switch (asked.request.command) {
    case Command::status: send_result(asked, status()); break;
    case Command::stats: answer_stats(asked); break;
    case Command::explain: answer_explain(asked); break;
    case Command::trace:
    case Command::capture: return observe(asked);
    case Command::conntrack: return inquire(asked);
    case Command::stop:
    case Command::drain: ask_to_stop(asked); break;
    case Command::log_level: answer_log_level(asked); break;
    case Command::reload:
    case Command::rollback:
    case Command::hand_over:
    case Command::reopen_logs: queue(asked); break;
  }
  return Next::answer;
}

void ControlServer::send_result(const Asked& asked, const Json& result) {
  std::string text = result_text(asked.request.id, result);
  const std::size_t most = server_.limits().unsent_bytes;
  if (text.size() <= most) return server_.send(asked.client, std::move(text));
  send_failure(asked, Failure::failed,
               error_of("the answer is too long", format_size(text.size()), "at most " + format_size(most)));
}

void ControlServer::send_failure(const Asked& asked, Failure kind, Error error) {
  server_.send(asked.client, failure_text(asked.request.id, kind, {std::move(error)}));
}

/// Empty: the run has not begun. Call it with the lock.
std::optional<report::RunReport> ControlServer::report() const {
  if (run_ != nullptr) return run_->report();
  if (result_) return result_->report;
  return std::nullopt;
}

Json ControlServer::status() const {
  const std::lock_guard lock(mutex_);
  const auto report = this->report();
  RunState state{"starting", subject_.chain_file, started_, report ? &*report : nullptr, run_ != nullptr};
  if (report) state.name = run_ == nullptr ? "ended" : subject_.stop_asked.load() ? "ending" : "running";
  return status_json(subject_.loaded, subject_.reloader, state);
}

void ControlServer::answer_stats(const Asked& asked) {
  const std::lock_guard lock(mutex_);
  const auto report = this->report();
  if (!report) return send_failure(asked, Failure::not_running, no_run());
  send_result(asked, report_json(*report, subject_.chain_file, result_ ? result_->errors : Errors()));
}

void ControlServer::answer_explain(const Asked& asked) {
  const Request& request = asked.request;
  const auto refuse = [&](const Errors& errors) {
    server_.send(asked.client, failure_text(request.id, Failure::request, errors));
  };
  const std::string tuple = request.text("tuple"), flags = request.text("flags");
  auto frame = make_probe({tuple, flags, request.number("length")});
  if (!frame) return refuse(frame.error());
  const auto port = input_port(subject_.loaded.chain, request.text("in"));
  if (!port) return refuse(port.error());
  PacketDescriptor packet;
  packet.length = packet.wire_length = static_cast<std::uint32_t>(frame->size());
  packet.in_port = *port;
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr) return send_failure(asked, Failure::not_running, no_run());
  send_result(asked, to_json(run_->explain({frame->data(), &packet})));
}

LineHandler::Next ControlServer::observe(const Asked& asked) {
  const Request& request = asked.request;
  const auto seconds = request.number("timeout");
  Observation observation{asked, std::make_shared<PacketStream>(), 0, std::nullopt, {}};
  observation.wanted =
      request.command == Command::trace ? *request.number("packets") : request.number("count").value_or(kUsualCount);
  if (seconds) observation.until = std::chrono::steady_clock::now() + std::chrono::seconds(*seconds);
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr) {
    send_failure(asked, Failure::not_running, no_run());
    return Next::answer;
  }
  const bool one_has_not_ended = std::ranges::any_of(
      observations_, [&](const auto& other) { return other.second.asked.request.command == request.command; });
  const Result<bool> begun = one_has_not_ended ? Result<bool>(false) : begin_observation(observation);
  if (!begun) {
    server_.send(asked.client, failure_text(request.id, Failure::request, begun.error()));
  } else if (!*begun) {
    send_failure(asked, Failure::busy,
                 error_of(fmt::format("another {} is under way", kind_of(request.command).name), "",
                          "a request when it has ended"));
  } else {
    observations_.emplace(asked.client, std::move(observation));
    return Next::parts;
  }
  return Next::answer;
}

/// False: another one is under way. Call it with the lock.
Result<bool> ControlServer::begin_observation(Observation& observation) {
  const Request& request = observation.asked.request;
  std::function<bool(PacketView)> chooses;
  if (const std::string expression = request.text("filter"); !expression.empty()) {
    auto filter = PacketFilter::compile(expression);
    if (!filter) return failure(std::move(filter.error()));
    chooses = std::move(*filter);
  }
  const auto fill = [&](auto& order) {
    order.items = observation.wanted;
    order.chooses = std::move(chooses);
    order.take = [stream = observation.stream](const auto& item) { stream->add(item); };
    order.missed = [stream = observation.stream](std::uint64_t packets) { stream->lose(packets); };
  };
  if (request.command == Command::trace) {
    run::Trace::Order order;
    fill(order);
    return run_->taps().trace.begin(std::move(order));
  }
  const run::Chain& chain = subject_.loaded.chain;
  const auto function = find_function(chain, request.text("function"));
  if (!function) return failure(function.error());
  observation.reasons = run_->drop_reasons(*function);
  const auto reason = find_reason(observation.reasons, request.text("reason"));
  if (!reason) return failure(reason.error());
  run::Tap<run::DroppedFrame>::Order order;
  fill(order);
  return run_->taps().capture.begin(*function, *reason, std::move(order));
}

void ControlServer::end_observation(const Observation& observation) {
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr) return;
  if (observation.asked.request.command == Command::trace) {
    run_->taps().trace.end();
  } else {
    run_->taps().capture.end();
  }
}

LineHandler::Next ControlServer::inquire(const Asked& asked) {
  const Request& request = asked.request;
  std::vector<run::TrackedConnections> tracked;
  {
    const std::lock_guard lock(mutex_);
    if (run_ == nullptr) {
      send_failure(asked, Failure::not_running, no_run());
      return Next::answer;
    }
    tracked = run_->connections();
  }
  const bool events = request.text("action") == "events";
  if (tracked.empty()) {
    send_failure(asked, Failure::failed,
                 error_of("no function of the chain tracks connections", "",
                          "a firewall with rules that test connections, or with its parameter `connections`"));
  } else if (events && std::ranges::any_of(inquiries_, [](const auto& i) { return i.second->follows_events(); })) {
    send_failure(asked, Failure::busy,
                 error_of("another client follows the events", "", "a request when it has ended"));
  } else if (auto made = ConnectionInquiry::make(request, tracked); !made) {
    server_.send(asked.client, failure_text(request.id, Failure::request, made.error()));
  } else {
    inquiries_.emplace(asked.client, std::move(*made));
    return Next::parts;
  }
  return Next::answer;
}

LineHandler::Part ControlServer::next_part(ClientId client) {
  constexpr std::size_t kMostItems = 64;
  if (const auto inquiry = inquiries_.find(client); inquiry != inquiries_.end()) {
    const bool run_goes_on = [this] {
      const std::lock_guard lock(mutex_);
      return run_ != nullptr;
    }();
    Part part = inquiry->second->next_part(run_goes_on);
    if (part.last) inquiries_.erase(inquiry);
    return part;
  }
  const auto found = observations_.find(client);
  if (found == observations_.end()) return {"", true};
  Observation& observation = found->second;
  const Json& id = observation.asked.request.id;
  std::string_view why;
  PacketStream::Counts counts = observation.stream->counts();
  if (counts.added + counts.lost >= observation.wanted) {
    why = "count";
  } else if (observation.until && std::chrono::steady_clock::now() >= *observation.until) {
    why = "timeout";
  } else if (const std::lock_guard lock(mutex_); run_ == nullptr) {
    why = "run";
  }
  if (!why.empty()) end_observation(observation);
  Part part;
  const std::vector<PacketStream::Item> items = observation.stream->take(kMostItems);
  for (const PacketStream::Item& item : items)
    part.text += event_text(id, to_json(item, subject_.loaded.chain, observation.reasons));
  // What is left waits for the next part.
  if (why.empty() || items.size() == kMostItems) return part;
  counts = observation.stream->counts();
  part.text += result_text(id, {{"packets", counts.added}, {"lost", counts.lost}, {"ended", why}});
  part.last = true;
  observations_.erase(found);
  return part;
}

void ControlServer::gone(ClientId client) {
  inquiries_.erase(client);
  const auto found = observations_.find(client);
  if (found == observations_.end()) return;
  end_observation(found->second);
  observations_.erase(found);
}

void ControlServer::answer_log_level(const Asked& asked) {
  Log& log = Log::of_process();
  const LogLevel before = log.level();
  const LogLevel level = log_level(asked.request.text("level")).value_or(before);
  if (level != before) {
    log.set_level(std::max(before, level));  // of both, the one at which the next message is seen
    log_info("log level {}, was {} (penstock ctl)", name(level), name(before));
    log.set_level(level);
  }
  send_result(asked, {{"level", name(level)}, {"before", name(before)}});
}

void ControlServer::ask_to_stop(const Asked& asked) {
  subject_.stop();
  if (asked.request.command == Command::stop) return send_result(asked, {{"state", "ending"}});
  const std::lock_guard lock(mutex_);
  draining_.push_back(asked);
}

void ControlServer::queue(const Asked& asked) {
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr) return send_failure(asked, Failure::not_running, no_run());
  if (changes_run(asked.request.command)) {
    if (reload_asked_) {
      return send_failure(
          asked, Failure::busy,
          error_of("another reload, rollback or hand-over is under way", "", "a request when it is done"));
    }
    reload_asked_ = true;
  }
  if (asked.request.command == Command::hand_over && !asked.request.flag("dry_run"))
    successor_ = server_.share(asked.client);
  queue_.push_back(asked);
}

void ControlServer::carry_out(const Asked& asked, run::Run& run) {
  if (asked.request.command == Command::reopen_logs) {
    if (const Errors errors = run.reopen_logs(); !errors.empty())
      return server_.send(asked.client, failure_text(asked.request.id, Failure::failed, errors));
    return send_result(asked, Json::object());
  }
  if (asked.request.command == Command::hand_over) return carry_out_hand_over(asked, run);
  carry_out_reload(asked, run);
}

void ControlServer::carry_out_hand_over(const Asked& asked, run::Run& run) {
  Errors errors;
  if (asked.request.flag("dry_run")) {
    auto continuity = run.continuity();
    if (continuity) {
      send_result(asked, to_json(*continuity));
    } else {
      errors = std::move(continuity.error());
    }
  } else {
    const HandOverOutcome outcome =
        hand_over(run, std::exchange(successor_, {}), asked.request.id, subject_.on_leaving);
    subject_.on_hand_over(outcome);
    errors = outcome.errors;
  }
  if (!errors.empty()) server_.send(asked.client, failure_text(asked.request.id, Failure::failed, errors));
  const std::lock_guard lock(mutex_);
  reload_asked_ = false;
}

void ControlServer::carry_out_reload(const Asked& asked, run::Run& run) {
  Reloader& reloader = subject_.reloader;
  const ReloadOutcome outcome = asked.request.command == Command::rollback ? reloader.rollback(run)
                                : asked.request.flag("dry_run")            ? reloader.dry_run()
                                                                           : reloader.reload(run);
  if (outcome.what != ReloadOutcome::What::dry_run) subject_.on_reload(outcome);
  {
    const std::lock_guard lock(mutex_);
    reload_asked_ = false;
  }
  send_outcome(asked, outcome);
}

void ControlServer::send_outcome(const Asked& asked, const ReloadOutcome& outcome) {
  using Result = ReloadOutcome::Result;
  if (outcome.result == Result::in_use || outcome.result == Result::unchanged)
    return send_result(asked, to_json(outcome));
  const Failure kind = outcome.result == Result::refused ? Failure::mistakes : Failure::failed;
  server_.send(asked.client, failure_text(asked.request.id, kind, outcome.errors));
}

Error ControlServer::no_run() const {
  return !result_ ? error_of("the run has not begun", "", "a request when packets flow")
                  : error_of("the run has ended", "", "a request while packets flow");
}

}  // namespace penstock::control
