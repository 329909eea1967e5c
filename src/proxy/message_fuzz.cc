// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as the messages of a tenant, some with a descriptor. Whatever comes, the tenant ends, with all that
// it had on the device.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/shared_memory.h"
#include "base/testing/fuzz_check.h"
#include "proxy/served_lane.h"
#include "proxy/shape_message.h"
#include "proxy/tenant.h"
#include "proxy/testing/block_kernel.h"

using namespace penstock;
using namespace penstock::proxy;
using penstock::testing::check;

namespace {

constexpr std::uint64_t kQuota = std::uint64_t{64} << 20;

/// A kernel like `block`, whose tables are much larger on the device than in a recipe.
std::uint64_t swollen(const function::StageRecipe& recipe) { return recipe.tables[0]->size() << 12; }
std::unique_ptr<function::LoadedTables> load_swollen(const function::StageRecipe& recipe) {
  check(swollen(recipe) <= kQuota);
  return std::make_unique<proxy::testing::HostTables>(proxy::testing::block_of(recipe).work, swollen(recipe));
}
constexpr function::RemoteKernel kKernels[] = {
    proxy::testing::kBlockKernels[0],
    {"swell", proxy::testing::check_block, load_swollen, proxy::testing::needs_of_block, swollen}};

class OpenHouse final : public Admission {
 public:
  Result<Quota> admit(const Hello&, const Peer&, TenantState& tenant) override {
    tenant.scheduled = tenant.arbiter.with([](Scheduler& s) { return s.add({}, Arbiter::now()); });
    return Quota{.profile = Profile{16}, .device_bytes = kQuota, .host_bytes = kQuota};
  }
  void leave(TenantState& tenant, std::chrono::nanoseconds) noexcept override {
    check(tenant.counters.device_bytes <= kQuota && tenant.counters.host_bytes <= kQuota);
  }
  void release_ended_stages() noexcept override {}
  std::string status(bool) const override { return "{}"; }
  int pulse_file() const noexcept override {
    static const SharedFile pulse(sizeof(Pulse), /*sealed=*/true);
    return pulse.fd();
  }
};

/// By type. A message of a right size leads further than one of any other.
std::size_t size_of(std::uint8_t type) {
  switch (static_cast<MessageType>(type)) {
    case MessageType::hello: return sizeof(Hello);
    case MessageType::open_memory: return sizeof(OpenMemory);
    case MessageType::load_tables: return sizeof(LoadTables);
    case MessageType::grant_tables: return sizeof(GrantTables);
    case MessageType::use_grant: return sizeof(UseGrant);
    case MessageType::make_stage: return sizeof(MakeStage);
    case MessageType::make_lane: return sizeof(MakeLane);
    case MessageType::status: return sizeof(StatusRequest);
    case MessageType::set_policy: return sizeof(SetPolicy);
    default: return sizeof(Release);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::array<int, 2> ends{};
  check(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  FileDescriptor ours(ends[0]);
  proxy::testing::HostDevice device;
  const proxy::testing::HostBackend backend(device, kKernels);
  Arbiter arbiter(Policy::weighted, {});
  TableGrants grants;
  OpenHouse house;
  const FileDescriptor file(make_shared_file("fuzz", 64 << 10));
  std::vector<std::byte> message;
  const auto say = [&](std::span<const std::byte> bytes, bool with_file) {
    const int descriptor = file.get();
    return send_message(ours.get(), bytes, std::span(&descriptor, with_file ? 1 : 0), std::chrono::milliseconds(0)) ==
           0;
  };
  check(say(bytes_of(Hello{}), false));
  // A type, whether a descriptor comes with it, the number of bytes that differ from zero, and these.
  for (int i = 0; i < 12 && size >= 4; ++i) {
    const std::uint8_t type = data[0];
    const bool with_file = (data[1] & 1) != 0;
    const std::size_t cut = data[1] >> 4;  // 0: the right size
    const std::size_t given = std::min<std::size_t>(data[2] | data[3] << 8, size - 4);
    data += 4;
    size -= 4;
    message.assign(size_of(type), std::byte{0});
    message[0] = static_cast<std::byte>(type);
    if (message.size() > 4) std::memcpy(message.data() + 4, data, std::min(given, message.size() - 4));
    data += given;
    size -= given;
    if (cut > 0) message.resize(std::max<std::size_t>(1, message.size() / (cut + 1)));
    if (!say(message, with_file)) break;
    if (message.size() == sizeof(MakeLane) && static_cast<MessageType>(type) == MessageType::make_lane) {
      MakeLane lane;
      std::memcpy(static_cast<void*>(&lane), message.data(), sizeof lane);
      if (const auto shape = to_shape(lane)) {
        const LaneLayout layout(*shape);
        check(layout.sizes.packed_places.size() == shape->segments.size());
        check(to_message(*shape).has_value());
      }
    }
  }
  ::shutdown(ours.get(), SHUT_WR);
  {
    Tenant tenant(FileDescriptor(ends[1]), {}, backend, arbiter, grants, house);
    static_cast<void>(tenant.serve());
  }
  check(device.lanes == 0);
  return 0;
}
