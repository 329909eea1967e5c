// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/fragment_tiling.h"

#include <algorithm>
#include <functional>

#include "packet/flow_hash.h"

namespace penstock::stack {

FragmentTilings::FragmentTilings() {
  for (Side* const side : {&before_, &after_}) {
    side->sorted.reserve(kMostPieces);
    side->through.reserve(kMostPieces);
    side->pieces.reserve(kMostOfWays);
    side->ways.reserve(kMostWays);
  }
  steps_.reserve(kMostPieces + 1);
  path_.reserve(kMostPieces);
  tiling_.reserve(2 * kMostPieces + 1);
  places_.reserve(kMostPieces + 1);
}

/// The pieces that touch at this position.
std::span<const FragmentTilings::Touching> FragmentTilings::touching(std::span<const Touching> sorted,
                                                                     std::uint32_t place) noexcept {
  const auto begin = std::lower_bound(sorted.begin(), sorted.end(), place,
                                      [](const Touching& one, std::uint32_t at) { return one.place < at; });
  auto end = begin;
  while (end != sorted.end() && end->place == place) ++end;
  return {begin, end};
}

/// Collects all ways that start at one position. `far` returns where a piece ends in the direction of the way, and
/// `is_end(piece, far)` whether the way ends there. Ways with fewer exceptions from "always the newest piece", or
/// "always the oldest", come first.
template <typename Far, typename IsEnd>
bool FragmentTilings::collect(Side& side, std::span<const FragmentPiece> pieces, std::uint32_t from, Far far,
                              IsEnd is_end) {
  std::size_t steps = 0;
  forks_left_ = false;
  for (unsigned exceptions = 0; exceptions <= kMostExceptions; ++exceptions) {
    bool more = false;
    for (const bool newest : {true, false}) {
      if (!walk(side, pieces, from, far, is_end, newest, exceptions, steps)) return false;
      more = more || forks_left_;
    }
    if (!more) return true;  // no way has this many exceptions
  }
  return false;
}

template <typename Far, typename IsEnd>
bool FragmentTilings::walk(Side& side, std::span<const FragmentPiece> pieces, std::uint32_t from, Far far, IsEnd is_end,
                           bool newest, unsigned exceptions, std::size_t& steps) {
  const auto step_from = [&](std::uint32_t at, unsigned so_far) {
    const std::span<const Touching> there = touching(side.sorted, at);
    return Step{static_cast<std::size_t>(there.data() - side.sorted.data()), there.size(), 0, so_far};
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
    const std::uint16_t piece = side.sorted[step.first + (newest ? step.count - 1 - step.tried : step.tried)].piece;
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

/// Adds the current path, unless it was already found in the other order. False if there is no room.
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
    const auto one = static_cast<std::uint16_t>(i);
    if (!pieces[i].last) before_.sorted.push_back({pieces[i].end, one});
    after_.sorted.push_back({pieces[i].begin, one});
  }
  std::sort(before_.sorted.begin(), before_.sorted.end());
  std::sort(after_.sorted.begin(), after_.sorted.end());
  const FragmentPiece& piece = pieces[through];
  bool all = pieces.size() <= kMostPieces;
  if (piece.begin == 0) {
    before_.ways.push_back({});
  } else {
    all = collect(
              before_, pieces, piece.begin, [](const FragmentPiece& one) { return one.begin; },
              [](const FragmentPiece&, std::uint32_t at) { return at == 0; }) &&
          all;
  }
  if (before_.ways.empty()) return all;
  if (piece.last) {
    after_.ways.push_back({.end = piece.end});
  } else {
    all = collect(
              after_, pieces, piece.end, [](const FragmentPiece& one) { return one.end; },
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

std::size_t FragmentTilings::choice(unsigned number, std::size_t rank, std::size_t count) noexcept {
  if (count <= 2) return (number >> (rank % 6)) % count;
  return mix64(rank * kMostCovering + number + 1) % count;
}

std::size_t FragmentTilings::rank_of(std::uint32_t place) const noexcept {
  return static_cast<std::size_t>(std::lower_bound(places_.begin(), places_.end(), place) - places_.begin());
}

void FragmentTilings::cover(std::span<const FragmentPiece> pieces) {
  covering_ = 0;
  const FragmentPiece& piece = pieces[through_];
  // Pieces touch only at increasing positions, so one pass in order finds all pieces that lie on a way.
  const auto touches = [](const std::vector<std::uint32_t>& places, std::uint32_t place) {
    return std::binary_search(places.begin(), places.end(), place);
  };
  before_.through.clear();
  places_.assign(1, 0);  // positions reachable from the first byte
  for (const Touching& one : before_.sorted) {
    if (one.place > piece.begin) break;
    if (!touches(places_, pieces[one.piece].begin)) continue;
    before_.through.push_back(one);
    if (places_.back() != one.place) places_.push_back(one.place);
  }
  const bool begins = touches(places_, piece.begin);
  after_.through.clear();
  places_.clear();  // positions from which a way leads to the end, in descending order
  const auto leads = [&](std::uint32_t place) {
    return std::binary_search(places_.begin(), places_.end(), place, std::greater<>());
  };
  for (auto one = after_.sorted.rbegin(); one != after_.sorted.rend(); ++one) {
    if (one->place < piece.end) break;
    const FragmentPiece& touched = pieces[one->piece];
    if (!touched.last && !leads(touched.end)) continue;
    after_.through.push_back(*one);
    if (places_.empty() || places_.back() != one->place) places_.push_back(one->place);
  }
  if (!begins || (!piece.last && !leads(piece.end))) covering_ = kMostCovering;  // no tilings
  std::reverse(after_.through.begin(), after_.through.end());

  places_.assign(1, piece.begin);
  for (const Side* const side : {&before_, &after_}) {
    for (const Touching& one : side->through) places_.push_back(pieces[one.piece].begin);
  }
  std::sort(places_.begin(), places_.end());
  places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
}

std::span<const std::uint16_t> FragmentTilings::next_covering(std::span<const FragmentPiece> pieces) {
  if (covering_ == kMostCovering) return {};
  const unsigned number = covering_++;
  const auto next = [number](const Side& side, std::uint32_t place, std::size_t rank) {
    const std::span<const Touching> there = touching(side.through, place);
    return there[choice(number, rank, there.size())].piece;
  };
  tiling_.clear();
  for (std::uint32_t at = pieces[through_].begin; at != 0; at = pieces[tiling_.back()].begin) {
    tiling_.push_back(next(before_, at, rank_of(at) - 1));
  }
  std::reverse(tiling_.begin(), tiling_.end());
  tiling_.push_back(static_cast<std::uint16_t>(through_));
  while (!pieces[tiling_.back()].last) {
    const std::uint32_t at = pieces[tiling_.back()].end;
    tiling_.push_back(next(after_, at, rank_of(at)));
  }
  return tiling_;
}

}  // namespace penstock::stack
