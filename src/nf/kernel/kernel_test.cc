// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/kernel/kernel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "function/offloaded_stage.h"
#include "function/own_process.h"
#include "nf/kernel/cubin_for_test.h"
#include "nf/kernel/host_device_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::kernel {
namespace {

using penstock::testing::Bytes;
using penstock::testing::packet;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Bytes udp_to(std::uint16_t port) {
  return packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(4000, port).payload("hello").bytes();
}

/// Drops packets to port 53, for reason 1; passes others.
void drop_dns(const penstock_batch& batch, unsigned i) {
  const penstock_packet& given = batch.packets[i];
  const std::uint8_t* const ports = batch.frames + given.offset + given.transport_offset;
  const bool is_dns = (given.flags & PENSTOCK_PORTS) != 0 && (ports[2] << 8 | ports[3]) == 53;
  batch.verdicts[i] = {static_cast<std::uint16_t>(is_dns ? PENSTOCK_DROP : PENSTOCK_PASS), 1, 7};
}

class KernelTest : public ::testing::Test {
 protected:
  /// A function with this kernel, and a stage of it.
  void begin(HostKernel kernel) {
    function_ = make_kernel(declaration_, [this, kernel]() -> Result<std::unique_ptr<Device>> {
      return std::make_unique<HostDevice>(kernel, launches_);
    });
    ASSERT_TRUE(function_->begin_run());
    stage_ = function_->make_cpu_stage();
    offloaded_ = dynamic_cast<function::OffloadedStage*>(stage_.get());
    ASSERT_NE(offloaded_, nullptr);
  }
  void add(Bytes frame) { frames_.push_back(std::move(frame)); }
  /// All frames, in one call.
  void process() {
    descriptors_.assign(frames_.size(), {});
    views_.clear();
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      descriptors_[i].length = descriptors_[i].wire_length = static_cast<std::uint32_t>(frames_[i].size());
      views_.push_back({frames_[i].data(), &descriptors_[i]});
      parse(views_.back());
    }
    stage_->process(views_);
  }

  Declaration declaration_{{Field::l4_dst_port}, {}, {"first", "dns"}, "a kernel"};
  HostDevice::Launches launches_;
  std::unique_ptr<function::NetworkFunction> function_;
  std::unique_ptr<function::CpuStage> stage_;
  function::OffloadedStage* offloaded_ = nullptr;
  std::vector<Bytes> frames_;
  std::vector<PacketDescriptor> descriptors_;
  std::vector<PacketView> views_;
};

TEST_F(KernelTest, DecidesAboutPackets) {
  begin(drop_dns);
  for (const bool is_dns : {true, false, true}) add(udp_to(is_dns ? 53 : 80));
  process();
  EXPECT_EQ(descriptors_[0].verdict, Verdict::drop(1));
  EXPECT_EQ(descriptors_[1].verdict, Verdict::forward());
  EXPECT_EQ(descriptors_[2].verdict, Verdict::drop(1));
  EXPECT_EQ(descriptors_[1].mark, 0U) << "it does not write marks";
  EXPECT_THAT(launches_.packets, ElementsAre(3));
  EXPECT_TRUE(offloaded_->failure().empty());
}

TEST_F(KernelTest, IsOfAProcessOfItsOwnAndDeclaresWhatItIsGiven) {
  begin(drop_dns);
  EXPECT_NE(dynamic_cast<function::OwnProcess*>(function_.get()), nullptr);
  const function::NfTraits& traits = function_->traits();
  EXPECT_THAT(traits.drop_reasons, ElementsAre("first", "dns"));
  EXPECT_TRUE(traits.cpu.reads.has(Field::l4_dst_port) && traits.cpu.reads.has(Field::flow_hash));
  EXPECT_FALSE(traits.cpu.reads.has(Field::payload));
  EXPECT_EQ(traits.cpu.writes, FieldSet{Field::verdict});
}

TEST_F(KernelTest, SeesPacketsAsTheAbiSays) {
  std::vector<penstock_packet> seen;
  begin([&](const penstock_batch& batch, unsigned i) {
    seen.push_back(batch.packets[i]);
    batch.verdicts[i].decision = PENSTOCK_PASS;
    EXPECT_TRUE(std::equal(frames_[i].begin(), frames_[i].begin() + seen[i].available, batch.frames + seen[i].offset));
  });
  add(packet().eth().vlan(7).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload("some payload").bytes());
  add(packet().eth().ipv6("2001:db8::1", "2001:db8::2").tcp(1, 2).payload("x").bytes());
  add(Bytes(60, 0xff));
  add({});
  process();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].vlan_tci, 7U);
  EXPECT_EQ(seen[0].network, PENSTOCK_IPV4);
  EXPECT_EQ(seen[0].transport, 17U);
  EXPECT_EQ(seen[0].available, 46U) << "without the payload, which it does not read";
  EXPECT_EQ(seen[0].length, frames_[0].size());
  EXPECT_EQ(seen[1].network, PENSTOCK_IPV6);
  EXPECT_EQ(seen[1].offset % kFrameAlignment, 0U);
  EXPECT_EQ(seen[2].available, 14U);
  EXPECT_EQ(seen[3].available, 0U);
  EXPECT_EQ(seen[3].out_port, PENSTOCK_NO_PORT);
}

