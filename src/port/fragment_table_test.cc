// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// In the drawings, F1 is a datagram's first fragment, which has the ports. F2 and F3 follow it.

#include "port/fragment_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "packet/testing/fragments.h"
#include "packet/testing/packet_builder.h"
#include "port/worker_of.h"

namespace penstock::port {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Frame = penstock::testing::Bytes;
using penstock::testing::fragments_of;
using penstock::testing::packet;
using Limits = FragmentTable::Limits;

constexpr unsigned kWorkers = 8;
constexpr std::uint64_t kSecond = 1'000'000'000;

struct Given {
  std::uint64_t number;
  unsigned worker;
  std::uint64_t timestamp_ns;
  Frame bytes;
};

/// Records what a table delivers for the fragments that it takes, which are numbered from 1.
class Table {
 public:
  explicit Table(const Limits& limits = {}) : table_(kWorkers, limits) {}

  std::uint64_t take(const Frame& frame, std::uint64_t timestamp_ns = kSecond) {
    const CapturedFrame captured{frame, timestamp_ns, static_cast<std::uint32_t>(frame.size()), LinkType::ethernet,
                                 ++number_};
    Fragment fragment;
    const WorkerKey key = worker_key_of(frame, captured.wire_length, captured.link_type, fragment);
    if (table_.has_timed_out(timestamp_ns)) table_.give_up_old(timestamp_ns, use_);
    EXPECT_TRUE(key.is_fragment);
    table_.take(key, fragment, captured, use_);
    return number_;
  }
  void finish() { table_.give_up_all(use_); }

  [[nodiscard]] std::vector<std::uint64_t> order() const {
    std::vector<std::uint64_t> numbers;
    for (const Given& one : given) numbers.push_back(one.number);
    return numbers;
  }
  [[nodiscard]] std::vector<unsigned> workers() const {
    std::vector<unsigned> workers;
    for (const Given& one : given) workers.push_back(one.worker);
    return workers;
  }
  [[nodiscard]] unsigned worker_of_frame(std::uint64_t number) const {
    const auto it = std::ranges::find(given, number, &Given::number);
    return it == given.end() ? kWorkers : it->worker;
  }
  [[nodiscard]] FragmentCounts counts() const { return table_.counts(); }

  /// The frame number and worker of each copy.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, unsigned>> copied() const {
    std::vector<std::pair<std::uint64_t, unsigned>> all;
    for (const Given& one : copies) all.emplace_back(one.number, one.worker);
    return all;
  }

  std::vector<Given> given, copies;

 private:
  struct Use {
    std::vector<Given>*given, *copies;
    bool operator()(unsigned worker, const CapturedFrame& frame) const noexcept {
      (frame.copy ? copies : given)
          ->push_back({frame.number, worker, frame.timestamp_ns, Frame(frame.bytes.begin(), frame.bytes.end())});
      return true;
    }
  };
  FragmentTable table_;
  Use use_{&given, &copies};
  std::uint64_t number_ = 0;
};

unsigned worker_of_flow(const Frame& whole) {
  return worker_of(whole, static_cast<std::uint32_t>(whole.size()), LinkType::ethernet, kWorkers);
}

/// A datagram from 10.0.0.1:`port` to 10.0.0.2:53.
Frame datagram(std::uint16_t port, std::size_t bytes = 40) {
  return packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(port, 53).payload(std::string(bytes, 'x')).bytes();
}
/// A datagram whose worker is neither one of `workers` nor the one that its addresses select.
Frame datagram_of_another_worker(std::vector<unsigned> workers) {
  Fragment fragment;
  const Frame part = fragments_of(datagram(1), {8}, 1)[1];
  static_cast<void>(worker_key_of(part, 0, LinkType::ethernet, fragment));
  workers.push_back(worker_of_hash(address_hash_of(fragment.key), kWorkers));
  for (std::uint16_t port = 1000;; ++port) {
    const Frame whole = datagram(port);
    if (std::ranges::find(workers, worker_of_flow(whole)) == workers.end()) return whole;
  }
}

/*  F1 F2 F3  */
TEST(FragmentTable, SendsFragmentsToTheWorkerOfTheirFlow) {
  for (std::uint16_t port = 1; port < 200; ++port) {
    Table table;
    const Frame whole = datagram(port);
    for (const Frame& frame : fragments_of(whole, {8, 24}, port)) table.take(frame);
    EXPECT_THAT(table.order(), ElementsAre(1, 2, 3));
    EXPECT_THAT(table.workers(), Each(worker_of_flow(whole)));
    EXPECT_EQ(table.counts().packets, 3U);
    EXPECT_EQ(table.counts().waited, 0U);
  }
}

