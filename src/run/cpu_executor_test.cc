// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/cpu_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <cstring>
#include <map>
#include <random>

#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "packet/testing/fragments.h"
#include "packet/testing/packet_builder.h"
#include "run/testing/fakes.h"
#include "stack/shared_stack.h"

namespace penstock::run {
namespace {

using penstock::testing::fragments_of;
using penstock::testing::packet;
using testing::Bytes;
using testing::each;
using ::testing::ElementsAre;
using testing::FakeChain;
using testing::FakeFunction;
using testing::FakePort;
using testing::number_of;
using testing::numbered;
using testing::numbered_frames;
using ::testing::Pair;

constexpr std::array<std::string_view, 2> kReasons{"odd", "seven"};

/// Takes one batch through a chain.
struct Executed {
  Executed(FakeChain& chain, const std::vector<Bytes>& frames, FrameRoom room = {})
      : bytes(1 << 20), descriptors(frames.size()), batch(bytes, descriptors, room) {
    chain.open();
    counters = std::make_unique<WorkerCounters>(chain);
    executor = std::make_unique<CpuExecutor>(chain, 0, *counters, nullptr);
    executor->begin();
    for (const Bytes& frame : frames) EXPECT_TRUE(testing::append(batch, frame));
    static_cast<void>(executor->submit(batch));
    static_cast<void>(executor->retire());
  }
  std::uint64_t dropped(ChainDrop reason) const {
    return counters->dropped_by_chain[static_cast<std::size_t>(reason)].packets.get();
  }
  std::uint64_t dropped_bytes(ChainDrop reason) const {
    return counters->dropped_by_chain[static_cast<std::size_t>(reason)].bytes.get();
  }

