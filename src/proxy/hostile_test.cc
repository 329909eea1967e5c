// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tenants that lie, crash or stop: each loses its share, and nobody else loses anything.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "base/shared_memory.h"
#include "gpu/cuda_error.h"
#include "ipc/testing/lingering.h"
#include "packet/parse_core.h"
#include "proxy/remote_lanes.h"
#include "proxy/server.h"
#include "proxy/shape_message.h"
#include "proxy/testing/block_kernel.h"
#include "run/run.h"

namespace penstock::proxy {
namespace {

using namespace std::chrono_literals;
using run::testing::FakeChain;
using testing::HostDevice;

ring::LaneShape shape_of_block() {
  ring::SegmentShape segment;
  segment.down = *ring::record_layout(testing::kBlockWrites);
  segment.stages = {{0, 0, false, 0}};
  ring::LaneShape shape;
  shape.batch_bytes = 16 << 10;
  shape.batch_packets = 64;
  shape.segments = {segment};
  return shape;
}

/// A tenant made by hand, which can say anything.
class HandMade {
 public:
  explicit HandMade(const std::string& path, ring::LaneShape shape = shape_of_block())
      : shape_(std::move(shape)), layout_(shape_) {
    auto connection = Connection::open(path, {"hand-made", ""});
    if (!connection) throw std::runtime_error(to_string(connection.error()));
    connection_ = *connection;
    memory_ = {static_cast<std::uint8_t*>(map_memory(kBytes, true)), kBytes};
    opened_ = std::make_unique<RemoteMemory>(connection_, memory_);
    tables_ = std::make_shared<RemoteTables>(connection_, testing::block_recipe({1}, 1));
    MakeLane message = to_message(shape_).value();
    std::size_t i = 0;
    for (const ring::SegmentShape& segment : shape_.segments) {
      for (std::size_t s = 0; s < segment.stages.size(); ++s) {
        stages_.push_back(std::make_unique<RemoteStage>(
            connection_, tables_, StageUse{0, static_cast<std::uint32_t>(shape_.batch_packets), 0}));
        message.stages[i++] = stages_.back()->id();
      }
    }
    made_ = connection_->request(message);
    proxy_ = map(made_.descriptors.at(0).get(), layout_.proxy_bytes, PROT_READ);
    tenant_ = map(made_.descriptors.at(1).get(), layout_.tenant_bytes, PROT_READ | PROT_WRITE);
    for (std::uint32_t p = 0; p < 4; ++p) add(run::testing::numbered(p));
  }
  HandMade(const HandMade&) = delete;
  HandMade& operator=(const HandMade&) = delete;
  ~HandMade() {
    ::munmap(proxy_, layout_.proxy_bytes);
    ::munmap(tenant_, layout_.tenant_bytes);
    opened_.reset();
    host_only_.reset();
    unmap_memory(memory_.data(), memory_.size());
  }

  /// A good one.
  [[nodiscard]] Order order() const {
    Order order;
    order.packets = count_;
    order.used_bytes = used_;
    order.frames_at = 0;
    order.packets_at = kDescriptors;
    order.frame_memory = order.packet_memory = opened_->id();
    for (std::size_t i = 0; i < stages_.size(); ++i) order.stages[i] = stages_[i]->id();
    return order;
  }
  [[nodiscard]] PacketDescriptor& packet(std::size_t i) {
    return reinterpret_cast<PacketDescriptor*>(memory_.data() + kDescriptors)[i];
  }
  [[nodiscard]] std::uint64_t& listed(std::size_t i) {
    return reinterpret_cast<std::uint64_t*>(tenant_ + layout_.list_at)[i];
  }
  /// Frames where they are, but this one elsewhere.
  void gather(Order& order, std::size_t elsewhere, std::uint64_t place) {
    order.frames = Order::Frames::gathered;
    for (std::size_t p = 0; p < count_; ++p) listed(p) = listed_frame(memory_id(), packet(p).offset);
    listed(elsewhere) = place;
  }
  /// Whether the proxy has done it.
  bool submit(const Order& order) {
    submit_only(order);
    for (int i = 0; i < 5000; ++i) {
      if (completion().done.load() == number_) return completion().failed == 0;
      ::usleep(1000);
    }
    return false;
  }
  void submit_only(const Order& order) {
    slot().write_order(order);
    slot().submitted.store(++number_);
    ::eventfd_write(made_.descriptors.at(2).get(), 1);
  }
  [[nodiscard]] bool is_ended() {
    for (int i = 0; i < 500; ++i) {
      if (connection_->is_lost()) return true;
      ::usleep(2000);
    }
    return false;
  }
  [[nodiscard]] const Completion& completion() const { return *reinterpret_cast<const Completion*>(proxy_); }
  [[nodiscard]] OrderSlot& slot() { return *reinterpret_cast<OrderSlot*>(tenant_); }
  [[nodiscard]] Connection& connection() { return *connection_; }
  [[nodiscard]] std::uint8_t* tenant_memory() { return tenant_; }
  [[nodiscard]] const LaneLayout& layout() const { return layout_; }
  [[nodiscard]] int proxy_file() const { return made_.descriptors.at(0).get(); }
  [[nodiscard]] int wake_file() const { return made_.descriptors.at(2).get(); }
  /// A new one, which no lane has.
  std::uint32_t make_stage(std::uint32_t worker, std::uint32_t batch_packets, std::uint32_t multiprocessors = 0) {
    MakeStage message;
    message.tables = tables_->id();
    message.worker = worker;
    message.batch_packets = batch_packets;
    message.multiprocessors = multiprocessors;
    return connection_->request(message).id;
  }
  [[nodiscard]] RemoteTables& tables() { return *tables_; }
  [[nodiscard]] std::uint32_t memory_id() const { return opened_->id(); }
  /// The same memory, which the device cannot access by this id.
  [[nodiscard]] std::uint32_t host_only_id() {
    if (host_only_ == nullptr)
      host_only_ = std::make_unique<RemoteMemory>(connection_, memory_, MemoryUser::proxy_only);
    return host_only_->id();
  }
  static constexpr std::size_t kBytes = 64 << 10;
  static constexpr std::size_t kDescriptors = 32 << 10;