/*  F3 F2 F1  ─▶  F3 F2 F1, as soon as F1 arrives, each with its own time  */
TEST(FragmentTable, KeepsFragmentsUntilTheFirstOneComes) {
  const Frame whole = datagram_of_another_worker({});
  const auto parts = fragments_of(whole, {8, 24}, 9);
  Table table;
  table.take(parts[2], 1 * kSecond);
  table.take(parts[1], 2 * kSecond);
  EXPECT_THAT(table.given, IsEmpty());
  table.take(parts[0], 3 * kSecond);
  ASSERT_THAT(table.order(), ElementsAre(1, 2, 3));
  EXPECT_THAT(table.workers(), Each(worker_of_flow(whole)));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(table.given[i].bytes, parts[2 - i]);
    EXPECT_EQ(table.given[i].timestamp_ns, (i + 1) * kSecond);
  }
  EXPECT_EQ(table.counts().waited, 2U);
  EXPECT_EQ(table.counts().not_followed, 0U);
}

TEST(FragmentTable, KeepsFramesOfAllSizesUnchanged) {
  for (const std::size_t bytes : {8U, 200U, 212U, 213U, 464U, 465U, 1480U, 60000U}) {
    Frame whole = datagram(7, 8 + bytes);
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = i < 42 ? whole[i] : static_cast<std::uint8_t>(i * 7);
    const auto parts = fragments_of(whole, {16}, 9);
    Table table;
    table.take(parts[1]);
    table.take(parts[0]);
    ASSERT_THAT(table.given, SizeIs(2));
    EXPECT_EQ(table.given[0].bytes, parts[1]) << bytes;
  }
}

/*  F1 has only extension headers, so the flow is known once all fragments have arrived.

      F1: IPv6 │ fragment │ destination options   F2: UDP header   F3: payload  */
TEST(FragmentTable, ReadsFurtherIfTheFirstFragmentDoesNotIdentifyTheFlow) {
  const auto whole_from = [](std::uint16_t port) {
    return packet()
        .eth()
        .ipv6("fd00::1", "fd00::2")
        .extension(ip_protocol::kDestinationOptions)
        .udp(port, 53)
        .payload("sixteen bytes...")
        .bytes();
  };
  for (std::uint16_t port = 1; port < 50; ++port) {
    const Frame whole = whole_from(port);
    auto parts = fragments_of(whole, {8, 16}, port);
    std::vector<std::size_t> order{0, 1, 2};
    do {
      Table table;
      for (const std::size_t i : order) table.take(parts[i]);
      EXPECT_THAT(table.order(), ElementsAre(1, 2, 3));
      EXPECT_THAT(table.workers(), Each(worker_of_flow(whole)));
    } while (std::ranges::next_permutation(order).found);
  }
}

/*  An ICMP error in fragments of 8 bytes: the quoted ports are in the fifth.  */
TEST(FragmentTable, SendsAFragmentedIcmpErrorToTheFlowThatItQuotes) {
  for (std::uint16_t port = 1; port < 50; ++port) {
    const Frame quoted = packet().ipv4("10.0.0.1", "192.0.2.7").udp(port, 53).payload("question").bytes();
    const Frame whole = packet().eth().ipv4("198.51.100.1", "10.0.0.1").icmp(3, 1).raw(quoted).bytes();
    Table table;
    for (const Frame& frame : fragments_of(whole, {8, 16, 24, 32, 40}, port)) table.take(frame);
    EXPECT_THAT(table.given, SizeIs(6));
    EXPECT_THAT(table.workers(),
                Each(worker_of_flow(packet().eth().ipv4("10.0.0.1", "192.0.2.7").udp(port, 53).bytes())));
  }
}

/*  F2 … the end of the input  */
TEST(FragmentTable, AssignsFragmentsThatWaitAtTheEndByTheirAddresses) {
  Table table;
  const Frame other = packet().eth().ipv4("10.0.0.3", "10.0.0.4").udp(1, 2).payload(std::string(40, 'x')).bytes();
  table.take(fragments_of(datagram(1), {8, 24}, 5)[1]);
  table.take(fragments_of(other, {8}, 5)[1]);
  table.take(fragments_of(datagram(1), {8, 24}, 5)[2]);
  table.finish();
  EXPECT_THAT(table.order(), ElementsAre(2, 1, 3)) << "the longest unheard of first, each datagram in order";
  EXPECT_EQ(table.worker_of_frame(1), table.worker_of_frame(3));
  EXPECT_EQ(table.counts().not_followed, 3U);
  table.finish();
  EXPECT_THAT(table.given, SizeIs(3));
}

