// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Assembles eBPF programs (linux/bpf.h), with jumps whose targets come later.

#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::port {

class BpfAssembler {
 public:
  enum Register : std::uint8_t { r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10 };

  void add(int code, Register to = r0, Register from = r0, std::int16_t offset = 0, std::int32_t value = 0) {
    bpf_insn instruction{};
    instruction.code = static_cast<std::uint8_t>(code);
    instruction.dst_reg = to & 15U;
    instruction.src_reg = from & 15U;
    instruction.off = offset;
    instruction.imm = value;
    code_.push_back(instruction);
  }
  void move(Register to, Register from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from); }
  void move(Register to, std::int32_t value) { add(BPF_ALU64 | BPF_MOV | BPF_K, to, r0, 0, value); }
  void move64(Register to, std::uint64_t value) {
    add(BPF_LD | BPF_IMM | BPF_DW, to, r0, 0, static_cast<std::int32_t>(value));
    add(0, r0, r0, 0, static_cast<std::int32_t>(value >> 32));
  }
  void move_map(Register to, int map) {
    add(BPF_LD | BPF_IMM | BPF_DW, to, static_cast<Register>(BPF_PSEUDO_MAP_FD), 0, map);
    add(0);
  }
  void alu(std::uint8_t operation, Register to, Register from) { add(BPF_ALU64 | operation | BPF_X, to, from); }
  void alu(std::uint8_t operation, Register to, std::int32_t value) {
    add(BPF_ALU64 | operation | BPF_K, to, r0, 0, value);
  }
  /// `size`: BPF_B, BPF_H, BPF_W or BPF_DW.
  void load(int size, Register to, Register from, std::int16_t offset) {
    add(BPF_LDX | BPF_MEM | size, to, from, offset);
  }
  void store(int size, std::int16_t slot, Register from) { add(BPF_STX | BPF_MEM | size, r10, from, slot); }
  void call(std::int32_t helper) { add(BPF_JMP | BPF_CALL, r0, r0, 0, helper); }
  void exit() { add(BPF_JMP | BPF_EXIT); }
  /// Jumps, whose places these return, go to where they `land`.
  std::size_t jump() {
    add(BPF_JMP | BPF_JA);
    return code_.size() - 1;
  }
  std::size_t jump_if(std::uint8_t condition, Register left, std::int32_t right) {
    add(BPF_JMP | condition | BPF_K, left, r0, 0, right);
    return code_.size() - 1;
  }
  std::size_t jump_if(std::uint8_t condition, Register left, Register right) {
    add(BPF_JMP | condition | BPF_X, left, right);
    return code_.size() - 1;
  }
  void land(std::size_t jump) { code_[jump].off = static_cast<std::int16_t>(code_.size() - jump - 1); }

  [[nodiscard]] const std::vector<bpf_insn>& code() const noexcept { return code_; }

 private:
  std::vector<bpf_insn> code_;
};

}  // namespace penstock::port
