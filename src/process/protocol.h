// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a chain's process and the process of one of its functions say to each other over a unix socket
// (SOCK_SEQPACKET): one message per packet, each of a fixed size for its type. The chain's process asks. Requests
// marked with * have a reply, the others have none. README.md has the whole protocol.

#pragma once

#include <array>
#include <cstdint>

#include "function/granted_stage.h"
#include "function/stage_needs_message.h"
#include "ipc/message.h"
#include "packet/verdict.h"

namespace penstock::process {

using ipc::bytes_of;
using ipc::kIsMessage;
using ipc::message_of;
using ipc::Text;

inline constexpr std::uint32_t kProtocolVersion = 4;

inline constexpr std::size_t kMostPorts = 64;    // of a chain
inline constexpr std::size_t kMostReasons = 64;  // for which a function drops packets
inline constexpr std::size_t kMostQueues = 256;  // of a connection: one for each worker
inline constexpr std::size_t kMostMemories = 8;  // that a queue has open
inline constexpr std::size_t kLongestName = 64;  // of a port or a function
inline constexpr std::size_t kLongestReason = 48;
inline constexpr std::size_t kMostFindings = 64;  // bytes of a device stage about a packet, for the function's process

enum class MessageType : std::uint32_t {
  hello = 1,    // * the function is made for this chain; the reply is a Description
  make_queue,   // * with a memfd: a BurstPage, and room for copied frames
  end_queue,    //
  open_memory,  // * with a memfd: frames that a queue's bursts name
  ask_token,    // * for the function's tables at the proxy; the reply is a TokenReply
};

struct PortMessage {
  enum Flag : std::uint32_t { kReads = 1, kWrites = 2, kIsLive = 4, kAnswers = 8 };
  Text<kLongestName> name;
  std::uint32_t flags = 0;
  std::uint32_t exit = kNoPort;
};

struct Hello {
  enum Flag : std::uint32_t { kKnowsExits = 1, kOutPortKnown = 2 };
  MessageType type = MessageType::hello;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t ports = 0;
  std::uint32_t flags = 0;
  Text<kLongestName> function;  // the kind that the chain file names
  std::array<PortMessage, kMostPorts> port{};
};

inline constexpr std::size_t kMostStates = 64;  // bytes for a device stage about a packet, from the function's process
inline constexpr std::uint32_t kMostGrowth = 1024;  // bytes that a frame may grow by, on either side

/// conntrack::Options of a function that reads connections, which its chain's process tracks.
struct ConnectionsMessage {
  enum Flag : std::uint32_t { kChecksum = 1, kLoose = 2, kLiberal = 4, kIgnoreInvalidReset = 8 };
  std::uint32_t most_connections = 0;
  std::uint32_t most_fragments = 0;
  std::uint32_t most_expectations = 0;
  std::uint32_t most_retransmissions = 0;
  std::uint32_t flags = 0;
  std::array<std::uint32_t, 17> timeouts{};  // conntrack::Timeouts, in their order
  friend bool operator==(const ConnectionsMessage&, const ConnectionsMessage&) = default;
};

/// function::NfTraits, as far as the chain needs it.
struct Description {
  enum Flag : std::uint32_t {
    kChoosesPort = 1,
    kOneWorker = 2,
    kTracksFlows = 4,
    kHasStage = 8,
    kChoosesSomePorts = 16,
    kConfirms = 32,     // the process confirms what the stage finds
    kFinishWaits = 64,  // … also once packets have left
    kReadsConnections = 128,
  };
  std::uint32_t failed = 0;
  std::uint32_t flags = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  Text<kLongestName> name;
  std::uint32_t reasons = 0;
  std::uint32_t reserved = 0;
  std::array<Text<kLongestReason>, kMostReasons> reason{};
  Text<256> text;  // what is loaded; of a failure: the message
  Text<256> found, expected;
  function::StageNeedsMessage stage{};  // with kHasStage: of a stage in a proxy
  // With kConfirms: of the finish stage, and function::ClearFindings. They do not depend on a proxy.
  std::uint64_t finish_reads = 0;
  std::uint64_t finish_writes = 0;
  std::uint64_t clear_mask = 0;
  std::uint64_t clear_value = 0;
  // Of a function that changes the length of frames: the most bytes that it adds.
  std::uint32_t head = 0;
  std::uint32_t tail = 0;
  std::uint64_t state_reads = 0;     // of the state stage, if the stage in a proxy needs states
  ConnectionsMessage connections{};  // with kReadsConnections
};

struct MakeQueue {
  MessageType type = MessageType::make_queue;
  std::uint32_t worker = 0;
};

struct EndQueue {
  MessageType type = MessageType::end_queue;
  std::uint32_t queue = 0;
};

struct OpenMemory {
  MessageType type = MessageType::open_memory;
  std::uint32_t queue = 0;
  std::uint64_t bytes = 0;
};

struct AskToken {
  MessageType type = MessageType::ask_token;
  std::uint32_t reserved = 0;
};

struct TokenReply {
  std::uint32_t failed = 0;
  std::uint32_t reserved = 0;
  function::GrantToken token{};
  Text<512> message;  // of a failure
};

struct Reply {
  std::uint32_t failed = 0;
  std::uint32_t id = 0;  // of what has been made
  Text<256> message;     // of a failure
};

inline constexpr std::size_t kMostMessageBytes = sizeof(Hello);

static_assert(kIsMessage<Hello> && kIsMessage<Description> && kIsMessage<MakeQueue> && kIsMessage<EndQueue> &&
              kIsMessage<OpenMemory> && kIsMessage<AskToken> && kIsMessage<TokenReply> && kIsMessage<Reply>);

}  // namespace penstock::process
