// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Explanations agree with the data plane: for every function of the catalog, in many configurations, and for a whole
// chain with a fork, over packets of all kinds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/testing/rounds.h"
#include "config/chain_file.h"
#include "packet/field_text.h"
#include "property/configured_function.h"
#include "property/ftp_packets.h"
#include "run/cpu_twins.h"
#include "run/explain.h"

namespace penstock::property {
namespace {

std::string text_of(const function::Explanation& explanation) {
  std::string text = explanation.decided_by + '\n';
  for (const auto& other : explanation.passed_over) text += fmt::format("not {}: {}\n", other.what, other.why);
  for (const std::string& note : explanation.notes) text += note + '\n';
  return text;
}

std::string text_of(Verdict verdict) { return fmt::format("{} {}", static_cast<int>(verdict.kind), verdict.value); }

std::vector<Packet> packets_for(const Configuration& configuration, RandomPackets& random) {
  const std::size_t count = testing::rounds(3'000);
  switch (configuration.traffic) {
    case Traffic::random: return random_packets(random, count);
    case Traffic::long_packets: return long_packets(random, count);
    case Traffic::esp: return esp_packets(random, count, states_of(configuration.turn), policies_of("out"));
    case Traffic::conversations: return Conversations(random)(count);
    case Traffic::ftp: return FtpPackets(random)(count);
  }
  return {};
}

TEST(Explanation, AgreesWithTheCpuTwinOfEveryFunction) {
  const ConfiguredFunctions functions;
  std::map<std::string, std::size_t> certain;  // by kind: explanations that leave nothing open
  for (const Configuration& configuration : configurations()) {
    RandomPackets random(11);
    MadeFunction made = functions.make(configuration);
    CpuRun run(functions.make(configuration));
    std::size_t number = 0;
    for (Packet& packet : packets_for(configuration, random)) {
      Packet asked = packet;
      asked.prepare();
      const auto explanation = made.function->explain(asked.view());
      ASSERT_TRUE(explanation) << configuration.kind;
      EXPECT_FALSE(explanation->decided_by.empty());
      EXPECT_LE(explanation->passed_over.size(), 2 * function::Explanation::kMostListed + 1);

      const FrameRoom room = run.room();
      Bytes memory(room.head + packet.bytes.size() + room.tail + 1);
      std::memcpy(memory.data() + room.head, packet.bytes.data(), packet.bytes.size());
      PacketDescriptor descriptor = packet.descriptor;
      descriptor.offset = room.head;
      Batch batch(memory, {&descriptor, 1}, {});
      PacketView view{memory.data() + room.head, &descriptor};
      run.begin_batch(batch);
      run.process({&view, 1}, {}, 0);
      run.end_batch();

      const std::string what = fmt::format("{} ({}), packet {}, {}\n{}", configuration.kind, configuration.name,
                                           number++, format_packet(packet.view()), text_of(*explanation));
      if (!explanation->depends_on.empty() || !explanation->ends.empty()) continue;
      ++certain[configuration.kind];
      ASSERT_EQ(text_of(asked.descriptor.verdict), text_of(descriptor.verdict)) << what;
      ASSERT_EQ(asked.descriptor.length, descriptor.length) << what;
      ASSERT_EQ(std::memcmp(asked.bytes.data(), view.frame, asked.bytes.size()), 0) << what;
    }
    run.end();
  }
  ++certain["kernel"];  // somebody else's, which explains nothing
  for (const function::NfKind* kind : nf::catalog()) EXPECT_GT(certain[std::string(kind->name)], 0U) << kind->name;
}

TEST(Explanation, AgreesWithTheWholeChain) {
  const port::testing::TemporaryFolder folder;
  for (const auto& [name, text] : configuration_files()) std::ofstream(folder / name) << text;
  std::ofstream(folder / "chain.yaml") << "ports: {lan: {generator: {}}, wan: {null: {}}, dmz: {null: {}}}\n"
                                          "wire: {lan: wan}\n"
                                          "chain:\n"
                                          "  - filter: {expression: not icmp}\n"
                                          "  - router: {routes: routes, neighbours: neighbours}\n"
                                          "  - fork:\n"
                                          "    - when: {out_port: wan}\n"
                                          "      chain: [firewall: {rules: iptables}]\n"
                                          "    - chain: [firewall: {rules: ip6tables}]\n";
  auto loaded = config::load_chain(folder / "chain.yaml", {});
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  const run::Chain& chain = loaded->chain;
  run::WorkerCounters counters(chain);
  function::Emitter emitter;
  run::CpuTwins twins(chain, {}, 0, counters, emitter);
  const auto stages = run::make_host_stages(chain.functions, nullptr);
  twins.begin_epoch(*stages);
  RandomPackets random(5);
  std::map<std::string, std::size_t> ends;  // by function
  for (Packet& packet : random_packets(random, testing::rounds(10'000))) {
    packet.descriptor.in_port = 0;
    packet.descriptor.verdict = Verdict::forward();
    Packet asked = packet;
    const run::ExplainedPacket explained = run::explain(chain, asked.view());
    PacketView view = packet.view();
    twins.begin_batch();
    twins.parse({&view, 1}, true);
    const bool alive = !twins.run({&view, 1}, 0, chain.functions.size()).empty();
    ASSERT_EQ(asked.descriptor.verdict.kind, packet.descriptor.verdict.kind) << explained.packet;
    ASSERT_EQ(asked.descriptor.verdict.value, packet.descriptor.verdict.value) << explained.packet;
    ASSERT_EQ(asked.bytes, packet.bytes) << explained.packet;
    EXPECT_TRUE(explained.open_questions.empty());
    const std::string& last = chain.functions[packet.descriptor.verdict.nf].name;
    if (!alive) {
      ASSERT_EQ(explained.steps.back().function, last) << explained.packet;
    } else {
      const run::NamedPort& exit = chain.ports[packet.descriptor.verdict.value];
      ASSERT_EQ(to_string(explained.outcome), exit.port->writes() ? "forward to " + exit.name : "drop: no_such_exit")
          << explained.packet;
    }
    ++ends[alive ? "" : last];
  }
  EXPECT_EQ(ends.size(), 1 + chain.functions.size()) << "packets end everywhere";
}

}  // namespace
}  // namespace penstock::property
