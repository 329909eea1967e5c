// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/line_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/unix_socket.h"

namespace penstock::control {
namespace {

using namespace std::chrono_literals;

/// Answers a line with itself, and "big N" with a line of N bytes. Lines that begin with '#' get no answer.
class Echo final : public LineHandler {
 public:
  LineServer* server = nullptr;
  std::atomic<int> lines{0};
  std::atomic<bool> refuses{false};

  std::optional<std::string> refuse(int) override {
    return refuses ? std::optional<std::string>("not you\n") : std::nullopt;
  }
  Next received(ClientId client, std::string_view line) override {
    lines.fetch_add(1);
    if (line.starts_with("#")) return Next::line;
    if (line.starts_with("parts ")) {
      parts_left = std::stoi(std::string(line.substr(6)));
      return Next::parts;
    }
    if (line.starts_with("big ")) {
      server->send(client, std::string(std::stoul(std::string(line.substr(4))), 'x') + "\n");
    } else if (line == "bye") {
      server->send(client, "bye\n", LineServer::After::close);
    } else if (line != "later") {
      server->send(client, std::string(line) + "\n");
    }
    last = client;
    return Next::answer;
  }
  Part next_part(ClientId) override {
    if (parts_asked.fetch_add(1) % 2 == 0) return {"", false};  // none yet
    const int left = parts_left.fetch_sub(1);
    return {left > 0 ? std::string(10'000, 'x') + "\n" : "last\n", left == 0};
  }
  void gone(ClientId) override { left_early.fetch_add(1); }
  std::string farewell(Closing reason) override { return "closed " + std::to_string(static_cast<int>(reason)) + "\n"; }

  std::atomic<ClientId> last{0};
  std::atomic<int> parts_left{0}, parts_asked{0}, left_early{0};
};

class Connection {
 public:
  explicit Connection(const std::string& path) {
    auto connected = connect_to(path);
    // Its queue is full if there are many at once.
    while (!connected) {
      std::this_thread::yield();
      connected = connect_to(path);
    }
    socket_ = std::move(*connected);
  }
  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  /// "": the connection was closed.
  [[nodiscard]] std::string line() {
    for (std::size_t end; (end = buffer_.find('\n')) == std::string::npos;) {
      char bytes[4096];
      const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
      if (count <= 0) return "";
      buffer_.append(bytes, static_cast<std::size_t>(count));
    }
    const std::size_t end = buffer_.find('\n');
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return line;
  }
  [[nodiscard]] std::string ask(const std::string& text) {
    send(text + "\n");
    return line();
  }
  void end_sending() const { ::shutdown(socket_.get(), SHUT_WR); }

 private:
  port::FileDescriptor socket_;
  std::string buffer_;
};

/// Until it is destroyed, the process may open this many files.
class OpenFiles {
 public:
  explicit OpenFiles(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{std::min(before_.rlim_max, most), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;
  ~OpenFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

class LineServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/penstock-" + std::to_string(::getpid()) + ".sock";
    auto opened = UnixListener::open(path_);
    ASSERT_TRUE(opened) << to_string(opened.error());
    listener_.emplace(std::move(*opened));
  }
  void TearDown() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }
  void serve(LineServer::Limits limits) {
    server_.emplace(listener_->fd(), limits, echo_);
    echo_.server = &*server_;
    thread_ = std::thread([this] { server_->run(); });
  }
  void expect_still_serves() const {
    Connection other(path_);
    EXPECT_EQ(other.ask("still there?"), "still there?");
  }
  static std::string closed(Closing reason) { return "closed " + std::to_string(static_cast<int>(reason)); }

  std::string path_;
  Echo echo_;
  std::optional<UnixListener> listener_;
  std::optional<LineServer> server_;
  std::thread thread_;
};

TEST_F(LineServerTest, AnswersLinesInTheirOrder) {
  serve({});
  Connection client(path_);
  client.send("one\ntwo\n\nthree\n");
  for (const std::string text : {"one", "two", "", "three"}) EXPECT_EQ(client.line(), text);
}

TEST_F(LineServerTest, PutsLinesTogetherFromTheirBytes) {
  serve({});
  Connection client(path_);
  for (const char byte : std::string("a line\nand another\n")) client.send({&byte, 1});
  EXPECT_EQ(client.line(), "a line");
  EXPECT_EQ(client.line(), "and another");
}

TEST_F(LineServerTest, TakesTheLinesOfAClientThatSendsNoMore) {
  serve({});
  Connection client(path_);
  client.send("one\n#two\nthree\nunfinished");
  client.end_sending();
  EXPECT_EQ(client.line(), "one");
  EXPECT_EQ(client.line(), "three");
  EXPECT_EQ(client.line(), "");
  EXPECT_EQ(echo_.lines, 3);
}

TEST_F(LineServerTest, SendsAnswersOfOtherThreads) {
  serve({});
  Connection client(path_);
  client.send("later\nnext\n");
  while (echo_.last == 0) std::this_thread::yield();
  server_->send(echo_.last, "now\n");
  EXPECT_EQ(client.line(), "now");
  EXPECT_EQ(client.line(), "next") << "taken once the first line is answered";
}

TEST_F(LineServerTest, TakesThePartsOfAnAnswerAsTheClientTakesThem) {
  serve({.part_time = 1ms});
  Connection client(path_);
  client.send("parts 3\nnext\n");
  for (int part = 0; part < 3; ++part) EXPECT_EQ(client.line(), std::string(10'000, 'x'));
  EXPECT_EQ(client.line(), "last");
  EXPECT_EQ(client.line(), "next") << "taken once the last part has left";
  EXPECT_EQ(echo_.left_early, 0);
}

TEST_F(LineServerTest, KeepsNoPartsForAClientThatTakesNone) {
  serve({.part_time = 1ms});
  Connection client(path_);
  client.send("parts 100000\n");
  EXPECT_EQ(client.line(), std::string(10'000, 'x'));
  int asked = 0;
  for (int before = -1; asked != before; std::this_thread::sleep_for(50ms))
    before = std::exchange(asked, echo_.parts_asked.load());
  EXPECT_LT(asked, 1000) << "the socket's buffer is full";
  expect_still_serves();
}

TEST_F(LineServerTest, SaysThatAClientHasGoneBeforeTheLastPart) {
  serve({.part_time = 1ms});
  {
    Connection client(path_);
    client.send("parts 100000\n");
    EXPECT_EQ(client.line(), std::string(10'000, 'x'));
  }
  while (echo_.left_early == 0) std::this_thread::yield();
  expect_still_serves();
}

TEST_F(LineServerTest, ClosesAfterAnAnswerIfAsked) {
  serve({});
  Connection client(path_);
  client.send("bye\nmore\n");
  EXPECT_EQ(client.line(), "bye");
  EXPECT_EQ(client.line(), "");
  EXPECT_EQ(echo_.lines, 1);
}

TEST_F(LineServerTest, SendsWhatIsUnsentWhenItStops) {
  serve({});
  Connection client(path_);
  client.send("later\n");
  while (echo_.last == 0) std::this_thread::yield();
  server_->send(echo_.last, std::string(1'000'000, 'y') + "\n");
  server_->stop();
  EXPECT_EQ(client.line().size(), 1'000'000U);
  EXPECT_EQ(client.line(), "");
}

TEST_F(LineServerTest, RefusesClientsThatTheHandlerRefuses) {
  echo_.refuses = true;
  serve({});
  Connection client(path_);
  client.send("hello\n");
  EXPECT_EQ(client.line(), "not you");
  EXPECT_EQ(client.line(), "");
  EXPECT_EQ(echo_.lines, 0);
}

TEST_F(LineServerTest, RefusesMoreClientsThanItsLimit) {
  serve({.clients = 2});
  {
    Connection first(path_), second(path_);
    EXPECT_EQ(first.ask("a"), "a");
    EXPECT_EQ(second.ask("b"), "b");
    Connection third(path_);
    EXPECT_EQ(third.line(), closed(Closing::too_many_clients));
    EXPECT_EQ(third.line(), "");
    EXPECT_EQ(first.ask("c"), "c");
  }
  for (;;) {  // until it has noticed that both have gone
    Connection client(path_);
    if (client.ask("d") == "d") break;
  }
}

TEST_F(LineServerTest, OutlivesAThousandConnections) {
  serve({});
  std::vector<Connection> clients;
  const OpenFiles many(4096);
  for (int i = 0; i < 1000; ++i) clients.emplace_back(path_);
  std::size_t served = 0;
  for (Connection& client : clients) served += client.ask("x") == "x" ? 1 : 0;
  EXPECT_EQ(served, LineServer::Limits().clients);
  clients.clear();
  for (;;) {
    Connection client(path_);
    if (client.ask("y") == "y") break;
  }
}

TEST_F(LineServerTest, ServesAgainWhenTheSystemHasDescriptors) {
  serve({});
  Connection waiting(path_);
  EXPECT_EQ(waiting.ask("x"), "x");
  const OpenFiles few(200);
  std::vector<port::FileDescriptor> taken;
  for (;;) {
    port::FileDescriptor next(::dup(STDERR_FILENO));
    if (!next) break;
    taken.push_back(std::move(next));
  }
  ASSERT_FALSE(taken.empty());
  taken.pop_back();  // for the client's own end
  Connection late(path_);
  late.send("late\n");
  EXPECT_EQ(waiting.ask("y"), "y") << "others are served meanwhile";
  taken.clear();
  EXPECT_EQ(late.line(), "late");
}

TEST_F(LineServerTest, ClosesAClientWithALineThatIsTooLong) {
  serve({.line_bytes = 1000});
  Connection client(path_);
  EXPECT_EQ(client.ask(std::string(1000, 'a')).size(), 1000U);
  client.send(std::string(1001, 'a') + "\n");
  EXPECT_EQ(client.line(), closed(Closing::line_too_long));
  EXPECT_EQ(client.line(), "");
  Connection endless(path_);
  endless.send(std::string(10'000'000, 'a'));
  EXPECT_EQ(endless.line(), closed(Closing::line_too_long));
  expect_still_serves();
}

TEST_F(LineServerTest, GivesBinaryLinesToTheHandlerAsTheyAre) {
  serve({});
  Connection client(path_);
  const std::string bytes("\0\xff\x80\x01{[\0", 7);
  EXPECT_EQ(client.ask(bytes), bytes);
}

TEST_F(LineServerTest, ClosesAClientThatDoesNotFinishItsLine) {
  serve({.line_time = 20ms});
  Connection client(path_);
  client.send("half");
  EXPECT_EQ(client.line(), closed(Closing::line_unfinished));
  EXPECT_EQ(client.line(), "");
}

TEST_F(LineServerTest, ClosesAClientThatTricklesItsLine) {
  serve({.line_time = 50ms});
  Connection client(path_);
  std::atomic<bool> done{false};
  std::thread trickle([&] {
    while (!done) {
      client.send("x");
      std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_EQ(client.line(), closed(Closing::line_unfinished));
  done = true;
  trickle.join();
}

TEST_F(LineServerTest, ClosesAnIdleClient) {
  serve({.idle_time = 20ms});
  Connection client(path_);
  EXPECT_EQ(client.line(), closed(Closing::idle));
}

TEST_F(LineServerTest, DoesNotCloseAClientThatWaitsForItsAnswer) {
  serve({.line_time = 1ms, .idle_time = 1ms});
  Connection client(path_);
  client.send("later\n");
  while (echo_.last == 0) std::this_thread::yield();
  const ClientId waiting = echo_.last;
  Connection other(path_);
  EXPECT_EQ(other.line(), closed(Closing::idle)) << "the limit has passed";
  server_->send(waiting, "now\n");
  EXPECT_EQ(client.line(), "now");
}

TEST_F(LineServerTest, ClosesAClientThatDoesNotTakeItsAnswer) {
  serve({.stalled_time = 20ms});
  Connection slow(path_);
  slow.send("big 10000000\n");
  expect_still_serves();
  while (echo_.lines < 2) std::this_thread::yield();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(slow.line(), "") << "cut off";
}

TEST_F(LineServerTest, ClosesAClientThatWouldGetMoreThanItsLimit) {
  serve({.unsent_bytes = 1000});
  Connection client(path_);
  EXPECT_EQ(client.ask("big 999").size(), 999U);
  EXPECT_EQ(client.ask("big 1000"), "");
  expect_still_serves();
}

TEST_F(LineServerTest, DoesNotSpinForAClientThatHasGoneBeforeItsAnswer) {
  serve({});
  {
    Connection client(path_);
    client.send("later\n");
    while (echo_.last == 0) std::this_thread::yield();
  }
  const ClientId gone = echo_.last;
  expect_still_serves();
  server_->send(gone, "nobody reads this\n");
  expect_still_serves();
}

TEST_F(LineServerTest, ServesOthersWhileOneSendsWithoutReading) {
  serve({});
  Connection greedy(path_);
  std::atomic<bool> done{false};
  std::thread flood([&] {
    while (!done) greedy.send("flood\n");
  });
  for (int i = 0; i < 20; ++i) expect_still_serves();
  done = true;
  server_->stop();  // ends a send that blocks
  thread_.join();
  flood.join();
}

}  // namespace
}  // namespace penstock::control
