// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// As in the stack's reassembly (stack/ip_reassembly.cc), a datagram is complete once all its bytes were seen, and ends
// after the timeout without fragments. Later fragments with the same identification belong to a new datagram, perhaps
// of another flow. In an attack, they may also be a further part of the same one, so they go to the same worker until a
// first fragment names another.

#include "port/fragment_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <boost/intrusive/list.hpp>
#include <vector>

#include "base/counter.h"
#include "base/keyed_hash.h"
#include "packet/ip.h"
#include "port/frame_shelf.h"

namespace penstock::port {

namespace {

constexpr std::size_t kWays = 128;         // datagrams per set. Linux accepts 64 per pair of hosts at a time
constexpr std::size_t kMostData = 0xffff;  // payload bytes of a datagram

using Workers = std::bitset<256>;
namespace intrusive = boost::intrusive;
using Links = intrusive::list_member_hook<intrusive::link_mode<intrusive::normal_link>>;

struct Datagram {
  enum class State : std::uint8_t { none, waiting, decided };

  DatagramKey key;
  std::uint64_t last_ns = 0;
  std::uint64_t last_use = 0;
  Links waiting;               // in the queue of datagrams with waiting frames
  Links kept;                  // in the queue of datagrams with delivered frames
  FrameShelf::List frames;     // frames that wait
  FrameShelf::List delivered;  // frames that were delivered to a worker, as far as there is room
  Workers others;              // workers that have copies of these
  std::uint32_t end = 0;       // end of the highest byte seen
  std::uint32_t whole_units = 0;
  std::uint16_t worker = 0;
  State state = State::none;
  bool has_worker = false;  // while waiting: the worker of the previous datagram with the same key
  bool has_first = false;   // a first fragment has identified the flow
  bool last_seen = false;   // the last fragment has been seen

  /// The last unit of 8 bytes may be incomplete.
  [[nodiscard]] bool complete() const noexcept { return last_seen && whole_units == end / 8; }
};

/// Ordered from the oldest to the newest; no datagram is in it twice.
template <Links Datagram::*links>
using Queue =
    intrusive::list<Datagram, intrusive::member_hook<Datagram, Links, links>, intrusive::constant_time_size<false>>;

}  // namespace

struct FragmentTable::Parts {
  Parts(unsigned worker_count, const Limits& table_limits)
      : workers(worker_count),
        limits(table_limits),
        datagrams(table_limits.sets * kWays),
        seen_units(std::make_unique_for_overwrite<std::array<std::uint64_t, 128>[]>(table_limits.sets * kWays)),
        set_blocks(table_limits.sets),
        shelf(table_limits.waiting_bytes) {
    payload.reserve(kMostData + 1);
  }

  // ---- the table: sets by address hash; the datagrams within a set are unordered

  [[nodiscard]] std::size_t set_of(const DatagramKey& key) const noexcept {
    std::uint64_t hash = seed;
    for (const std::uint64_t word : {key.source.high, key.source.low, key.destination.high, key.destination.low}) {
      hash = mix_product(hash, word);
    }
    return hash & (limits.sets - 1);
  }
  [[nodiscard]] std::size_t index_of(const Datagram& datagram) const noexcept {
    return static_cast<std::size_t>(&datagram - datagrams.data());
  }
  [[nodiscard]] std::span<Datagram> set(std::size_t number) noexcept {
    return std::span(datagrams).subspan(number * kWays, kWays);
  }
  [[nodiscard]] std::uint32_t& blocks_of_set(const Datagram& datagram) noexcept {
    return set_blocks[index_of(datagram) / kWays];
  }

  Datagram* find(const DatagramKey& key) noexcept {
    const std::span<Datagram> ways = set(set_of(key));
    const auto it =
        std::ranges::find_if(ways, [&](const Datagram& d) { return d.state != Datagram::State::none && d.key == key; });
    return it == ways.end() ? nullptr : &*it;
  }
  /// A free entry, or the least recently used one.
  Datagram& victim(const DatagramKey& key) noexcept {
    return *std::ranges::min_element(
        set(set_of(key)), {}, [](const Datagram& d) { return d.state == Datagram::State::none ? 0 : d.last_use; });
  }
  void begin(Datagram& datagram) noexcept {
    datagram.end = datagram.whole_units = 0;
    datagram.last_seen = datagram.has_first = false;
    if (!datagram.has_worker) datagram.state = Datagram::State::waiting;
    seen_units[index_of(datagram)].fill(0);
  }

