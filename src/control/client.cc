// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/slow_notice.h"
#include "control/unix_socket.h"

namespace penstock::control {

namespace {

/// Far more than a run sends; the socket may be somebody else's.
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;
/// How long to try again if there are too many clients, and how often.
constexpr std::chrono::seconds kLongestWaitForAPlace{5};
constexpr std::chrono::milliseconds kBetweenTries{50};
constexpr std::int64_t kLongestPoll = 60'000;  // ms

bool is_without_a_place(const NoResult& failure) {
  return failure.kind == name(Failure::refused) && !failure.errors.empty() &&
         failure.errors.front().message == kTooManyClients;
}

}  // namespace

std::string socket_named(const std::string& text) {
  const bool is_path = text.empty() || text.find('/') != text.npos || text.ends_with(".sock");
  if (is_path || ::access(text.c_str(), F_OK) == 0) return text;
  return fmt::format("{}/{}.sock", kSocketFolder, text);
}

Result<Client> Client::connect(const std::string& path) {
  auto socket = connect_to(path);
  if (!socket) return failure(std::move(socket.error()));
  return Client(path, std::move(*socket));
}

Error Client::lost(const std::string& reason) const {
  return {{path_, 0, 0}, "the connection was closed before the answer came", reason, "a run that goes on"};
}

Error Client::silent(std::chrono::seconds limit) const {
  const auto peer = peer_of(socket_.get());
  return {{path_, 0, 0},
          fmt::format("the run (process {}) does not answer", peer ? std::to_string(peer->pid) : "unknown"),
          "",
          fmt::format("an answer within {} s", limit.count())};
}

tl::expected<Json, NoResult> Client::ask(Command command, const Json& arguments, TimeLimit limit) {
  return ask(command, arguments, UseEvent(), limit);
}

tl::expected<Json, NoResult> Client::ask(Command command, const Json& arguments, const UseEvent& use, TimeLimit limit) {
  const Clock::time_point last_try = Clock::now() + kLongestWaitForAPlace;
  for (;;) {
    auto answer = ask_once(command, arguments, use, limit);
    if (answer || !is_without_a_place(answer.error()) || Clock::now() >= last_try) return answer;
    std::this_thread::sleep_for(kBetweenTries);
    auto socket = connect_to(path_);
    if (!socket) return tl::unexpected(NoResult{"", std::move(socket.error())});
    socket_ = std::move(*socket);
    received_.clear();
  }
}

tl::expected<Json, NoResult> Client::ask_once(Command command, const Json& arguments, const UseEvent& use,
                                              TimeLimit limit) {
  const auto no_answer = [](Error error) { return tl::unexpected(NoResult{"", {std::move(error)}}); };
  const Clock::time_point end = limit ? Clock::now() + *limit : Clock::time_point::max();
  const std::string text = request_text({++last_id_, command, arguments});
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = ::send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;  // a run that takes no requests from us has said why
    sent += static_cast<std::size_t>(count);
  }
  std::optional<SlowNotice> notice;  // those whose answer comes in parts may wait for packets
  if (!use) notice.emplace(fmt::format("{}: waiting for an answer of the run …", path_));
  for (;;) {
    auto line = read_line(limit, end);
    if (!line) return no_answer(std::move(line.error().front()));
    Json answer = Json::parse(*line, nullptr, false);
    const auto has = [&](const char* key) { return answer.is_object() && answer.contains(key); };
    const bool is_ours = has("id") && answer["id"] == last_id_;
    if (is_ours && has("event") && use) {
      use(answer["event"]);
      continue;
    }
    if (is_ours && has("ok") && answer["ok"] == true && has("result")) return std::move(answer["result"]);
    if (has("ok") && answer["ok"] == false && has("error") && answer["error"].is_object()) {
      const Json& kind = answer["error"]["kind"];
      return tl::unexpected(NoResult{kind.is_string() ? kind.get<std::string>() : "", errors_of(answer["error"])});
    }
    return no_answer({{path_, 0, 0}, "not an answer of penstock", in_quotes(*line), "an answer to the request"});
  }
}

Result<std::string> Client::read_line(TimeLimit limit, Clock::time_point end) {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t line_end = received_.find('\n', searched);
    if (line_end != std::string::npos) {
      std::string line = received_.substr(0, line_end);
      received_.erase(0, line_end + 1);
      return line;
    }
    searched = received_.size();
    if (searched > kLongestAnswer)
      return failure(Error{{path_, 0, 0}, "the answer is too long", "", "an answer of penstock"});
    if (limit) {
      // What has come is taken, however late it is.
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
      pollfd polled{socket_.get(), POLLIN, 0};
      const int count = ::poll(&polled, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongestPoll)));
      if (count < 0 && errno == EINTR) continue;
      if (count == 0 && Clock::now() < end) continue;
      if (count == 0) return failure(silent(*limit));
    }
    char buffer[std::size_t{64} << 10];
    const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failure(lost(count < 0 ? std::system_category().message(errno) : ""));
    received_.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace penstock::control
