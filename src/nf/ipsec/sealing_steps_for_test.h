// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzzer: outbound SAs of all kinds, packets for them, and the steps of the GPU stage that carries
// out the host's decisions (ipsec.cu), on the host.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "function/testing/recipe_lies.h"
#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/esp/decision_core.h"
#include "nf/ipsec/ipsec.h"
#include "nf/ipsec/outbound_recipe.h"
#include "nf/ipsec/recipe_for_test.h"

namespace penstock::ipsec::testing {

/// With the SAs of kStatesForRecipe, and one in UDP over IPv6, with TFC padding.
inline const std::string kOutboundStates =
    kStatesForRecipe +
    "src 2001:db8::1 dst 2001:db8::2\n\tproto esp spi 0x00001005 reqid 4 mode tunnel\n\treplay-window 32 \n"
    "\taead rfc4106(gcm(aes)) 0x0b1de5a7c4f83620d17e4c95b8a3f60213579bdf 96\n\ttfcpad 200\n"
    "\tencap type espinudp sport 4500 dport 4500 addr ::\n";

/// The destination port selects the SA, by its position from 2000 on; TCP is blocked, and the rest passes.
inline std::string outbound_policies() {
  const std::string of_gateway = "\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto esp spi 0x0000100";
  const std::string six = "\ttmpl src 2001:db8::1 dst 2001:db8::2\n\t\tproto esp reqid ";
  const std::array<std::string, 6> templates{of_gateway + "0 reqid 1 mode tunnel\n",
                                             of_gateway + "1 reqid 1 mode tunnel\n",
                                             "\ttmpl src 0.0.0.0 dst 0.0.0.0\n\t\tproto esp reqid 2 mode transport\n",
                                             of_gateway + "3 reqid 1 mode tunnel\n",
                                             six + "3 mode tunnel\n",
                                             six + "4 mode tunnel\n"};
  std::string text;
  for (std::size_t sa = 0; sa < templates.size(); ++sa) {
    for (const std::string any : {"0.0.0.0/0", "::/0"}) {
      text += "src " + any + " dst " + any + " proto udp dport " + std::to_string(2000 + sa) +
              "\n\tdir out priority 100 ptype main\n" + templates[sa];
    }
  }
  return text + "src 0.0.0.0/0 dst 0.0.0.0/0 proto tcp\n\tdir out action block priority 200 ptype main\n";
}
inline constexpr std::uint32_t kOutboundSas = 6;

/// Packets of all kinds, most of which some SA protects.
template <typename Choices>
std::vector<Frame> outbound_frames(std::size_t count, Choices& choose) {
  penstock::testing::RandomFrames draw(1 + choose.below(1000));
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < count; ++i) {
    Frame frame = draw.frame();
    if (i % 4 != 0) {
      auto builder = penstock::testing::packet().eth();
      if (draw.below(4) == 0) {
        builder.ipv6("2001:db8:1::1", "2001:db8:2::2");
      } else {
        builder.ipv4("10.1.0.1", "10.2.0.2");
      }
      const auto port = static_cast<std::uint16_t>(2000 + draw.below(kOutboundSas + 1));
      frame.bytes = builder.udp(1000, port).payload(std::string(draw.below(1500), 'x')).bytes();
      frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
      frame.link_type = LinkType::ethernet;
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

/// The recipe of an outbound function with the SAs above.
inline function::StageRecipe outbound_recipe_for_test() {
  TableSources sources;
  SaRegistry registry;
  sources.settings.device_is_remote = true;
  sources.numbers = fixed_numbers();
  sources.registry = &registry;
  auto states = parse_states(kOutboundStates, "state.txt");
  auto policies = parse_policies(outbound_policies(), "policy.txt");
  if (!states || !states->unsupported.empty() || !policies) std::abort();
  sources.sas = std::move(states->value);
  sources.policies = std::move(policies->value);
  auto tables = Tables::build(std::move(sources));
  if (!tables) std::abort();
  return *Ipsec(std::move(tables->value)).stage_recipe(function::Processor::gpu);
}

/// As a device has them.
struct SealingOnHost {
  explicit SealingOnHost(const SealingSpans& tables)
      : spans(tables), words(tables.key.empty() ? 0 : used_words(tables.sas.size())) {}
  [[nodiscard]] SealingView view() noexcept {
    return {spans.sas.data(),
            static_cast<std::uint32_t>(spans.sas.size()),
            spans.growth,
            !spans.key.empty(),
            spans.key.empty() ? SipKey{} : spans.key.front(),
            {words.data(), log_of_used_words(spans.sas.size())}};
  }
  const SealingSpans spans;
  std::vector<unsigned long long> words;
};

/// For a forwarded packet.
inline OutboundFinding carry_out_on_host(const Decision& decision, PacketView packet, const SealingSpans& tables,
                                         const SealingView& view) {
  const std::uint32_t ip_bytes = packet.layout().ip_bytes();
  const CryptoJob job = carry_out(decision, packet, view);
  if (job.sa == kNoSa) return {kNoSa, ip_bytes};
  seal(job, tables.keys[job.sa], packet.frame - packet.packet->offset);
  if (needs_udp_checksum(tables.sas[job.sa])) write_udp_checksum(packet, job);
  return {job.sa, ip_bytes};
}

/// Where decisions are not signed.
inline OutboundFinding carry_out_on_host(const Decision& decision, PacketView packet, const SealingSpans& tables) {
  return carry_out_on_host(decision, packet, tables,
                           SealingOnHost(SealingSpans{tables.sas, tables.keys, tables.growth, {}}).view());
}

template <typename Choices>
Decision decision_of_a_liar(std::size_t sas, Choices& choose) {
  Decision decision;
  decision.sequence = choose.below(4) == 0 ? ~std::uint64_t{0} : choose.below(1000);
  decision.sa = choose.below(sas + 2);
  decision.reason = static_cast<std::uint16_t>(choose.below(0x10000));
  decision.kind =
      choose.below(8) == 0 ? static_cast<Decision::Kind>(choose.below(256)) : Decision::Kind::protected_by_sa;
  return decision;
}

/// Decisions that nobody would make, about packets in exactly the room of the tables. Returns how many were sealed.
template <typename Choices>
int carry_out_lies(const SealingSpans& tables, const std::vector<Frame>& frames, Choices& choose) {
  int sealed = 0;
  for (const Frame& frame : frames) {
    RoomyFrame packet(frame.bytes, tables.growth, frame.link_type, frame.wire_length);
    const Decision decision = decision_of_a_liar(tables.sas.size(), choose);
    sealed += carry_out_on_host(decision, packet.view, tables).sa != kNoSa ? 1 : 0;
  }
  return sealed;
}

}  // namespace penstock::ipsec::testing
