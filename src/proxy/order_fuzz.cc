// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as the orders of a tenant, and as the descriptors, frames and lists that it shares. What passes the
// check is run on a simulated lane, as a device would run it.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/shared_memory.h"
#include "base/testing/fuzz_check.h"
#include "proxy/order_check.h"
#include "proxy/testing/block_kernel.h"

using namespace penstock;
using namespace penstock::proxy;
using penstock::testing::check;

namespace {

constexpr std::size_t kMemory = 16 << 10;
constexpr std::size_t kDescriptorsAt = 8 << 10;
constexpr std::size_t kPackets = 32;

ring::LaneShape shape_of(std::uint8_t choice) {
  ring::SegmentShape first;
  first.frames_up = (choice & 1) != 0;
  first.frames_down = (choice & 2) != 0 && first.frames_up;
  first.down = *ring::record_layout(first.frames_down ? FieldSet{Field::mark} : proxy::testing::kBlockWrites);
  first.stages = {{0, 4, false, 8}};
  ring::SegmentShape second = first;
  second.sends_packets = (choice & 4) != 0;
  second.verdicts_up = true;
  second.up = *ring::record_layout(FieldSet{Field::ipv4_ttl, Field::l4_checksum, Field::tcp_seq, Field::mark});
  ring::LaneShape shape;
  shape.batch_bytes = 8 << 10;
  shape.batch_packets = kPackets;
  shape.segments = {first, second};
  return shape;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ring::LaneShape shape = shape_of(*data++);
  --size;
  const int file = make_shared_file("fuzz", kMemory);
  const auto memory = std::make_shared<TenantMemory>(file, kMemory);
  memory->set_opening(std::make_shared<int>());
  const auto host_only = std::make_shared<const TenantMemory>(file, kMemory);  // the same bytes
  ::close(file);
  TenantMemories memories;
  memories[1] = memory;
  memories[2] = host_only;
  const ring::LaneSizes sizes(shape);
  std::vector<std::uint8_t> results(sizes.results), packed(LaneLayout::pages(sizes.packed)), states(sizes.states);
  proxy::testing::HostDevice device;
  ring::LaneStages stages(2);
  for (auto& of_segment : stages) {
    of_segment.push_back(std::make_unique<ring::testing::SimulatedStage>(
        [](PacketView packet, std::byte*, const std::byte*) { return proxy::testing::block(packet, {53}, 1); }));
  }
  proxy::testing::HostLane lane(device, shape, std::move(stages), {results, packed, states});
  OrderCheck orders(shape);
  std::array<std::uint64_t, kPackets> list{};
  const auto take = [&](void* to, std::size_t bytes) {
    const std::size_t taken = std::min(bytes, size);
    if (taken > 0) std::memcpy(to, data, taken);
    data += taken;
    size -= taken;
    return taken == bytes;
  };
  // Each order begins with what changes in the shared memory.
  for (int i = 0; i < 8 && size > 0; ++i) {
    std::uint8_t changes = 0;
    static_cast<void>(take(&changes, 1));
    if ((changes & 1) != 0) static_cast<void>(take(memory->bytes().data() + kDescriptorsAt, 256));
    if ((changes & 2) != 0) static_cast<void>(take(memory->bytes().data(), 256));
    if ((changes & 4) != 0) static_cast<void>(take(list.data(), 32));
    struct {
      std::uint32_t segment, packets, used_bytes, lists, frame_memory, packet_memory;
      std::uint64_t frames_at, packets_at;
    } words{};
    if (!take(&words, sizeof words)) break;
    Order order;
    order.segment = words.segment;
    order.packets = words.packets;
    order.used_bytes = words.used_bytes;
    order.frames = static_cast<Order::Frames>(words.lists);
    order.frame_memory = words.frame_memory;
    order.packet_memory = words.packet_memory;
    order.frames_at = words.frames_at;
    order.packets_at = words.packets_at;
    if (orders.check(order, memories, list.data(), packed) != nullptr) continue;
    check(orders.batch().size() == words.packets && words.packets <= kPackets);
    const auto is_host_only = [&](const std::uint8_t* at) {
      const std::span<const std::uint8_t> memory_of_host = host_only->bytes();
      return at >= memory_of_host.data() && at < memory_of_host.data() + memory_of_host.size();
    };
    check(!is_host_only(orders.batch().memory()));
    for (const std::uint8_t* const frame : orders.frames()) check(!is_host_only(frame));
    lane.prepare(orders.batch(), order.segment, orders.frames());
    const bool starts = lane.start(orders.batch(), order.segment, orders.frames());
    while (lane.progress() == gpu::Progress::kRunning) continue;
    orders.end(starts);
    check(lane.results().verdicts.size() == words.packets);
    check(lane.crossed().to_device <= 2 * orders.bytes() + kFrameAlignment);
    check(lane.crossed().to_host <= 2 * orders.bytes() + kFrameAlignment);
  }
  return 0;
}
