// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the calling thread runs, and on which NUMA node its new memory lies. Threads inherit both from the thread that
// creates them. System calls only, without libnuma: three calls are all that is needed.

#pragma once

#include <optional>

#include "base/cpu_list.h"

namespace penstock {

/// Binds the calling thread to these CPUs. Returns 0 or the errno.
[[nodiscard]] int bind_this_thread(const CpuList& cpus);
/// Where the calling thread may run; empty if unknown.
[[nodiscard]] CpuList cpus_of_this_thread();

/// Binds the thread that constructs it to these CPUs until it is destroyed, in the same thread. Without CPUs it does
/// nothing.
class ThreadOnCpus {
 public:
  explicit ThreadOnCpus(const CpuList& cpus);
  ThreadOnCpus(const ThreadOnCpus&) = delete;
  ThreadOnCpus& operator=(const ThreadOnCpus&) = delete;
  ~ThreadOnCpus();
  /// 0, or why the thread could not be bound.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  CpuList before_;  // empty: nothing to restore
  int error_ = 0;
};

/// Until it is destroyed, in the same thread, memory that this thread touches first is allocated on this NUMA node as
/// long as there is room, pinned memory included. Without a node it does nothing. Nor does it replace a policy that the
/// user has set (numactl).
class ThreadMemoryOnNode {
 public:
  explicit ThreadMemoryOnNode(std::optional<unsigned> node);
  ThreadMemoryOnNode(const ThreadMemoryOnNode&) = delete;
  ThreadMemoryOnNode& operator=(const ThreadMemoryOnNode&) = delete;
  ~ThreadMemoryOnNode();
  /// 0, or why the system refused: EPERM in containers whose seccomp profile forbids it, such as Docker's default.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  bool changed_ = false;
  int error_ = 0;
};

}  // namespace penstock
