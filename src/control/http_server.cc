// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/http_server.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include "control/tcp_listener.h"

namespace penstock::control {

namespace {

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
/// Clients in one turn, so that those who connect do not keep the others waiting.
constexpr int kAcceptedAtOnce = 16;
/// When the system has no descriptor for a new client, which stays in the listener's queue.
constexpr std::chrono::milliseconds kRetryAccept{100};

// Nothing is loaded from elsewhere, and no other page may show ours in a frame or read it.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Connection", "close"},
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
};

}  // namespace

/// No exception may pass through the library.
struct HttpServer::Callbacks {
  static MHD_Result answer(void* self, MHD_Connection* connection, const char* path, const char* method, const char*,
                           const char*, std::size_t*, void**) noexcept {
    HttpServer& server = *static_cast<HttpServer*>(self);
    try {
      HttpRequest request{method, std::nullopt};
      if (const char* const host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST))
        request.host = host;
      MHD_Response* response = nullptr;
      const unsigned status = server.status_of(request, path, response);
      return MHD_queue_response(connection, status, response);
    } catch (const std::exception&) {  // no memory, or a GPU that is lost
      return MHD_NO;                   // closes the connection
    }
  }

  static void notify(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) noexcept {
    if (code != MHD_CONNECTION_NOTIFY_CLOSED) return;
    const MHD_ConnectionInfo* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != nullptr) static_cast<HttpServer*>(self)->closed(info->connect_fd);
  }
};

void HttpServer::StopDaemon::operator()(MHD_Daemon* daemon) const noexcept { MHD_stop_daemon(daemon); }

void HttpServer::ReleaseResponse::operator()(MHD_Response* response) const noexcept { MHD_destroy_response(response); }

Result<std::unique_ptr<HttpServer>> HttpServer::open(const ListenAddress& listen, std::vector<HttpPage> pages,
                                                     const Limits& limits) {
  auto listener = listen_at(listen);
  if (!listener) return failure(std::move(listener.error()));
  std::unique_ptr<HttpServer> server(new HttpServer(listen, std::move(*listener), std::move(pages), limits));
  if (auto started = server->start(); !started) return failure(std::move(started.error()));
  return server;
}

HttpServer::HttpServer(const ListenAddress& listen, port::FileDescriptor listener, std::vector<HttpPage> pages,
                       const Limits& limits)
    : listen_(listen), limits_(limits), listener_(std::move(listener)) {
  for (HttpPage& page : pages) pages_.push_back({std::move(page), nullptr, {}});
}

HttpServer::~HttpServer() = default;

Result<void> HttpServer::start() {
  wrong_method_ = make_response("Only GET and HEAD are served.\n", kPlain);
  static_cast<void>(MHD_add_response_header(wrong_method_.get(), "Allow", "GET, HEAD"));
  wrong_host_ =
      make_response("Use an IP address or localhost in the address of this page, not another name.\n", kPlain);
  std::string paths = "There is no such page. There are:";
  for (const Served& served : pages_) (paths += ' ') += served.page.path;
  no_such_page_ = make_response(paths + "\n", kPlain);
  // Connections that `accept_clients` has just ended may still be there for a moment.
  const unsigned connections = 2 * limits_.connections;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(limits_.connection_time);
  daemon_.reset(MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET | MHD_USE_EPOLL, 0, nullptr, nullptr, &Callbacks::answer,
                                 this, MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 limits_.request_bytes, MHD_OPTION_CONNECTION_TIMEOUT,
                                 static_cast<unsigned>(seconds.count()), MHD_OPTION_STRICT_FOR_CLIENT, 1,
                                 MHD_OPTION_NOTIFY_CONNECTION, &Callbacks::notify, this, MHD_OPTION_END));
  if (daemon_ != nullptr) return {};
  return failure(Error{{to_string(listen_), 0, 0}, "cannot serve HTTP", "no memory or no file descriptors", ""});
}

void HttpServer::stop() noexcept {
  stopped_.store(true);
  wake_up_.signal();
}

