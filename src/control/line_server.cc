// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/line_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace penstock::control {

namespace {

constexpr std::size_t kReceivedAtOnce = std::size_t{16} << 10;
/// Lines and receptions of a client in one turn, so that none of them keeps the others waiting.
constexpr int kStepsInATurn = 16;
/// When the system has no descriptor for a new client, which stays in the listener's queue.
constexpr std::chrono::milliseconds kAcceptAgain{100};

/// What does not fit into the socket's buffer is lost.
void send_at_once(int socket, std::string_view text) noexcept {
  if (!text.empty()) static_cast<void>(::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace

template <typename Predicate>
void LineServer::close_if(Predicate predicate) {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (!predicate(client->first, client->second)) {
      ++client;
      continue;
    }
    leave(client->first, client->second);
    client = clients_.erase(client);
  }
}

void LineServer::leave(ClientId id, const Client& client) {
  if (client.in_parts) handler_.gone(id);
}

LineServer::LineServer(int listener, Limits limits, LineHandler& handler)
    : listener_(listener), limits_(limits), handler_(handler) {}

void LineServer::stop() noexcept {
  stopped_.store(true);
  wake_up_.signal();
}

void LineServer::send(ClientId client, std::string text, After after) {
  {
    const std::lock_guard lock(texts_mutex_);
    texts_.push_back({client, std::move(text), after});
  }
  wake_up_.signal();
}

void LineServer::run() {
  while (!stopped_.load()) {
    wait();
    more_to_do_ = false;
    take_texts();
    accept_clients();
    close_if([this](ClientId id, Client& client) { return serve(id, client) == State::gone; });
    close_late(Clock::now());
  }
  finish();
}

/// Waits until there is something to do, for whichever client: a turn looks at all of them.
void LineServer::wait() {
  const Clock::time_point now = Clock::now();
  polled_.clear();
  polled_.push_back({wake_up_.fd(), POLLIN, 0});
  if (accept_again_ && *accept_again_ <= now) accept_again_.reset();
  if (!accept_again_) polled_.push_back({listener_, POLLIN, 0});
  for (const auto& [id, client] : clients_) {
    // A client that waits for its answer is watched for its end only (POLLHUP); what it sends stays in its socket.
    const bool takes = !client.answer_due && !client.ended && !client.has_unsent();
    const int events = (client.has_unsent() ? POLLOUT : 0) | (takes ? POLLIN : 0);
    polled_.push_back({client.socket.get(), static_cast<short>(events), 0});
  }
  if (::poll(polled_.data(), polled_.size(), wait_time(now)) > 0 && polled_.front().revents != 0) wake_up_.clear();
  // A client that has gone before it got its answer would wake up every poll from here on.
  auto polled = polled_.end() - static_cast<std::ptrdiff_t>(clients_.size());
  close_if([&](ClientId, const Client&) {
    const int events = (polled++)->revents;
    return (events & (POLLHUP | POLLERR)) != 0 && (events & POLLIN) == 0;
  });
}

/// In milliseconds; -1: without end.
int LineServer::wait_time(Clock::time_point now) const {
  if (more_to_do_) return 0;
  std::optional<Clock::time_point> next = accept_again_;
  for (const auto& [id, client] : clients_) {
    auto deadline = deadline_of(client);
    if (client.in_parts && !client.has_unsent()) deadline = now + limits_.part_time;
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now);
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
}

std::optional<LineServer::Clock::time_point> LineServer::deadline_of(const Client& client) const {
  if (client.has_unsent()) return client.since + limits_.stalled_time;
  if (client.answer_due) return std::nullopt;
  return client.since + (client.in.empty() ? limits_.idle_time : limits_.line_time);
}

void LineServer::accept_clients() {
  if (accept_again_) return;
  for (int turn = 0; turn < kStepsInATurn; ++turn) {
    port::FileDescriptor socket(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        accept_again_ = Clock::now() + kAcceptAgain;
      return;
    }
    if (clients_.size() >= limits_.clients) {
      send_at_once(socket.get(), handler_.farewell(Closing::too_many_clients));
    } else if (const auto refusal = handler_.refuse(socket.get())) {
      send_at_once(socket.get(), *refusal);
    } else {
      Client& client = clients_[next_++];
      client.socket = std::move(socket);
      client.since = Clock::now();
    }
  }
}

void LineServer::take_texts() {
  std::vector<Text> texts;
  {
    const std::lock_guard lock(texts_mutex_);
    texts.swap(texts_);
  }
  for (Text& text : texts) {
    const auto found = clients_.find(text.client);
    if (found == clients_.end()) continue;
    Client& client = found->second;
    if (client.out.size() - client.sent + text.text.size() > limits_.unsent_bytes) {
      leave(found->first, client);
      clients_.erase(found);
      continue;
    }
    if (!client.has_unsent()) client.since = Clock::now();
    client.out.erase(0, client.sent);
    client.sent = 0;
    client.out += text.text;
    client.answer_due = false;
    client.close_after |= text.after == After::close;
  }
}

/// Whether there was one.
bool LineServer::take_part(ClientId id, Client& client) {
  LineHandler::Part part = handler_.next_part(id);
  if (part.last) client.in_parts = client.answer_due = false;
  if (part.text.empty()) return part.last;
  client.since = Clock::now();
  client.out = std::move(part.text);
  client.sent = 0;
  return true;
}

LineServer::State LineServer::serve(ClientId id, Client& client) {
  for (int step = 0; step < kStepsInATurn; ++step) {
    if (client.has_unsent()) {
      if (send_some(client) == State::gone) return State::gone;
      if (client.has_unsent()) return State::open;
    }
    if (client.close_after) return State::gone;
    if (client.in_parts && take_part(id, client)) continue;
    if (client.answer_due) return State::open;
    const std::size_t end = client.in.find('\n', client.searched);
    client.searched = end == std::string::npos ? client.in.size() : end;
    if (client.searched > limits_.line_bytes) return close(client, Closing::line_too_long);
    if (end != std::string::npos) {
      const std::string line = client.in.substr(0, end);
      client.in.erase(0, end + 1);
      client.searched = 0;
      client.since = Clock::now();
      const LineHandler::Next next = handler_.received(id, line);
      client.answer_due = next != LineHandler::Next::line;
      client.in_parts = next == LineHandler::Next::parts;
      continue;
    }
    if (client.ended) return State::gone;  // an unfinished line is no line
    const std::size_t before = client.in.size();
    if (receive_some(client) == State::gone) return State::gone;
    if (client.in.size() == before && !client.ended) return State::open;
  }
  more_to_do_ = true;
  return State::open;
}

LineServer::State LineServer::send_some(Client& client) {
  const ssize_t count = ::send(client.socket.get(), client.out.data() + client.sent, client.out.size() - client.sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? State::open : State::gone;
  client.sent += static_cast<std::size_t>(count);
  client.since = Clock::now();
  if (client.has_unsent()) return State::open;
  client.out = {};  // its memory too: answers can be long
  client.sent = 0;
  return State::open;
}

LineServer::State LineServer::receive_some(Client& client) {
  char buffer[kReceivedAtOnce];
  const ssize_t count = ::recv(client.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? State::open : State::gone;
  if (count == 0) client.ended = true;
  if (client.in.empty()) client.since = Clock::now();
  client.in.append(buffer, static_cast<std::size_t>(count));
  return State::open;
}

void LineServer::close_late(Clock::time_point now) {
  close_if([&](ClientId, const Client& client) {
    const auto deadline = deadline_of(client);
    if (!deadline || now < *deadline) return false;
    if (client.has_unsent()) return true;
    return close(client, client.in.empty() ? Closing::idle : Closing::line_unfinished) == State::gone;
  });
}

LineServer::State LineServer::close(const Client& client, Closing reason) {
  send_at_once(client.socket.get(), handler_.farewell(reason));
  return State::gone;
}

void LineServer::finish() {
  const Clock::time_point end = Clock::now() + limits_.closing_time;
  take_texts();
  // The rest of answers in parts, as far as it is there.
  for (auto& [id, client] : clients_) {
    if (client.in_parts && !client.has_unsent()) static_cast<void>(take_part(id, client));
  }
  for (;;) {
    close_if([this](ClientId, Client& client) {
      return !client.has_unsent() || send_some(client) == State::gone || !client.has_unsent();
    });
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (clients_.empty() || left.count() <= 0) break;
    polled_.clear();
    for (const auto& [id, client] : clients_) polled_.push_back({client.socket.get(), POLLOUT, 0});
    static_cast<void>(::poll(polled_.data(), polled_.size(), static_cast<int>(left.count())));
  }
  close_if([](ClientId, const Client&) { return true; });
}

}  // namespace penstock::control
