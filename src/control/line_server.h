// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Serves the clients of a listening stream socket, which send lines and get texts back, in one thread that never blocks
// on any of them. Everything that clients can fill or keep waiting is bounded: their number, the length of a line, the
// bytes that wait to be sent, and times. What the lines mean is up to a LineHandler; the protocol may be any that
// consists of lines. An answer may come in parts, which the server takes from the handler only as fast as the client
// takes them.

#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "port/live/file_descriptor.h"
#include "port/stop_event.h"

namespace penstock::control {

/// Never used again for another client of the same server.
using ClientId = std::uint64_t;

/// Why a server closes the connection of a client.
enum class Closing : std::uint8_t {
  too_many_clients,
  line_too_long,
  line_unfinished,  // the rest of a line did not come in time
  idle,             // no line came for a long time
};

/// What to do with clients and their lines. Called only in the thread that is in `LineServer::run`; must not block.
class LineHandler {
 public:
  virtual ~LineHandler() = default;
  /// Called first for each client. A text: the client gets it, and is not served.
  [[nodiscard]] virtual std::optional<std::string> refuse(int socket) = 0;

  enum class Next : std::uint8_t {
    line,    // take the client's next line
    answer,  // take none before `LineServer::send` has been called for the client, and the answer has left
    parts,   // the answer is what `next_part` returns, until the last part
  };
  /// A line, without its line end.
  virtual Next received(ClientId client, std::string_view line) = 0;
  struct Part {
    std::string text;  // "": there is none yet; the server asks again soon
    bool last = false;
  };
  /// Called again and again while the client has nothing unsent.
  [[nodiscard]] virtual Part next_part(ClientId client) {
    static_cast<void>(client);
    return {"", true};
  }
  /// The client has gone. Called only if its answer comes in parts, and the last one was not asked for.
  virtual void gone(ClientId client) { static_cast<void>(client); }
  /// The last text for a client; "": none.
  [[nodiscard]] virtual std::string farewell(Closing reason) = 0;
};

class LineServer {
 public:
  struct Limits {
    std::size_t clients = 16;
    std::size_t line_bytes = std::size_t{64} << 10;    // without the line end
    std::size_t unsent_bytes = std::size_t{16} << 20;  // of a client; one that exceeds it is closed
    std::chrono::milliseconds line_time{10'000};       // from the first byte of a line to its end
    std::chrono::milliseconds idle_time{900'000};      // without any byte, while no answer is due
    std::chrono::milliseconds stalled_time{10'000};    // a client takes nothing of its answer; then it is closed
    std::chrono::milliseconds closing_time{1'000};     // for all that is unsent when the server stops
    std::chrono::milliseconds part_time{20};           // between two looks for the next part of an answer
  };

  /// Borrows `listener`, which must be non-blocking and listen, and `handler`.
  LineServer(int listener, Limits limits, LineHandler& handler);
  LineServer(const LineServer&) = delete;
  LineServer& operator=(const LineServer&) = delete;

  /// Serves clients until `stop`. Then sends what is unsent, and returns.
  void run();
  /// Thread-safe.
  void stop() noexcept;

  enum class After : std::uint8_t { keep, close };
  /// Sends a text to a client, and then closes its connection if so desired. Nothing happens if the client has gone.
  /// Thread-safe.
  void send(ClientId client, std::string text, After after = After::keep);

  /// Another descriptor of the client's socket, from which only its owner reads until the answer is sent. Only in
  /// `LineHandler::received` for this client, which then returns Next::answer.
  [[nodiscard]] port::FileDescriptor share(ClientId client) const { return clients_.at(client).socket.duplicate(); }

  [[nodiscard]] const Limits& limits() const noexcept { return limits_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Client {
    port::FileDescriptor socket;
    std::string in;             // received; not yet given to the handler
    std::size_t searched = 0;   // bytes of `in` that have no line end
    std::string out;            // unsent
    std::size_t sent = 0;       // bytes of `out` that have been sent
    bool answer_due = false;    // see LineHandler::Next
    bool in_parts = false;      // likewise; then an answer is due too
    bool ended = false;         // no more will be received
    bool close_after = false;   // when `out` has been sent
    Clock::time_point since{};  // of the state that a time limit is about

    [[nodiscard]] bool has_unsent() const noexcept { return sent < out.size(); }
    [[nodiscard]] bool is_waiting() const noexcept { return answer_due && !has_unsent(); }
  };
  struct Text {
    ClientId client;
    std::string text;
    After after;
  };
  enum class State : std::uint8_t { open, gone };

  [[nodiscard]] int wait_time(Clock::time_point now) const;
  [[nodiscard]] std::optional<Clock::time_point> deadline_of(const Client& client) const;
  void wait();
  void accept_clients();
  void take_texts();
  template <typename Predicate>
  void close_if(Predicate predicate);
  void close_late(Clock::time_point now);
  void leave(ClientId id, const Client& client);
  [[nodiscard]] bool take_part(ClientId id, Client& client);
  [[nodiscard]] State serve(ClientId id, Client& client);
  [[nodiscard]] State send_some(Client& client);
  [[nodiscard]] State receive_some(Client& client);
  [[nodiscard]] State close(const Client& client, Closing reason);
  void finish();

  const int listener_;
  const Limits limits_;
  LineHandler& handler_;
  std::map<ClientId, Client> clients_;
  ClientId next_ = 1;
  std::vector<pollfd> polled_;
  std::optional<Clock::time_point> accept_again_;  // the system has no descriptor left until then, perhaps
  bool more_to_do_ = false;                        // a client has more than its turn allowed
  std::atomic<bool> stopped_{false};
  port::StopEvent wake_up_;
  std::mutex texts_mutex_;  // guards the next member
  std::vector<Text> texts_;
};

}  // namespace penstock::control