  std::vector<std::uint8_t> bytes;
  std::vector<PacketDescriptor> descriptors;
  Batch batch;
  std::unique_ptr<WorkerCounters> counters;
  std::unique_ptr<CpuExecutor> executor;
};

std::pair<std::uint64_t, std::uint64_t> of(const report::Traffic& traffic) {
  return {traffic.packets.get(), traffic.bytes.get()};
}
template <typename Wanted>
std::pair<std::uint64_t, std::uint64_t> sum_where(const std::vector<Bytes>& frames, Wanted wanted) {
  std::pair<std::uint64_t, std::uint64_t> sum;
  for (const Bytes& frame : frames) {
    if (!wanted(number_of(frame))) continue;
    ++sum.first;
    sum.second += frame.size();
  }
  return sum;
}

TEST(CpuExecutor, CountsWhatEachFunctionForwardsDropsAndConsumes) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  chain
      .add_function("no odd ones", each([](PacketView packet) {
                      const auto n = number_of(packet);
                      return n % 7 == 0 ? Verdict::drop(1) : n % 2 == 1 ? Verdict::drop(0) : Verdict::forward();
                    }))
      .own_traits.drop_reasons = kReasons;
  chain.add_function("keeps fours", each([](PacketView packet) {
                       return number_of(packet) % 4 == 0 ? Verdict::consume() : Verdict::forward();
                     }));
  const auto frames = numbered_frames(500);
  const Executed done(chain, frames);
  const auto seven = [](std::uint64_t n) { return n % 7 == 0; };
  const auto odd = [](std::uint64_t n) { return n % 7 != 0 && n % 2 == 1; };
  const auto even = [](std::uint64_t n) { return n % 7 != 0 && n % 2 == 0; };
  const FunctionCounters& first = done.counters->functions[0];
  EXPECT_EQ(of(first.in), sum_where(frames, [](auto) { return true; }));
  EXPECT_EQ(of(first.dropped[0]), sum_where(frames, odd));
  EXPECT_EQ(of(first.dropped[1]), sum_where(frames, seven));
  EXPECT_THAT(of(first.consumed), Pair(0, 0));
  EXPECT_EQ(of(first.forwarded), sum_where(frames, even));
  const FunctionCounters& second = done.counters->functions[1];
  EXPECT_EQ(of(second.in), of(first.forwarded));
  EXPECT_EQ(of(second.consumed), sum_where(frames, [&](auto n) { return even(n) && n % 4 == 0; }));
  EXPECT_EQ(of(second.forwarded), sum_where(frames, [&](auto n) { return even(n) && n % 4 != 0; }));
  EXPECT_EQ(of(done.counters->forwarded), of(second.forwarded));
  EXPECT_EQ(of(done.counters->port_out[0]), of(second.forwarded));
  EXPECT_EQ(out.sent_bytes(), done.counters->forwarded.bytes.get());
  EXPECT_THAT(of(done.counters->consumed), Pair(0, 0)) << "by the chain itself: none";
}

TEST(CpuExecutor, ShowsNoFunctionAPacketThatHasEnded) {
  FakeChain chain;
  chain.add_sink("out");
  chain
      .add_function("drops", each([](PacketView packet) {
                      return number_of(packet) < 200 ? Verdict::drop(0) : Verdict::forward();
                    }))
      .own_traits.drop_reasons = kReasons;
  chain.add_function("last", [](std::span<PacketView> packets) {
    ASSERT_FALSE(packets.empty());
    for (const PacketView packet : packets) {
      EXPECT_GE(number_of(packet), 200U);
      EXPECT_TRUE(packet.packet->verdict.alive());
    }
  });
  const Executed done(chain, numbered_frames(300));
  EXPECT_EQ(done.counters->functions[1].in.packets.get(), 100U);
}

///     route ─▶ ┬ out_port 1: reroute, drops sevens ─┬ ─▶ last
///              ├ out_port 0: straight on ───────────┤
///              ├ otherwise: never ──────────────────┤
TEST(CpuExecutor, TakesPacketsThroughTheArmWhoseConditionHoldsWhereTheForkBegins) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  chain.add_sink("other");
  chain.add_function("route",
                     each([](PacketView packet) { return Verdict::forward(PortIndex(number_of(packet) % 2)); }));
  chain
      .add_function("reroute", each([](PacketView packet) {
                      EXPECT_EQ(number_of(packet) % 2, 1U);
                      return number_of(packet) % 7 == 0 ? Verdict::drop(1) : Verdict::forward(PortIndex{0});
                    }))
      .own_traits.drop_reasons = kReasons;
  chain.add_function("never", each([](PacketView) { return ADD_FAILURE(), Verdict::forward(); }));
  chain.add_function("last", [](std::span<PacketView>) {});
  chain.forks = {{1, 3, {{1, 2, {{{}, {1}}}, ""}, {2, 2, {{{}, {0}}}, ""}, {2, 3, {}, ""}}}};
  const auto frames = numbered_frames(500);
  const Executed done(chain, frames);
  const auto odd = [](std::uint64_t n) { return n % 2 == 1; };
  const auto passes = [](std::uint64_t n) { return n % 2 == 0 || n % 7 != 0; };
  EXPECT_EQ(of(done.counters->functions[1].in), sum_where(frames, odd));
  EXPECT_EQ(of(done.counters->functions[1].dropped[1]), sum_where(frames, [&](auto n) { return !passes(n); }));
  EXPECT_THAT(of(done.counters->functions[2].in), Pair(0, 0));
  EXPECT_EQ(of(done.counters->functions[3].in), sum_where(frames, passes));
  EXPECT_TRUE(std::ranges::is_sorted(out.numbers())) << "they join in their order";
  EXPECT_EQ(of(done.counters->forwarded), sum_where(frames, passes));
}

///     flows ─▶ ┬ flows, flows ─┬ ─▶ flows
///              ├ flows ────────┤
TEST(CpuExecutor, SharesFlowsOnlyInsideAnArm) {
  FakeChain chain;
  chain.add_sink("out");
  std::vector<FakeFunction*> fakes;
  for (unsigned i = 0; i < 5; ++i) {
    fakes.push_back(&chain.add_function("f" + std::to_string(i), [](std::span<PacketView>) {}));
    fakes.back()->own_traits.stack = stack::StackNeed::flow;
  }
  chain.forks = {{1, 4, {{1, 3, {{{0}, {}}}, ""}, {3, 4, {}, ""}}}};
  const Executed done(chain, numbered_frames(10));
  const auto share = [&](std::size_t a, std::size_t b) {
    return &fakes[a]->attachment->counters() == &fakes[b]->attachment->counters();
  };
  EXPECT_TRUE(share(1, 2));
  EXPECT_FALSE(share(0, 1));
  EXPECT_FALSE(share(2, 3));
  EXPECT_FALSE(share(3, 4));
  EXPECT_FALSE(share(0, 4)) << "others come between them";
}

