// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Serves a fixed set of pages by HTTP, in one thread that never blocks on a client. GNU libmicrohttpd reads requests
// and writes answers. Everything that clients can fill or keep waiting is bounded: their number, what is stored of a
// request, how often pages are made anew, and the time of a connection, which is for one request. When there are too
// many, the oldest connection is closed for the new one: one that is served takes milliseconds, so that only those who
// keep theirs open lose it.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/listen_address.h"
#include "control/http_request.h"
#include "port/live/file_descriptor.h"
#include "port/stop_event.h"

struct MHD_Daemon;
struct MHD_Connection;
struct MHD_Response;

namespace penstock::control {

struct HttpPage {
  std::string_view path;  // "/metrics"
  std::string_view type;  // of its content
  /// Called in the thread of `HttpServer::run`.
  std::function<std::string()> text;
  std::chrono::milliseconds fresh{};  // for so long, clients get the same text
};

class HttpServer {
 public:
  struct Limits {
    unsigned connections = 32;
    std::size_t request_bytes = std::size_t{16} << 10;  // line and headers
    std::chrono::milliseconds connection_time{10'000};
  };

  /// Listens, and serves nobody yet.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> open(const ListenAddress& listen,
                                                                std::vector<HttpPage> pages, const Limits& limits);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Serves clients until `stop`.
  void run();
  /// Thread-safe.
  void stop() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct StopDaemon {
    void operator()(MHD_Daemon* daemon) const noexcept;
  };
  struct ReleaseResponse {
    void operator()(MHD_Response* response) const noexcept;
  };
  using Response = std::unique_ptr<MHD_Response, ReleaseResponse>;
  struct Served {
    HttpPage page;
    Response response;  // kept while it is fresh
    Clock::time_point made;
  };
  struct Connection {
    int socket;  // of the daemon, which closes it
    Clock::time_point deadline;
    bool ended = false;  // the daemon is about to close it
  };

  HttpServer(const ListenAddress& listen, port::FileDescriptor listener, std::vector<HttpPage> pages,
             const Limits& limits);
  [[nodiscard]] Result<void> start();

  [[nodiscard]] int wait_time() const;
  void accept_clients();
  void end_late();
  static void end(Connection& connection) noexcept;
  void closed(int socket) noexcept;
  [[nodiscard]] unsigned status_of(const HttpRequest& request, std::string_view path, MHD_Response*& response);
  [[nodiscard]] MHD_Response* response_of(Served& served);
  [[nodiscard]] Response make_response(const std::string& text, std::string_view type) const;

  struct Callbacks;  // of the library

  const ListenAddress listen_;
  const Limits limits_;
  port::FileDescriptor listener_;
  std::vector<Served> pages_;
  Response wrong_method_, wrong_host_, no_such_page_;
  std::list<Connection> connections_;  // the oldest first
  Clock::time_point accept_again_{};   // the system had no descriptor left
  std::atomic<bool> stopped_{false};
  port::StopEvent wake_up_;
  std::unique_ptr<MHD_Daemon, StopDaemon> daemon_;  // the last member: it calls back
};

}  // namespace penstock::control
