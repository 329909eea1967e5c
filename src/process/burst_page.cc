// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "process/burst_page.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace penstock::process {

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  constexpr timespec kLongest{0, 20'000'000};  // what a peer loses that does not wake
  static_cast<void>(::syscall(SYS_futex, &word, FUTEX_WAIT, value, &kLongest, nullptr, 0));
}

void wake(std::atomic<std::uint32_t>& word) noexcept {
  static_cast<void>(::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0));
}

}  // namespace penstock::process