/// A copy of a fragment that another worker processes.
TEST(CpuExecutor, ShowsCopiesToFunctionsOfArmsThatTheirPortAdmits) {
  FakeChain chain;
  chain.add_sink("out");
  std::string seen;
  for (const char* const name : {"of port 0", "of port 1", "of all"})
    chain.add_function(name, [](std::span<PacketView>) {}).observe = [&seen, name](PacketView) { seen += name; };
  chain.forks = {{0, 2, {{0, 1, {{{0}, {}}}, ""}, {1, 2, {{{1}, {}}}, ""}}}};
  Executed done(chain, numbered_frames(1));
  done.executor->observe(done.batch.view(0));
  EXPECT_EQ(seen, "of port 0of all");
}

/// The descriptor still has the layout of a packet of the batch before.
TEST(CpuExecutor, ParsesCopies) {
  FakeChain chain;
  chain.add_sink("out");
  std::vector<PacketDescriptor> seen;
  FakeFunction& function = chain.add_function("watch", [](std::span<PacketView>) {});
  function.own_traits.cpu.reads = {Field::flow_hash};
  function.observe = [&seen](PacketView packet) { seen.push_back(*packet.packet); };
  const Bytes before = packet().eth().ipv6("fd00::1", "fd00::2").tcp(4000, 80).payload("a whole segment").bytes();
  const Bytes whole = packet().eth().ipv4("10.0.0.1", "192.0.2.1").udp(4000, 53).payload("in two parts").bytes();
  Executed done(chain, {before});
  for (const Bytes& fragment : fragments_of(whole, {8}, 1)) {
    done.batch.reset(0);
    ASSERT_TRUE(testing::append(done.batch, fragment));
    PacketDescriptor expected = done.descriptors[0];
    const PacketView view{done.batch.view(0).frame, &expected};
    parse(view);
    expected.flow_hash = flow_hash(view);
    done.executor->observe(done.batch.view(0));
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.back().layout, expected.layout);
    EXPECT_EQ(seen.back().flow_hash, expected.flow_hash);
    EXPECT_TRUE(seen.back().layout.has(PacketLayout::kFragment));
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST(CpuExecutor, RecordsWhichFunctionDecided) {
  FakeChain chain;
  chain.add_sink("out");
  chain.add_function("a", each([](auto) { return Verdict::forward(); }));
  chain.add_function("b", each([](auto) { return Verdict::drop(1); })).own_traits.drop_reasons = kReasons;
  const Executed done(chain, numbered_frames(1));
  EXPECT_EQ(done.descriptors[0].verdict.nf, 1);
  EXPECT_EQ(done.descriptors[0].verdict.value, 1);
}

TEST(CpuExecutor, KeepsTheOrderWithinEachExit) {
  FakeChain chain;
  FakePort& lan = chain.add_sink("lan");
  FakePort& wan = chain.add_sink("wan");
  FakePort& dmz = chain.add_sink("dmz");
  chain.add_function("router", each([](PacketView packet) {
                       return Verdict::forward(static_cast<PortIndex>(number_of(packet) * 7 % 5 % 3));
                     }));
  const Executed done(chain, numbered_frames(1000));
  std::size_t sent = 0;
  for (const FakePort* port : {&lan, &wan, &dmz}) {
    const auto numbers = port->numbers();
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    sent += numbers.size();
    EXPECT_GT(numbers.size(), 100U);
  }
  EXPECT_EQ(sent, 1000U);
  EXPECT_EQ(done.counters->forwarded.packets.get(), 1000U);
}

TEST(CpuExecutor, SendsByTheWiringIfNoFunctionChoseAPort) {
  FakeChain chain;
  FakePort& a = chain.add_sink("a");
  FakePort& b = chain.add_sink("b");
  chain.wiring = {1, 0};
  Executed done(chain, {});
  done.descriptors.resize(2);
  done.batch = Batch(done.bytes, done.descriptors, {});
  testing::append(done.batch, numbered(1), 0);
  testing::append(done.batch, numbered(2), 1);
  ASSERT_TRUE(done.executor->submit(done.batch));
  EXPECT_EQ(done.executor->retire(), &done.batch);
  EXPECT_THAT(b.numbers(), ElementsAre(1));
  EXPECT_THAT(a.numbers(), ElementsAre(2));
}

TEST(CpuExecutor, ConsumesPacketsWithoutAnOutputPort) {
  FakeChain chain;
  chain.add_source("in", testing::script({}));
  const auto frames = numbered_frames(10);
  const Executed done(chain, frames);
  EXPECT_THAT(of(done.counters->consumed), Pair(10, testing::bytes_of(frames)));
  EXPECT_THAT(of(done.counters->forwarded), Pair(0, 0));
}

TEST(CpuExecutor, DropsPacketsForAPortThatDoesNotWrite) {
  FakeChain chain;
  chain.add_source("in", testing::script({}));
  chain.add_sink("out");
  chain.add_function("router", each([](PacketView packet) {
                       return Verdict::forward(static_cast<PortIndex>(number_of(packet) % 3));  // in, out, none
                     }));
  const auto frames = numbered_frames(300);
  const Executed done(chain, frames);
  EXPECT_EQ(done.dropped(ChainDrop::no_such_exit), 200U);
  EXPECT_EQ(done.counters->forwarded.packets.get(), 100U);
  EXPECT_EQ(done.dropped_bytes(ChainDrop::no_such_exit) + done.counters->forwarded.bytes.get(),
            testing::bytes_of(frames));
}

TEST(CpuExecutor, CountsRefusedPacketsExactly) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  out.refuses = [](PacketView packet) { return number_of(packet) % 3 == 0; };
  const auto frames = numbered_frames(300);
  const Executed done(chain, frames);
  const auto refused = sum_where(frames, [](auto n) { return n % 3 == 0; });
  const auto taken = sum_where(frames, [](auto n) { return n % 3 != 0; });
  EXPECT_EQ(done.dropped(ChainDrop::port_refused), refused.first);
  EXPECT_EQ(done.dropped_bytes(ChainDrop::port_refused), refused.second);
  EXPECT_EQ(of(done.counters->forwarded), taken);
  EXPECT_EQ(of(done.counters->port_out[0]), taken);
}

