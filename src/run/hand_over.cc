// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/hand_over.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <span>

namespace penstock::run {

namespace {

/// As those of an interface's frames (port/live/exchange.h), but never more than a GiB for all, of which only what has
/// been used takes memory.
std::size_t ring_bytes_for(unsigned workers) {
  constexpr std::size_t kMost = std::size_t{1} << 20, kLeast = std::size_t{1} << 18, kAll = std::size_t{1} << 30;
  return std::clamp(kAll / (std::size_t{workers} * workers), kLeast, kMost);
}

/// The mark of packets that come by an inbox.
constexpr std::uint32_t kGiven = 1;

/// Precedes each frame in a ring.
struct RingHeader {
  std::uint64_t timestamp_ns;
  std::uint32_t wire_length;
  std::uint32_t number;
  PortIndex in_port;
  LinkType link_type;
};

}  // namespace

class HandOver::Inbox final : public port::RxQueue {
 public:
  Inbox(HandOver& of, unsigned here) : of_(of), here_(here) {}

  port::RxStatus poll(Batch& batch) noexcept override {
    of_.rings_.clear_signal(here_);
    const unsigned workers = of_.rings_.workers();
    for (unsigned turn = 0; turn < workers; ++turn) {
      const unsigned from = (next_ + turn) % workers;
      port::SpscByteRing& ring = of_.rings_.ring(from, here_);
      for (std::span<const std::uint8_t> record = ring.front(); !record.empty(); record = ring.front()) {
        RingHeader header;
        std::memcpy(&header, record.data(), sizeof header);
        if (!batch.append(record.subspan(sizeof header),
                          {header.timestamp_ns, header.wire_length, header.in_port, header.link_type, header.number})) {
          assert(!batch.empty());  // it was in a batch of the same size
          next_ = (from + 1) % workers;
          return port::RxStatus::more;
        }
        batch.packets().back().mark = kGiven;
        ring.pop();
        ++of_.parts_[here_]->taken;
      }
    }
    next_ = (next_ + 1) % workers;
    return port::RxStatus::idle;
  }

  bool add_wake_ups(std::vector<pollfd>& to) noexcept override {
    to.push_back({of_.rings_.wait_fd(here_), POLLIN, 0});
    return true;
  }

 private:
  HandOver& of_;
  const unsigned here_;
  unsigned next_ = 0;  // the worker whose ring is looked at first
};

HandOver::HandOver(unsigned workers, std::uint32_t most_connections)
    : owners_(std::make_shared<conntrack::TupleOwners>(2 * std::uint64_t{most_connections} * workers)),
      rings_(workers, ring_bytes_for(workers)) {
  for (unsigned worker = 0; worker < workers; ++worker) {
    parts_.push_back(std::make_unique<Part>());
    inboxes_.push_back(std::make_unique<Inbox>(*this, worker));
  }
}

HandOver::~HandOver() = default;

port::RxQueue& HandOver::inbox(unsigned here) noexcept { return *inboxes_[here]; }

bool HandOver::give(unsigned here, unsigned owner, PacketView packet) noexcept {
  port::SpscByteRing& ring = rings_.ring(here, owner);
  const PacketDescriptor& descriptor = *packet.packet;
  const std::size_t length = sizeof(RingHeader) + descriptor.length;
  std::uint8_t* const record = length > ring.longest_record() ? nullptr : ring.begin_write(length);
  if (record == nullptr) return false;
  const RingHeader header{descriptor.timestamp_ns, descriptor.wire_length, descriptor.number, descriptor.in_port,
                          descriptor.link_type};
  std::memcpy(record, &header, sizeof header);
  std::memcpy(record + sizeof header, packet.frame, descriptor.length);
  Part& part = *parts_[here];
  part.given.store(part.given.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  ring.end_write();
  rings_.has_written(here, owner);
  return true;
}

/// A worker counts what it has taken as done only once it has given away what had to go on from there. So if all that
/// was given before is done, nothing is on its way; and nothing new comes, since the ports have ended.
bool HandOver::is_over(unsigned here) noexcept {
  Part& own = *parts_[here];
  own.done.store(own.taken);
  own.has_ended.store(true);
  for (const auto& part : parts_) {
    if (!part->has_ended.load()) return false;
  }
  // In this order: what is given meanwhile must not be left out.
  std::uint64_t done = 0, given = 0;
  for (const auto& part : parts_) done += part->done.load();
  for (const auto& part : parts_) given += part->given.load();
  return done == given;
}

namespace {

const function::NfTraits* first_that_shares(const Chain& chain) {
  if (chain.settings.workers == 1) return nullptr;
  for (const NamedFunction& named : chain.functions) {
    const function::NfTraits& traits = named.function->traits();
    if (traits.shares_connections && traits.connections) return &traits;
  }
  return nullptr;
}

}  // namespace

bool hands_over(const Chain& chain) { return first_that_shares(chain) != nullptr; }

std::unique_ptr<HandOver> make_hand_over(const Chain& chain) {
  const function::NfTraits* const traits = first_that_shares(chain);
  if (traits == nullptr) return nullptr;
  return std::make_unique<HandOver>(chain.settings.workers, traits->connections->most_connections);
}

}  // namespace penstock::run
