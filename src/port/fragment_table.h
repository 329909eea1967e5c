// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which worker the fragments of a datagram go to: that of the whole packets of their flow.
//
//   first fragment ──▶ has the ports: the worker of its flow, which is kept for the datagram
//   later fragment ──▶ the worker that is kept; or waits for the first one, and then goes ahead of it
//
// A datagram may have first fragments of several flows, of which hosts took one: its fragments then go to the worker
// that decides about them, and copies of them to the workers of the other flows (RxStatus::copy). To that end fragments
// are kept for a while after they were given.
//
// Bounded whatever comes. The table is cut into small sets by a keyed hash of the addresses, so that the fragments of
// one pair of hosts take no place of most others'; frames that wait have memory of which a set may use a quarter. What
// is given up for room, or has waited for too long, goes to a worker by its addresses alone, and is counted. No frame
// is lost, and those of one datagram keep their order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "port/capture_reader.h"
#include "port/port.h"
#include "port/worker_key.h"

namespace penstock::port {

class FragmentTable {
 public:
  struct Limits {
    std::size_t sets = 64;                             // a power of two, of 128 datagrams each
    std::size_t waiting_bytes = std::size_t{8} << 20;  // of frames that wait
    std::uint64_t timeout_ns = 60'000'000'000;         // as the stack's reassembly by default
  };

  explicit FragmentTable(unsigned workers) : FragmentTable(workers, Limits()) {}
  FragmentTable(unsigned workers, const Limits& limits);
  ~FragmentTable();
  FragmentTable(const FragmentTable&) = delete;
  FragmentTable& operator=(const FragmentTable&) = delete;

  /// Calls `use(worker, frame)` for the frame, and for those that waited for it; or keeps a copy. `use`: bool(unsigned,
  /// const CapturedFrame&) noexcept; once it returns false, nothing more is given, and this returns false.
  template <typename Use>
  bool take(const WorkerKey& key, const Fragment& fragment, const CapturedFrame& frame, Use& use) noexcept {
    return take_to(key, fragment, frame, sink_of(use));
  }

  /// Whether a fragment has waited for too long by this time (of frames).
  [[nodiscard]] bool has_timed_out(std::uint64_t now_ns) const noexcept { return now_ns > give_up_at_ns_; }
  template <typename Use>
  bool give_up_old(std::uint64_t now_ns, Use& use) noexcept {
    return give_up_until(now_ns, sink_of(use));
  }
  /// Gives all that still waits.
  template <typename Use>
  bool give_up_all(Use& use) noexcept {
    return give_up_until(kNever, sink_of(use));
  }

  /// Any thread may ask.
  [[nodiscard]] FragmentCounts counts() const noexcept;

 private:
  struct Sink {
    void* callable;
    bool (*call)(void*, unsigned, const CapturedFrame&) noexcept;
    bool operator()(unsigned worker, const CapturedFrame& frame) const noexcept {
      return call(callable, worker, frame);
    }
  };
  template <typename Use>
  static Sink sink_of(Use& use) noexcept {
    static_assert(std::is_nothrow_invocable_r_v<bool, Use&, unsigned, const CapturedFrame&>);
    return {const_cast<void*>(static_cast<const void*>(&use)),
            [](void* callable, unsigned worker, const CapturedFrame& frame) noexcept {
              return (*static_cast<Use*>(callable))(worker, frame);
            }};
  }
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  bool take_to(const WorkerKey& key, const Fragment& fragment, const CapturedFrame& frame, Sink sink) noexcept;
  bool give_up_until(std::uint64_t now_ns, Sink sink) noexcept;

  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::uint64_t give_up_at_ns_ = kNever;  // frames of a later time end the wait of the oldest
};

}  // namespace penstock::port
