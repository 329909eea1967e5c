// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/subscriber_ports.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/keyed_hash.h"
#include "base/nanoseconds.h"
#include "packet/ip.h"

namespace penstock::conntrack {

namespace {

constexpr unsigned kWordBits = 64;

}  // namespace

SubscriberPorts::SubscriberPorts(std::shared_ptr<PortBlocks> blocks, std::uint32_t most_connections, std::uint64_t seed)
    : blocks_(std::move(blocks)),
      hold_ns_(blocks_->options().hold_s * kNsPerSecond),
      seed_(seed),
      random_ports_(seed),
      mapping_mask_(std::bit_ceil(most_connections) - 1),
      block_mask_(std::bit_ceil(blocks_->capacity()) - 1),
      mapping_of_(make_huge_memory<std::uint32_t>(most_connections)),
      // One more, which a connection tries while all others have one.
      mappings_(make_huge_memory<Mapping>(std::size_t{most_connections} + 1)),
      mapping_buckets_(make_huge_memory<std::uint32_t>(std::size_t{mapping_mask_} + 1)),
      block_buckets_(make_huge_memory<std::uint32_t>(std::size_t{block_mask_} + 1)) {
  std::fill_n(mapping_of_.get(), most_connections, kNone);
  std::fill_n(mapping_buckets_.get(), std::size_t{mapping_mask_} + 1, kNone);
  std::fill_n(block_buckets_.get(), std::size_t{block_mask_} + 1, kNone);
}

PortKind SubscriberPorts::kind_of(const Tuple& tuple) noexcept {
  if (is_icmp(tuple)) return PortKind::icmp;
  return tuple.protocol == ip_protocol::kUdp || tuple.protocol == ip_protocol::kUdpLite ? PortKind::udp : PortKind::tcp;
}

std::uint32_t& SubscriberPorts::mapping_bucket_of(const Tuple& tuple) noexcept {
  const std::uint64_t port = std::uint64_t{tuple.source_port} << 8 | tuple.protocol;
  return mapping_buckets_[mix_product(mix_product(tuple.source.low ^ seed_, tuple.source.high + seed_), port) &
                          mapping_mask_];
}

std::uint32_t& SubscriberPorts::block_bucket_of(const Subscriber& subscriber) noexcept {
  return block_buckets_[mix_product(subscriber.address.low ^ seed_, subscriber.address.high + seed_) & block_mask_];
}

bool SubscriberPorts::is_of(const Mapping& mapping, const Tuple& tuple) const noexcept {
  return mapping.inside == tuple.source && mapping.inside_port == tuple.source_port &&
         mapping.protocol == tuple.protocol && mapping.ip_version == tuple.ip_version;
}

bool SubscriberPorts::lies_in(std::uint32_t block, const NatRange& range) const noexcept {
  const Ipv6Address& address = blocks_->address_of(block);
  return address >= range.first_address && address <= range.last_address;
}

void SubscriberPorts::write(const Mapping& mapping, Tuple& tuple) const noexcept {
  tuple.source = blocks_->address_of(mapping.block);
  tuple.source_port = static_cast<std::uint16_t>(blocks_->first_port_of(mapping.block) + mapping.offset);
}

std::uint16_t SubscriberPorts::find_free(std::uint32_t block, PortKind kind, std::uint16_t start) noexcept {
  const std::uint64_t* const bits = blocks_->bits_of(block, kind);
  const unsigned words = blocks_->options().size / kWordBits;
  unsigned word = start / kWordBits;
  std::uint64_t free = ~bits[word] & (~std::uint64_t{0} << start % kWordBits);
  while (free == 0) {
    word = (word + 1) % words;
    free = ~bits[word];
  }
  return static_cast<std::uint16_t>(word * kWordBits + static_cast<unsigned>(std::countr_zero(free)));
}

std::uint32_t SubscriberPorts::add_mapping(const Tuple& own, std::uint32_t block, std::uint16_t offset) noexcept {
  const std::uint32_t index = free_mapping_ != kNone ? free_mapping_ : used_mappings_++;
  Mapping& mapping = mappings_[index];
  if (free_mapping_ != kNone) free_mapping_ = mapping.next;
  std::uint32_t& bucket = mapping_bucket_of(own);
  mapping = {.inside = own.source,
             .inside_port = own.source_port,
             .protocol = own.protocol,
             .ip_version = own.ip_version,
             .block = block,
             .offset = offset,
             .connections = 1,
             .next = bucket};
  bucket = index;
  const PortKind kind = kind_of(own);
  blocks_->bits_of(block, kind)[offset / kWordBits] |= std::uint64_t{1} << offset % kWordBits;
  PortBlock& its_block = blocks_->at(block);
  ++its_block.used[static_cast<unsigned>(kind)];
  if (its_block.ports_in_use++ == 0) end_idle(block);
  return index;
}

void SubscriberPorts::release(std::uint32_t connection) noexcept {
  const std::uint32_t mapping = std::exchange(mapping_of_[connection], kNone);
  if (mapping != kNone) release_mapping(mapping);
}

void SubscriberPorts::release_mapping(std::uint32_t index) noexcept {
  Mapping& mapping = mappings_[index];
  if (--mapping.connections != 0) return;
  const Tuple own{.source = mapping.inside,
                  .destination = {},
                  .source_port = mapping.inside_port,
                  .protocol = mapping.protocol,
                  .ip_version = mapping.ip_version};
  std::uint32_t* link = &mapping_bucket_of(own);
  while (*link != index) link = &mappings_[*link].next;
  *link = mapping.next;
  mapping.next = std::exchange(free_mapping_, index);
  const PortKind kind = kind_of(own);
  blocks_->bits_of(mapping.block, kind)[mapping.offset / kWordBits] &=
      ~(std::uint64_t{1} << mapping.offset % kWordBits);
  PortBlock& block = blocks_->at(mapping.block);
  --block.used[static_cast<unsigned>(kind)];
  if (--block.ports_in_use == 0) begin_idle(mapping.block);
}

void SubscriberPorts::add_block(std::uint32_t block) noexcept {
  PortBlock& added = blocks_->at(block);
  std::uint32_t& bucket = block_bucket_of(added.subscriber);
  added.next_owned = bucket;
  bucket = block;
  begin_idle(block);
}

void SubscriberPorts::begin_idle(std::uint32_t index) noexcept {
  PortBlock& block = blocks_->at(index);
  block.idle_since_ns = now_ns_;
  block.idle_next = kNone;
  block.idle_previous = last_idle_;
  (last_idle_ == kNone ? first_idle_ : blocks_->at(last_idle_).idle_next) = index;
  last_idle_ = index;
}

void SubscriberPorts::end_idle(std::uint32_t index) noexcept {
  const PortBlock& block = blocks_->at(index);
  (block.idle_previous == kNone ? first_idle_ : blocks_->at(block.idle_previous).idle_next) = block.idle_next;
  (block.idle_next == kNone ? last_idle_ : blocks_->at(block.idle_next).idle_previous) = block.idle_previous;
}

bool SubscriberPorts::restore(std::uint32_t connection, const Tuple& own, const Tuple& translated) noexcept {
  if (!is_icmp(own) && !begins_with_ports(own.protocol)) return false;
  const Subscriber subscriber{own.source, own.ip_version};
  const std::uint16_t size = blocks_->options().size;
  const auto has_port = [&](std::uint32_t block) {
    return blocks_->address_of(block) == translated.source && translated.source_port >= blocks_->first_port_of(block) &&
           translated.source_port - blocks_->first_port_of(block) < size;
  };
  std::uint32_t block = block_bucket_of(subscriber);
  while (block != kNone && (blocks_->at(block).subscriber != subscriber || !has_port(block)))
    block = blocks_->at(block).next_owned;
  if (block == kNone) {
    block = blocks_->take_again(subscriber, translated.source, translated.source_port);
    if (block == kNone) return false;
    has_restored_ = true;
    add_block(block);
  }
  const auto offset = static_cast<std::uint16_t>(translated.source_port - blocks_->first_port_of(block));
  for (std::uint32_t i = mapping_bucket_of(own); i != kNone; i = mappings_[i].next) {
    if (!is_of(mappings_[i], own) || mappings_[i].block != block || mappings_[i].offset != offset) continue;
    ++mappings_[i].connections;
    mapping_of_[connection] = i;
    return true;
  }
  const std::uint64_t word = blocks_->bits_of(block, kind_of(own))[offset / kWordBits];
  if ((word >> offset % kWordBits & 1) != 0) return false;  // another socket's
  mapping_of_[connection] = add_mapping(own, block, offset);
  return true;
}

void SubscriberPorts::expire() noexcept {
  constexpr unsigned kMost = 16;
  if (has_restored_) tell_of_restored();
  for (unsigned i = 0; i < kMost && first_idle_ != kNone; ++i) {
    const std::uint32_t index = first_idle_;
    PortBlock& block = blocks_->at(index);
    if (now_ns_ - block.idle_since_ns < hold_ns_) break;
    end_idle(index);
    std::uint32_t* link = &block_bucket_of(block.subscriber);
    while (*link != index) link = &blocks_->at(*link).next_owned;
    *link = block.next_owned;
    blocks_->give_back(index, packet_time_ns_);
  }
  blocks_->flush_if_due();
}

/// The time is known now: that of the first packet.
void SubscriberPorts::tell_of_restored() noexcept {
  has_restored_ = false;
  for (std::uint32_t bucket = 0; bucket <= block_mask_; ++bucket) {
    for (std::uint32_t i = block_buckets_[bucket]; i != kNone; i = blocks_->at(i).next_owned)
      blocks_->tell_of(i, packet_time_ns_);
  }
}

}  // namespace penstock::conntrack
