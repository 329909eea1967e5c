// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Public addresses' ports in blocks, which hosts behind a carrier's NAT get and give back (RFC 6888, RFC 7422). Shared
// by all workers of a run. A block belongs to one worker at a time, so ports of two workers never clash. Workers take
// and give back blocks under a lock, and use those that they have without one. All memory is reserved at construction.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/huge_page_allocator.h"
#include "base/ip_address.h"
#include "conntrack/nat_range.h"
#include "conntrack/options.h"
#include "conntrack/tuple.h"

namespace penstock::conntrack {

/// A host by its own address: a subscriber of the carrier.
struct Subscriber {
  Ipv6Address address;  // IPv4: {0, address}
  std::uint8_t ip_version = 0;
  friend bool operator==(const Subscriber&, const Subscriber&) = default;
};

struct BlockEvent {
  enum class Kind : std::uint8_t { allocated, released } kind = Kind::allocated;
  std::uint64_t time_ns = 0;
  Subscriber subscriber;
  Ipv6Address address;  // the public one, of the same IP version
  std::uint16_t first_port = 0, last_port = 0;
};

/// Who wants to know which host has which block. Called under the lock, in the order of events.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual void tell(const BlockEvent& event) noexcept = 0;
  /// Called now and then once it was told something, until nothing is left to write: then it returns true.
  [[nodiscard]] virtual bool flush_if_due() noexcept { return true; }
};

/// Which kinds of ports a block has. Each of its numbers is one port of each kind.
enum class PortKind : std::uint8_t {
  tcp,   // and SCTP
  udp,   // and UDP-Lite
  icmp,  // identifiers
};
inline constexpr std::size_t kPortKinds = 3;

struct PortBlock {
  static constexpr std::uint32_t kNone = 0xffffffff;

  // Written under the lock.
  Subscriber subscriber;       // none: it is free
  std::uint32_t next = kNone;  // in the subscriber's bucket, or after it in the list of free blocks

  // The owner's. All are as here while the block is free.
  std::uint32_t next_owned = kNone;
  std::uint32_t idle_next = kNone, idle_previous = kNone;
  std::uint64_t idle_since_ns = 0;
  std::uint32_t ports_in_use = 0;
  std::array<std::uint16_t, kPortKinds> used{};  // by PortKind
};

class PortBlocks {
 public:
  /// `observer` may be null.
  explicit PortBlocks(const PortBlockOptions& options, std::uint64_t seed,
                      std::unique_ptr<BlockObserver> observer = nullptr);

  // For workers.

  enum class Refusal : std::uint8_t {
    none,
    per_host,       // the host has as many as it may have
    no_block,       // its address, or all addresses of the range if it has none yet, have no free block
    without_ports,  // the protocol has no ports: who sent a packet could not be told from it
  };
  struct Taken {
    std::uint32_t block = PortBlock::kNone;
    Refusal refusal = Refusal::none;
  };
  /// A block for the source of this tuple, from a range without kNetmap. A host keeps to one address of a range while
  /// it has blocks there.
  [[nodiscard]] Taken take(const Tuple& tuple, const NatRange& range, std::uint64_t time_ns) noexcept;
  /// The block with this port, for a connection of an earlier run. Not told to the observer before tell_of().
  [[nodiscard]] std::uint32_t take_again(const Subscriber& subscriber, const Ipv6Address& address,
                                         std::uint16_t port) noexcept;
  void tell_of(std::uint32_t block, std::uint64_t time_ns) noexcept;
  void give_back(std::uint32_t block, std::uint64_t time_ns) noexcept;
  void flush_if_due() noexcept;

  // For the owner of a block.

  [[nodiscard]] PortBlock& at(std::uint32_t block) noexcept { return blocks_[block]; }
  [[nodiscard]] const Ipv6Address& address_of(std::uint32_t block) const noexcept {
    return addresses_[block / per_address_].address;
  }
  [[nodiscard]] std::uint16_t first_port_of(std::uint32_t block) const noexcept {
    return static_cast<std::uint16_t>(options_.first_port + block % per_address_ * options_.size);
  }
  /// A bit for each port of the kind that is in use: size / 64 words.
  [[nodiscard]] std::uint64_t* bits_of(std::uint32_t block, PortKind kind) noexcept {
    const std::size_t words = options_.size / 64;
    return &bits_[(block * kPortKinds + static_cast<std::size_t>(kind)) * words];
  }

  // For others; thread-safe.

  struct Usage {
    std::uint64_t blocks = 0, addresses = 0, most_blocks = 0;  // now, now, at any time
    std::uint64_t allocated = 0, released = 0;
  };
  [[nodiscard]] Usage usage() const;
  /// The run has ended: tells the observer that all blocks are released, and forgets it.
  void end(std::uint64_t time_ns);

  [[nodiscard]] const PortBlockOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return per_address_ * options_.most_addresses; }

 private:
  static constexpr std::uint32_t kNone = PortBlock::kNone;

  struct Address {
    Ipv6Address address;
    std::uint32_t next = kNone;                           // in its bucket
    std::uint32_t first_free = kNone, last_free = kNone;  // blocks; the one that is free for the longest time first
    std::uint32_t in_use = 0;                             // blocks
    std::uint8_t ip_version = 0;
  };

  // All with the lock held.
  [[nodiscard]] std::uint32_t& bucket_of(std::vector<std::uint32_t>& buckets, const Ipv6Address& address) noexcept;
  [[nodiscard]] std::uint32_t find_address(const Ipv6Address& address, std::uint8_t ip_version) noexcept;
  [[nodiscard]] std::uint32_t add_address(const Ipv6Address& address, std::uint8_t ip_version) noexcept;
  [[nodiscard]] std::uint32_t find_free(const Tuple& tuple, const NatRange& range) noexcept;
  [[nodiscard]] std::uint32_t count_of(const Subscriber& subscriber, const NatRange* range,
                                       std::uint32_t& paired) noexcept;
  void begin_use(std::uint32_t block, const Subscriber& subscriber) noexcept;
  void tell(BlockEvent::Kind kind, std::uint32_t block, std::uint64_t time_ns) noexcept;

  const PortBlockOptions options_;
  const std::uint32_t per_address_;
  const std::uint64_t seed_;
  HugeMemory<PortBlock> blocks_;    // of an address, constructed when the address is added
  HugeMemory<std::uint64_t> bits_;  // ditto

  mutable std::mutex mutex_;        // guards the members below, and PortBlock as it says
  std::vector<Address> addresses_;  // never moves
  std::uint32_t known_addresses_ = 0;
  std::vector<std::uint32_t> address_buckets_, subscriber_buckets_;
  std::unique_ptr<BlockObserver> observer_;
  std::uint64_t last_time_ns_ = 0;  // of events, which does not go back, unless a clock was set
  Usage usage_;
  std::atomic<bool> is_told_{false};  // something that the observer may want to flush
};

}  // namespace penstock::conntrack