 private:
  static std::uint8_t* map(int file, std::size_t bytes, int protection) {
    void* const memory = ::mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    return static_cast<std::uint8_t*>(memory);
  }
  void add(const run::testing::Bytes& frame) {
    PacketDescriptor& to = packet(count_++);
    to = {};
    to.offset = used_;
    to.length = to.wire_length = static_cast<std::uint32_t>(frame.size());
    std::ranges::copy(frame, memory_.begin() + used_);
    parse({memory_.data() + used_, &to});
    used_ += static_cast<std::uint32_t>(aligned_frame(frame.size()));
  }

  ring::LaneShape shape_;
  LaneLayout layout_;
  std::shared_ptr<Connection> connection_;
  std::span<std::uint8_t> memory_;
  std::unique_ptr<RemoteMemory> opened_;
  std::unique_ptr<RemoteMemory> host_only_;
  std::shared_ptr<RemoteTables> tables_;
  std::vector<std::unique_ptr<RemoteStage>> stages_;
  Connection::Made made_;
  std::uint8_t* proxy_ = nullptr;
  std::uint8_t* tenant_ = nullptr;
  std::uint32_t count_ = 0, used_ = 0, number_ = 0;
};

class Hostile : public ::testing::Test {
 protected:
  void SetUp() override { start({}); }
  void start(ServerSettings settings) {
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("penstock-hostile-{}-{}", ::getpid(),
                         ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                .string();
    server_.reset();
    settings.path = path_;
    auto server =
        Server::start(std::move(settings), std::make_unique<testing::HostBackend>(device_, testing::kBlockKernels));
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }
  /// An honest tenant, all of whose batches the device must do.
  void expect_honest_run() {
    constexpr std::size_t kPackets = 2000;
    FakeChain chain;
    chain.add_source("in", run::testing::script({run::testing::numbered_frames(kPackets)}));
    auto& sink = chain.add_sink("out");
    testing::add_block(chain, {});
    chain.settings.batch_bytes = 16 << 10;
    chain.settings.batch_packets = 64;
    chain.settings.queue_bytes = 1 << 20;
    chain.settings.processor = function::Processor::gpu;
    auto lanes = remote_lanes(path_, {"honest", ""});
    ASSERT_TRUE(lanes) << to_string(lanes.error());
    chain.settings.remote = std::move(*lanes);
    const std::atomic<bool> stop{false};
    auto result = run::run(chain, {}, stop);
    ASSERT_TRUE(result);
    EXPECT_EQ(sink.sent[0].size(), kPackets);
    EXPECT_EQ(result->report.gpu->failures, 0U);
  }
  void expect_no_tenants() {
    nlohmann::json status;
    for (int i = 0; i < 500; ++i) {
      status = nlohmann::json::parse(ask_for_status(path_, false).value());
      if (status["tenants"].empty() && device_.lanes == 0) return;
      ::usleep(10000);
    }
    FAIL() << status.dump(2);
  }

  std::string path_;
  HostDevice device_;
  std::unique_ptr<Server> server_;
};

TEST_F(Hostile, AHandMadeTenantIsServedWhileItIsHonest) {
  HandMade tenant(path_);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(tenant.submit(tenant.order()));
  Order listed = tenant.order();
  listed.frames = Order::Frames::listed;
  for (std::size_t p = 0; p < 4; ++p) tenant.listed(p) = listed_frame(tenant.memory_id(), tenant.packet(p).offset);
  EXPECT_TRUE(tenant.submit(listed));
  EXPECT_FALSE(tenant.connection().is_lost());
}

TEST_F(Hostile, FramesThatAreGatheredMayLieAnywhereInOpenMemory) {
  HandMade tenant(path_);
  Order order = tenant.order();
  order.frames = Order::Frames::gathered;
  const std::uint64_t first = tenant.packet(0).offset;
  // Backwards, overlapping, not aligned, in several memories, and at the end of one.
  const std::array<std::uint64_t, 4> places{
      listed_frame(tenant.memory_id(), first + 1), listed_frame(tenant.memory_id(), first),
      listed_frame(kPackedMemory, 3), listed_frame(tenant.memory_id(), HandMade::kBytes - tenant.packet(3).length)};
  for (std::size_t p = 0; p < 4; ++p) tenant.listed(p) = places[p];
  tenant.packet(2).offset = 0xffffffff;  // not used
  tenant.packet(2).region = 31;
  EXPECT_TRUE(tenant.submit(order));
  tenant.packet(1).verdict = Verdict::drop(0);
  tenant.listed(1) = ~std::uint64_t{0};  // its frame is not read
  EXPECT_TRUE(tenant.submit(order));
}

TEST_F(Hostile, DescriptorsMayBeInMemoryThatTheDeviceCannotAccess) {
  HandMade tenant(path_);
  Order order = tenant.order();
  order.packet_memory = tenant.host_only_id();
  EXPECT_NE(order.packet_memory, order.frame_memory);
  EXPECT_TRUE(tenant.submit(order));
  tenant.gather(order, 1, listed_frame(tenant.memory_id(), 0));
  EXPECT_TRUE(tenant.submit(order));
}

TEST_F(Hostile, LiesInAnOrderEndTheTenant) {
  constexpr std::uint32_t kMost32 = 0xffffffff;
  constexpr std::uint64_t kMost64 = ~std::uint64_t{0};
  using Lie = std::function<void(HandMade&, Order&)>;
  const std::vector<Lie> lies{
      [](HandMade&, Order& o) { o.segment = 1; },
      [](HandMade&, Order& o) { o.segment = kMost32; },
      [](HandMade&, Order& o) { o.kind = static_cast<Order::Kind>(7); },
      [](HandMade&, Order& o) { o.packets = 65; },
      [](HandMade&, Order& o) { o.packets = kMost32; },
      [](HandMade&, Order& o) { o.used_bytes = kMost32; },
      [](HandMade&, Order& o) { o.used_bytes = (16 << 10) + 1; },
      [](HandMade&, Order& o) { o.used_bytes = 16; },
      [](HandMade&, Order& o) { o.frames_at = HandMade::kBytes; },
      [](HandMade&, Order& o) { o.frames_at = kMost64 - 15; },
      [](HandMade&, Order& o) { o.frames_at = 8; },
      [](HandMade&, Order& o) { o.packets_at = HandMade::kBytes - 1; },
      [](HandMade&, Order& o) { o.packets_at = kMost64; },
      [](HandMade&, Order& o) { o.frame_memory = 3; },
      [](HandMade&, Order& o) { o.frame_memory = kMost32; },
      [](HandMade&, Order& o) { o.packet_memory = 16; },
      // The device cannot access these frames.
      [](HandMade& t, Order& o) { o.frame_memory = t.host_only_id(); },
      [](HandMade& t, Order& o) { o.frame_memory = t.host_only_id(), o.packets = 0; },
      [](HandMade& t, Order& o) { t.gather(o, 1, listed_frame(t.host_only_id(), 0)); },
      [](HandMade& t, Order& o) {
        o.frames = Order::Frames::listed;
        for (std::size_t p = 0; p < 4; ++p) t.listed(p) = listed_frame(t.host_only_id(), t.packet(p).offset);
      },
      [](HandMade&, Order& o) { o.pictured = 33; },
      [](HandMade&, Order& o) { o.pictured = 1, o.pictures[0] = 4; },
      [](HandMade&, Order& o) { o.stages_version = 1, o.stages = {}; },
      [](HandMade&, Order& o) { o.stages_version = 1, o.stages[0] = kMost32; },
      [](HandMade& t, Order&) { t.packet(0).offset = kMost32 - 15; },
      [](HandMade& t, Order&) { t.packet(1).offset += 1; },
      [](HandMade& t, Order&) { t.packet(1).length = kMost32; },
      [](HandMade& t, Order& o) { t.packet(3).length = o.used_bytes; },
      [](HandMade& t, Order&) { t.packet(2).offset = t.packet(1).offset; },
      [](HandMade& t, Order&) { std::swap(t.packet(1).offset, t.packet(2).offset); },
      [](HandMade& t, Order&) { t.packet(2).region = 1; },
      [](HandMade& t, Order&) { t.packet(2).link_type = static_cast<LinkType>(200); },
      [](HandMade& t, Order& o) { o.frames = Order::Frames::listed, t.listed(0) = listed_frame(40, 0); },
      [](HandMade& t, Order& o) { o.frames = Order::Frames::listed, t.listed(0) = kMost64; },
      [](HandMade& t, Order& o) {
        o.frames = Order::Frames::listed, t.listed(0) = listed_frame(t.memory_id(), HandMade::kBytes);
      },
      [](HandMade&, Order& o) { o.frames = static_cast<Order::Frames>(3); },
      [](HandMade& t, Order& o) { t.gather(o, 1, listed_frame(63, 0)); },
      [](HandMade& t, Order& o) { t.gather(o, 1, listed_frame(kPackedMemory + 1, 0)); },
      [](HandMade& t, Order& o) { t.gather(o, 3, kMost64); },
      [](HandMade& t, Order& o) { t.gather(o, 3, listed_frame(t.memory_id(), HandMade::kBytes)); },
      [](HandMade& t, Order& o) { t.gather(o, 3, listed_frame(t.memory_id(), HandMade::kBytes - 8)); },
      [](HandMade& t, Order& o) { t.gather(o, 3, listed_frame(t.memory_id(), std::uint64_t{1} << 32)); },
      [](HandMade& t, Order& o) { t.gather(o, 3, listed_frame(t.memory_id(), 0)), t.packet(3).length = kMost32; },
      [](HandMade& t, Order& o) {
        t.gather(o, 3, listed_frame(t.memory_id(), 0));
        t.packet(3).link_type = static_cast<LinkType>(200);
      },
      [](HandMade& t, Order& o) {  // backwards
        o.frames = Order::Frames::listed;
        for (std::size_t p = 0; p < 4; ++p) t.listed(p) = listed_frame(t.memory_id(), 16384 - 4096 * p);
      },
      [](HandMade& t, Order& o) {  // far apart
        o.frames = Order::Frames::listed;
        for (std::size_t p = 0; p < 4; ++p) t.listed(p) = listed_frame(t.memory_id(), p * 20000);
      },
      [](HandMade& t, Order& o) {  // in two memories
        o.frames = Order::Frames::listed;
        for (std::size_t p = 0; p < 4; ++p)
          t.listed(p) = listed_frame(p == 2 ? kPackedMemory : t.memory_id(), p * 2048);
      },
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    HandMade tenant(path_);
    ASSERT_TRUE(tenant.submit(tenant.order()));
    Order order = tenant.order();
    lies[i](tenant, order);
    EXPECT_FALSE(tenant.submit(order)) << "lie " << i;
    EXPECT_TRUE(tenant.is_ended()) << "lie " << i;
  }
  expect_no_tenants();
  expect_honest_run();
}

TEST_F(Hostile, FramesThatOverlapEndTheTenant) {
  HandMade tenant(path_);
  Order order = tenant.order();
  order.used_bytes = 16 << 10;
  order.packets = 64;
  for (std::size_t p = 0; p < 64; ++p) {
    tenant.packet(p) = tenant.packet(0);
    tenant.packet(p).offset = 0;
    tenant.packet(p).length = 16 << 10;
  }
  EXPECT_FALSE(tenant.submit(order));
  EXPECT_TRUE(tenant.is_ended());
}

TEST_F(Hostile, FramesThatTogetherAreLongerThanABatchEndTheTenant) {
  ring::LaneShape shape = shape_of_block();
  shape.segments.front().frames_up = true;
  HandMade tenant(path_, shape);
  Order order = tenant.order();
  tenant.gather(order, 0, listed_frame(tenant.memory_id(), 0));
  for (std::size_t p = 0; p < 4; ++p) tenant.packet(p).length = 4 << 10;
  EXPECT_TRUE(tenant.submit(order));
  tenant.packet(3).length += 1;
  EXPECT_FALSE(tenant.submit(order));
  EXPECT_TRUE(tenant.is_ended());
}

TEST_F(Hostile, HeadersOutsideAFrameEndTheTenant) {
  ring::LaneShape shape = shape_of_block();
  ring::SegmentShape second = shape.segments.front();
  second.sends_packets = false;
  second.verdicts_up = true;
  second.up = *ring::record_layout(FieldSet{Field::ipv4_ttl, Field::l4_src_port});
  shape.segments.push_back(second);
  {
    HandMade tenant(path_, shape);
    Order order = tenant.order();
    ASSERT_TRUE(tenant.submit(order));
    order.segment = 1;
    EXPECT_TRUE(tenant.submit(order));
    EXPECT_FALSE(tenant.submit(order));  // does not follow any more
  }
  HandMade tenant(path_, shape);
  Order order = tenant.order();
  ASSERT_TRUE(tenant.submit(order));
  order.segment = 1;
  tenant.packet(2).layout.network_offset = 0xfff0;
  EXPECT_FALSE(tenant.submit(order));
  EXPECT_TRUE(tenant.is_ended());
}

/// Otherwise its stages would find headers where their lane promises whole frames.
TEST_F(Hostile, ASegmentWhosePacketsWereNotSentEndsTheTenant) {
  ring::LaneShape shape = shape_of_block();
  ring::SegmentShape frames = shape.segments.front();
  frames.verdicts_up = frames.frames_up = true;
  ring::SegmentShape last = frames;
  last.sends_packets = last.frames_up = false;
  shape.segments.insert(shape.segments.end(), {frames, last});
  {
    HandMade tenant(path_, shape);
    Order order = tenant.order();
    for (order.segment = 0; order.segment < 3; ++order.segment) EXPECT_TRUE(tenant.submit(order));
  }
  HandMade tenant(path_, shape);
  Order order = tenant.order();
  ASSERT_TRUE(tenant.submit(order));
  order.segment = 2;
  EXPECT_FALSE(tenant.submit(order));
  EXPECT_TRUE(tenant.is_ended());
}

TEST_F(Hostile, ResultsCannotBeWritten) {
  HandMade tenant(path_);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, tenant.proxy_file(), 0), MAP_FAILED);
  EXPECT_NE(::ftruncate(tenant.proxy_file(), 0), 0);
}

TEST_F(Hostile, MemoryThatCanShrinkIsRefused) {
  HandMade tenant(path_);
  const FileDescriptor file(::memfd_create("shrinks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), 1 << 20), 0);
  OpenMemory request;
  request.bytes = 1 << 20;
  const int descriptor = file.get();
  EXPECT_THROW(tenant.connection().request(request, std::span(&descriptor, 1)), gpu::CudaError);
  const FileDescriptor small(make_shared_file("small", 4096));
  const int small_descriptor = small.get();
  EXPECT_THROW(tenant.connection().request(request, std::span(&small_descriptor, 1)), gpu::CudaError);
  request.bytes = ~std::uint64_t{0};
  EXPECT_THROW(tenant.connection().request(request, std::span(&descriptor, 1)), gpu::CudaError);
  EXPECT_THROW(tenant.connection().request(request), gpu::CudaError);
  EXPECT_TRUE(tenant.submit(tenant.order()));  // a refusal ends nothing
}

TEST_F(Hostile, ARecipeThatDoesNotPassItsCheckIsRefused) {
  HandMade tenant(path_);
  auto connection = Connection::open(path_, {"recipes", ""}).value();
  function::StageRecipe recipe = testing::block_recipe({1, 2, 3}, 1);
  recipe.kernel = "unknown";
  EXPECT_THROW(RemoteTables(connection, recipe), gpu::CudaError);
  recipe.kernel = "block";
  recipe.arguments.clear();
  EXPECT_THROW(RemoteTables(connection, recipe), gpu::CudaError);
  LoadTables lie;
  lie.kernel = Text<32>("block");
  lie.argument_bytes = 1;
  lie.tables = 1;
  lie.table_bytes[0] = 1 << 20;  // more than the file has
  const FileDescriptor file(make_shared_file("small", 4096));
  const int descriptor = file.get();
  EXPECT_THROW(connection->request(lie, std::span(&descriptor, 1)), gpu::CudaError);
  lie.table_bytes[0] = ~std::uint64_t{0};
  EXPECT_THROW(connection->request(lie, std::span(&descriptor, 1)), gpu::CudaError);
  lie.tables = 1000;
  EXPECT_THROW(connection->request(lie, std::span(&descriptor, 1)), gpu::CudaError);
  EXPECT_FALSE(connection->is_lost());
}

TEST_F(Hostile, TablesThatCannotTakeThePlaceOfOthersAreRefused) {
  HandMade tenant(path_);
  const std::uint32_t spare = tenant.make_stage(0, 64);  // which no lane has, and which has no part in any batch
  const auto device_memory = [&] {
    return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"][0]["device_memory"].get<double>();
  };
  const double before = device_memory();
  function::StageRecipe wrong = testing::block_recipe({1}, 1);
  wrong.arguments.clear();
  EXPECT_THROW(tenant.tables().replace(wrong), gpu::CudaError) << "it does not pass its check";
  wrong = testing::block_recipe({1}, 1);
  wrong.kernel = "unknown";
  EXPECT_THROW(tenant.tables().replace(wrong), gpu::CudaError);
  LoadTables lie;
  lie.kernel = Text<32>("block");
  lie.argument_bytes = 1;
  lie.tables = 1;
  lie.table_bytes[0] = 2;
  const FileDescriptor file(make_shared_file("tables", 4096));
  const int descriptor = file.get();
  for (const std::uint32_t id : {spare + 1, tenant.tables().id() + 77, ~std::uint32_t{0}}) {
    lie.replaces = id;
    EXPECT_THROW(tenant.connection().request(lie, std::span(&descriptor, 1)), gpu::CudaError) << id;
  }
  EXPECT_TRUE(tenant.submit(tenant.order())) << "the former tables are in use";
  EXPECT_EQ(device_memory(), before);
  // Those that can: nobody has to use the stage that no lane has, so that its tables are freed.
  EXPECT_NO_THROW(tenant.tables().replace(testing::block_recipe({1, 2, 3}, 1)));
  EXPECT_EQ(device_memory(), before + 4) << "two more ports";
  EXPECT_TRUE(tenant.submit(tenant.order()));
  EXPECT_FALSE(tenant.connection().is_lost());
}

TEST_F(Hostile, NoTablesArePutInThePlaceOfThoseOfAnotherTenant) {
  HandMade victim(path_), tenant(path_);
  LoadTables lie;
  lie.kernel = Text<32>("block");
  lie.argument_bytes = 1;
  lie.replaces = victim.tables().id();
  const auto updates = [&] {
    double all = 0;
    const auto status = nlohmann::json::parse(ask_for_status(path_, false).value());
    for (const auto& each : status["tenants"]) all += each["table_updates"].get<double>();
    return all;
  };
  // Ids are those of the connection, so this is the tenant's own at most.
  const FileDescriptor file(make_shared_file("tables", 4096));
  const int descriptor = file.get();
  EXPECT_THROW(tenant.connection().request(lie, std::span(&descriptor, 1)), gpu::CudaError) << "no table";
  EXPECT_EQ(updates(), 0);
  EXPECT_TRUE(victim.submit(victim.order()));
}

TEST_F(Hostile, TwoVersionsOfTablesCount) {
  constexpr std::size_t kPorts = 100'000;
  const testing::Ports many(kPorts, 1);
  HandMade tenant(path_);
  tenant.tables().replace(testing::block_recipe(many, 1));
  // The profile's memory is known when a tenant comes.
  const auto status = nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"][0];
  const auto used = status["device_memory"].get<std::uint64_t>();
  device_.memory = (used + kPorts) * Profile::kWhole;  // room for one and a half, in a profile of 1q
  HandMade poor(path_);
  ASSERT_NO_THROW(poor.tables().replace(testing::block_recipe(many, 1)));
  EXPECT_THROW(poor.tables().replace(testing::block_recipe(many, 2)), gpu::CudaError);
  EXPECT_TRUE(poor.submit(poor.order()));
  EXPECT_NO_THROW(poor.tables().replace(testing::block_recipe({1}, 1))) << "a smaller one fits";
  EXPECT_NO_THROW(poor.tables().replace(testing::block_recipe(many, 2)));
}

TEST_F(Hostile, ATenantThatGoesWhileTablesAreExchangedKeepsNobodyWaiting) {
  device_.polls = ~0U;  // a batch that does not end
  {
    HandMade tenant(path_);
    tenant.submit_only(tenant.order());
    const auto in_flight = [&] {
      return nlohmann::json::parse(ask_for_status(path_, false).value())["tenants"][0]["batches_in_flight"].get<int>();
    };
    for (int i = 0; i < 500 && in_flight() == 0; ++i) ::usleep(10'000);
    std::thread waits([&] { EXPECT_THROW(tenant.tables().replace(testing::block_recipe({1}, 2)), gpu::CudaError); });
    ::usleep(100'000);  // until it waits for the batch
    tenant.connection().end();
    waits.join();
  }
  ::usleep(100'000);
  device_.polls = 1;
  expect_honest_run();
}

TEST_F(Hostile, WrongStagesWhileTablesAreExchangedEndTheTenant) {
  HandMade tenant(path_);
  std::thread exchanges([&] {
    try {
      for (std::uint8_t step = 0;; ++step) tenant.tables().replace(testing::block_recipe({1}, step));
    } catch (const gpu::CudaError&) {  // the tenant has ended
    }
  });
  Order lie = tenant.order();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(tenant.submit(lie));
  lie.stages_version = 1;
  lie.stages[0] = 77;
  EXPECT_FALSE(tenant.submit(lie));
  EXPECT_TRUE(tenant.is_ended());
  exchanges.join();
  expect_honest_run();
}

TEST_F(Hostile, StagesThatDoNotFitTheirLaneAreRefused) {
  HandMade tenant(path_);
  ring::LaneShape shape = shape_of_block();
  MakeLane message = to_message(shape).value();
  message.stages[0] = 77;
  EXPECT_THROW(tenant.connection().request(message), gpu::CudaError);
  message.stages[0] = tenant.order().stages[0];  // in a lane already
  EXPECT_THROW(tenant.connection().request(message), gpu::CudaError);
  // It would write beyond its memory on the device, or share that of its worker with another thread.
  message.stages[0] = tenant.make_stage(0, 63);
  EXPECT_THROW(tenant.connection().request(message), gpu::CudaError);
  message.stages[0] = tenant.make_stage(1, 64);
  EXPECT_THROW(tenant.connection().request(message), gpu::CudaError);
  message.stages[0] = tenant.make_stage(0, 65);
  EXPECT_NO_THROW(tenant.connection().request(message));
  EXPECT_TRUE(tenant.submit(tenant.order()));
}

TEST_F(Hostile, NoStageFillsMoreMultiprocessorsThanTheTenantHas) {
  ServerSettings settings;
  settings.profile = {4};
  settings.multiprocessors = MultiprocessorShares::blocks;
  start(std::move(settings));
  HandMade tenant(path_);
  MakeLane message = to_message(shape_of_block()).value();
  for (const std::uint32_t asked : {0U, 3U, 8U, 9U, 132U, ~0U}) {
    message.stages[0] = tenant.make_stage(0, 64, asked);
    EXPECT_NO_THROW(tenant.connection().request(message));
  }
  EXPECT_EQ(device_.stage_limits(), (std::set<std::uint32_t>{3, 8})) << "132 / 4 of the tenant, / 4 of a batch";
}

TEST_F(Hostile, ATenantThatLiesGivesBackItsGreenContext) {
  ServerSettings settings;
  settings.profile = {16};
  settings.multiprocessors = MultiprocessorShares::green_contexts;
  start(std::move(settings));
  for (int i = 0; i < 3; ++i) {
    HandMade tenant(path_);
    EXPECT_TRUE(tenant.submit(tenant.order()));
    EXPECT_EQ(device_.sixteenths_taken, 16U);
    Order lie = tenant.order();
    lie.segment = 7;
    EXPECT_FALSE(tenant.submit(lie));
    expect_no_tenants();
    EXPECT_EQ(device_.sixteenths_taken, 0U);
  }
  expect_honest_run();
}

TEST_F(Hostile, ATenantThatIsRefusedTakesNoGreenContext) {
  ServerSettings settings;
  settings.profile = {16};
  settings.multiprocessors = MultiprocessorShares::green_contexts;
  start(std::move(settings));
  HandMade tenant(path_);
  EXPECT_FALSE(remote_lanes(path_, {"second", "1q"}));
  EXPECT_EQ(device_.sixteenths_taken, 16U);
  EXPECT_TRUE(tenant.submit(tenant.order()));
}

/// Stages use their tables when they end.
TEST(StagePool, EndsAStageBeforeItsTables) {
  struct Tables final : function::LoadedTables {
    explicit Tables(bool& of_test) : there(of_test) { there = true; }
    ~Tables() override { there = false; }
    std::unique_ptr<DeviceStage> make_stage(const StageUse& /*use*/) override { return nullptr; }
    std::size_t bytes() const noexcept override { return 0; }
    bool& there;
  };
  struct Stage final : DeviceStage {
    explicit Stage(const bool& of_test) : there(of_test) {}
    ~Stage() override { EXPECT_TRUE(there); }
    const bool& there;
  };
  bool there = false;
  StagePool pool;
  const auto add = [&] {
    StagePool::Stage made;
    made.tables = std::make_shared<Tables>(there);
    made.stage = std::make_unique<Stage>(there);
    return pool.add(std::move(made));
  };
  pool.drop(add());
  EXPECT_FALSE(there);
  const std::uint32_t id = add();
  StagePool::Taken taken = pool.take(id);
  pool.drop(id);
  pool.give_back(id, std::move(taken.stage));
  EXPECT_FALSE(there);
  static_cast<void>(add());
  pool.clear();
  EXPECT_FALSE(there);
}

/// The device would read beyond the headers, which may lie at the end of the lane's memory.
TEST_F(Hostile, ALaneThatReturnsFramesOfWhichItSendsHeadersIsRefused) {
  HandMade tenant(path_);
  const auto make = [&](bool frames_up, bool frames_down, bool changes_shape) {
    ring::LaneShape shape = shape_of_block();
    ring::SegmentShape& segment = shape.segments.front();
    segment.frames_up = frames_up;
    segment.frames_down = frames_down;
    segment.stages.front().changes_shape = changes_shape;
    segment.down = {};
    MakeLane message = to_message(shape).value();
    message.stages[0] = tenant.make_stage(0, 64);
    return tenant.connection().request(message);
  };
  EXPECT_NO_THROW(make(true, true, true));
  EXPECT_THROW(make(false, true, false), gpu::CudaError);
  EXPECT_THROW(make(false, false, true), gpu::CudaError);
}

/// Positions on the device are numbers of 32 bits.
TEST_F(Hostile, ALaneWithMoreRoomThanCanBeAddressedIsRefused) {
  device_.memory = std::uint64_t{1} << 44;
  ServerSettings settings;
  settings.host_bytes = std::uint64_t{1} << 44;
  start(settings);
  HandMade tenant(path_);
  ring::LaneShape shape = shape_of_block();
  shape.batch_packets = 1 << 20;
  shape.room = {2048, 2048};
  MakeLane message = to_message(shape).value();
  message.stages[0] = tenant.make_stage(0, 1 << 20);
  EXPECT_THROW(tenant.connection().request(message), gpu::CudaError);
}

TEST_F(Hostile, WhatStagesHaveOnTheDeviceCounts) {
  device_.memory = 16 << 20;
  HandMade tenant(path_);
  // Its part is 1 MiB, of which its lane has a quarter at least.
  EXPECT_NO_THROW(tenant.make_stage(0, 64 << 10));
  EXPECT_THROW(tenant.make_stage(0, 1 << 20), gpu::CudaError);
  tenant.connection().release(MessageType::drop_stage, tenant.make_stage(0, 64 << 10));
}

TEST_F(Hostile, WhatALaneHasOnTheHostCounts) {
  ServerSettings settings;
  settings.host_bytes = 64 << 20;
  start(settings);
  HandMade tenant(path_);
  ring::LaneShape shape = shape_of_block();
  shape.batch_packets = 1 << 19;  // 6 MiB to share, and 92 MiB that are only the proxy's
  MakeLane message = to_message(shape).value();
  message.stages[0] = tenant.make_stage(0, 1 << 19);
  EXPECT_THROW(tenant.connection().request(message), gpu::CudaError);
}

TEST_F(Hostile, AnEndedLaneLeavesNoMemoryToItsTenant) {
  HandMade tenant(path_);
  MakeLane message = to_message(shape_of_block()).value();
  message.stages[0] = tenant.make_stage(0, 64);
  const Connection::Made lane = tenant.connection().request(message);
  const int file = lane.descriptors.at(1).get();
  struct stat status {};
  ASSERT_EQ(::fstat(file, &status), 0);
  const std::vector<char> bytes(static_cast<std::size_t>(status.st_size));
  ASSERT_EQ(::pwrite(file, bytes.data(), bytes.size(), 0), status.st_size);
  tenant.connection().release(MessageType::end_lane, lane.id);
  EXPECT_TRUE(tenant.submit(tenant.order()));
  for (int i = 0; i < 500 && (::fstat(file, &status), status.st_blocks > 0); ++i) ::usleep(2000);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST_F(Hostile, ResultsStayWhereTheyAreWhenTheProxyEnds) {
  HandMade tenant(path_);
  ASSERT_TRUE(tenant.submit(tenant.order()));
  const std::uint8_t* const records =
      tenant.tenant_memory() + tenant.layout().packed_at + tenant.completion().records_at;
  const auto bytes = [&] { return std::vector<std::uint8_t>(records, records + 4 * sizeof(std::uint64_t)); };
  const std::vector<std::uint8_t> before = bytes();
  ASSERT_NE(before, std::vector<std::uint8_t>(before.size()));
  server_.reset();  // while the tenant takes them
  EXPECT_EQ(bytes(), before);
}

/// Its threads poll, so they would take the processors from others.
TEST_F(Hostile, ManyWorkersHaveFewThreads) {
  HandMade tenant(path_);
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  const auto before = threads();
  MakeLane message = to_message(shape_of_block()).value();
  for (message.worker = 1; message.worker < 64; ++message.worker) {
    message.stages[0] = tenant.make_stage(message.worker, 64);
    EXPECT_NO_THROW(tenant.connection().request(message));
  }
  EXPECT_LT(threads() - before, 8);
}

TEST_F(Hostile, OrdersWithoutBytesAreNotFree) {
  ServerSettings settings;
  settings.policy = Policy::fixed;
  settings.device.bytes_per_second = 1 << 20;
  start(settings);
  HandMade tenant(path_);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    Order empty = tenant.order();
    empty.packets = empty.used_bytes = 0;
    EXPECT_TRUE(tenant.submit(empty));
  }
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 500ms);
}

/// The tenant shares the file, so it can make it blocking and read what the proxy writes.
TEST_F(Hostile, AnEventfdThatItsTenantReadsStopsNothing) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> stop{false};
    std::optional<HandMade> tenant(std::in_place, path_);
    const FileDescriptor wake(::dup(tenant->wake_file()));
    ASSERT_EQ(::fcntl(wake.get(), F_SETFL, 0), 0);
    std::vector<std::thread> readers;
    for (int i = 0; i < 16; ++i) {
      readers.emplace_back([&] {
        eventfd_t count = 0;
        while (!stop) static_cast<void>(::eventfd_read(wake.get(), &count));
      });
    }
    ::usleep(50000);  // the proxy's thread sleeps now
    tenant.reset();
    expect_no_tenants();
    stop = true;
    for (int i = 0; i < 100; ++i) ::eventfd_write(wake.get(), 1), ::usleep(1000);
    for (std::thread& reader : readers) reader.join();
  }
  expect_honest_run();
}

TEST_F(Hostile, ConnectionsThatSayNothingKeepNobodyOut) {
  std::vector<FileDescriptor> idle;
  for (int i = 0; i < 400; ++i) {
    if (auto socket = ipc::connect_to(path_, kService)) idle.push_back(std::move(*socket));
  }
  expect_honest_run();
  EXPECT_TRUE(ask_for_status(path_, false));
}

TEST_F(Hostile, GarbageOnTheSocketEndsOnlyItsSender) {
  HandMade neighbour(path_);
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const FileDescriptor socket = ipc::connect_to(path_, kService).value();
    if (i % 2 == 0) {
      const Hello hello;
      ASSERT_EQ(send_message(socket.get(), bytes_of(hello), {}, 1s), 0);
      static_cast<void>(receive_message(socket.get(), sizeof(Reply), 1s));
    }
    std::vector<std::byte> bytes(1 + random() % (2 * kMostMessageBytes));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (bytes.size() >= 4)
      bytes[0] = static_cast<std::byte>(random() % 12), bytes[1] = bytes[2] = bytes[3] = std::byte{0};
    static_cast<void>(send_message(socket.get(), bytes, {}, 1s));
    EXPECT_TRUE(neighbour.submit(neighbour.order()));
  }
  expect_honest_run();
}

/// Some lie in messages that are never received.
TEST_F(Hostile, DescriptorsThatTakeLongToCloseKeepNobodyOut) {
  ipc::testing::Lingering received;
  std::array<ipc::testing::Lingering, 8> left;
  const auto socket = ipc::connect_to(path_, kService).value();
  ASSERT_EQ(send_message(socket.get(), bytes_of(Hello{}), {}, 1000ms), 0);
  ASSERT_TRUE(receive_message(socket.get(), sizeof(Reply), 5000ms));
  OpenMemory request;
  request.bytes = 4096;
  ASSERT_TRUE(received.send_over(socket.get(), bytes_of(request)));
  const auto answer = receive_message(socket.get(), sizeof(Reply), 5000ms);
  ASSERT_TRUE(answer);
  EXPECT_NE(ipc::message_of<Reply>(answer->bytes).value().failed, 0U);
  // Nothing of this is a message, so the first one ends a connection.
  for (ipc::testing::Lingering& lingering : left) {
    const auto wrong = ipc::connect_to(path_, kService).value();
    static_cast<void>(ipc::send_message(wrong.get(), ipc::testing::kMessage, {}, 1000ms));
    lingering.send_over(wrong.get());
  }
  EXPECT_TRUE(ask_for_status(path_, false));
  server_.reset();
}

TEST_F(Hostile, ATenantThatDoesNotTakeItsRepliesDoesNotStopOthers) {
  const FileDescriptor socket = ipc::connect_to(path_, kService).value();
  const Hello hello;
  ASSERT_EQ(send_message(socket.get(), bytes_of(hello), {}, 1s), 0);
  OpenMemory request;
  while (send_message(socket.get(), bytes_of(request), {}, 100ms) == 0) continue;  // nobody reads the answers
  expect_honest_run();
}

TEST_F(Hostile, ATenantThatStopsKeepsNobodyWaiting) {
  HandMade stopped(path_);
  device_.polls = 1000;
  stopped.submit_only(stopped.order());
  device_.polls = 1;
  expect_honest_run();
  for (int i = 0; i < 100; ++i) stopped.submit_only(stopped.order());  // never looks at what comes of them
  expect_honest_run();
}

TEST_F(Hostile, MemoryThatIsClosedIsNotUsedAnyMore) {
  HandMade tenant(path_);
  tenant.connection().release(MessageType::close_memory, tenant.memory_id());
  ::usleep(100000);
  EXPECT_FALSE(tenant.submit(tenant.order()));
  EXPECT_TRUE(tenant.is_ended());
}

TEST_F(Hostile, ADescriptorThatChangesAfterTheCheckHasNoEffect) {
  HandMade tenant(path_);
  std::atomic<bool> stop{false};
  std::thread liar([&] {
    // Only between values that are good: what is checked is what is used.
    while (!stop) {
      tenant.packet(0).length = 60;
      tenant.packet(0).length = 0;
    }
  });
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(tenant.submit(tenant.order()));
  stop = true;
  liar.join();
}

TEST_F(Hostile, AKilledTenantLeavesNothingBehind) {
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      HandMade tenant(path_);
      for (;;) static_cast<void>(tenant.submit(tenant.order()));
    }
    ::usleep(100000);
    ::kill(child, SIGKILL);
    expect_honest_run();
    int status = 0;
    ::waitpid(child, &status, 0);
    expect_no_tenants();
  }
}

}  // namespace
}  // namespace penstock::proxy
