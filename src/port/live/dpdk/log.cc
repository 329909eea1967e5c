// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/log.h"

#include <rte_errno.h>
#include <rte_log.h>

#include <cstdlib>

namespace penstock::port::dpdk {

Log::Log() : stream_(::open_memstream(&text_, &size_)) { rte_openlog_stream(stream_); }

Log::~Log() {
  rte_openlog_stream(nullptr);  // the default
  if (stream_ != nullptr) std::fclose(stream_);
  std::free(text_);
}

std::string Log::text() const {
  if (stream_ == nullptr) return "";
  std::fflush(stream_);
  std::string lines(text_, size_);
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos;) lines.replace(at, 1, "; ");
  return lines;
}

std::string Log::reason(const std::string& what, int error) const {
  const std::string logged = text();
  return what + ": " + rte_strerror(error < 0 ? -error : error) + (logged.empty() ? "" : " (" + logged + ")");
}

}  // namespace penstock::port::dpdk