  /// Tracks the bytes seen as the stack's reassembly does, ignoring those that no valid datagram can have.
  void note_seen(Datagram& datagram, const Fragment& fragment) noexcept {
    const std::size_t end = fragment.offset + fragment.data.size();
    const std::size_t header = fragment.key.ip_version == 4 ? sizeof(Ipv4Header) : 0;
    if (fragment.data.empty() || header + end > kMostData) return;
    auto& units = seen_units[index_of(datagram)];
    for (std::size_t unit = fragment.offset / 8; unit < end / 8; ++unit) {
      const std::uint64_t bit = std::uint64_t{1} << unit % 64;
      if ((units[unit / 64] & bit) == 0) ++datagram.whole_units;
      units[unit / 64] |= bit;
    }
    datagram.end = std::max(datagram.end, static_cast<std::uint32_t>(end));
    datagram.last_seen = datagram.last_seen || !fragment.more;
  }

  /// Delivers the waiting fragments to the worker that all further ones will go to. Earlier fragments with the same key
  /// may also belong to its datagram.
  bool decide(Datagram& datagram, unsigned worker, Sink sink) noexcept {
    if (datagram.has_worker && datagram.worker != worker) {
      if (!copy_delivered_to(datagram, worker, sink)) return false;
      datagram.others.set(datagram.worker);
      datagram.others.reset(worker);
    }
    datagram.worker = static_cast<std::uint16_t>(worker);
    datagram.state = Datagram::State::decided;
    datagram.has_worker = true;
    if (datagram.frames.frames == 0) return true;
    waiting.erase(waiting.iterator_to(datagram));
    const bool goes_on = shelf.for_each(datagram.frames, [&](const CapturedFrame& frame) {
      return sink(worker, frame) && copy_to_others(datagram, frame, sink);
    });
    note_delivered(datagram);
    shelf.append(datagram.delivered, datagram.frames);
    return goes_on;
  }

  // ---- delivered fragments: later first fragments may name other flows, and it is unknown which one hosts accept

  bool copy_to(unsigned worker, const CapturedFrame& frame, Sink sink) noexcept {
    CapturedFrame copy = frame;
    copy.copy = true;
    copied.add(1);
    return sink(worker, copy);
  }
  bool copy_to_others(const Datagram& datagram, const CapturedFrame& frame, Sink sink) noexcept {
    for (std::size_t worker = datagram.others._Find_first(); worker < datagram.others.size();
         worker = datagram.others._Find_next(worker)) {
      if (!copy_to(static_cast<unsigned>(worker), frame, sink)) return false;
    }
    return true;
  }
  bool copy_delivered_to(Datagram& datagram, unsigned worker, Sink sink) noexcept {
    if (datagram.others[worker]) return true;  // has them already
    datagram.others.set(worker);
    return shelf.for_each(datagram.delivered, [&](const CapturedFrame& frame) { return copy_to(worker, frame, sink); });
  }
  /// The datagram is going to have delivered frames: makes it the newest in the queue.
  void note_delivered(Datagram& datagram) noexcept {
    if (datagram.delivered.frames > 0) kept.erase(kept.iterator_to(datagram));
    kept.push_back(datagram);
  }
  /// Delivers to the datagram's worker, and copies to the workers of other flows that its fragments have named.
  bool deliver(Datagram& datagram, const CapturedFrame& frame, Sink sink) noexcept {
    if (!sink(datagram.worker, frame) || !copy_to_others(datagram, frame, sink)) return false;
    keep_delivered(datagram, frame);
    return true;
  }
  /// A first fragment that names a flow of another worker. That worker decides its verdict, and gets the earlier
  /// fragments.
  bool deliver_first_of_another(Datagram& datagram, unsigned named, const CapturedFrame& frame, Sink sink) noexcept {
    ambiguous.add(1);
    if (!copy_delivered_to(datagram, named, sink) || !sink(named, frame) || !copy_to(datagram.worker, frame, sink)) {
      return false;
    }
    datagram.others.reset(named);
    const bool goes_on = copy_to_others(datagram, frame, sink);
    datagram.others.set(named);
    keep_delivered(datagram, frame);
    return goes_on;
  }
  /// Keeps a delivered frame, without displacing any frame that waits.
  void keep_delivered(Datagram& datagram, const CapturedFrame& frame) noexcept {
    const std::uint32_t blocks = FrameShelf::blocks_for(frame.bytes.size());
    const std::span<Datagram> ways = set(index_of(datagram) / kWays);
    const std::uint32_t most = shelf.blocks() / 4;
    if (frame.bytes.size() > FrameShelf::kLongestFrame) return;
    while (blocks_of_set(datagram) + blocks > most || shelf.blocks_left() < blocks) {
      const bool in_set = blocks_of_set(datagram) + blocks > most;
      if (!(in_set ? forget_delivered(ways) : forget_oldest_delivered())) return;
    }
    note_delivered(datagram);
    shelf.put(datagram.delivered, frame);
    blocks_of_set(datagram) += blocks;
  }
  /// Forgets those of the least recently used datagram. False if there are none.
  bool forget_delivered(std::span<Datagram> among) noexcept {
    Datagram* first = nullptr;
    for (Datagram& other : among) {
      if (other.delivered.frames > 0 && (first == nullptr || other.last_use < first->last_use)) first = &other;
    }
    if (first == nullptr) return false;
    forget_delivered(*first);
    return true;
  }
  bool forget_oldest_delivered() noexcept {
    if (kept.empty()) return false;
    forget_delivered(kept.front());
    return true;
  }
  void forget_delivered(Datagram& datagram) noexcept {
    if (datagram.delivered.frames > 0) kept.erase(kept.iterator_to(datagram));
    blocks_of_set(datagram) -= datagram.delivered.blocks;
    shelf.clear(datagram.delivered);
    datagram.others.reset();
  }
  /// Some fragments of the datagram may have been dropped and may be sent again. Those go to a worker that knows about
  /// it.
  bool give_up(Datagram& datagram, Sink sink) noexcept {
    not_followed.add(datagram.frames.frames);
    return decide(datagram,
                  datagram.has_worker ? datagram.worker : worker_of_hash(address_hash_of(datagram.key), workers), sink);
  }