TEST(CpuExecutor, CountsPacketsLostAtTheEndOfABatchAsRefused) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  const auto frames = numbered_frames(300);
  const auto lost = sum_where(frames, [](auto n) { return n >= 290; });
  out.loses = [&] { return port::Lost{lost.first, lost.second}; };
  const Executed done(chain, frames);
  const auto kept = sum_where(frames, [](auto n) { return n < 290; });
  EXPECT_EQ(done.dropped(ChainDrop::port_refused), lost.first);
  EXPECT_EQ(done.dropped_bytes(ChainDrop::port_refused), lost.second);
  EXPECT_EQ(of(done.counters->forwarded), kept);
  EXPECT_EQ(of(done.counters->port_out[0]), kept);
}

TEST(CpuExecutor, FlushesEachPortOfABatchOnce) {
  FakeChain chain;
  FakePort& used = chain.add_sink("used");
  FakePort& unused = chain.add_sink("unused");
  chain.wiring = {0, 0};
  Executed done(chain, numbered_frames(1000));
  EXPECT_THAT(used.flushes, ElementsAre(1));
  EXPECT_THAT(unused.flushes, ElementsAre(0));
  done.batch.reset(0);
  ASSERT_TRUE(done.executor->submit(done.batch));
  EXPECT_EQ(done.executor->retire(), &done.batch);
  EXPECT_THAT(used.flushes, ElementsAre(1)) << "an empty batch leaves by none";
}

TEST(CpuExecutor, HashesFlowsOnlyIfAFunctionReadsTheHash) {
  for (const bool read : {false, true}) {
    FakeChain chain;
    chain.add_sink("out");
    std::uint32_t seen = 0;
    std::uint32_t right = 0;
    auto& function = chain.add_function("reader", [&](std::span<PacketView> packets) {
      seen = packets[0].packet->flow_hash;
      right = flow_hash(packets[0]);
    });
    if (read) function.own_traits.cpu.reads = {Field::flow_hash};
    const Executed done(chain, {numbered(1, 3)});
    EXPECT_NE(right, 0U);
    EXPECT_EQ(seen, read ? right : 0U);
  }
}

/// Inserts a VLAN tag into each frame, which grows by four bytes at its head.
void push_tag(std::span<PacketView> packets) {
  for (PacketView& packet : packets) {
    packet.frame -= 4;
    packet.packet->offset -= 4;
    packet.packet->length += 4;
    packet.packet->wire_length += 4;
    std::memmove(packet.frame, packet.frame + 4, 12);
    const std::uint8_t tag[4] = {0x81, 0x00, 0x00, 0x07};
    std::memcpy(packet.frame + 12, tag, 4);
  }
}

