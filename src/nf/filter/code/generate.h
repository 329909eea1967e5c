// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Generates CUDA C++ that runs up to kMostPrograms BPF programs on a packet at once, with the interpreter's results.
//
//   programs ─▶ decision graphs ─┬▶ programs that differ only in constants: a loop over tables of constants
//                                ├▶ others: straight-line code, 32 programs in a function, which share loads and tests
//                                └▶ those whose graph would be too large, and return values: instruction by instruction
//
// The text is complete. NVRTC makes kernels of it, and a C++ compiler functions for the host, for tests:
//
//   void penstock_match(data, available, length, wire_length, words)     the bitmap of one packet
//   int penstock_undecided(data, available, length, wire_length)
//   void penstock_returns(data, available, length, wire_length, returns) one return value per program

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "nf/filter/bpf/program.h"
#include "nf/filter/code/reach.h"

namespace penstock::filter {

/// More programs are refused, so that a packet's row of the bitmap stays small.
inline constexpr std::size_t kMostPrograms = 1024;

/// Words of a packet's row of the bitmap: bit i % 32 of word i / 32 is set if program i returns another number than 0.
[[nodiscard]] constexpr std::uint32_t words_for(std::size_t programs) noexcept {
  return static_cast<std::uint32_t>((programs + 31) / 32);
}

struct GenerateOptions {
  /// If packets may be there only in part: the number of bytes that are there at most.
  std::uint32_t available = kUnbounded;
  /// Also generate code for return values.
  bool returns = false;
};

struct GeneratedCode {
  std::string text;
  bool may_be_undecided = false;  // there may be packets for which bytes that are not there decide
  std::size_t looped = 0;         // programs in loops over tables …
  std::size_t loops = 0;          // … and how many loops
  std::size_t straight = 0;       // programs as straight-line code
  std::size_t direct = 0;         // programs instruction by instruction
  std::uint32_t parts = 1;        // of the bitmap: the second dimension of the grid of kMatchKernel
  /// How long the compiler will take, in bytes of straight-line code.
  std::size_t effort = 0;
};

/// The names of the kernels. They take a MatchBatch (packet_window.h), whose `words` get the bitmaps or the return
/// values, and need a thread per packet, in blocks of kGeneratedBlock threads. Blocks of different parts of the bitmap
/// run different code, so that the code of each fits into the instruction cache.
inline constexpr const char* kMatchKernel = "match_packets";
inline constexpr const char* kReturnsKernel = "return_values";
inline constexpr unsigned kGeneratedBlock = 128;

[[nodiscard]] GeneratedCode generate(std::span<const Program> programs, const GenerateOptions& options = {});

}  // namespace penstock::filter