  /// Makes room by evicting the oldest datagrams, first those of the same set. False if this datagram itself would have
  /// to be evicted.
  bool has_room(Datagram& datagram, std::uint32_t blocks, Sink sink, bool& goes_on) noexcept {
    const std::uint32_t most = shelf.blocks() / 4;
    const std::span<Datagram> ways = set(index_of(datagram) / kWays);
    while (goes_on && blocks_of_set(datagram) + blocks > most) {
      if (forget_delivered(ways)) continue;
      Datagram* first = nullptr;
      for (Datagram& other : ways) {
        const bool waits = &other != &datagram && other.frames.frames > 0;
        if (waits && (first == nullptr || other.last_use < first->last_use)) first = &other;
      }
      if (first == nullptr) return false;
      goes_on = give_up(*first, sink);
    }
    while (goes_on && shelf.blocks_left() < blocks) {
      if (forget_oldest_delivered()) continue;
      auto first = waiting.begin();
      if (first != waiting.end() && &*first == &datagram) ++first;
      if (first == waiting.end()) return false;
      goes_on = give_up(*first, sink);
    }
    return goes_on;
  }

  bool keep(Datagram& datagram, const CapturedFrame& frame, Sink sink) noexcept {
    bool goes_on = true;
    const std::uint32_t blocks = FrameShelf::blocks_for(frame.bytes.size());
    if (frame.bytes.size() > FrameShelf::kLongestFrame || !has_room(datagram, blocks, sink, goes_on)) {
      if (!goes_on) return false;
      not_followed.add(1);
      return give_up(datagram, sink) && deliver(datagram, frame, sink);
    }
    if (datagram.frames.frames > 0) waiting.erase(waiting.iterator_to(datagram));
    waiting.push_back(datagram);
    shelf.put(datagram.frames, frame);
    blocks_of_set(datagram) += blocks;
    waited.add(1);
    if (!datagram.complete()) return true;
    return decide(datagram, worker_of_hash(hash_of_whole(datagram), workers), sink);
  }

  /// The hash of a datagram whose fragments are all waiting, since its first fragment alone does not identify the flow.
  /// If bytes overlap, those that came first count.
  std::uint32_t hash_of_whole(const Datagram& datagram) noexcept {
    payload.assign(datagram.end, 0);
    has_byte.reset();
    Fragment fragment, first;
    shelf.for_each(datagram.frames, [&](const CapturedFrame& frame) {
      static_cast<void>(worker_key_of(frame.bytes, frame.wire_length, frame.link_type, fragment));
      if (fragment.offset == 0 && first.key.ip_version == 0) first = fragment;
      for (std::size_t i = 0; i < fragment.data.size() && fragment.offset + i < payload.size(); ++i) {
        const std::size_t at = fragment.offset + i;
        if (has_byte[at]) continue;
        has_byte.set(at);
        payload[at] = fragment.data[i];
      }
      return true;
    });
    return flow_hash_of(first, payload).value_or(address_hash_of(datagram.key));
  }