/// A gate and a counter with another function between them; each drops packets at random, or none. What gate and
/// counter see of a packet's flow is compared with plain maps: as if each function had its own flows, in which only the
/// packets count that it let pass.
class FlowsOfTwo : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WhereOneBetweenThemDropsOrNot, FlowsOfTwo, ::testing::Bool());

TEST_P(FlowsOfTwo, AreAsIfEachHadItsOwn) {
  std::vector<Bytes> frames;
  std::vector<unsigned> flows;
  std::mt19937 random(5);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    flows.push_back(static_cast<unsigned>(random() % 40));
    frames.push_back(numbered(i, flows.back()));
  }
  const auto drops = [](std::uint64_t number, unsigned function) {
    return std::hash<std::string>{}(std::to_string(number * 3 + function)) % 4 == 0;
  };
  using Flow = std::pair<std::uint64_t, std::uint64_t>;  // packets that passed, the slot
  std::array<std::vector<Flow>, 2> seen, expected;
  std::array<FakeFunction*, 3> fakes{};
  FakeChain chain;
  chain.add_sink("out");
  const auto add = [&](unsigned function, bool may_drop) {
    FakeFunction& fake = chain.add_function("f" + std::to_string(function), [&, function, may_drop](auto packets) {
      for (const PacketView packet : packets) {
        if (function != 1) {
          stack::Attachment& attachment = *fakes[function]->attachment;
          const stack::PacketFlow found = attachment.flow_of(packet);
          seen[function / 2].emplace_back(found.flow->counts[0].packets, attachment.slot(*found.flow)++);
        }
        if (may_drop && drops(number_of(packet), function)) packet.packet->verdict = Verdict::drop(0);
      }
    });
    fakes[function] = &fake;
    fake.own_traits.drop_reasons = kReasons;
    if (may_drop) fake.own_traits.cpu.writes = {Field::verdict};
    if (function != 1) fake.own_traits.stack = stack::StackNeed::flow;
  };
  add(0, true);
  add(1, GetParam());
  add(2, false);
  const Executed done(chain, frames);
  // They share flows unless the function between them drops packets.
  EXPECT_EQ(&fakes[0]->attachment->counters() == &fakes[2]->attachment->counters(), !GetParam());

  std::array<std::map<unsigned, Flow>, 2> own;
  for (std::uint64_t i = 0; i < frames.size(); ++i) {
    const auto pass = [&](unsigned function, bool passes) {
      Flow& flow = own[function][flows[i]];
      expected[function].push_back(flow);
      if (passes) ++flow.first, ++flow.second;
      if (!passes && flow.first > 0) ++flow.second;  // an existing flow keeps its slot
      return passes;
    };
    if (pass(0, !drops(i, 0)) && !(GetParam() && drops(i, 1))) pass(1, true);
  }
  EXPECT_EQ(seen[0], expected[0]);
  // If the packet that began a flow is dropped, the slot starts again from 0.
  EXPECT_EQ(seen[1], expected[1]);
}

TEST(CpuExecutor, ParsesAgainAfterAFunctionThatGrowsFrames) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  auto& first = chain.add_function("tags", push_tag);
  first.own_traits.cpu.writes = {Field::frame_shape, Field::vlan_tags};
  first.own_traits.growth = {4, 0};
  chain.add_function("sees them", [](std::span<PacketView> packets) {
    for (const PacketView packet : packets) {
      EXPECT_EQ(packet.layout().vlan_count, 1);
      EXPECT_EQ(packet.layout().network_offset, 18);
      EXPECT_EQ(packet.layout().end, packet.length());
      EXPECT_TRUE(packet.has_ports());
    }
  });
  const auto frames = numbered_frames(300);
  const Executed done(chain, frames, {4, 0});
  const FunctionCounters& tags = done.counters->functions[0];
  EXPECT_EQ(tags.forwarded.bytes.get(), tags.in.bytes.get() + 4 * 300) << "in as they came, forwarded as they went";
  EXPECT_EQ(done.counters->functions[1].in.bytes.get(), tags.forwarded.bytes.get());
  ASSERT_EQ(out.sent[0].size(), 300U);
  for (std::size_t i = 0; i < 300; ++i) {
    Bytes want = frames[i];
    want.insert(want.begin() + 12, {0x81, 0x00, 0x00, 0x07});
    EXPECT_EQ(out.sent[0][i].bytes, want);
  }
}

