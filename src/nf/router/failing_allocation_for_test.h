// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: memory that runs out. Replaces the operator new of the test's program (failing_allocation_for_test.cc).

#pragma once

namespace penstock::router {

/// For as long as it lives, this thread's allocations after the next `allowed` ones throw std::bad_alloc.
class FailingAllocation {
 public:
  explicit FailingAllocation(int allowed) noexcept;
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  ~FailingAllocation();
  /// Whether one has thrown.
  [[nodiscard]] bool happened() const noexcept;
};

}  // namespace penstock::router
