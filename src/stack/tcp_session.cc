// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/tcp_session.h"

#include <algorithm>

namespace penstock::stack {

std::uint32_t TcpStream::urgent_before(std::uint32_t sequence) const noexcept {
  const std::uint32_t kept = std::min(urgent_count, kUrgentKept);
  for (std::uint32_t i = 0; i < kept; ++i) {
    if (after(sequence, urgent[i])) return urgent_count - i;
  }
  return urgent_count - kept;
}

void TcpSession::inspect_to(Direction direction, bool to_end, void* callable, void (*use)(void*, const StreamChunk&)) {
  TcpStream& stream = streams_[static_cast<std::size_t>(direction)];
  if (inline_ && !to_end) {
    if (stream.latest_end == stream.latest_begin) return;
    inspect_window(stream, callable, use);
    stream.inspected = std::max(stream.inspected, stream.latest_end);
    stream.latest_begin = stream.latest_end;
    return;
  }
  const std::uint64_t limit =
      to_end ? stream.buffer.right_edge() : std::min(stream.acked(), stream.buffer.right_edge());
  std::uint64_t from = stream.inspected;
  for (unsigned chunks = 0; from < limit && chunks < kMostChunks; ++chunks) {
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
}

// The latest segment with what lies around it in its run: as much on either side as a match may need of it.
void TcpSession::inspect_window(TcpStream& stream, void* callable, void (*use)(void*, const StreamChunk&)) const {
  const StreamBuffer::Run run = stream.buffer.whole_run_at(stream.latest_begin);
  if (run.bytes.empty()) return;
  const std::uint64_t end_of_segment = std::min(stream.latest_end, run.end());
  const std::uint64_t length = end_of_segment - stream.latest_begin;
  const std::uint64_t most = std::max(chunk_bytes_, seam_bytes_);
  const std::uint64_t ahead = std::min(stream.latest_begin - run.offset, most);
  const std::uint64_t behind = std::min(run.end() - end_of_segment, most);
  const std::uint64_t begin = stream.latest_begin - ahead;
  const std::size_t at = static_cast<std::size_t>(begin - run.offset);
  // Bytes that were lost and come again are news, however far the inspection got.
  use(callable, {.offset = begin,
                 .bytes = run.bytes.subspan(at, static_cast<std::size_t>(ahead + length + behind)),
                 .seen = static_cast<std::uint32_t>(ahead),
                 .seen_behind = static_cast<std::uint32_t>(behind)});
}

}  // namespace penstock::stack
