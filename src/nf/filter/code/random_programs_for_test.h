// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random programs that pass the verifier, random packets, and filters like those of users. For tests and benches.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nf/filter/bpf/opcodes.h"
#include "nf/filter/bpf/program.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::filter::testing {

[[noreturn]] inline void stop(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

inline Program verified(std::vector<Instruction> instructions) {
  auto program = Program::verify(std::move(instructions), {});
  if (!program) stop(to_string(program.error()));
  return std::move(*program);
}

inline Program compiled(const std::string& expression) {
  auto program = compile_expression(expression, {}, {});
  if (!program) stop(expression + ": " + to_string(program.error()));
  return std::move(*program);
}

class RandomPrograms {
 public:
  explicit RandomPrograms(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  /// A program of up to `most` instructions that often gets to its end.
  Program program(std::size_t most) { return verified(instructions(most)); }

  std::vector<Program> programs(std::size_t count, std::size_t most) {
    std::vector<Program> all;
    while (all.size() < count) all.push_back(program(most));
    return all;
  }

  /// Programs of `kinds` kinds, in random order. Those of a kind differ only in the constants of comparisons.
  std::vector<Program> programs_of_kinds(std::size_t count, std::size_t kinds) {
    std::vector<std::vector<Instruction>> models;
    while (models.size() < kinds) {
      models.push_back(instructions(12));
      // So that something is compared with constants at all.
      const std::vector<Instruction> compare{{kLoadByteAbs, 0, 0, below(20)}, {kJumpEqualK, 0, 1, 0}};
      models.back().insert(models.back().begin(), compare.begin(), compare.end());
      models.back().push_back({kReturnK, 0, 0, below(2)});
    }
    std::vector<Program> all;
    while (all.size() < count) {
      std::vector<Instruction> program = models[below(static_cast<std::uint32_t>(kinds))];
      for (Instruction& instruction : program) {
        const bool compares = instruction.code == kJumpEqualK || instruction.code == kJumpGreaterK ||
                              instruction.code == kJumpGreaterEqualK || instruction.code == kJumpSetK;
        if (compares) instruction.k = below(below(2) == 0 ? 8 : 256);
      }
      all.push_back(verified(std::move(program)));
    }
    return all;
  }

  /// Bytes that the comparisons of random programs meet.
  std::vector<std::uint8_t> packet(std::uint32_t most_bytes) {
    std::vector<std::uint8_t> bytes(below(most_bytes + 1));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(below(4) == 0 ? below(256) : below(5));
    return bytes;
  }

 private:
  std::vector<Instruction> instructions(std::size_t most) {
    const std::size_t length = 1 + below(static_cast<std::uint32_t>(most));
    std::vector<Instruction> instructions;
    while (instructions.size() + 1 < length) {
      instructions.push_back(instruction(static_cast<std::uint32_t>(length - instructions.size() - 2)));
    }
    instructions.push_back(below(2) == 0 ? Instruction{kReturnA, 0, 0, 0} : Instruction{kReturnK, 0, 0, below(3)});
    return instructions;
  }

  Instruction instruction(std::uint32_t instructions_after) {
    static constexpr std::uint16_t kCodes[] = {
        kLoadWordAbs,   kLoadHalfAbs, kLoadByteAbs, kLoadByteAbs,    kLoadWordInd,  kLoadHalfInd, kLoadByteInd,
        kLoadImmediate, kLoadScratch, kLoadLength,  kLoadXImmediate, kLoadXScratch, kLoadXLength, kLoadXHeaderLength,
        kStore,         kStoreX,      kAddK,        kAddX,           kSubtractK,    kSubtractX,   kMultiplyK,
        kMultiplyX,     kDivideK,     kDivideX,     kModuloK,        kModuloX,      kOrK,         kOrX,
        kAndK,          kAndX,        kXorK,        kXorX,           kShiftLeftK,   kShiftLeftX,  kShiftRightK,
        kShiftRightX,   kNegate,      kCopyAToX,    kCopyXToA};
    static constexpr std::uint16_t kJumps[] = {kJumpEqualK,        kJumpEqualX,        kJumpGreaterK, kJumpGreaterX,
                                               kJumpGreaterEqualK, kJumpGreaterEqualX, kJumpSetK,     kJumpSetX};
    if (below(3) == 0) {
      if (below(8) == 0) return {kJump, 0, 0, below(std::min(instructions_after + 1, 5U))};
      const auto skip = [&] { return static_cast<std::uint8_t>(below(std::min(instructions_after + 1, 5U))); };
      return {kJumps[below(std::size(kJumps))], skip(), skip(), number()};
    }
    const std::uint16_t code = kCodes[below(std::size(kCodes))];
    switch (code) {
      // Sometimes beyond any packet. Greater absolute offsets would be Linux's extensions.
      case kLoadWordAbs:
      case kLoadHalfAbs:
      case kLoadByteAbs: return {code, 0, 0, below(60) == 0 ? 0xffdffff0 + below(16) : below(24)};
      case kLoadWordInd:
      case kLoadHalfInd:
      case kLoadByteInd:
      case kLoadXHeaderLength: return {code, 0, 0, below(60) == 0 ? 0xfffffff0 + below(16) : below(24)};
      case kLoadScratch:
      case kLoadXScratch:
      case kStore:
      case kStoreX: return {code, 0, 0, below(3) == 0 ? below(kScratchWords) : below(2)};
      case kDivideK:
      case kModuloK: return {code, 0, 0, 1 + number() % 0xfffffffe};
      case kShiftLeftK:
      case kShiftRightK: return {code, 0, 0, below(32)};
      default: return {code, 0, 0, number()};
    }
  }

  std::uint32_t number() {
    switch (below(8)) {
      case 0: return static_cast<std::uint32_t>(random_());
      case 1: return 0xffffffff - below(4);
      case 2: return below(256);
      case 3: return 4 * below(16);
      default: return below(5);
    }
  }

  std::mt19937 random_;
};

/// A UDP or TCP packet in Ethernet and IPv4 or IPv6, of at least 54 bytes, or another packet, with numbers that the
/// filters below ask for.
inline std::vector<std::uint8_t> random_frame(RandomPrograms& draw) {
  std::vector<std::uint8_t> frame(54 + draw.below(80));
  for (std::uint8_t& byte : frame) byte = static_cast<std::uint8_t>(draw.below(4));
  const bool is_v6 = draw.below(4) == 0;
  frame[12] = is_v6 ? 0x86 : 0x08;
  frame[13] = static_cast<std::uint8_t>(is_v6 ? 0xdd : draw.below(8) == 0 ? 0x06 : 0x00);
  frame[14] = is_v6 ? 0x60 : static_cast<std::uint8_t>(0x45 + (draw.below(4) == 0 ? draw.below(3) : 0));
  frame[20] = frame[21] = 0;
  if (!is_v6 && draw.below(8) == 0) frame[21] = 1;  // a fragment
  (is_v6 ? frame[20] : frame[23]) = static_cast<std::uint8_t>(draw.below(2) == 0 ? 6 : 17);
  const std::size_t ports = is_v6 ? 54 : 14 + 4 * (frame[14] & 0x0fU);
  for (const std::size_t at : {ports, ports + 2}) {
    if (at + 2 > frame.size()) continue;
    frame[at] = static_cast<std::uint8_t>(draw.below(2) * draw.below(5));
    frame[at + 1] = static_cast<std::uint8_t>(draw.below(256));
  }
  if (!is_v6) {
    frame[26] = frame[30] = 10;
    frame[27] = frame[28] = frame[31] = frame[32] = 0;
    frame[29] = static_cast<std::uint8_t>(draw.below(256));
    frame[33] = static_cast<std::uint8_t>(draw.below(256));
  }
  if (draw.below(10) == 0) frame.resize(draw.below(static_cast<std::uint32_t>(frame.size()) + 1));
  return frame;
}

/// "tcp port 0" and so on.
inline std::vector<Program> port_filters(std::size_t count) {
  std::vector<Program> programs;
  for (std::size_t i = 0; i < count; ++i) programs.push_back(compiled("tcp port " + std::to_string(i)));
  return programs;
}

/// No two with the same code, but for constants.
inline std::vector<Program> distinct_filters(std::size_t count) {
  std::vector<Program> programs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    programs.push_back(compiled("port " + n + " and ip[" + std::to_string(i % 40) + "] & " +
                                std::to_string(1 + i / 40) + " != " + std::to_string(i % 7)));
  }
  return programs;
}

/// Filters of many kinds, with different shapes.
inline std::vector<Program> mixed_filters(std::size_t count) {
  std::vector<Program> programs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i % 256);
    const std::string host = "10.0.0." + n;
    switch (i % 16) {
      case 0: programs.push_back(compiled("host " + host + " and port " + n)); break;
      case 1: programs.push_back(compiled("udp and src net 10.0.0.0/" + std::to_string(8 + i % 25))); break;
      case 2: programs.push_back(compiled("tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and src port " + n)); break;
      case 3: programs.push_back(compiled("ip[2:2] > " + n + " or greater " + n)); break;
      case 4: programs.push_back(compiled("ip6 and tcp dst portrange " + n + "-" + std::to_string(i + 100))); break;
      case 5: programs.push_back(compiled("vlan and host " + host)); break;
      case 6: programs.push_back(compiled("not arp and not (udp port " + n + ")")); break;
      case 7: programs.push_back(compiled("tcp[((tcp[12] & 0xf0) >> 2):4] = " + n)); break;
      case 8: programs.push_back(compiled("icmp or (ip proto " + n + " and len <= 100)")); break;
      case 9: programs.push_back(compiled("ether[6:4] & 0xff = " + n + " or ether src 00:00:01:02:03:00")); break;
      case 10: programs.push_back(compiled("src host " + host + " or dst host " + host)); break;
      case 11: programs.push_back(compiled("ip and ip[8] * 3 + 1 > ip[9] / 2 and udp[4:2] % 7 = 3")); break;
      case 12: programs.push_back(compiled("ip6 proto 6 or port " + n)); break;
      case 13: programs.push_back(compiled("len - 1 > " + n)); break;
      case 14: programs.push_back(compiled("tcp port " + n + " or udp port " + std::to_string(i / 2))); break;
      default: programs.push_back(compiled("net 10.0.0.0/24 and tcp src port " + n + " and ip[8] < 3")); break;
    }
  }
  return programs;
}

}  // namespace penstock::filter::testing
