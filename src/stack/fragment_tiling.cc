// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/fragment_tiling.h"

#include <algorithm>

namespace penstock::stack {

FragmentTilings::FragmentTilings() {
  for (Side* const side : {&before_, &after_}) {
    side->sorted.reserve(kMostPieces);
    side->pieces.reserve(kMostOfWays);
    side->ways.reserve(kMostWays);
  }
  steps_.reserve(kMostPieces + 1);
  path_.reserve(kMostPieces);
  tiling_.reserve(2 * kMostPieces + 1);
}

/// All ways from one place on: `touch` is where a piece begins on the way, `far` where it ends. A way is over where
/// `is_end(piece, far)` says so. By the number of places where it does not take the newest piece, or the oldest.
template <typename Touch, typename Far, typename IsEnd>
bool FragmentTilings::collect(Side& side, std::span<const FragmentPiece> pieces, std::uint32_t from, Touch touch,
                              Far far, IsEnd is_end) {
  std::sort(side.sorted.begin(), side.sorted.end(), [&](std::uint16_t a, std::uint16_t b) {
    return touch(pieces[a]) != touch(pieces[b]) ? touch(pieces[a]) < touch(pieces[b]) : a < b;
  });
  std::size_t steps = 0;
  forks_left_ = false;
  for (unsigned exceptions = 0; exceptions <= kMostExceptions; ++exceptions) {
    bool more = false;
    for (const bool newest : {true, false}) {
      if (!walk(side, pieces, from, touch, far, is_end, newest, exceptions, steps)) return false;
      more = more || forks_left_;
    }
    if (!more) return true;  // no way has as many exceptions
  }
  return false;
}

template <typename Touch, typename Far, typename IsEnd>
bool FragmentTilings::walk(Side& side, std::span<const FragmentPiece> pieces, std::uint32_t from, Touch touch, Far far,
                           IsEnd is_end, bool newest, unsigned exceptions, std::size_t& steps) {
  const auto step_from = [&](std::uint32_t at, unsigned so_far) {
    const auto begin =
        std::lower_bound(side.sorted.begin(), side.sorted.end(), at,
                         [&](std::uint16_t piece, std::uint32_t place) { return touch(pieces[piece]) < place; });
    auto end = begin;
    while (end != side.sorted.end() && touch(pieces[*end]) == at) ++end;
    return Step{static_cast<std::size_t>(begin - side.sorted.begin()), static_cast<std::size_t>(end - begin), 0,
                so_far};
  };
  forks_left_ = false;
  path_.clear();
  steps_.assign(1, step_from(from, 0));
  while (!steps_.empty()) {
    Step& step = steps_.back();
    const bool is_over = step.tried == step.count;
    const bool is_exception = step.tried > 0;
    if (is_over || (is_exception && step.exceptions == exceptions)) {
      forks_left_ = forks_left_ || !is_over;
      steps_.pop_back();
      if (!path_.empty()) path_.pop_back();
      continue;
    }
    const std::uint16_t piece = side.sorted[step.first + (newest ? step.count - 1 - step.tried : step.tried)];
    ++step.tried;
    if (++steps > kMostSteps) return false;
    path_.push_back(piece);
    const unsigned so_far = step.exceptions + (is_exception ? 1 : 0);
    const std::uint32_t at = far(pieces[piece]);
    if (!is_end(pieces[piece], at)) {
      steps_.push_back(step_from(at, so_far));
      continue;
    }
    if (so_far == exceptions && !add_way(side, pieces)) return false;
    path_.pop_back();
  }
  return true;
}

/// What is on the path, unless it was found from the other end. False: there is no room.
bool FragmentTilings::add_way(Side& side, std::span<const FragmentPiece> pieces) {
  const auto is_same = [&](const Way& way) {
    return way.count == path_.size() &&
           std::equal(path_.begin(), path_.end(), side.pieces.begin() + static_cast<std::ptrdiff_t>(way.first));
  };
  Way way{.first = side.pieces.size(), .count = path_.size(), .end = pieces[path_.back()].end};
  for (const std::uint16_t one : path_) way.sum += pieces[one].sum;
  const auto same_sum = [&](const Way& other) { return other.sum == way.sum && is_same(other); };
  if (std::any_of(side.ways.begin(), side.ways.end(), same_sum)) return true;
  if (side.ways.size() == kMostWays || side.pieces.size() + path_.size() > kMostOfWays) return false;
  side.pieces.insert(side.pieces.end(), path_.begin(), path_.end());
  side.ways.push_back(way);
  return true;
}

bool FragmentTilings::find(std::span<const FragmentPiece> pieces, std::size_t through) {
  through_ = through;
  for (Side* const side : {&before_, &after_}) {
    side->sorted.clear();
    side->pieces.clear();
    side->ways.clear();
  }
  for (std::size_t i = 0; i < pieces.size() && i < kMostPieces; ++i) {
    if (i == through) continue;
    if (!pieces[i].last) before_.sorted.push_back(static_cast<std::uint16_t>(i));
    after_.sorted.push_back(static_cast<std::uint16_t>(i));
  }
  const FragmentPiece& piece = pieces[through];
  bool all = pieces.size() <= kMostPieces;
  const auto begin_of = [](const FragmentPiece& one) { return one.begin; };
  const auto end_of = [](const FragmentPiece& one) { return one.end; };
  if (piece.begin == 0) {
    before_.ways.push_back({});
  } else {
    all = collect(before_, pieces, piece.begin, end_of, begin_of,
                  [](const FragmentPiece&, std::uint32_t at) { return at == 0; }) &&
          all;
  }
  if (before_.ways.empty()) return all;
  if (piece.last) {
    after_.ways.push_back({.end = piece.end});
  } else {
    all = collect(after_, pieces, piece.end, begin_of, end_of,
                  [](const FragmentPiece& one, std::uint32_t) { return one.last; }) &&
          all;
  }
  return all;
}

std::span<const std::uint16_t> FragmentTilings::tiling(std::size_t before, std::size_t after) {
  const Way& head = before_.ways[before];
  const Way& tail = after_.ways[after];
  tiling_.assign(before_.pieces.begin() + static_cast<std::ptrdiff_t>(head.first),
                 before_.pieces.begin() + static_cast<std::ptrdiff_t>(head.first + head.count));
  std::reverse(tiling_.begin(), tiling_.end());
  tiling_.push_back(static_cast<std::uint16_t>(through_));
  tiling_.insert(tiling_.end(), after_.pieces.begin() + static_cast<std::ptrdiff_t>(tail.first),
                 after_.pieces.begin() + static_cast<std::ptrdiff_t>(tail.first + tail.count));
  return tiling_;
}

}  // namespace penstock::stack
