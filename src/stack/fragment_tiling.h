// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the ways to lay fragments end to end, each beginning where the previous one ends. These are the datagrams that
// a host may have assembled from contradicting fragments. Hosts that discard overlapping fragments (Linux, RFC 5722)
// make no others.
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
  std::uint32_t sum = 0;             // checksum of its 16-bit words, folded or not
  bool last = false;                 // the last fragment (without MF)
};

class FragmentTilings {
 public:
  static constexpr std::size_t kMostPieces = 1024;

  /// Allocates all memory that will be needed.
  FragmentTilings();

  /// Finds the tilings that contain the piece `through`. False if there were too many to try them all. Tilings that use
  /// only the newest pieces, or only the oldest, with few exceptions, are found first.
  bool find(std::span<const FragmentPiece> pieces, std::size_t through);
  /// The number of ways found before the piece, and after it. Any of the former combines with any of the latter.
  [[nodiscard]] std::size_t before() const noexcept { return before_.ways.size(); }
  [[nodiscard]] std::size_t after() const noexcept { return after_.ways.size(); }
  /// Sum of the pieces' checksums, without the piece `through`.
  [[nodiscard]] std::uint64_t sum(std::size_t before, std::size_t after) const noexcept {
    return before_.ways[before].sum + after_.ways[after].sum;
  }
  [[nodiscard]] std::uint32_t length(std::size_t after) const noexcept { return after_.ways[after].end; }
  /// The first piece of a tiling: of its way before `through`, or `through` itself if nothing precedes it.
  [[nodiscard]] std::uint16_t front(std::size_t before) const noexcept {
    const Way& way = before_.ways[before];
    return way.count == 0 ? static_cast<std::uint16_t>(through_) : before_.pieces[way.first + way.count - 1];
  }
  /// The pieces of a tiling, in order. Valid until the next call.
  [[nodiscard]] std::span<const std::uint16_t> tiling(std::size_t before, std::size_t after);

  /// Prepares a sample of tilings through the piece, for when there are too many to try them all. The sample is as
  /// diverse as possible: if two pieces begin at each position, six neighbours occur in all combinations; if more do,
  /// the choice is pseudo-random but repeatable. Call after find().
  void cover(std::span<const FragmentPiece> pieces);
  static constexpr unsigned kMostCovering = 64;
  /// The next tiling of the sample, possibly a duplicate; empty if there are no more.
  [[nodiscard]] std::span<const std::uint16_t> next_covering(std::span<const FragmentPiece> pieces);

 private:
  static constexpr std::size_t kMostWays = 512;                     // per side
  static constexpr std::size_t kMostOfWays = std::size_t{1} << 15;  // pieces of all of them
  static constexpr std::size_t kMostSteps = std::size_t{1} << 13;

  struct Way {
    std::size_t first = 0, count = 0;  // in `pieces`
    std::uint64_t sum = 0;
    std::uint32_t end = 0;  // of the last piece
  };
  /// A piece, and the position where it touches the previous piece of the way.
  struct Touching {
    std::uint32_t place = 0;
    std::uint16_t piece = 0;
    friend auto operator<=>(const Touching&, const Touching&) = default;
  };
  struct Side {
    std::vector<Touching> sorted;   // at the same position, oldest first
    std::vector<Touching> through;  // for cover(): only pieces from which a way leads to the end
    std::vector<std::uint16_t> pieces;
    std::vector<Way> ways;
  };
  struct Step {
    std::size_t first = 0, count = 0;  // in `sorted`: the pieces that touch
    std::size_t tried = 0;
    unsigned exceptions = 0;  // on the way so far
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
  /// Which of the `count` pieces that touch a position the sample tiling `number` uses. `rank`: of the position.
  [[nodiscard]] static std::size_t choice(unsigned number, std::size_t rank, std::size_t count) noexcept;
  [[nodiscard]] std::size_t rank_of(std::uint32_t place) const noexcept;

  Side before_, after_;
  std::vector<std::uint32_t> places_;  // sorted begins of the pieces that lie on a way
  unsigned covering_ = kMostCovering;
  std::vector<Step> steps_;
  std::vector<std::uint16_t> path_, tiling_;
  std::size_t through_ = 0;
  bool forks_left_ = false;  // the walk has not tried all ways
};

}  // namespace penstock::stack