/*  F2 … 60 s … F1: the stack's reassembly has given up too  */
TEST(FragmentTable, WaitsAsLongAsTheReassembly) {
  const Frame whole = datagram_of_another_worker({});
  const auto parts = fragments_of(whole, {8}, 5);
  Table in_time;
  in_time.take(parts[1], kSecond);
  in_time.take(parts[0], 61 * kSecond);
  EXPECT_THAT(in_time.workers(), Each(worker_of_flow(whole)));
  Table late;
  late.take(parts[1], kSecond);
  late.take(parts[0], 61 * kSecond + 1);
  ASSERT_THAT(late.order(), ElementsAre(1, 2));
  EXPECT_NE(late.worker_of_frame(1), worker_of_flow(whole));
  EXPECT_EQ(late.worker_of_frame(2), worker_of_flow(whole));
  EXPECT_EQ(late.counts().not_followed, 1U);
}

/*  F1 F2 of one flow, then F2' F1' of another flow with the same identification  */
TEST(FragmentTable, DistinguishesDatagramsThatReuseAnIdentification) {
  const Frame one = datagram_of_another_worker({}), other = datagram_of_another_worker({worker_of_flow(one)});
  const auto first = fragments_of(one, {8}, 5), second = fragments_of(other, {8}, 5);
  Table table;
  for (const Frame& frame : {first[0], first[1], second[1], second[0]}) table.take(frame);
  EXPECT_THAT(table.order(), ElementsAre(1, 2, 3, 4));
  const unsigned a = worker_of_flow(one), b = worker_of_flow(other);
  EXPECT_THAT(table.workers(), ElementsAre(a, a, a, b));
  EXPECT_THAT(table.copied(), ElementsAre(Pair(1, b), Pair(2, b), Pair(3, b), Pair(4, a)));
  EXPECT_EQ(table.counts().ambiguous, 0U);
}

/*  F1 F2, and F2 again: it goes to the worker that has processed the datagram  */
TEST(FragmentTable, SendsDuplicatesToTheSameWorker) {
  const Frame whole = datagram_of_another_worker({});
  const auto parts = fragments_of(whole, {8}, 5);
  Table table;
  for (const Frame& frame : {parts[0], parts[1], parts[1]}) table.take(frame);
  table.finish();
  EXPECT_THAT(table.order(), ElementsAre(1, 2, 3));
  EXPECT_THAT(table.workers(), Each(worker_of_flow(whole)));
}

/*  F1 F1' F2: F1' has the ports of another flow. Each worker decides the verdict on its own first fragment, and
 * F1's worker also on the rest. Both get all fragments.  */
TEST(FragmentTable, KeepsADatagramWithFirstFragmentsOfTwoFlowsTogether) {
  const Frame one = datagram_of_another_worker({}), other = datagram_of_another_worker({worker_of_flow(one)});
  const auto first = fragments_of(one, {8}, 5), second = fragments_of(other, {8}, 5);
  Table table;
  for (const Frame& frame : {first[0], second[0], first[1]}) table.take(frame);
  const unsigned b = worker_of_flow(other);
  const unsigned a = worker_of_flow(one);
  EXPECT_THAT(table.workers(), ElementsAre(a, b, a));
  EXPECT_THAT(table.copied(), ElementsAre(Pair(1, b), Pair(2, a), Pair(3, b)));
  EXPECT_EQ(table.counts().ambiguous, 1U);
  EXPECT_EQ(table.counts().copied, 3U);
}

/*  F1 of another flow with a wrong checksum, which hosts discard; F2 F1  */
TEST(FragmentTable, IgnoresTheFlowOfAFragmentWithAWrongChecksum) {
  const Frame one = datagram_of_another_worker({}), other = datagram_of_another_worker({worker_of_flow(one)});
  Frame decoy = fragments_of(other, {8}, 5)[0];
  decoy[24] ^= 1;
  const auto parts = fragments_of(one, {8}, 5);
  Table table;
  for (const Frame& frame : {decoy, parts[1], parts[0]}) table.take(frame);
  EXPECT_THAT(table.order(), ElementsAre(1, 2, 3));
  EXPECT_EQ(table.worker_of_frame(2), worker_of_flow(one));
  EXPECT_EQ(table.worker_of_frame(3), worker_of_flow(one));
  EXPECT_THAT(table.copied(), IsEmpty());
}