TEST_F(KernelTest, SeesPayloadsThatItReads) {
  declaration_.reads |= FieldSet{Field::payload};
  begin([&](const penstock_batch& batch, unsigned i) {
    batch.verdicts[i].decision = batch.packets[i].available == frames_[i].size() ? PENSTOCK_PASS : PENSTOCK_DROP;
  });
  add(udp_to(1));
  process();
  EXPECT_TRUE(descriptors_[0].verdict.alive());
}

TEST_F(KernelTest, WritesFieldsThatItDeclaresAndNoOthers) {
  declaration_.writes = {Field::ipv4_ttl, Field::mark};
  begin([](const penstock_batch& batch, unsigned i) {
    std::memset(batch.frames + batch.packets[i].offset, 9, batch.packets[i].available);
    batch.verdicts[i] = {PENSTOCK_PASS, 0, 5};
  });
  add(udp_to(1));
  Bytes expected = frames_[0];
  process();
  expected[14 + 8] = 9;
  EXPECT_EQ(frames_[0], expected);
  EXPECT_EQ(descriptors_[0].mark, 5U);
}

/// On a GPU, it can reach all memory of its process that the GPU can.
TEST_F(KernelTest, MayChangeWhatItOnlyReads) {
  declaration_.writes = {Field::ipv4_ttl};
  begin([](const penstock_batch& batch, unsigned i) {
    batch.frames[batch.packets[i].offset + 14 + 8] = static_cast<std::uint8_t>(i);
    batch.verdicts[i].decision = PENSTOCK_PASS;
    auto& packet = const_cast<penstock_packet&>(batch.packets[i]);
    packet.offset = packet.available = packet.length = 0xfffffff0;
  });
  add(udp_to(1));
  add(udp_to(2));
  std::vector<Bytes> expected = frames_;
  process();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i][14 + 8] = static_cast<std::uint8_t>(i);
    EXPECT_EQ(frames_[i], expected[i]);
  }
}