/// For each packet for which `wants` returns true, emits a packet that carries `number`.
FakeFunction& add_maker(FakeChain& chain, std::function<bool(std::uint64_t number)> wants, std::uint64_t number,
                        PortIndex out = kNoPort) {
  FakeFunction& maker = chain.add_function("maker", {});
  maker.own_traits.emits = true;
  maker.process = [&maker, wants = std::move(wants), number, out](std::span<PacketView> packets) {
    for (const PacketView packet : packets) {
      if (!wants(number_of(packet))) continue;
      EXPECT_TRUE(maker.emitter->emit(numbered(number), packet, out));
      EXPECT_TRUE(maker.emitter->emit(numbered(number + 1), packet, out));
    }
  };
  return maker;
}

TEST(CpuExecutor, SendsEmittedPacketsDirectlyAfterTheirCauseByTheSamePort) {
  FakeChain chain;
  FakePort& even = chain.add_sink("even");
  FakePort& odd = chain.add_sink("odd");
  add_maker(
      chain, [](auto n) { return n % 100 == 7 || n % 100 == 8; }, 5000);
  add_maker(
      chain, [](auto n) { return n % 100 == 8; }, 6000);
  std::uint64_t seen = 0;
  chain.add_function("router", each([&](PacketView packet) {
                       ++seen;
                       return Verdict::forward(static_cast<PortIndex>(number_of(packet) % 2));
                     }));
  const auto frames = numbered_frames(1000);
  const Executed done(chain, frames);
  std::vector<std::uint64_t> want[2];
  for (std::uint64_t n = 0; n < 1000; ++n) {
    want[n % 2].push_back(n);
    if (n % 100 == 7) want[1].insert(want[1].end(), {5000, 5001});
    if (n % 100 == 8) want[0].insert(want[0].end(), {5000, 5001, 6000, 6001});
  }
  EXPECT_EQ(even.numbers(), want[0]);
  EXPECT_EQ(odd.numbers(), want[1]);
  EXPECT_EQ(seen, 1000U) << "they pass no further function";
  EXPECT_THAT(of(done.counters->forwarded), Pair(1000, testing::bytes_of(frames)));
  EXPECT_EQ(of(done.counters->generated),
            std::pair(std::uint64_t{60}, 20 * (numbered(5000).size() + numbered(5001).size()) +
                                             10 * (numbered(6000).size() + numbered(6001).size())));
  EXPECT_EQ(done.counters->port_out[0].packets.get(), 540U);
  EXPECT_EQ(done.counters->port_out[1].packets.get(), 520U);
}

TEST(CpuExecutor, SendsEmittedPacketsInPlaceOfTheirCause) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  add_maker(
      chain, [](auto n) { return n >= 100 && n < 400; }, 5000, 0);
  chain
      .add_function("drops", each([](PacketView packet) {
                      const auto n = number_of(packet);
                      return n >= 100 && n < 400 ? Verdict::drop(0) : Verdict::forward();
                    }))
      .own_traits.drop_reasons = kReasons;
  const Executed done(chain, numbered_frames(400));  // some bursts, and the end of the batch, have only emitted packets
                                                     // left
  std::vector<std::uint64_t> want;
  for (std::uint64_t n = 0; n < 100; ++n) want.push_back(n);
  for (std::uint64_t n = 100; n < 400; ++n) want.insert(want.end(), {5000, 5001});
  EXPECT_EQ(out.numbers(), want);
  EXPECT_EQ(done.counters->generated.packets.get(), 600U);
  EXPECT_EQ(done.counters->forwarded.packets.get(), 100U);
}

TEST(CpuExecutor, SendsNothingAfterAPacketThatDoesNotLeave) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  add_maker(
      chain, [](auto) { return true; }, 5000);
  chain
      .add_function("odd", each([](PacketView packet) {
                      return number_of(packet) % 2 == 1 ? Verdict::drop(0) : Verdict::forward();
                    }))
      .own_traits.drop_reasons = kReasons;
  const Executed done(chain, numbered_frames(10));
  EXPECT_EQ(out.sent[0].size(), 15U);
  EXPECT_EQ(done.counters->generated.packets.get(), 10U);
  EXPECT_EQ(done.counters->generated_lost.packets.get(), 0U);

  FakeChain sink;  // without an output port
  sink.add_port("in");
  add_maker(
      sink, [](auto) { return true; }, 5000);
  const Executed consumed(sink, numbered_frames(10));
  EXPECT_EQ(consumed.counters->consumed.packets.get(), 10U);
  EXPECT_EQ(consumed.counters->generated.packets.get(), 0U);
}

