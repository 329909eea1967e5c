// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzzer: SAs of all kinds, packets on them, and what a GPU would run of a recipe, on the host.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "classify/host_view_for_test.h"
#include "function/testing/recipe_lies.h"
#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/inbound_steps_for_test.h"
#include "nf/ipsec/numbers/numbers_for_test.h"
#include "nf/ipsec/recipe.h"

namespace penstock::ipsec::testing {

using penstock::testing::Frame;
using penstock::testing::LonePacket;

/// With every cipher and proof, both modes, both families, UDP to other ports, and ESN.
inline const std::string kStatesForRecipe =
    "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\treplay-window 32 \n"
    "\taead rfc4106(gcm(aes)) 0x9b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n"
    "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00001001 reqid 1 mode tunnel\n\treplay-window 0 flag esn\n"
    "\tauth-trunc hmac(sha1) 0x5c3e9f0a7b2d4861e0f5a9c8d7b6134298eacb07 96\n"
    "\tenc cbc(aes) 0x2f6ad91c58e37b04c1b8f5e29d607a43\n"
    "\tanti-replay esn context:\n\t seq-hi 0x0, seq 0x0, oseq-hi 0x0, oseq 0x0\n"
    "\t replay_window 64, bitmap-length 2\n\t 00000000 00000000 \n"
    "src 10.1.0.1 dst 10.2.0.2\n\tproto esp spi 0x00001002 reqid 2 mode transport\n\treplay-window 32 \n"
    "\tauth-trunc hmac(sha256) 0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 128\n"
    "\tenc rfc3686(ctr(aes)) 0x2f6ad91c58e37b04c1b8f5e29d607a4301020304\n"
    "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00001003 reqid 1 mode tunnel\n\treplay-window 32 \n"
    "\tauth-trunc hmac(sha256) 0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 96\n"
    "\tenc cbc(aes) 0x2f6ad91c58e37b04c1b8f5e29d607a432f6ad91c58e37b04c1b8f5e29d607a43\n"
    "\tencap type espinudp sport 4500 dport 5500 addr 0.0.0.0\n"
    "src 2001:db8::1 dst 2001:db8::2\n\tproto esp spi 0x00001004 reqid 3 mode tunnel\n\treplay-window 32 \n"
    "\tauth digest_null \n\tenc ecb(cipher_null) \n";
inline const std::string kPoliciesForRecipe =
    "src 10.1.0.0/16 dst 10.2.0.0/16\n\tdir fwd priority 100 ptype main\n"
    "\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto esp reqid 1 mode tunnel\n"
    "src 0.0.0.0/0 dst 0.0.0.0/0 proto tcp\n\tdir fwd action block priority 200 ptype main\n"
    "src 10.1.0.1/32 dst 10.2.0.2/32\n\tdir in priority 100 ptype main\n"
    "\ttmpl src 0.0.0.0 dst 0.0.0.0\n\t\tproto esp reqid 2 mode transport\n"
    "src ::/0 dst ::/0\n\tdir fwd priority 300 ptype main\n"
    "\ttmpl src 2001:db8::1 dst 2001:db8::2\n\t\tproto esp reqid 3 mode tunnel\n\t\tlevel use \n";

/// The recipe of an inbound function with the SAs above.
inline function::StageRecipe recipe_for_test(bool with_policies) {
  TableSources sources;
  SaRegistry registry;
  sources.settings.inbound = true;
  sources.numbers = fixed_numbers();
  sources.registry = &registry;
  auto states = parse_states(kStatesForRecipe, "state.txt");
  if (!states || !states->unsupported.empty()) std::abort();
  sources.sas = std::move(states->value);
  if (with_policies) {
    auto policies = parse_policies(kPoliciesForRecipe, "policy.txt");
    if (!policies) std::abort();
    sources.policies = std::move(policies->value);
  }
  const auto tables = Tables::build(std::move(sources));
  if (!tables) std::abort();
  return recipe_of(spans_of(*tables->value, ReceivedSoFar(*tables->value)));
}

/// A packet that this SA of a recipe protects; as it is if the SA cannot.
inline Frame sealed(const Frame& frame, const TableSpans& tables, std::uint32_t sa_index, std::uint64_t sequence) {
  RoomyFrame roomy(frame.bytes, {128, 128}, frame.link_type, frame.wire_length);
  const SaView& sa = tables.selection.sas[sa_index];
  const bool fits =
      standing_of(roomy.view.layout()) == Reason::none && (sa.tunnel || roomy.view.layout().network == sa.outer);
  if (!fits) return frame;
  const Encapsulation plan = plan_encapsulation(roomy.view, sa, roomy.room());
  if (plan.reason != Reason::none) return frame;
  const CryptoJob job = encapsulate(roomy.view, sa, sa_index, plan, sequence);
  seal(job, tables.keys[sa_index], roomy.base());
  if (needs_udp_checksum(sa)) write_udp_checksum(roomy.view, job);
  return {roomy.bytes(), roomy.view.length(), frame.link_type};
}

/// Half of them ESP on the SAs of the recipe, some of it damaged.
template <typename Choices>
std::vector<Frame> frames_for(const function::StageRecipe& recipe, std::size_t count, Choices& choose) {
  const TableSpans tables = *read_recipe(recipe);
  penstock::testing::RandomFrames draw(1 + choose.below(1000));
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < count; ++i) {
    Frame frame = draw.frame();
    if (i % 4 != 0) {
      const bool ipv6 = draw.below(4) == 0;
      auto builder = penstock::testing::packet().eth();
      if (ipv6) {
        builder.ipv6("2001:db8:1::1", "2001:db8:2::2");
      } else {
        builder.ipv4("10.1.0.1", "10.2.0.2");
      }
      frame.bytes = builder.udp(1000, 2000).payload(std::string(draw.below(300), 'x')).bytes();
      frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
      frame.link_type = LinkType::ethernet;
    }
    if (i % 4 >= 2) {
      const auto sa = draw.below(tables.selection.sas.size());
      frame = sealed(frame, tables, sa, 1 + i);
      if (draw.below(4) == 0) frame.bytes[draw.below(frame.bytes.size())] ^= 1;
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

/// Runs packets through the stage of a recipe that has been checked.
inline std::vector<InboundFinding> run_on_host(const function::StageRecipe& recipe, std::span<LonePacket> packets) {
  const TableSpans tables = *read_recipe(recipe);
  const classify::TableSpans& engine = tables.selection.engine;
  const classify::HostVectors vectors(std::get<classify::BitVectorSpans>(engine.engine), engine.entries);
  InboundSteps steps(tables, vectors.view(), WrongIcv::punt);
  std::vector<InboundFinding> findings;
  for (LonePacket& packet : packets) {
    PacketView view = packet.view();
    findings.push_back(steps(view));
  }
  return findings;
}

}  // namespace penstock::ipsec::testing
