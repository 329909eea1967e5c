// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables on a device decide as the host's do.

#include <gtest/gtest.h>

#include <vector>

#include "classify/bitvector_core.h"
#include "gpu/check.cuh"
#include "gpu/memory.h"
#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/selection/device_selection.h"
#include "nf/ipsec/selection/random_selection_for_test.h"

namespace penstock::ipsec {
namespace {

constexpr unsigned kThreads = 128;

struct Question {
  classify::Key key;
  std::uint32_t sa;   // the SA that it arrived on, inbound
  std::uint32_t spi;  // the SPI to look up at its destination
};

struct Answer {
  Selected out;
  std::uint32_t out_policy;
  Reason in;
  Found found;
  bool known_port;
};

PENSTOCK_HOST_DEVICE Answer answer(const SelectionView& out, std::uint32_t out_policy, const SelectionView& in,
                                   std::uint32_t in_policy, const InboundView& table, const NatTraversalPorts& ports,
                                   const std::uint8_t* status, const Question& question) {
  Answer answer{};
  answer.out_policy = out_policy;
  if (out_policy != kNoPolicy) {
    answer.out = select_outbound(out, out_policy, question.key,
                                 [status](std::uint32_t sa) { return static_cast<SaStatus>(status[sa]); });
  }
  answer.in = check_inbound(in, in_policy, question.key, question.sa);
  answer.found = find_sa(table, question.key.family, question.key.destination, question.spi);
  answer.known_port = ports.has(static_cast<std::uint16_t>(question.key.destination_port));
  return answer;
}

__global__ void ask(SelectionView out, classify::BitVectorView out_engine, SelectionView in,
                    classify::BitVectorView in_engine, InboundView table, NatTraversalPorts ports,
                    const std::uint8_t* status, const Question* questions, Answer* answers, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  answers[i] = answer(out, deciding_entry(out_engine, questions[i].key), in,
                      deciding_entry(in_engine, questions[i].key), table, ports, status, questions[i]);
}

TEST(SelectionOnDevice, SaysWhatTheHostsTablesSay) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{70}, std::size_t{3000}}) {
    SelectionDraw draw(size);
    auto states = draw.states(size);
    if (size > 1) states.back().udp = UdpEncapsulation{4500, 2, {}};
    const auto policies = draw.policies(size);
    std::vector<std::uint8_t> status(states.size());
    for (std::uint8_t& s : status) s = static_cast<std::uint8_t>(draw.below(4));
    SelectionSources sources;
    sources.states = states;
    sources.policies = policies;
    const auto out = Selection::build(sources, false);
    const auto in = Selection::build(sources, true);
    const auto table = InboundTable::build(states, "states");
    ASSERT_TRUE(out && in && table);

    std::vector<Question> questions(10'000);
    std::vector<Answer> expected;
    for (Question& question : questions) {
      RoomyFrame frame(draw.flow().frame);
      make_selector_key(frame.view, question.key);
      question.sa = draw.chance(3) ? kNoSa : draw.below(states.size());
      question.spi = 256 + draw.below(states.size() + 10);
      std::uint32_t out_policy = kNoPolicy;
      std::uint32_t in_policy = kNoPolicy;
      out->value->find_policies({&question.key, 1}, &out_policy);
      in->value->find_policies({&question.key, 1}, &in_policy);
      expected.push_back(answer(out->value->view(), out_policy, in->value->view(), in_policy, table->view(),
                                table->ports(), status.data(), question));
    }
    const DeviceSelection device_out(out->value->spans());
    const DeviceSelection device_in(in->value->spans());
    const DeviceInboundTable device_table(table->spans());
    const gpu::DeviceBuffer<std::uint8_t> device_status{std::span<const std::uint8_t>(status)};
    const gpu::DeviceBuffer<Question> asked{std::span<const Question>(questions)};
    gpu::DeviceBuffer<Answer> answers(questions.size());
    const auto count = static_cast<unsigned>(questions.size());
    ask<<<(count + kThreads - 1) / kThreads, kThreads>>>(device_out.view(), device_out.engine(), device_in.view(),
                                                         device_in.engine(), device_table.view(), device_table.ports(),
                                                         device_status.data(), asked.data(), answers.data(), count);
    gpu::check_launch();
    const std::vector<Answer> given = answers.to_host();
    std::size_t protected_packets = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      ASSERT_EQ(given[i].out_policy, expected[i].out_policy) << i;
      ASSERT_EQ(given[i].out.sa, expected[i].out.sa) << i;
      ASSERT_EQ(given[i].out.reason, expected[i].out.reason) << i;
      ASSERT_EQ(given[i].in, expected[i].in) << i;
      ASSERT_EQ(given[i].found.kind, expected[i].found.kind) << i;
      ASSERT_EQ(given[i].found.sa, expected[i].found.sa) << i;
      ASSERT_EQ(given[i].known_port, expected[i].known_port) << i;
      protected_packets += given[i].out.sa != kNoSa ? 1 : 0;
    }
    if (size > 1) EXPECT_GT(protected_packets, 0U);
  }
}

}  // namespace
}  // namespace penstock::ipsec
