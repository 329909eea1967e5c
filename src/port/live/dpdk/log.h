// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What DPDK logs. It writes the reasons of errors nowhere else.

#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace penstock::port::dpdk {

/// Collects DPDK's log while it exists; one at a time. Before and after that, the log goes to standard error.
class Log {
 public:
  Log();
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// In one line.
  [[nodiscard]] std::string text() const;
  /// `what`, with the error's text and what has been logged. `error`: as DPDK returns it, of either sign.
  [[nodiscard]] std::string reason(const std::string& what, int error) const;

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

}  // namespace penstock::port::dpdk
