// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// IP reassembly as the policies' definitions have it, byte by byte and with no thought of speed: an oracle.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stack/tracker_options.h"

namespace penstock::stack::testing {

struct NaiveFragment {
  std::uint32_t begin = 0;
  std::string data;
  bool more = false;
  [[nodiscard]] std::uint32_t end() const { return begin + static_cast<std::uint32_t>(data.size()); }
};

inline bool naive_keeps_earlier(OverlapPolicy policy, const NaiveFragment& earlier, const NaiveFragment& later) {
  switch (policy) {
    case OverlapPolicy::first: return true;
    case OverlapPolicy::last: return false;
    case OverlapPolicy::bsd: return earlier.begin <= later.begin;
    case OverlapPolicy::bsd_right: return earlier.begin > later.begin;
    case OverlapPolicy::linux_host: break;  // see NaiveLinux
    case OverlapPolicy::windows: return later.begin >= earlier.begin || later.end() <= earlier.end();
    case OverlapPolicy::solaris: return later.begin >= earlier.begin || later.end() < earlier.end();
  }
  return true;
}

/// The data, once all before the end of any fragment was seen, and a last one.
inline std::optional<std::string> naive_reassembly(OverlapPolicy policy, const std::vector<NaiveFragment>& fragments) {
  std::uint32_t end = 0;
  std::optional<std::uint32_t> last_begin;
  for (const NaiveFragment& f : fragments) {
    end = std::max(end, f.end());
    if (!f.more) last_begin = std::min(last_begin.value_or(f.begin), f.begin);
  }
  if (!last_begin) return std::nullopt;
  std::uint32_t kept_end = 0;
  for (const NaiveFragment& f : fragments) {
    if (f.begin <= *last_begin) kept_end = std::max(kept_end, f.end());
  }
  std::string whole;
  for (std::uint32_t at = 0; at < end; ++at) {
    const NaiveFragment* owner = nullptr;
    bool seen = false;
    for (const NaiveFragment& f : fragments) {
      if (at < f.begin || at >= f.end()) continue;
      seen = true;
      if (f.begin > *last_begin) continue;
      if (owner == nullptr || !naive_keeps_earlier(policy, *owner, f)) owner = &f;
    }
    if (!seen) return std::nullopt;
    if (at < kept_end) whole += owner->data[at - owner->begin];
  }
  return whole;
}

/// As Linux has it since 4.20 (net/ipv4/inet_fragment.c): a fragment that lies in a run of those that were appended one
/// after the other is ignored; another one that overlaps discards them all.
class NaiveLinux {
 public:
  /// The datagram, once it is whole: then nothing of it is left.
  std::optional<std::string> add(NaiveFragment fragment) {
    if (fragment.more) fragment.data.resize(fragment.data.size() / 8 * 8);
    if (fragment.data.empty()) return std::nullopt;
    for (const Run& run : runs_) {
      if (fragment.end() <= run.begin || fragment.begin >= run.end) continue;
      if (fragment.begin >= run.begin && fragment.end() <= run.end) return std::nullopt;
      *this = {};
      return std::nullopt;
    }
    const bool appended = !runs_.empty() && fragment.begin == runs_.back().end && fragment.begin >= end_;
    if (appended) {
      runs_.back().end = fragment.end();
    } else {
      runs_.push_back({fragment.begin, fragment.end()});
    }
    end_ = std::max(end_, fragment.end());
    if (!fragment.more) length_ = fragment.end();
    bytes_ += static_cast<std::uint32_t>(fragment.data.size());
    if (data_.size() < end_) data_.resize(end_);
    std::copy(fragment.data.begin(), fragment.data.end(), data_.begin() + fragment.begin);
    if (!length_ || bytes_ != end_ || end_ != *length_) return std::nullopt;
    std::string whole = data_;
    *this = {};
    return whole;
  }
  /// Whether a fragment contradicts what another said of the datagram's end: hosts differ in what they do then.
  [[nodiscard]] bool ends_elsewhere(const NaiveFragment& fragment) const {
    return fragment.more ? length_ && fragment.end() > *length_
                         : (length_ && *length_ != fragment.end()) || fragment.end() < end_;
  }

 private:
  struct Run {
    std::uint32_t begin, end;
  };
  std::vector<Run> runs_;
  std::uint32_t end_ = 0, bytes_ = 0;
  std::optional<std::uint32_t> length_;
  std::string data_;
};

}  // namespace penstock::stack::testing
