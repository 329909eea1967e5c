// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The instructions of the classic BPF machine: all the codes that a verified program contains. K is the instruction's
// constant, X the index register.

#pragma once

#include <cstdint>

namespace penstock::filter {

// A = bytes of the packet, in network byte order, at K or at X + K. The program returns 0 if they are not all there.
inline constexpr std::uint16_t kLoadWordAbs = 0x20;
inline constexpr std::uint16_t kLoadHalfAbs = 0x28;
inline constexpr std::uint16_t kLoadByteAbs = 0x30;
inline constexpr std::uint16_t kLoadWordInd = 0x40;
inline constexpr std::uint16_t kLoadHalfInd = 0x48;
inline constexpr std::uint16_t kLoadByteInd = 0x50;

// A = K, A = M[K], A = wire length
inline constexpr std::uint16_t kLoadImmediate = 0x00;
inline constexpr std::uint16_t kLoadScratch = 0x60;
inline constexpr std::uint16_t kLoadLength = 0x80;

// X = K, X = M[K], X = wire length, X = 4 * (byte K of the packet & 15), which is the length of an IPv4 header
inline constexpr std::uint16_t kLoadXImmediate = 0x01;
inline constexpr std::uint16_t kLoadXScratch = 0x61;
inline constexpr std::uint16_t kLoadXLength = 0x81;
inline constexpr std::uint16_t kLoadXHeaderLength = 0xb1;

// M[K] = A, M[K] = X
inline constexpr std::uint16_t kStore = 0x02;
inline constexpr std::uint16_t kStoreX = 0x03;

// A = A op K, A = A op X, modulo 2^32. Division by X = 0 returns 0. Shifts by X over 31 give 0.
inline constexpr std::uint16_t kAddK = 0x04;
inline constexpr std::uint16_t kAddX = 0x0c;
inline constexpr std::uint16_t kSubtractK = 0x14;
inline constexpr std::uint16_t kSubtractX = 0x1c;
inline constexpr std::uint16_t kMultiplyK = 0x24;
inline constexpr std::uint16_t kMultiplyX = 0x2c;
inline constexpr std::uint16_t kDivideK = 0x34;
inline constexpr std::uint16_t kDivideX = 0x3c;
inline constexpr std::uint16_t kOrK = 0x44;
inline constexpr std::uint16_t kOrX = 0x4c;
inline constexpr std::uint16_t kAndK = 0x54;
inline constexpr std::uint16_t kAndX = 0x5c;
inline constexpr std::uint16_t kShiftLeftK = 0x64;
inline constexpr std::uint16_t kShiftLeftX = 0x6c;
inline constexpr std::uint16_t kShiftRightK = 0x74;
inline constexpr std::uint16_t kShiftRightX = 0x7c;
inline constexpr std::uint16_t kModuloK = 0x94;
inline constexpr std::uint16_t kModuloX = 0x9c;
inline constexpr std::uint16_t kXorK = 0xa4;
inline constexpr std::uint16_t kXorX = 0xac;
inline constexpr std::uint16_t kNegate = 0x84;

// Jumps skip K instructions, or jump_true or jump_false by a comparison of A, without sign, with K or X. "Set": A & K.
inline constexpr std::uint16_t kJump = 0x05;
inline constexpr std::uint16_t kJumpEqualK = 0x15;
inline constexpr std::uint16_t kJumpEqualX = 0x1d;
inline constexpr std::uint16_t kJumpGreaterK = 0x25;
inline constexpr std::uint16_t kJumpGreaterX = 0x2d;
inline constexpr std::uint16_t kJumpGreaterEqualK = 0x35;
inline constexpr std::uint16_t kJumpGreaterEqualX = 0x3d;
inline constexpr std::uint16_t kJumpSetK = 0x45;
inline constexpr std::uint16_t kJumpSetX = 0x4d;

inline constexpr std::uint16_t kReturnK = 0x06;
inline constexpr std::uint16_t kReturnA = 0x16;

inline constexpr std::uint16_t kCopyAToX = 0x07;
inline constexpr std::uint16_t kCopyXToA = 0x87;

/// The instruction's class: code & kClassMask.
inline constexpr std::uint16_t kClassMask = 0x07;
inline constexpr std::uint16_t kClassJump = 0x05;
inline constexpr std::uint16_t kClassReturn = 0x06;

}  // namespace penstock::filter
