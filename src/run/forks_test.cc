// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random chains with forks on the CPU, compared with a model that takes one packet at a time through the forks by their
// definition, and keeps flows in plain maps.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "run/cpu_executor.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using testing::Bytes;
using testing::FakeChain;
using testing::FakeFunction;
using testing::FakePort;
using testing::number_of;
using testing::numbered;

constexpr std::array<std::string_view, 1> kReasons{"some"};

/// Functions that count ask for each packet's flow.
enum class Kind : std::uint8_t { drops, routes, counts, counts_and_drops };

/// Functions and forks of a chain. Conditions refer to two ports.
struct Shape {
  std::vector<Kind> kinds;
  std::vector<plan::Fork> forks;
};

std::vector<plan::ArmCondition> random_conditions() {
  std::vector<plan::ArmCondition> conditions;
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    plan::ArmCondition& condition = conditions.emplace_back();
    const bool by_in_port = *rc::gen::arbitrary<bool>();
    (by_in_port ? condition.in_ports : condition.out_ports).push_back(*rc::gen::inRange<PortIndex>(0, 2));
  }
  return conditions;
}

Shape random_shape() {
  Shape shape;
  const auto add = [&](int most) {
    for (int n = *rc::gen::inRange(0, most + 1); n > 0; --n)
      shape.kinds.push_back(*rc::gen::element(Kind::drops, Kind::routes, Kind::counts, Kind::counts_and_drops));
  };
  for (int parts = *rc::gen::inRange(1, 4); parts > 0; --parts) {
    add(2);
    plan::Fork fork{shape.kinds.size(), 0, {}};
    for (int arms = *rc::gen::inRange(1, 4); arms > 0; --arms) {
      plan::Arm& arm = fork.arms.emplace_back(plan::Arm{shape.kinds.size(), 0, random_conditions(), ""});
      add(3);
      arm.last = shape.kinds.size();
    }
    fork.last = shape.kinds.size();
    if (fork.last > fork.first) shape.forks.push_back(std::move(fork));
  }
  add(2);
  return shape;
}

std::string to_text(const Shape& shape) {
  static constexpr std::array<const char*, 4> kNames{"drops", "routes", "counts", "counts and drops"};
  std::string text;
  for (const Kind kind : shape.kinds) text += fmt::format("{}, ", kNames[static_cast<std::size_t>(kind)]);
  for (const plan::Fork& fork : shape.forks) {
    text += fmt::format("fork [{}, {})", fork.first, fork.last);
    for (const plan::Arm& arm : fork.arms) text += fmt::format(" [{}, {})", arm.first, arm.last);
  }
  return text;
}

std::size_t random_of(std::uint64_t number, std::size_t function) {
  return std::hash<std::string>{}(std::to_string(number * 100 + function));
}
bool drops(Kind kind, std::uint64_t number, std::size_t function) {
  return (kind == Kind::drops || kind == Kind::counts_and_drops) && random_of(number, function) % 5 == 0;
}
PortIndex port_of(std::uint64_t number, std::size_t function) {
  return static_cast<PortIndex>(random_of(number, function) % 2);
}
bool counts(Kind kind) { return kind == Kind::counts || kind == Kind::counts_and_drops; }

/// What one function saw of one packet: its number and, if the function counts, the packets of the flow that passed,
/// and the slot.
struct Seen {
  std::uint64_t number, packets, slot;
  friend bool operator==(const Seen&, const Seen&) = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << seen.number << ": " << seen.packets << " packets, slot " << seen.slot;
}

struct Packet {
  PortIndex in_port = 0;
  unsigned flow = 0;
};

struct Outcome {
  std::vector<std::vector<Seen>> seen;             // by function
  std::array<std::vector<std::uint64_t>, 2> sent;  // by port: numbers
};

/// The expected outcome.
class Model {
 public:
  explicit Model(const Shape& shape) : shape_(shape), flows_(shape.kinds.size()) {
    outcome_.seen.resize(shape.kinds.size());
  }

  void take(std::uint64_t number, const Packet& packet) {
    std::optional<PortIndex> out;
    std::size_t next = 0;
    for (const plan::Fork& fork : shape_.forks) {
      if (!pass(next, fork.first, number, packet, out)) return;
      const plan::Arm* taken = nullptr;
      for (const plan::Arm& arm : fork.arms) {
        if (taken == nullptr && meets(arm, packet, out)) taken = &arm;
      }
      if (taken != nullptr && !pass(taken->first, taken->last, number, packet, out)) return;
      next = fork.last;
    }
    if (pass(next, shape_.kinds.size(), number, packet, out)) outcome_.sent[out.value_or(0)].push_back(number);
  }
  const Outcome& outcome() const { return outcome_; }

 private:
  struct Flow {
    std::uint64_t packets = 0, slot = 0;
  };

