// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A gateway that is reloaded while packets flow. Packets are of several kinds, and each function of a version shows in
// what it does to them which version it is of:
//
//     firewall   drops the packets of one kind
//     filter     drops those of another kind, by their source port
//     nids       drops those of a third kind, by their content
//     router     sends packets to a next hop whose MAC contains the version
//     ipsec      protects them with an SA that belongs to two versions, so it stays in every other reload
//
// A function at the end checks each batch: exactly the expected packets come, in order, by one version in all
// functions; versions are used in the order in which they were put in place; and no number of an SA is used twice.

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/chain_file.h"
#include "packet/testing/packet_builder.h"
#include "port/testing/port_harness.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::property {

class ReloadedGateway {
 public:
  static constexpr std::uint32_t kKinds = 8;
  static constexpr std::uint32_t kBatch = 300;
  static constexpr unsigned kWorkers = 2;

  /// `settings`: more of the run section.
  explicit ReloadedGateway(std::vector<config::Override> settings) : settings_(std::move(settings)) {
    ::setenv("STATE_DIRECTORY", (folder_ / "kept").c_str(), 1);
    for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
      frames_.push_back(penstock::testing::packet()
                            .eth()
                            .ipv4("10.9.0.1", "10.1.0." + std::to_string(kind))
                            .udp(static_cast<std::uint16_t>(1024 + kind), 5000)
                            .payload(std::string(kind * 50, '.') + fmt::format("kind-{}-", kind) + "of all packets")
                            .bytes());
    }
  }

  /// Reloads and rolls back at random batches; `steps` times in all.
  void run(unsigned steps, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<bool> rolls_back;
    std::uint32_t newest = 0, former = 0;
    used_ = {0};
    for (unsigned step = 0; step < steps; ++step) {
      rolls_back.push_back(step > 0 && random() % 4 == 0);
      const std::uint32_t before = used_.back();
      used_.push_back(rolls_back.back() ? former : ++newest);
      former = before;
    }

    auto loaded = load(0);
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    run::Chain& chain = loaded->chain;
    chain.ports[0].port = source();
    add_own(chain.functions);
    const std::atomic<bool> never{false};
    auto running = run::start(chain, {}, never);
    ASSERT_TRUE(running) << to_string(running.error());
    newest = 0;
    for (unsigned step = 0; step < steps; ++step) {
      wait_for_batches(random() % 12);
      put_in_place_ = step + 1;
      auto done = rolls_back[step] ? (*running)->rollback() : apply(**running, ++newest);
      ASSERT_TRUE(done) << to_string(done.error());
    }
    wait_for_batches(20);
    (*running)->stop();
    const run::RunResult result = (*running)->wait();
    EXPECT_TRUE(result.errors.empty()) << to_string(result.errors);
    report = report::to_json(result.report);
    for (auto& [thread, state] : states_) end_batch(state);
  }

  void expect_sound() const {
    EXPECT_EQ(mixed_, 0U) << "packets that another version has decided than the first of their batch";
    EXPECT_EQ(let_through_, 0U) << "packets that a function of their version drops";
    EXPECT_EQ(incomplete_, 0U) << "batches that lack packets, or have others too many";
    EXPECT_EQ(out_of_order_, 0U) << "packets after later ones, or a second time";
    EXPECT_EQ(not_in_place_, 0U) << "batches by a version that is not in place yet, or not any more";
    EXPECT_EQ(numbers_twice_, 0U) << "packets with the number of another one";
    const std::uint64_t made = batches_made_ * kBatch;
    std::uint64_t dropped = 0;
    for (const auto& function : report.at("functions"))
      dropped += function.at("dropped").at("packets").get<std::uint64_t>();
    EXPECT_EQ(report.at("packets").at("in"), made);
    EXPECT_EQ(report.at("packets").at("consumed"), left_.load());
    EXPECT_EQ(report.at("packets").at("dropped"), dropped);
    EXPECT_EQ(made, left_ + dropped);
    EXPECT_EQ(report.at("reloads"), used_.size() - 1);
  }

  nlohmann::ordered_json report;
  /// Adds functions at the beginning of the chain, for each version; may be empty.
  std::function<void(std::vector<run::NamedFunction>&)> before_all;

 private:
  static constexpr std::uint32_t kFirstSpi = 0x1000;

  static bool drops(std::uint32_t version, std::uint32_t kind) {
    return kind == version % kKinds || kind == (version + 3) % kKinds || kind == (version + 5) % kKinds;
  }

  void put(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  /// The chain of a version, with its files. Other versions have more or fewer rules, contents and routes.
  Result<config::LoadedChain> load(std::uint32_t version) {
    std::mt19937_64 random(version);
    const auto some = [&](const auto& line) {
      std::string text;
      for (std::uint64_t i = 0, count = random() % 400; i < count; ++i) text += line(i);
      return text;
    };
    put("rules.txt", "*filter\n:FORWARD ACCEPT [0:0]\n" + some([&](std::uint64_t) {
                       return fmt::format("-A FORWARD -s 172.16.{}.{}/32 -p tcp -m tcp --dport {} -j DROP\n",
                                          random() % 256, random() % 256, 1 + random() % 60000);
                     }) + fmt::format("-A FORWARD -d 10.1.0.{}/32 -j DROP\nCOMMIT\n", version % kKinds));
    put("nids.rules",
        fmt::format("drop udp any any -> any any (msg:\"of this version\"; content:\"kind-{}-\"; sid:1;)\n",
                    (version + 3) % kKinds) +
            some([&](std::uint64_t i) {
              return fmt::format("drop udp any any -> any any (msg:\"other\"; content:\"{:x}\"; sid:{};)\n", random(),
                                 i + 2);
            }));
    put("routes.txt", "10.1.0.0/24 via 192.0.2.9 dev out\n" + some([&](std::uint64_t i) {
                        return fmt::format("11.{}.{}.0/24 via 192.0.2.8 dev out\n", i % 256, random() % 256);
                      }));
    put("neighbours.txt",
        fmt::format("192.0.2.9 dev out lladdr 02:00:00:00:{:02x}:{:02x} REACHABLE\n", version >> 8, version & 255));
    const std::uint32_t spi = kFirstSpi + version / 2;
    put("state.txt",
        fmt::format("src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x{:08x} reqid 1 mode tunnel\n\treplay-window 0 \n"
                    "\taead rfc4106(gcm(aes)) 0x{:08x}c4f83620d17e4c95b8a3f60213579bdf 128\n",
                    spi, spi * 77));
    put("policy.txt", fmt::format("src 0.0.0.0/0 dst 10.1.0.0/24 \n\tdir out priority 1\n\ttmpl src 192.0.2.1 dst "
                                  "192.0.2.2\n\t\tproto esp spi 0x{:08x} reqid 1 mode tunnel\n",
                                  spi));
    std::string filters =
        fmt::format("{{name: this, expression: udp src port {}, match: drop}}", 1024 + (version + 5) % kKinds);
    for (std::uint64_t i = 0, count = random() % 60; i < count; ++i) {
      filters += fmt::format(", {{name: other{}, expression: tcp dst port {}, match: drop}}", i, 1 + random() % 60000);
    }
    put("chain.yaml",
        fmt::format("ports: {{in: {{generator: {{rate: 1pps}}}}, out: {{'null': {{}}}}}}\n"
                    "chain:\n"
                    "  - firewall: {{rules: rules.txt}}\n"
                    "  - filter: {{filters: [{}], most_filters: 64}}\n"
                    "  - nids: {{rules: [nids.rules], action: drop, tracking: packets}}\n"
                    "  - router: {{routes: routes.txt, neighbours: neighbours.txt, ipv4: trie4}}\n"
                    "  - ipsec: {{state: state.txt, policy: policy.txt}}\n"
                    "run: {{workers: {}, batch: {{packets: {}, bytes: 256KiB}}, queue: {{bytes: 1MiB}}}}\n",
                    filters, kWorkers, kBatch));
    return config::load_chain(folder_ / "chain.yaml", {.overrides = settings_});
  }

  Result<void> apply(run::Run& running, std::uint32_t version) {
    auto loaded = load(version);
    if (!loaded) return failure(std::move(loaded.error()));
    add_own(loaded->chain.functions);
    run::Functions functions;
    for (run::NamedFunction& named : loaded->chain.functions) functions.push_back(std::move(named.function));
    return running.apply(std::move(functions));
  }

  /// Each packet carries, in its timestamp, its batch and its position there.
  [[nodiscard]] std::unique_ptr<port::Port> source() {
    auto port = std::make_unique<run::testing::FakePort>();
    port->poll = [this](unsigned, Batch& batch) {
      if (!batch.empty()) return port::RxStatus::more;
      const std::uint64_t id = ++batches_made_;
      for (std::uint32_t i = 0; i < kBatch; ++i) {
        const run::testing::Bytes& frame = frames_[i % kKinds];
        EXPECT_TRUE(
            batch.append(frame, {id << 32 | i, static_cast<std::uint32_t>(frame.size()), 0, LinkType::ethernet}));
      }
      return port::RxStatus::more;
    };
    return port;
  }

  void add_own(std::vector<run::NamedFunction>& functions) {
    if (before_all) before_all(functions);
    auto function = std::make_unique<run::testing::FakeFunction>();
    function->process = [this](std::span<PacketView> packets) {
      State& state = state_of_thread();
      for (const PacketView packet : packets) {
        check(state, packet);
        packet.packet->verdict = Verdict::consume();
      }
      left_ += packets.size();
    };
    functions.push_back({"checks", std::move(function)});
  }

  /// What a worker has seen.
  struct State {
    std::uint64_t batch = 0;
    std::uint32_t version = 0;  // of this batch
    std::uint32_t packets = 0;  // of this batch
    std::uint32_t next = 0;     // position after the last packet
    std::size_t place = 0;      // of the version in `used_`
  };
  State& state_of_thread() {
    const std::lock_guard lock(mutex_);
    return states_[std::this_thread::get_id()];
  }

  void check(State& state, PacketView packet) {
    const std::uint8_t* const frame = packet.frame;
    const std::uint32_t version = std::uint32_t{frame[4]} << 8 | frame[5];
    const auto batch = packet.packet->timestamp_ns >> 32;
    const auto position = static_cast<std::uint32_t>(packet.packet->timestamp_ns);
    if (batch != state.batch) {
      end_batch(state);
      out_of_order_ += batch < state.batch;
      state = {batch, version, 0, 0, state.place};
      const std::size_t last = put_in_place_;
      while (state.place <= last && used_[state.place] != version) ++state.place;
      not_in_place_ += state.place > last;
    }
    out_of_order_ += position < state.next;
    state.next = position + 1;
    ++state.packets;
    mixed_ += version != state.version;
    let_through_ += drops(version, position % kKinds);
    const auto word = [&](std::size_t at) {
      return std::uint32_t{frame[at]} << 24 | std::uint32_t{frame[at + 1]} << 16 | std::uint32_t{frame[at + 2]} << 8 |
             frame[at + 3];
    };
    constexpr std::size_t kEspAt = 14 + 20;
    const bool is_esp = frame[14 + 9] == 50;
    mixed_ += !is_esp || word(kEspAt) != kFirstSpi + version / 2;
    if (is_esp) note_number(word(kEspAt), word(kEspAt + 4));
  }

  void end_batch(const State& state) {
    if (state.batch == 0) return;
    std::uint32_t expected = 0;
    for (std::uint32_t i = 0; i < kBatch; ++i) expected += !drops(state.version, i % kKinds);
    incomplete_ += state.packets != expected;
  }

  void note_number(std::uint32_t spi, std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    std::vector<bool>& numbers = numbers_[spi];
    if (number >= numbers.size()) numbers.resize(number * std::size_t{2});
    numbers_twice_ += numbers[number];
    numbers[number] = true;
  }

  void wait_for_batches(std::uint64_t count) const {
    const std::uint64_t before = left_;
    while (left_ < before + count * kBatch / 2) std::this_thread::yield();
  }

  const std::vector<config::Override> settings_;
  port::testing::TemporaryFolder folder_;
  std::vector<run::testing::Bytes> frames_;  // by kind
  std::vector<std::uint32_t> used_;          // versions, in the order in which they are put in place
  std::atomic<std::size_t> put_in_place_{0};
  std::atomic<std::uint64_t> batches_made_{0}, left_{0};
  std::atomic<std::uint64_t> mixed_{0}, let_through_{0}, incomplete_{0}, out_of_order_{0}, not_in_place_{0};
  std::mutex mutex_;  // guards the rest
  std::map<std::thread::id, State> states_;
  std::map<std::uint32_t, std::vector<bool>> numbers_;  // by SPI: used
  std::uint64_t numbers_twice_ = 0;
};

}  // namespace penstock::property
