// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/port_blocks.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/keyed_hash.h"
#include "base/nanoseconds.h"
#include "conntrack/nat_choice.h"

namespace penstock::conntrack {

namespace {

constexpr std::uint32_t kPortNumbers = 0x10000;

std::uint32_t blocks_per_address(const PortBlockOptions& options) noexcept {
  return (kPortNumbers - options.first_port) / options.size;
}

/// The address after this one; after the last of the range comes the first.
Ipv6Address next_in(Ipv6Address address, const NatRange& range) noexcept {
  if (address == range.last_address) return range.first_address;
  if (++address.low == 0) ++address.high;
  return address;
}

bool contains(const NatRange& range, const Ipv6Address& address) noexcept {
  return address >= range.first_address && address <= range.last_address;
}

}  // namespace

PortBlocks::PortBlocks(const PortBlockOptions& options, std::uint64_t seed, std::unique_ptr<BlockObserver> observer)
    : options_(options),
      per_address_(blocks_per_address(options)),
      seed_(seed),
      blocks_(make_huge_memory<PortBlock>(capacity())),
      bits_(make_huge_memory<std::uint64_t>(std::size_t{capacity()} * kPortKinds * (options.size / 64))),
      addresses_(options.most_addresses),
      address_buckets_(std::bit_ceil(options.most_addresses), kNone),
      subscriber_buckets_(std::bit_ceil(capacity()), kNone),
      observer_(std::move(observer)) {}

std::uint32_t& PortBlocks::bucket_of(std::vector<std::uint32_t>& buckets, const Ipv6Address& address) noexcept {
  return buckets[mix_product(address.low ^ seed_, address.high + seed_) & (buckets.size() - 1)];
}

PortBlocks::Taken PortBlocks::take(const Tuple& tuple, const NatRange& range, std::uint64_t time_ns) noexcept {
  const Subscriber subscriber{tuple.source, tuple.ip_version};
  const std::lock_guard lock(mutex_);
  std::uint32_t paired = kNone;
  if (count_of(subscriber, &range, paired) >= options_.per_host) return {kNone, Refusal::per_host};
  const std::uint32_t block = paired != kNone ? addresses_[paired].first_free : find_free(tuple, range);
  if (block == kNone) return {kNone, Refusal::no_block};
  begin_use(block, subscriber);
  tell(BlockEvent::Kind::allocated, block, time_ns);
  return {block, Refusal::none};
}

/// The number of the host's blocks. `paired`: gets the place of its address in the range, if it has one there.
std::uint32_t PortBlocks::count_of(const Subscriber& subscriber, const NatRange* range,
                                   std::uint32_t& paired) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = bucket_of(subscriber_buckets_, subscriber.address); i != kNone; i = blocks_[i].next) {
    if (blocks_[i].subscriber != subscriber) continue;
    ++count;
    if (range != nullptr && contains(*range, address_of(i))) paired = i / per_address_;
  }
  return count;
}

/// For a host without an address in this range: a block of the address that is the host's by its hash, or of one of
/// those after it.
std::uint32_t PortBlocks::find_free(const Tuple& tuple, const NatRange& range) noexcept {
  constexpr unsigned kMostTried = 64;
  NatRange of_host = range;
  of_host.flags |= NatRange::kPersistent;
  const Ipv6Address first = choose_address(tuple, NatKind::source, of_host);
  Ipv6Address address = first;
  for (unsigned tried = 0; tried < kMostTried && (tried == 0 || address != first); ++tried) {
    std::uint32_t place = find_address(address, tuple.ip_version);
    if (place == kNone) place = add_address(address, tuple.ip_version);
    if (place != kNone && addresses_[place].first_free != kNone) return addresses_[place].first_free;
    address = next_in(address, range);
  }
  // The range has more addresses than there is room for.
  for (std::uint32_t place = 0; place < known_addresses_; ++place) {
    const Address& known = addresses_[place];
    if (known.ip_version == tuple.ip_version && known.first_free != kNone && contains(range, known.address))
      return known.first_free;
  }
  return kNone;
}

std::uint32_t PortBlocks::find_address(const Ipv6Address& address, std::uint8_t ip_version) noexcept {
  std::uint32_t place = bucket_of(address_buckets_, address);
  while (place != kNone && (addresses_[place].address != address || addresses_[place].ip_version != ip_version))
    place = addresses_[place].next;
  return place;
}