TEST(CpuExecutor, CountsEmittedPacketsThatPortsLoseSeparately) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  chain.add_port("closed");
  chain.wiring = {0, 0};
  add_maker(
      chain, [](auto n) { return n < 10; }, 5000);
  add_maker(
      chain, [](auto n) { return n == 7; }, 6000, 1);
  out.refuses = [](PacketView packet) { return number_of(packet) == 5001 || number_of(packet) == 3; };
  out.loses = [] { return port::Lost{23, 23 * 60}; };
  const auto frames = numbered_frames(20);
  const Executed done(chain, frames);
  EXPECT_EQ(done.counters->forwarded.packets.get(), 0U);
  EXPECT_EQ(done.dropped(ChainDrop::port_refused), 20U) << "one refused, all others lost";
  EXPECT_EQ(done.counters->generated_lost.packets.get(), 10U + 4 + 2) << "refused, lost, and without an exit";
  EXPECT_EQ(done.counters->generated.packets.get(), 6U);
  EXPECT_EQ(done.counters->port_out[0].packets.get(), 6U);
}

TEST(CpuExecutor, BoundsThePacketsEmittedForABatch) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  chain.settings.batch_packets = 10;
  chain.settings.batch_bytes = 4096;
  FakeFunction& maker = chain.add_function("maker", {});
  maker.own_traits.emits = true;
  maker.own_traits.drop_reasons = kReasons;
  maker.process = [&maker](std::span<PacketView> packets) {
    for (const PacketView packet : packets) {
      for (int n = 0; n < 7 && packet.packet->verdict.alive(); ++n) {
        if (!maker.emitter->emit(numbered(5000), packet)) packet.packet->verdict = Verdict::drop(0);
      }
    }
  };
  Executed done(chain, numbered_frames(10));
  EXPECT_EQ(done.counters->functions[0].dropped[0].packets.get(), 5U) << "40 packets at most";
  EXPECT_EQ(out.sent[0].size(), 5U + 35);
  const auto submit_again = [&] {
    done.batch.reset(0);
    for (const Bytes& frame : numbered_frames(10)) EXPECT_TRUE(testing::append(done.batch, frame));
    EXPECT_TRUE(done.executor->submit(done.batch));
    static_cast<void>(done.executor->retire());
  };
  submit_again();
  EXPECT_EQ(done.counters->functions[0].dropped[0].packets.get(), 10U) << "and as many of the next";
  EXPECT_EQ(out.sent[0].size(), 80U);
  maker.process = [&maker](std::span<PacketView> packets) {
    EXPECT_EQ(maker.emitter->emit_unwritten(8193, packets[0]), nullptr);
    EXPECT_NE(maker.emitter->emit_unwritten(8192, packets[0]), nullptr);
    EXPECT_EQ(maker.emitter->emit_unwritten(1, packets[0]), nullptr);
  };
  submit_again();
}

/// Appends `bytes` to the frames of its packets, in larger frames.
FakeFunction& add_enlarger(FakeChain& chain, std::size_t bytes) {
  FakeFunction& enlarger = chain.add_function("enlarger", {});
  enlarger.own_traits.replaces_frames = true;
  enlarger.own_traits.cpu.writes = {Field::frame_shape, Field::trailer};
  enlarger.own_traits.drop_reasons = kReasons;
  enlarger.process = [&enlarger, bytes](std::span<PacketView> packets) {
    for (PacketView& packet : packets) {
      const Bytes before(packet.frame, packet.frame + packet.length());
      if (!enlarger.emitter->replace_frame(packet, before.size() + bytes)) {
        EXPECT_EQ(Bytes(packet.frame, packet.frame + packet.length()), before) << "nothing has changed";
        packet.packet->verdict = Verdict::drop(0);
        continue;
      }
      std::fill(std::copy(before.begin(), before.end(), packet.frame), packet.frame + packet.length(), 'z');
    }
  };
  return enlarger;
}

