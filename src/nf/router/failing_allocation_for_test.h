// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: simulates running out of memory. Replaces operator new in the test program
// (failing_allocation_for_test.cc).

#pragma once

namespace penstock::router {

/// While it exists, this thread's allocations after the next `allowed` ones throw std::bad_alloc.
class FailingAllocation {
 public:
  explicit FailingAllocation(int allowed) noexcept;
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  ~FailingAllocation();
  /// Whether an allocation has failed.
  [[nodiscard]] bool happened() const noexcept;
};

}  // namespace penstock::router
