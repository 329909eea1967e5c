// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/tcp_session.h"

#include <algorithm>

namespace penstock::stack {

std::uint64_t TcpSession::received(const TcpStream& stream) const noexcept {
  if (state_ == TcpState::closed) return stream.buffer.right_edge();
  return std::min(stream.acked(), stream.buffer.right_edge());
}

void TcpSession::inspect_to(Direction direction, bool to_end, void* callable, Use use) {
  TcpStream& stream = streams_[static_cast<std::size_t>(direction)];
  if (inline_ && !to_end) {
    if (!has_news(stream)) return;
    inspect_window(stream, callable, use);
    stream.inspected = std::max(stream.inspected, stream.latest_end);
    stream.latest_begin = stream.latest_end;
    return;
  }
  std::uint64_t news = stream.inspected;
  if (stream.latest_end > stream.latest_begin) news = std::min(news, stream.latest_begin);
  unsigned chunks = 0;
  for (; stream.latest_begin < stream.latest_end && chunks < kMostChunks; ++chunks) {
    const StreamBuffer::Run run = stream.buffer.run_from(stream.latest_begin);
    stream.latest_begin = run.bytes.empty() ? stream.latest_end : std::min(run.offset, stream.latest_end);
    if (stream.latest_begin == stream.latest_end) break;
    inspect_window(stream, callable, use);
    stream.latest_begin = std::min(run.end(), stream.latest_end);
  }
  const std::uint64_t limit = to_end ? stream.buffer.right_edge() : received(stream);
  std::uint64_t from = stream.inspected;
  for (; from < limit && chunks < kMostChunks; ++chunks) {
    const StreamBuffer::Run run = stream.buffer.run_from(from);
    if (run.bytes.empty() || run.offset >= limit) break;
    const std::uint64_t until = std::min(limit, run.end());
    std::uint64_t begin = run.offset;
    if (run.offset == from) {
      const std::uint64_t run_begin = stream.buffer.whole_run_at(from).offset;
      begin = std::max(run_begin, from - std::min<std::uint64_t>(from, seam_bytes_));
    }
    const auto seen = static_cast<std::uint32_t>(run.offset - begin);
    use(callable, {.offset = begin, .bytes = {run.bytes.data() - seen, seen + (until - run.offset)}, .seen = seen});
    from = until;
  }
  stream.inspected = std::max(stream.inspected, from);
  if (stream.contested != nullptr) {
    inspect_contested(stream, news, std::max(limit, stream.inspected), callable, use);
  }
}

TcpSession::InspectionMark TcpSession::mark(Direction direction) const noexcept {
  const TcpStream& of = stream(direction);
  InspectionMark mark{of.inspected, of.latest_begin};
  if (of.contested != nullptr) mark.contested = of.contested->offered();
  return mark;
}

void TcpSession::rewind(Direction direction, const InspectionMark& mark) noexcept {
  TcpStream& of = streams_[static_cast<std::size_t>(direction)];
  of.inspected = mark.inspected;
  of.latest_begin = mark.latest_begin;
  if (of.contested != nullptr) of.contested->set_offered(mark.contested);
}

// Inline, a segment without new bytes can mark an earlier byte as urgent, so that the data around it must be inspected
// again without that byte.
bool TcpSession::has_news(const TcpStream& stream) const noexcept {
  if (stream.latest_end > stream.latest_begin) return true;
  if (!inline_ || stream.contested == nullptr || stream.latest_end == 0) return false;
  const StreamBuffer::Run run = stream.buffer.whole_run_at(stream.latest_end - 1);
  return !run.bytes.empty() && stream.contested_waits(run.end());
}

// Offers the latest segment with as much of its run on either side as a match may need.
void TcpSession::inspect_window(TcpStream& stream, void* callable, Use use) const {
  if (stream.latest_end == stream.latest_begin) {
    const StreamBuffer::Run run = stream.buffer.whole_run_at(stream.latest_end - 1);
    return inspect_contested(stream, run.end(), run.end(), callable, use);
  }
  const StreamBuffer::Run run = stream.buffer.whole_run_at(stream.latest_begin);
  if (run.bytes.empty()) return;
  const std::uint64_t end_of_segment = std::min(stream.latest_end, run.end());
  const std::uint64_t length = end_of_segment - stream.latest_begin;
  const std::uint64_t most = std::max(chunk_bytes_, seam_bytes_);
  const std::uint64_t ahead = std::min(stream.latest_begin - run.offset, most);
  const std::uint64_t behind = std::min(run.end() - end_of_segment, most);
  const std::uint64_t begin = stream.latest_begin - ahead;
  const std::size_t at = static_cast<std::size_t>(begin - run.offset);
  // Retransmitted bytes that were missing are new, however far inspection has advanced.
  use(callable, {.offset = begin,
                 .bytes = run.bytes.subspan(at, static_cast<std::size_t>(ahead + length + behind)),
                 .seen = static_cast<std::uint32_t>(ahead),
                 .seen_behind = static_cast<std::uint32_t>(behind)});
  if (inline_ && stream.contested != nullptr) {
    inspect_contested(stream, stream.latest_begin, run.end(), callable, use);
  }
}

namespace {

struct Stretch {
  std::uint64_t begin, end;
  bool offered;
};

/// The contested ranges before `limit`, in order.
class Stretches {
 public:
  Stretches(const ContestedBytes& contested, std::uint64_t limit) noexcept {
    for (const ContestedBytes::Version& version : contested.versions()) {
      if (version.possible) add({version.offset, std::min(version.end(), limit), version.offered});
    }
    for (const ContestedBytes::UrgentMark& mark : contested.urgent()) {
      add({mark.offset, std::min(mark.offset + 1, limit), mark.offered});
    }
    std::sort(stretches_.begin(), stretches_.begin() + count_,
              [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  }
  [[nodiscard]] std::span<const Stretch> all() const noexcept { return {stretches_.data(), count_}; }

 private:
  void add(const Stretch& stretch) noexcept {
    if (stretch.begin < stretch.end) stretches_[count_++] = stretch;
  }
  std::array<Stretch, ContestedBytes::kMostVersions + ContestedBytes::kMostUrgent> stretches_;
  std::size_t count_ = 0;
};

}  // namespace

// Ranges that are less than seam_bytes apart are offered together. A range that was offered before is repeated only
// with bytes that are new since then (at or after `from`), because a match may extend into them.
void TcpSession::inspect_contested(TcpStream& stream, std::uint64_t from, std::uint64_t limit, void* callable,
                                   Use use) const {
  ContestedBytes& contested = *stream.contested;
  const Stretches stretches(contested, limit);
  const std::span<const Stretch> all = stretches.all();
  for (std::size_t first = 0; first < all.size();) {
    std::uint64_t end = all[first].end;
    bool offered = all[first].offered;
    std::size_t next = first + 1;
    for (; next < all.size() && all[next].begin <= end + seam_bytes_; ++next) {
      end = std::max(end, all[next].end);
      offered = offered && all[next].offered;
    }
    const std::uint64_t begin = all[first].begin;
    first = next;
    const std::uint64_t window_end = std::min(limit, end + seam_bytes_);
    if (offered && window_end <= from) continue;
    std::uint64_t at = begin - std::min<std::uint64_t>(begin, seam_bytes_);
    while (at < window_end) {
      const StreamBuffer::Run run = stream.buffer.run_from(at);
      if (run.bytes.empty() || run.offset >= window_end) break;
      const std::uint64_t until = std::min({window_end, run.end(), run.offset + kMostContested});
      const std::uint64_t seen = offered ? std::min(until, std::max(run.offset, from)) - run.offset : 0;
      const std::uint64_t length = until - run.offset;
      if (seen < length) {
        use(callable, {.offset = run.offset,
                       .bytes = run.bytes.first(static_cast<std::size_t>(length)),
                       .seen = static_cast<std::uint32_t>(seen),
                       .versions = contested.versions(),
                       .urgent = contested.urgent(),
                       .contested = true});
      }
      const bool goes_on = until < std::min(window_end, run.end());
      at = goes_on ? until - std::min<std::uint64_t>(kMostContested / 2, std::uint64_t{2} * seam_bytes_) : until;
    }
  }
  for (ContestedBytes::Version& version : contested.versions()) {
    version.offered = version.offered || (version.possible && version.offset < limit);
  }
  for (ContestedBytes::UrgentMark& mark : contested.urgent()) mark.offered = mark.offered || mark.offset < limit;
}

}  // namespace penstock::stack