  bool take(const WorkerKey& key, const Fragment& fragment, const CapturedFrame& frame, Sink sink) noexcept {
    fragments.add(1);
    Datagram* datagram = find(fragment.key);
    if (fragment.wrong_checksum) {  // hosts discard it, so it must not redirect the others
      const bool is_known = datagram != nullptr && datagram->has_worker;
      return sink(is_known ? datagram->worker : worker_of_hash(address_hash_of(fragment.key), workers), frame);
    }
    if (datagram == nullptr) {
      datagram = &victim(fragment.key);
      if (datagram->frames.frames > 0 && !give_up(*datagram, sink)) return false;
      forget_delivered(*datagram);
      datagram->key = fragment.key;
      datagram->has_worker = false;
      begin(*datagram);
    } else if (frame.timestamp_ns > datagram->last_ns && frame.timestamp_ns - datagram->last_ns > limits.timeout_ns) {
      if (datagram->frames.frames > 0 && !give_up(*datagram, sink)) return false;
      forget_delivered(*datagram);
      datagram->has_worker = false;
      begin(*datagram);
    } else if (datagram->complete()) {
      begin(*datagram);
    }
    datagram->last_ns = frame.timestamp_ns;
    datagram->last_use = ++uses;
    note_seen(*datagram, fragment);
    const unsigned named = worker_of_hash(key.hash, workers);
    if (datagram->state != Datagram::State::decided) {
      if (!key.tells_flow) return keep(*datagram, frame, sink);
      if (!decide(*datagram, named, sink)) return false;
    } else if (key.tells_flow && named != datagram->worker) {
      if (datagram->has_first) return deliver_first_of_another(*datagram, named, frame, sink);
      if (!decide(*datagram, named, sink)) return false;
    }
    datagram->has_first = datagram->has_first || key.tells_flow;
    return deliver(*datagram, frame, sink);
  }

  [[nodiscard]] std::uint64_t give_up_at_ns() const noexcept {
    if (waiting.empty()) return kNever;
    const std::uint64_t last_ns = waiting.front().last_ns;
    return last_ns > kNever - limits.timeout_ns ? kNever : last_ns + limits.timeout_ns;
  }

  const unsigned workers;
  const Limits limits;
  const std::uint64_t seed = random_seed();
  std::vector<Datagram> datagrams;
  std::unique_ptr<std::array<std::uint64_t, 128>[]> seen_units;  // one bit per 8 bytes, for each datagram
  std::vector<std::uint32_t> set_blocks;                         // blocks used by each set
  FrameShelf shelf;
  Queue<&Datagram::waiting> waiting;
  Queue<&Datagram::kept> kept;
  std::uint64_t uses = 0;
  std::vector<std::uint8_t> payload;  // scratch, like the next member
  std::bitset<kMostData + 1> has_byte;
  Counter fragments, waited, not_followed, ambiguous, copied;
};

FragmentTable::FragmentTable(unsigned workers, const Limits& limits)
    : parts_(std::make_unique<Parts>(workers, limits)) {}
FragmentTable::~FragmentTable() = default;

bool FragmentTable::take_to(const WorkerKey& key, const Fragment& fragment, const CapturedFrame& frame,
                            Sink sink) noexcept {
  const bool goes_on = parts_->take(key, fragment, frame, sink);
  give_up_at_ns_ = parts_->give_up_at_ns();
  return goes_on;
}

bool FragmentTable::give_up_until(std::uint64_t now_ns, Sink sink) noexcept {
  bool goes_on = true;
  while (goes_on && !parts_->waiting.empty() && (now_ns == kNever || now_ns > parts_->give_up_at_ns())) {
    goes_on = parts_->give_up(parts_->waiting.front(), sink);
  }
  give_up_at_ns_ = parts_->give_up_at_ns();
  return goes_on;
}

FragmentCounts FragmentTable::counts() const noexcept {
  return {parts_->fragments.get(), parts_->waited.get(), parts_->not_followed.get(), parts_->ambiguous.get(),
          parts_->copied.get()};
}

}  // namespace penstock::port