void HttpServer::run() {
  const int events = MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  while (!stopped_.load()) {
    const bool accepts = Clock::now() >= accept_again_;
    std::array<pollfd, 3> polled{{{wake_up_.fd(), POLLIN, 0}, {events, POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
    static_cast<void>(::poll(polled.data(), accepts ? 3 : 2, wait_time()));
    if (accepts && polled[2].revents != 0) accept_clients();
    end_late();
    static_cast<void>(MHD_run(daemon_.get()));
  }
}

/// In milliseconds; -1: without end.
int HttpServer::wait_time() const {
  const Clock::time_point now = Clock::now();
  std::int64_t most = -1;
  const auto no_later_than = [&most](std::int64_t ms) { most = most < 0 ? ms : std::min(most, ms); };
  const auto until = [now](Clock::time_point time) {
    return std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(time - now).count());
  };
  if (const auto next = std::ranges::find(connections_, false, &Connection::ended); next != connections_.end())
    no_later_than(until(next->deadline));
  if (accept_again_ > now) no_later_than(until(accept_again_));
  if (MHD_UNSIGNED_LONG_LONG ms = 0; MHD_get_timeout(daemon_.get(), &ms) == MHD_YES)
    no_later_than(static_cast<std::int64_t>(std::min<MHD_UNSIGNED_LONG_LONG>(ms, 1'000'000)));
  return static_cast<int>(most);
}

void HttpServer::accept_clients() {
  for (int turn = 0; turn < kAcceptedAtOnce; ++turn) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    const int socket =
        ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        accept_again_ = Clock::now() + kRetryAccept;
      return;
    }
    if (connections_.size() >= limits_.connections) {
      if (const auto oldest = std::ranges::find(connections_, false, &Connection::ended); oldest != connections_.end())
        end(*oldest);
      static_cast<void>(MHD_run(daemon_.get()));
    }
    // Before the daemon knows it: it may close it at once.
    connections_.push_back({socket, Clock::now() + limits_.connection_time});
    if (MHD_add_connection(daemon_.get(), socket, reinterpret_cast<const sockaddr*>(&address), length) != MHD_YES)
      closed(socket);
  }
}

void HttpServer::end_late() {
  const Clock::time_point now = Clock::now();
  for (Connection& connection : connections_) {
    if (connection.deadline > now) break;
    if (!connection.ended) end(connection);
  }
}

/// The daemon sees that, and closes it. What the client has not taken does not stay in the kernel.
void HttpServer::end(Connection& connection) noexcept {
  constexpr linger kAtOnce{1, 0};
  ::setsockopt(connection.socket, SOL_SOCKET, SO_LINGER, &kAtOnce, sizeof kAtOnce);
  ::shutdown(connection.socket, SHUT_RDWR);
  connection.ended = true;
}

void HttpServer::closed(int socket) noexcept {
  std::erase_if(connections_, [socket](const Connection& connection) { return connection.socket == socket; });
}

unsigned HttpServer::status_of(const HttpRequest& request, std::string_view path, MHD_Response*& response) {
  switch (judge(request, listen_)) {
    case HttpVerdict::wrong_method: response = wrong_method_.get(); return MHD_HTTP_METHOD_NOT_ALLOWED;
    case HttpVerdict::wrong_host: response = wrong_host_.get(); return MHD_HTTP_FORBIDDEN;
    case HttpVerdict::serve: break;
  }
  const auto served = std::ranges::find(pages_, path, [](const Served& page) { return page.page.path; });
  response = served == pages_.end() ? no_such_page_.get() : response_of(*served);
  return served == pages_.end() ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK;
}

MHD_Response* HttpServer::response_of(Served& served) {
  if (served.response == nullptr || Clock::now() - served.made >= served.page.fresh) {
    served.response = make_response(served.page.text(), served.page.type);
    served.made = Clock::now();
  }
  return served.response.get();
}

HttpServer::Response HttpServer::make_response(const std::string& text, std::string_view type) const {
  Response response(
      MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY));
  if (response == nullptr) throw std::bad_alloc();
  for (const auto& [name, value] : kHeaders) static_cast<void>(MHD_add_response_header(response.get(), name, value));
  static_cast<void>(MHD_add_response_header(response.get(), "Content-Type", std::string(type).c_str()));
  return response;
}

}  // namespace penstock::control