/*  10.0.1.1 … 10.0.1.8: F3 … a flood from 10.9.9.9 … F2 F1  */
// Whatever the table's key, few of these datagrams can be in the same set as the flood.
TEST(FragmentTable, DoesNotLetOnePairOfHostsDisplaceOthers) {
  constexpr std::size_t kHosts = 8;
  std::vector<Frame> wholes;
  std::vector<std::vector<Frame>> parts;
  for (std::size_t i = 1; i <= kHosts; ++i) {
    wholes.push_back(
        packet().eth().ipv4("10.0.1." + std::to_string(i), "10.0.0.2").udp(1, 2).payload(std::string(64, 'x')).bytes());
    parts.push_back(fragments_of(wholes.back(), {8, 16}, 5));
  }
  const Frame flood = packet().eth().ipv4("10.9.9.9", "10.0.0.2").udp(1, 2).payload(std::string(1400, 'x')).bytes();
  Table table;
  std::vector<std::uint64_t> firsts;
  for (const auto& of_host : parts) firsts.push_back(table.take(of_host[2]));
  for (std::uint32_t id = 0; id < 50000; ++id) table.take(fragments_of(flood, {8}, id)[id % 2]);
  std::size_t followed = 0;
  for (std::size_t i = 0; i < kHosts; ++i) {
    table.take(parts[i][1]);
    const std::uint64_t last = table.take(parts[i][0]);
    const unsigned worker = worker_of_flow(wholes[i]);
    followed += table.worker_of_frame(firsts[i]) == worker && table.worker_of_frame(last) == worker ? 1 : 0;
  }
  EXPECT_GE(followed, kHosts - 3);
  EXPECT_GT(table.counts().not_followed, 20000U) << "of the flood";
  table.finish();
  EXPECT_THAT(table.given, SizeIs(50000 + 3 * kHosts));
}

/*  10.0.0.1: F3   10.0.1.1 … 10.0.1.63: F2, no room left   10.0.0.1: F2   ─▶  F2 of 10.0.1.1
    10.0.0.1: F1   ─▶  F3 F2 F1 of 10.0.0.1  */
TEST(FragmentTable, EvictsTheNextOldestIfTheOldestNeedsTheRoom) {
  constexpr std::size_t kFrames = 64, kBlock = 256;
  const Frame whole = datagram_of_another_worker({});
  const auto parts = fragments_of(whole, {8, 24}, 9);
  Table table({.sets = 64, .waiting_bytes = kFrames * kBlock});
  table.take(parts[2]);
  for (std::size_t i = 1; i < kFrames; ++i) {
    const Frame other = packet().eth().ipv4("10.0.1." + std::to_string(i), "10.0.0.2").udp(1, 2).payload("x").bytes();
    table.take(fragments_of(other, {8}, 5)[1]);
  }
  EXPECT_THAT(table.given, IsEmpty());
  table.take(parts[1]);
  EXPECT_THAT(table.order(), ElementsAre(2));
  table.take(parts[0]);
  EXPECT_THAT(table.order(), ElementsAre(2, 1, kFrames + 1, kFrames + 2));
  EXPECT_EQ(table.worker_of_frame(1), worker_of_flow(whole));
}

/// All fragments with one key reach few workers. None is lost or duplicated, and the fragments of a datagram keep their
/// order.
TEST(FragmentTable, LosesNothingWithoutRoom) {
  std::mt19937 random(7);
  for (const Limits limits :
       {Limits{1, 1 << 12, 60 * kSecond}, Limits{4, 1 << 14, kSecond}, Limits{512, 1 << 20, kSecond}}) {
    Table table(limits);
    std::map<std::uint64_t, Frame> taken;
    std::map<std::uint64_t, std::string> key_of;
    std::uint64_t now = kSecond;
    for (int i = 0; i < 20000; ++i) {
      const std::string from = "10.0." + std::to_string(random() % 8) + ".1";
      const auto id = static_cast<std::uint32_t>(random() % 40);
      const Frame whole = packet()
                              .eth()
                              .ipv4(from, "10.0.0.2")
                              .udp(static_cast<std::uint16_t>(id), 53)
                              .payload(std::string(16 + random() % 1400, 'x'))
                              .bytes();
      const Frame frame = fragments_of(whole, {8, 16}, id)[random() % 8 == 0 ? 0 : 1 + random() % 2];
      now += random() % 100 * 1'000'000;
      const std::uint64_t number = table.take(frame, now);
      taken[number] = frame;
      key_of[number] = from + "/" + std::to_string(id);
    }
    table.finish();
    ASSERT_THAT(table.given, SizeIs(taken.size()));
    std::map<std::string, std::uint64_t> last_of_key;
    for (const Given& one : table.given) {
      const auto it = taken.find(one.number);
      ASSERT_NE(it, taken.end()) << "given twice";
      EXPECT_EQ(it->second, one.bytes);
      taken.erase(it);
      std::uint64_t& last = last_of_key[key_of[one.number]];
      EXPECT_LT(last, one.number);
      last = one.number;
    }
    EXPECT_GT(table.counts().not_followed, 1000U);
  }
}

}  // namespace
}  // namespace penstock::port
