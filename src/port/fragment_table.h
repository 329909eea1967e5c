// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Determines the worker for the fragments of each datagram: that of the unfragmented packets of their flow.
//
//   first fragment ──▶ has the ports: goes to the worker of its flow, which is stored for the datagram
//   later fragment ──▶ goes to the stored worker; or waits for the first one, and is then delivered ahead of it
//
// A datagram may have first fragments of several flows, and it is unknown which one the receiving host accepts. Its
// fragments then go to the worker that decides their verdict, and copies go to the workers of the other flows
// (RxStatus::copy). So fragments are kept for a while after they were delivered.
//
// Memory is bounded. A keyed hash of the addresses divides the table into small sets, so that a pair of hosts can only
// displace datagrams in its own set. A set may use a quarter of the memory for frames. Fragments that are evicted, or
// have waited for too long, are assigned to a worker by their addresses alone, and are counted. No frame is lost, and
// the frames of one datagram keep their order.

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
    std::size_t sets = 64;                             // a power of two; each set has 128 datagrams
    std::size_t waiting_bytes = std::size_t{8} << 20;  // for frames that wait or were delivered recently
    std::uint64_t timeout_ns = 60'000'000'000;         // the default of the stack's IP reassembly
  };

  explicit FragmentTable(unsigned workers) : FragmentTable(workers, Limits()) {}
  FragmentTable(unsigned workers, const Limits& limits);
  ~FragmentTable();
  FragmentTable(const FragmentTable&) = delete;
  FragmentTable& operator=(const FragmentTable&) = delete;

  /// Calls `use(worker, frame)` for the fragments that waited for this frame and for the frame itself, or keeps a copy
  /// of it. `use` is `bool(unsigned, const CapturedFrame&) noexcept`. If it returns false, nothing more is delivered,
  /// and this returns false.
  template <typename Use>
  bool take(const WorkerKey& key, const Fragment& fragment, const CapturedFrame& frame, Use& use) noexcept {
    return take_to(key, fragment, frame, sink_of(use));
  }

  /// Whether a fragment has waited for too long at `now_ns`, which is a time of the input's frames.
  [[nodiscard]] bool has_timed_out(std::uint64_t now_ns) const noexcept { return now_ns > give_up_at_ns_; }
  template <typename Use>
  bool give_up_old(std::uint64_t now_ns, Use& use) noexcept {
    return give_up_until(now_ns, sink_of(use));
  }
  /// Delivers all fragments that still wait.
  template <typename Use>
  bool give_up_all(Use& use) noexcept {
    return give_up_until(kNever, sink_of(use));
  }

  /// Thread-safe.
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
  std::uint64_t give_up_at_ns_ = kNever;  // frames with a later time end the wait of the oldest datagram
};

}  // namespace penstock::port