  static bool meets(const plan::Arm& arm, const Packet& packet, std::optional<PortIndex> out) {
    if (arm.conditions.empty()) return true;
    for (const plan::ArmCondition& condition : arm.conditions) {
      if (!condition.in_ports.empty() && condition.in_ports.front() == packet.in_port) return true;
      if (!condition.out_ports.empty() && out == condition.out_ports.front()) return true;
    }
    return false;
  }
  /// Takes the packet through functions [first, last). Returns whether it is forwarded.
  bool pass(std::size_t first, std::size_t last, std::uint64_t number, const Packet& packet,
            std::optional<PortIndex>& out) {
    for (std::size_t f = first; f < last; ++f) {
      const Kind kind = shape_.kinds[f];
      const bool passes = !drops(kind, number, f);
      Seen seen{number, 0, 0};
      if (counts(kind)) {
        Flow& flow = flows_[f][packet.flow];
        seen = {number, flow.packets, flow.slot};
        if (passes) ++flow.packets;
        if (flow.packets > 0) ++flow.slot;  // a flow whose first packet is dropped does not begin
      }
      outcome_.seen[f].push_back(seen);
      if (!passes) return false;
      if (kind == Kind::routes) out = port_of(number, f);
    }
    return true;
  }

  const Shape& shape_;
  std::vector<std::map<unsigned, Flow>> flows_;  // by function, as if each had its own flows
  Outcome outcome_;
};

/// The first `traced` packets are traced, which must not change the outcome.
Outcome run_on_cpu(const Shape& shape, const std::vector<Packet>& packets, std::uint64_t traced) {
  Outcome outcome;
  outcome.seen.resize(shape.kinds.size());
  FakeChain chain;
  FakePort* const ports[] = {&chain.add_sink("a"), &chain.add_sink("b")};
  chain.wiring = {0, 0};
  chain.forks = shape.forks;
  for (std::size_t f = 0; f < shape.kinds.size(); ++f) {
    const Kind kind = shape.kinds[f];
    FakeFunction& function = chain.add_function("f" + std::to_string(f), {});
    function.own_traits.drop_reasons = kReasons;
    function.own_traits.cpu.writes = kind == Kind::counts ? FieldSet{} : FieldSet{Field::verdict};
    if (counts(kind)) function.own_traits.stack = stack::StackNeed::flow;
    function.process = [&outcome, &function, kind, f](std::span<PacketView> burst) {
      for (const PacketView packet : burst) {
        Seen& seen = outcome.seen[f].emplace_back(Seen{number_of(packet), 0, 0});
        if (counts(kind)) {
          const stack::PacketFlow found = function.attachment->flow_of(packet);
          seen.packets = found.flow->counts[0].packets;
          seen.slot = function.attachment->slot(*found.flow)++;
        }
        if (drops(kind, seen.number, f))
          packet.packet->verdict = Verdict::drop(0);
        else if (kind == Kind::routes)
          packet.packet->verdict = Verdict::forward(port_of(seen.number, f));
      }
    };
  }
  chain.open();
  WorkerCounters counters(chain);
  Taps taps;
  RC_ASSERT(taps.trace.begin({traced, {}, [](const TracedPacket&) {}}));
  CpuExecutor executor(chain, 0, counters, &taps);
  executor.begin();
  std::vector<std::uint8_t> bytes(1 << 20);
  std::vector<PacketDescriptor> descriptors(packets.size());
  Batch batch(bytes, descriptors, {});
  for (std::size_t i = 0; i < packets.size(); ++i)
    RC_ASSERT(testing::append(batch, numbered(i, packets[i].flow), packets[i].in_port));
  static_cast<void>(executor.submit(batch));
  static_cast<void>(executor.retire());
  for (std::size_t p = 0; p < 2; ++p) outcome.sent[p] = ports[p]->numbers();
  return outcome;
}

//   packets of two ports and a few flows ─▶ functions ─▶ ┬ arm ┬ ─▶ functions ─▶ ┬ arm ┬ ─▶ … ─▶ two ports
//                                                        ├ arm ┤                 └─────┘
//                                                        └─────┘
RC_GTEST_PROP(Forks, TakeEachPacketThroughItsArmsAndLoseNone, ()) {
  const Shape shape = random_shape();
  SCOPED_TRACE(to_text(shape));
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  std::vector<Packet> packets(400);  // several bursts
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const std::size_t value = random_of(i, seed % 1000);
    packets[i] = {static_cast<PortIndex>(value % 2), static_cast<unsigned>(value / 2 % 10)};
  }
  Model model(shape);
  for (std::size_t i = 0; i < packets.size(); ++i) model.take(i, packets[i]);
  const Outcome outcome = run_on_cpu(shape, packets, *rc::gen::inRange(0, 300));
  EXPECT_EQ(outcome.sent, model.outcome().sent);
  for (std::size_t f = 0; f < shape.kinds.size(); ++f) EXPECT_EQ(outcome.seen[f], model.outcome().seen[f]) << f;
  RC_ASSERT(!::testing::Test::HasFailure());
}

}  // namespace
}  // namespace penstock::run
