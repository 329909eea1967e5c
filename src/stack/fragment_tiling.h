// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ways to lay fragments end to end, each beginning where the one before ends: the datagrams that a host may have made
// of fragments that contradict each other. Hosts that discard overlapping fragments (Linux, RFC 5722) make no others.
//
//   0        16        32        48
//   |--- A ---|--- B ---|-- C, last
//   |--- D ---|              two tilings: A B C and D B C

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::stack {

struct FragmentPiece {
  std::uint32_t begin = 0, end = 0;  // bytes of the datagram; end > begin
  std::uint32_t sum = 0;             // of its 16-bit words, folded or not
  bool last = false;                 // nothing follows it
};

class FragmentTilings {
 public:
  static constexpr std::size_t kMostPieces = 1024;

  /// Takes all of its memory.
  FragmentTilings();

  /// Looks for the tilings that have the piece `through`. False: there were too many ways to try them all. Those of the
  /// newest pieces, or of the oldest, but for a few are found first.
  bool find(std::span<const FragmentPiece> pieces, std::size_t through);
  /// Of what was found: the number of ways before the piece, and after it. Each goes with each.
  [[nodiscard]] std::size_t before() const noexcept { return before_.ways.size(); }
  [[nodiscard]] std::size_t after() const noexcept { return after_.ways.size(); }
  /// Their pieces' sums, the piece's own left out.
  [[nodiscard]] std::uint64_t sum(std::size_t before, std::size_t after) const noexcept {
    return before_.ways[before].sum + after_.ways[after].sum;
  }
  [[nodiscard]] std::uint32_t length(std::size_t after) const noexcept { return after_.ways[after].end; }
  /// The first piece of a way before, or of the tiling where there is none.
  [[nodiscard]] std::uint16_t front(std::size_t before) const noexcept {
    const Way& way = before_.ways[before];
    return way.count == 0 ? static_cast<std::uint16_t>(through_) : before_.pieces[way.first + way.count - 1];
  }
  /// The pieces in their order.
  [[nodiscard]] std::span<const std::uint16_t> tiling(std::size_t before, std::size_t after);

  /// Of the tilings that have the piece, where they are too many to try them all, some that differ as much as they can:
  /// where two pieces begin at each place, six neighbours come in all combinations; where more do, at random, each time
  /// the same. To be called after find().
  void cover(std::span<const FragmentPiece> pieces);
  static constexpr unsigned kMostCovering = 64;
  /// The next of them, perhaps one that was given before; empty: there are no more.
  [[nodiscard]] std::span<const std::uint16_t> next_covering(std::span<const FragmentPiece> pieces);

 private:
  static constexpr std::size_t kMostWays = 512;                     // on either side
  static constexpr std::size_t kMostOfWays = std::size_t{1} << 15;  // pieces of all of them
  static constexpr std::size_t kMostSteps = std::size_t{1} << 13;

  struct Way {
    std::size_t first = 0, count = 0;  // in `pieces`
    std::uint64_t sum = 0;
    std::uint32_t end = 0;  // of the last piece
  };
  /// A piece, and where it touches what comes before it on the way.
  struct Touching {
    std::uint32_t place = 0;
    std::uint16_t piece = 0;
    friend auto operator<=>(const Touching&, const Touching&) = default;
  };
  struct Side {
    std::vector<Touching> sorted;   // where several touch, the oldest first
    std::vector<Touching> through;  // cover: the same of those alone that lie on a way to the end
    std::vector<std::uint16_t> pieces;
    std::vector<Way> ways;
  };
  struct Step {
    std::size_t first = 0, count = 0;  // in `sorted`: the pieces that touch
    std::size_t tried = 0;
    unsigned exceptions = 0;  // on the way to it
  };
  static constexpr unsigned kMostExceptions = 4;

  [[nodiscard]] static std::span<const Touching> touching(std::span<const Touching> sorted,
                                                          std::uint32_t place) noexcept;
  template <typename Far, typename IsEnd>
  bool collect(Side& side, std::span<const FragmentPiece> pieces, std::uint32_t from, Far far, IsEnd is_end);
  template <typename Far, typename IsEnd>
  bool walk(Side& side, std::span<const FragmentPiece> pieces, std::uint32_t from, Far far, IsEnd is_end, bool newest,
            unsigned exceptions, std::size_t& steps);
  bool add_way(Side& side, std::span<const FragmentPiece> pieces);
  /// Its place among those that touch, of the tiling with this number.
  [[nodiscard]] static std::size_t choice(unsigned number, std::size_t rank, std::size_t count) noexcept;
  [[nodiscard]] std::size_t rank_of(std::uint32_t place) const noexcept;

  Side before_, after_;
  std::vector<std::uint32_t> places_;  // where pieces begin that lie on a way, in order
  unsigned covering_ = kMostCovering;
  std::vector<Step> steps_;
  std::vector<std::uint16_t> path_, tiling_;
  std::size_t through_ = 0;
  bool forks_left_ = false;  // the walk has not gone all ways
};

}  // namespace penstock::stack
