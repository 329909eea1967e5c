// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a tenant and the proxy say to each other over a unix socket (SOCK_SEQPACKET): one message per packet, each of a
// fixed size for its type. The tenant asks; requests marked with * have a Reply, the others have none. README.md has
// the whole protocol. Messages are trivially copyable, and the receiver checks its own copy.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "function/granted_stage.h"
#include "function/stage_needs_message.h"
#include "ipc/message.h"
#include "ipc/message_socket.h"

namespace penstock::proxy {

using ipc::bytes_of;
using ipc::FileDescriptor;
using ipc::has_gone;
using ipc::kIsMessage;
using ipc::Listener;
using ipc::Peer;
using ipc::peer_of;
using ipc::receive_message;
using ipc::Received;
using ipc::send_message;
using ipc::Text;

/// For `connect_to`.
inline constexpr ipc::Service kService{"the proxy", "penstock proxy serve"};

inline constexpr std::uint32_t kProtocolVersion = 5;

inline constexpr std::size_t kMostMemories = 64;  // that a tenant has open at a time
inline constexpr std::size_t kMostTables = 64;    // of a recipe
inline constexpr std::size_t kMostSegments = 16;  // of a lane
inline constexpr std::size_t kMostStages = 16;    // of a segment
inline constexpr std::size_t kMostLaneStages = 32;
inline constexpr std::size_t kMostWorkers = 256;  // of a tenant
inline constexpr std::uint32_t kLongestLatencyUs = 10'000'000;

enum class MessageType : std::uint32_t {
  hello = 1,      // * becomes a tenant; the reply has a descriptor: the proxy's pulse
  open_memory,    // * with a memfd: packets and descriptors
  close_memory,   //
  load_tables,    // * with a memfd: arguments, then tables; new ones, or in the place of others
  unload_tables,  //
  make_stage,     // *
  drop_stage,     //
  make_lane,      // * the reply has three descriptors: the proxy's memory, the tenant's memory, an eventfd
  end_lane,       //
  status,         // * also without `hello`; the reply is a text
  set_policy,     // * ditto; by the proxy's user
  grant_tables,   // * the reply has a token, by which other tenants make stages of these tables
  use_grant,      // * the reply has an id for the tables of this token, for make_stage and unload_tables
};

struct Hello {
  MessageType type = MessageType::hello;
  std::uint32_t version = kProtocolVersion;
  Text<64> name;                       // for people
  Text<8> profile;                     // "4q"; empty: the proxy's default
  std::uint64_t memory = 0;            // on the device, in bytes; 0: what the profile has
  std::uint64_t bytes_per_second = 0;  // in both directions; 0: the proxy's limit
  std::uint32_t batches = 0;           // in flight; 0: the proxy's limit
  std::uint32_t latency_us = 0;        // bound from the order of a batch to its results; 0: none
};

struct OpenMemory {
  MessageType type = MessageType::open_memory;
  std::uint32_t host_only = 0;  // 0: the device can access it; else it can have descriptors, but no frames
  std::uint64_t bytes = 0;
};

/// For close_memory, unload_tables, drop_stage and end_lane.
struct Release {
  MessageType type{};
  std::uint32_t id = 0;
};

struct LoadTables {
  MessageType type = MessageType::load_tables;
  std::uint32_t argument_bytes = 0;
  std::uint32_t tables = 0;
  std::uint32_t replaces = 0;  // id of the tables whose stages use these from their next batches on; 0: none
  Text<32> kernel;
  std::array<std::uint64_t, kMostTables> table_bytes{};
};

struct GrantTables {
  MessageType type = MessageType::grant_tables;
  std::uint32_t tables = 0;
};

struct UseGrant {
  MessageType type = MessageType::use_grant;
  std::uint32_t reserved = 0;
  function::GrantToken token{};
  /// As the tenant knows them. The proxy refuses tables whose stages need more.
  function::StageNeedsMessage known{};
};

struct MakeStage {
  MessageType type = MessageType::make_stage;
  std::uint32_t tables = 0;
  std::uint32_t worker = 0;
  std::uint32_t batch_packets = 0;
  std::uint32_t multiprocessors = 0;
  std::uint32_t reserved = 0;
};

/// ring::SegmentShape::Stage, and the stage that a lane begins with.
struct StageShape {
  std::uint8_t function = 0;
  std::uint8_t changes_shape = 0;
  std::uint16_t reserved = 0;
  std::uint32_t findings_bytes = 0;
  std::uint32_t state_bytes = 0;
};

/// ring::SegmentShape. Records are described by their fields.
struct SegmentMessage {
  std::uint8_t sends_packets = 0;
  std::uint8_t parses = 0;
  std::uint8_t frames_up = 0;
  std::uint8_t verdicts_up = 0;
  std::uint8_t frames_down = 0;
  std::array<std::uint8_t, 3> reserved{};
  std::uint32_t stages = 0;
  std::uint32_t reserved2 = 0;
  std::uint64_t up_fields = 0;
  std::uint64_t down_fields = 0;
  std::array<StageShape, kMostStages> stage{};
};

/// ring::LaneShape.
struct MakeLane {
  MessageType type = MessageType::make_lane;
  std::uint32_t worker = 0;
  std::uint64_t batch_bytes = 0;
  std::uint64_t batch_packets = 0;
  std::uint64_t sent_bytes = 0;
  std::uint32_t head = 0;
  std::uint32_t tail = 0;
  std::uint32_t crossing = 0;
  std::uint8_t hash_flows = 0;
  std::array<std::uint8_t, 3> reserved{};
  std::uint32_t segments = 0;
  std::uint32_t collects_from = 0;
  std::array<SegmentMessage, kMostSegments> segment{};
  std::array<std::uint32_t, kMostLaneStages> stages{};  // ids, segment by segment
};

struct StatusRequest {
  MessageType type = MessageType::status;
  std::uint32_t prometheus = 0;  // 0: JSON
};

struct SetPolicy {
  MessageType type = MessageType::set_policy;
  std::uint32_t policy = 0;  // proxy::Policy
};

struct Reply {
  static constexpr std::uint32_t kRefused = 1, kOtherVersion = 2;
  std::uint32_t failed = 0;  // 0: done
  std::uint32_t id = 0;      // of what has been made
  std::uint64_t value = 0;
  function::GrantToken token{};  // of `grant_tables`
  Text<320> message;             // of a failure; of `hello`: the device
  Text<320> found;               // of a failure
  Text<320> expected;            // of a failure
};

/// A page that tenants can only read. A proxy where it stays the same is stopped, or hangs.
struct Pulse {
  std::atomic<std::uint32_t> beats;  // several per second
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

inline constexpr std::size_t kMostMessageBytes = sizeof(MakeLane);
inline constexpr std::size_t kMostStatusBytes = std::size_t{160} << 10;

static_assert(kIsMessage<Hello> && kIsMessage<OpenMemory> && kIsMessage<Release> && kIsMessage<LoadTables> &&
              kIsMessage<GrantTables> && kIsMessage<UseGrant> && kIsMessage<MakeStage> && kIsMessage<MakeLane> &&
              kIsMessage<StatusRequest> && kIsMessage<SetPolicy> && kIsMessage<Reply>);
static_assert(kMostMessageBytes >= sizeof(LoadTables));

}  // namespace penstock::proxy