/// kNone: there is no room.
std::uint32_t PortBlocks::add_address(const Ipv6Address& address, std::uint8_t ip_version) noexcept {
  std::uint32_t place = known_addresses_;
  if (place < options_.most_addresses) {
    ++known_addresses_;
  } else if (usage_.addresses < options_.most_addresses) {
    // One of an earlier configuration, maybe.
    place = 0;
    while (addresses_[place].in_use != 0) ++place;
    std::uint32_t* link = &bucket_of(address_buckets_, addresses_[place].address);
    while (*link != place) link = &addresses_[*link].next;
    *link = addresses_[place].next;
  } else {
    return kNone;
  }
  std::uint32_t& bucket = bucket_of(address_buckets_, address);
  const std::uint32_t first = place * per_address_;
  addresses_[place] = {.address = address,
                       .next = bucket,
                       .first_free = first,
                       .last_free = first + per_address_ - 1,
                       .in_use = 0,
                       .ip_version = ip_version};
  bucket = place;
  for (std::uint32_t i = first; i < first + per_address_; ++i) {
    new (&blocks_[i]) PortBlock;
    blocks_[i].next = i + 1 < first + per_address_ ? i + 1 : kNone;
  }
  std::fill_n(bits_of(first, PortKind::tcp), std::size_t{per_address_} * kPortKinds * (options_.size / 64), 0);
  return place;
}

/// Moves a free block from its address's list to its new host's bucket.
void PortBlocks::begin_use(std::uint32_t block, const Subscriber& subscriber) noexcept {
  Address& address = addresses_[block / per_address_];
  std::uint32_t before = kNone;
  std::uint32_t* link = &address.first_free;
  while (*link != block) {
    before = *link;
    link = &blocks_[*link].next;
  }
  *link = blocks_[block].next;
  if (address.last_free == block) address.last_free = before;
  if (address.in_use++ == 0) ++usage_.addresses;
  std::uint32_t& bucket = bucket_of(subscriber_buckets_, subscriber.address);
  blocks_[block].subscriber = subscriber;
  blocks_[block].next = bucket;
  bucket = block;
  usage_.most_blocks = std::max(usage_.most_blocks, ++usage_.blocks);
}

std::uint32_t PortBlocks::take_again(const Subscriber& subscriber, const Ipv6Address& address,
                                     std::uint16_t port) noexcept {
  if (port < options_.first_port) return kNone;
  const std::uint32_t number = static_cast<std::uint32_t>(port - options_.first_port) / options_.size;
  if (number >= per_address_) return kNone;
  const std::lock_guard lock(mutex_);
  std::uint32_t paired = kNone;
  if (count_of(subscriber, nullptr, paired) >= options_.per_host) return kNone;
  std::uint32_t place = find_address(address, subscriber.ip_version);
  if (place == kNone) place = add_address(address, subscriber.ip_version);
  if (place == kNone) return kNone;
  const std::uint32_t block = place * per_address_ + number;
  std::uint32_t free = addresses_[place].first_free;
  while (free != kNone && free != block) free = blocks_[free].next;
  if (free == kNone) return kNone;
  begin_use(block, subscriber);
  return block;
}

void PortBlocks::tell_of(std::uint32_t block, std::uint64_t time_ns) noexcept {
  const std::lock_guard lock(mutex_);
  tell(BlockEvent::Kind::allocated, block, time_ns);
}

void PortBlocks::give_back(std::uint32_t block, std::uint64_t time_ns) noexcept {
  const std::lock_guard lock(mutex_);
  tell(BlockEvent::Kind::released, block, time_ns);
  std::uint32_t* link = &bucket_of(subscriber_buckets_, blocks_[block].subscriber.address);
  while (*link != block) link = &blocks_[*link].next;
  *link = blocks_[block].next;
  blocks_[block].next = kNone;
  blocks_[block].subscriber = {};
  Address& address = addresses_[block / per_address_];
  (address.first_free == kNone ? address.first_free : blocks_[address.last_free].next) = block;
  address.last_free = block;
  if (--address.in_use == 0) --usage_.addresses;
  --usage_.blocks;
}

void PortBlocks::tell(BlockEvent::Kind kind, std::uint32_t block, std::uint64_t time_ns) noexcept {
  ++(kind == BlockEvent::Kind::allocated ? usage_.allocated : usage_.released);
  // Workers may be at slightly different times. If the clock was set back, what follows must not have the time before
  // that until the clock gets there again.
  if (time_ns > last_time_ns_ || last_time_ns_ - time_ns > kMostBackNs) last_time_ns_ = time_ns;
  if (observer_ == nullptr) return;
  const std::uint16_t first = first_port_of(block);
  observer_->tell({.kind = kind,
                   .time_ns = last_time_ns_,
                   .subscriber = blocks_[block].subscriber,
                   .address = address_of(block),
                   .first_port = first,
                   .last_port = static_cast<std::uint16_t>(first + options_.size - 1)});
  is_told_.store(true, std::memory_order_relaxed);
}

void PortBlocks::flush_if_due() noexcept {
  if (!is_told_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && (observer_ == nullptr || observer_->flush_if_due()))
    is_told_.store(false, std::memory_order_relaxed);
}

PortBlocks::Usage PortBlocks::usage() const {
  const std::lock_guard lock(mutex_);
  return usage_;
}

void PortBlocks::end(std::uint64_t time_ns) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < known_addresses_ * per_address_; ++i) {
    if (blocks_[i].subscriber != Subscriber()) tell(BlockEvent::Kind::released, i, time_ns);
  }
  observer_.reset();
}

}  // namespace penstock::conntrack