//   [frame]  ─▶ enlarger ─▶ [frame|zzz…]  ─▶ tags ─▶ [fra|tag|me|zzz…]  ─▶ out
TEST(CpuExecutor, TakesAPacketInALargerFrameThroughTheRestOfTheChain) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  constexpr std::size_t kMore = 30'000;  // more than the frame and its neighbours have
  add_enlarger(chain, kMore);
  auto& tags = chain.add_function("tags", push_tag);
  tags.own_traits.cpu.writes = {Field::frame_shape, Field::vlan_tags};
  tags.own_traits.growth = {4, 0};
  const auto frames = numbered_frames(20);
  const Executed done(chain, frames, {4, 0});
  ASSERT_EQ(out.sent[0].size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) {
    Bytes want = frames[i];
    want.insert(want.begin() + 12, {0x81, 0x00, 0x00, 0x07});
    want.resize(want.size() + kMore, 'z');
    EXPECT_EQ(out.sent[0][i].bytes, want);
    EXPECT_EQ(out.sent[0][i].descriptor.wire_length, want.size());
  }
  const FunctionCounters& enlarger = done.counters->functions[0];
  EXPECT_EQ(enlarger.forwarded.bytes.get(), enlarger.in.bytes.get() + 20 * kMore);
  EXPECT_EQ(done.counters->generated.packets.get(), 0U) << "it is the packet that came";
}

TEST(CpuExecutor, BoundsLargerFramesOfABatch) {
  FakeChain chain;
  FakePort& out = chain.add_sink("out");
  chain.settings.batch_bytes = 1 << 20;
  add_enlarger(chain, 500'000);
  Executed done(chain, numbered_frames(10));
  EXPECT_EQ(out.sent[0].size(), 4U) << "twice the bytes of a batch";
  EXPECT_EQ(done.counters->functions[0].dropped[0].packets.get(), 6U);
  done.batch.reset(0);
  EXPECT_TRUE(testing::append(done.batch, numbered(1)));
  EXPECT_TRUE(done.executor->submit(done.batch));
  EXPECT_EQ(out.sent[0].size(), 5U) << "the next batch has as much";
}

TEST(CpuExecutorDeathTest, StopsAtAFunctionThatLeavesItsLargerFrame) {
  FakeChain chain;
  chain.add_sink("out");
  FakeFunction& enlarger = add_enlarger(chain, 100);
  enlarger.process = [&enlarger](std::span<PacketView> packets) {
    EXPECT_TRUE(enlarger.emitter->replace_frame(packets[0], 100));
    packets[0].packet->length = 1000;
  };
  EXPECT_DEATH(Executed(chain, numbered_frames(1)), "enlarger: extends a frame by more than it declares");
}

TEST(CpuExecutorDeathTest, StopsAtAPuntOfACpuTwinAndNamesFunctionAndPacket) {
  FakeChain chain;
  chain.add_sink("out");
  chain.add_function(
      "liar", each([](PacketView packet) { return number_of(packet) == 3 ? Verdict::punt() : Verdict::forward(); }));
  EXPECT_DEATH(Executed(chain, numbered_frames(5)), "liar: the CPU twin punts \\(packet 3 of worker 0\\)");
}

TEST(CpuExecutorDeathTest, StopsAtADropForAReasonThatIsNotNamed) {
  FakeChain chain;
  chain.add_sink("out");
  chain
      .add_function(
          "liar", each([](PacketView packet) { return number_of(packet) == 4 ? Verdict::drop(2) : Verdict::drop(1); }))
      .own_traits.drop_reasons = kReasons;
  EXPECT_DEATH(Executed(chain, numbered_frames(5)), "liar: drops for a reason that it does not declare \\(packet 4 of");
}

// A run that fails to start destroys executors that never ended. Stages write their last counts then.
TEST(CpuExecutor, DestroysStagesBeforeTheTrackersThatTheyUse) {
  FakeChain chain;
  chain.add_sink("out");
  FakeFunction& function = chain.add_function("follows", [](std::span<PacketView>) {});
  function.own_traits.stack = stack::StackNeed::flow;
  std::optional<std::uint64_t> counted;
  function.at_stage_end = [&] { counted = function.attachment->counters().packets; };
  WorkerCounters counters(chain);
  std::make_unique<CpuExecutor>(chain, 0, counters, nullptr).reset();
  EXPECT_EQ(counted, 0U);
}

}  // namespace
}  // namespace penstock::run
