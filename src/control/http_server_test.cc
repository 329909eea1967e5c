// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/free_port.h"
#include "base/thread_time.h"

namespace penstock::control {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A client that sends what a test says, without a library.
class Peer {
 public:
  explicit Peer(const ListenAddress& to)
      : socket_(::socket(is_ipv4(to) ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval most{20, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (is_ipv4(to)) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(to.port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    } else {
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(to.port);
      address.sin6_addr = in6addr_loopback;
      connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
  }
  [[nodiscard]] bool connected() const noexcept { return connected_; }
  [[nodiscard]] bool send(std::string_view text) const {
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// Until the server closes the connection.
  [[nodiscard]] std::string rest() const {
    std::string text;
    char buffer[4096];
    for (ssize_t count; (count = ::recv(socket_.get(), buffer, sizeof buffer, 0)) > 0;)
      text.append(buffer, static_cast<std::size_t>(count));
    return text;
  }
  void receive_little() const {
    constexpr int kBytes = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &kBytes, sizeof kBytes);
  }

 private:
  static bool is_ipv4(const ListenAddress& to) { return std::holds_alternative<Ipv4Address>(to.address); }
  port::FileDescriptor socket_;
  bool connected_ = false;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void start(const HttpServer::Limits& limits = HttpServer::Limits()) {
    auto opened = HttpServer::open(listen_, pages_, limits);
    ASSERT_TRUE(opened) << to_string(opened.error());
    server_ = std::move(*opened);
    thread_ = std::thread([this] {
      server_->run();
      used_ = thread_time();
    });
  }
  void TearDown() override { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }
  [[nodiscard]] std::string answer_to(const std::string& request) const {
    const Peer peer(listen_);
    EXPECT_TRUE(peer.connected());
    EXPECT_TRUE(peer.send(request));
    return peer.rest();
  }
  [[nodiscard]] std::string get(const std::string& path, const std::string& host = "localhost") const {
    return answer_to("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  }

  ListenAddress listen_{Ipv4Address{INADDR_LOOPBACK}, penstock::testing::free_port()};
  std::atomic<int> made_{0};
  std::vector<HttpPage> pages_{
      {"/metrics", "text/plain", [this] { return "made " + std::to_string(++made_) + "\n"; }, milliseconds{60'000}},
      {"/now", "text/plain", [this] { return "made " + std::to_string(++made_) + "\n"; }, milliseconds{0}},
      {"/long", "text/plain", [] { return std::string(std::size_t{8} << 20, 'x'); }, milliseconds{60'000}},
      {"/broken", "text/plain", []() -> std::string { throw std::bad_alloc(); }, milliseconds{0}}};
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::chrono::nanoseconds used_{};
};

TEST_F(HttpServerTest, ServesItsPages) {
  start();
  const std::string answer = get("/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nmade 1\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none';"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(answer, ::testing::Not(HasSubstr("Access-Control")));
}

TEST_F(HttpServerTest, ServesOverIpv6) {
  listen_.address = Ipv6Address{0, 1};
  const port::FileDescriptor probe(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    GTEST_SKIP() << "this machine has no IPv6";
  start();
  EXPECT_THAT(get("/metrics", "[::1]:9474"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, AnswersHeadWithoutContent) {
  start();
  const std::string answer = answer_to("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, MakesAPageAgainOnlyWhenItIsNoLongerFresh) {
  start();
  EXPECT_THAT(get("/metrics"), EndsWith("made 1\n"));
  EXPECT_THAT(get("/metrics?again"), EndsWith("made 1\n"));
  EXPECT_THAT(get("/now"), EndsWith("made 2\n"));
  EXPECT_THAT(get("/now"), EndsWith("made 3\n"));
}

TEST_F(HttpServerTest, RefusesWhatItDoesNotServe) {
  start();
  EXPECT_THAT(get("/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get("/../metrics"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get("/metrics", "evil.example"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(answer_to("GET /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400 ")) << "HTTP/1.1 needs a host";
  EXPECT_THAT(answer_to("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(made_, 0);
}

TEST_F(HttpServerTest, ClosesTheConnectionIfAPageCannotBeMade) {
  start();
  EXPECT_EQ(get("/broken"), "");
  EXPECT_THAT(get("/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  start();
  const auto second = HttpServer::open(listen_, {}, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(to_string(second.error()), HasSubstr("cannot listen for HTTP: found Address already in use, expected a "
                                                   "port at which no other process listens"));
  const auto elsewhere = HttpServer::open({Ipv4Address{0xc0000201}, penstock::testing::free_port()}, {}, {});
  ASSERT_FALSE(elsewhere);
  EXPECT_THAT(to_string(elsewhere.error()), HasSubstr("expected an address of this machine"));
}

TEST_F(HttpServerTest, IgnoresGarbage) {
  start();
  std::string noise;
  for (int i = 0; i < 4096; ++i) noise.push_back(static_cast<char>(i * 131 + i / 7));
  for (const std::string& garbage : {noise, std::string("\0\0\0\0", 4), std::string("GET\r\n\r\n"),
                                     std::string(1 << 20, 'A'), "GET / HTTP/1.1\r\n" + std::string(1 << 20, 'B'),
                                     std::string("GET /metrics HTTP/9.9\r\nHost: localhost\r\n\r\n"),
                                     std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)}) {
    const Peer peer(listen_);
    static_cast<void>(peer.send(garbage));
    static_cast<void>(peer.send("\r\n\r\n"));
    EXPECT_THAT(peer.rest(), ::testing::Not(HasSubstr("made")));
  }
  EXPECT_THAT(get("/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, ServesWhileAThousandConnectionsAreOpen) {
  start();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<std::unique_ptr<Peer>> idle;
  for (int i = 0; i < 1000; ++i) {
    auto& peer = idle.emplace_back(std::make_unique<Peer>(listen_));
    ASSERT_TRUE(peer->connected()) << i;
    if (i % 2 == 0) static_cast<void>(peer->send("GET /metr"));
    if (i % 100 == 0) {
      EXPECT_THAT(get("/metrics"), StartsWith("HTTP/1.1 200 OK\r\n")) << i;
    }
  }
  EXPECT_THAT(get("/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(idle.front()->rest(), "") << "was closed for the new ones";
}

TEST_F(HttpServerTest, EndsConnectionsAfterTheirTimeWhateverTheyDo) {
  start({.connection_time = milliseconds{700}});
  const auto begin = std::chrono::steady_clock::now();
  const Peer silent(listen_), slow(listen_), reader(listen_);
  reader.receive_little();
  EXPECT_TRUE(reader.send("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  std::string request = "GET /metrics HTTP/1.1\r\nX: ";
  bool accepted = slow.send(request);
  for (int i = 0; i < 40 && accepted; ++i) {
    std::this_thread::sleep_for(milliseconds{50});
    accepted = slow.send("x");
  }
  EXPECT_FALSE(accepted) << "a byte now and then keeps no connection";
  EXPECT_EQ(silent.rest(), "");
  EXPECT_LT(reader.rest().size(), std::size_t{8} << 20);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds{10'000});
  stop();
  EXPECT_LT(used_, milliseconds{400}) << "it waits, and does not poll";
}

}  // namespace
}  // namespace penstock::control