TEST_F(KernelTest, HasAsManyLaunchesAsItNeeds) {
  declaration_.reads |= FieldSet{Field::payload};
  begin(drop_dns);
  Bytes large = udp_to(80);
  large.resize(60'000);
  for (unsigned i = 0; i < 100; ++i) add(i % 2 == 0 ? large : udp_to(53));
  process();
  EXPECT_GT(launches_.packets.size(), 1U);
  for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(descriptors_[i].verdict.alive(), i % 2 == 0) << i;
}

TEST_F(KernelTest, SeesThePartOfAnEndlessFrameForWhichThereIsRoom) {
  declaration_.reads |= FieldSet{Field::payload};
  begin(drop_dns);
  add(Bytes(3 << 20, 1));
  add(udp_to(53));
  process();
  EXPECT_TRUE(descriptors_[0].verdict.alive());
  EXPECT_FALSE(descriptors_[1].verdict.alive());
}

TEST_F(KernelTest, FailsIfTheDeviceDoes) {
  begin(drop_dns);
  add(udp_to(53));
  launches_.failure = "an illegal access";
  process();
  EXPECT_EQ(offloaded_->failure(), "an illegal access");
  process();
  EXPECT_THAT(launches_.packets, ElementsAre(1)) << "it is not launched again";
}

TEST_F(KernelTest, FailsIfItDecidesWhatItCannot) {
  const auto failure_of = [&](penstock_verdict verdict) {
    begin([verdict](const penstock_batch& batch, unsigned i) {
      batch.verdicts[i] = i == 1 ? verdict : penstock_verdict{PENSTOCK_PASS, 0, 0};
    });
    frames_.assign(2, udp_to(53));
    process();
    EXPECT_TRUE(descriptors_[0].verdict.alive());
    return std::string(offloaded_->failure());
  };
  EXPECT_THAT(failure_of({PENSTOCK_UNDECIDED, 0, 0}), HasSubstr("has not decided about packet 1 of 2"));
  EXPECT_THAT(failure_of({PENSTOCK_DROP, 2, 0}), HasSubstr("for reason 2, and `drops` has 2"));
  EXPECT_THAT(failure_of({77, 0, 0}), HasSubstr("a wrong decision about packet 1 of 2: found 77"));
  EXPECT_EQ(failure_of({PENSTOCK_DROP, 1, 0}), "");
}

TEST_F(KernelTest, DoesNotBeginWithoutADevice) {
  const auto function = make_kernel(declaration_, []() -> Result<std::unique_ptr<Device>> {
    return failure(Error{{}, "no GPU", "", ""});
  });
  const auto begun = function->begin_run();
  ASSERT_FALSE(begun);
  EXPECT_THAT(to_string(begun.error()), HasSubstr("no GPU"));
}

/// What the file of a function may say.
class KernelKind : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    const auto bytes = TestCubin().function("drop_port").placed().bytes();
    std::ofstream(folder_ / "drop.cubin", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  using Given = std::vector<std::pair<std::string, std::vector<std::string>>>;
  [[nodiscard]] Result<std::unique_ptr<function::NetworkFunction>> make(const Given& more) const {
    std::vector<RawParameter> raw;
    const auto add = [&](const std::string& name, const std::vector<std::string>& items, RawParameter::Shape shape) {
      raw.push_back({name, {"f.yaml", 1, 1}, {"f.yaml", 1, 2}, items, shape, folder_.string(), {}, {}});
    };
    using Shape = RawParameter::Shape;
    if (more.empty() || more[0].first != "module") add("module", {"drop.cubin"}, Shape::scalar);
    if (more.empty() || more[0].first != "entry") add("entry", {"drop_port"}, Shape::scalar);
    for (const auto& [name, items] : more) {
      const bool is_list = name == "reads" || name == "writes" || name == "drops";
      add(name, items, is_list ? Shape::list : name == "parameters" ? Shape::mapping : Shape::scalar);
    }
    const auto parameters = Parameters::read(kernel_kind().parameters, raw, {"f.yaml", 1, 0});
    if (!parameters) return failure(parameters.error());
    const std::vector<std::string> ports{"in", "out"};
    function::NfContext context{ports};
    return kernel_kind().make(*parameters, context);
  }
  [[nodiscard]] std::string refused(const Given& more) const {
    const auto function = make(more);
    return function ? "" : to_string(function.error());
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("penstock-kernel-{}", ::getpid());
};

TEST_F(KernelKind, DeclaresWhatItsFileSays) {
  const auto function = make({{"reads", {"ipv4_src", "l4_dst_port"}},
                              {"writes", {"ipv4_tos", "mark"}},
                              {"drops", {"blocked", "dns"}},
                              {"parameters", {"port=53", "net=0xa000000"}}});
  ASSERT_TRUE(function) << to_string(function.error());
  const function::NfTraits& traits = (*function)->traits();
  EXPECT_TRUE(traits.cpu.reads.has(Field::ipv4_src));
  EXPECT_FALSE(traits.cpu.reads.has(Field::payload));
  EXPECT_EQ(traits.cpu.writes, (FieldSet{Field::ipv4_tos, Field::mark, Field::verdict}));
  EXPECT_THAT(traits.drop_reasons, ElementsAre("blocked", "dns"));
  EXPECT_THAT((*function)->description(), HasSubstr("kernel drop_port of a cubin of"));
}

TEST_F(KernelKind, ReadsAllIfItsFileSaysNothing) {
  const auto function = make({});
  ASSERT_TRUE(function) << to_string(function.error());
  EXPECT_TRUE((*function)->traits().cpu.reads.has(Field::payload));
  EXPECT_TRUE((*function)->traits().drop_reasons.empty());
}

TEST_F(KernelKind, SaysWhatIsWrong) {
  EXPECT_THAT(refused({{"module", {"none.cubin"}}}), HasSubstr("No such file"));
  EXPECT_THAT(refused({{"entry", {"drop"}}}), HasSubstr("no such kernel"));
  EXPECT_THAT(refused({{"reads", {"ipv4_sorce"}}}), HasSubstr("f.yaml:1:2: reads: unknown field: found 'ipv4_sorce'"));
  EXPECT_THAT(refused({{"reads", {"timestamp"}}}), HasSubstr("reads: not a field of a frame"));
  EXPECT_THAT(refused({{"writes", {"frame_shape"}}}), HasSubstr("writes: not a field of a frame"));
  EXPECT_THAT(refused({{"drops", {"a", "a"}}}), HasSubstr("drops: given twice"));
  EXPECT_THAT(refused({{"drops", {"Blocked!"}}}), HasSubstr("drops: wrong name of a reason"));
  EXPECT_THAT(refused({{"drops", {"process_lost"}}}), HasSubstr("drops: wrong name of a reason"));
  EXPECT_THAT(refused({{"parameters", {"port=dns"}}}), HasSubstr("parameters: not a number: found 'dns'"));
  EXPECT_THAT(refused({{"parameters", {"port=18446744073709551616"}}}), HasSubstr("parameters: not a number"));
  EXPECT_THAT(refused({{"block", {"2000"}}}), HasSubstr("block"));
  EXPECT_THAT(refused({{"limit", {"2min"}}}), HasSubstr("limit"));
  EXPECT_THAT(refused({{"table", {"none"}}}), HasSubstr("No such file"));
}

TEST_F(KernelKind, NeedsAGpuWhenItBegins) {
  const auto function = make({});
  ASSERT_TRUE(function) << to_string(function.error());
  const auto begun = (*function)->begin_run();
  ASSERT_FALSE(begun) << "no driver loads a cubin without code";
  EXPECT_THAT(to_string(begun.error()), HasSubstr("f.yaml:1:2: ")) << "or, with a GPU, the module's path";
}

}  // namespace
}  // namespace penstock::kernel
