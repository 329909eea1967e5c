// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/steering.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <sys/syscall.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "packet/flow_hash.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "port/live/bpf_assembler.h"
#include "port/worker_key.h"

namespace penstock::port {

namespace {

using enum BpfAssembler::Register;
using Register = BpfAssembler::Register;

/// Jumps to `other` are filled in at the end.
class Assembler : public BpfAssembler {
 public:
  using BpfAssembler::load;
  /// r0 = bytes of the packet, from its network header, in host order. The program ends if there are too few: worker 0.
  void load(std::uint8_t size, std::int32_t offset) { add(BPF_LD | BPF_ABS | size, r0, r0, 0, SKF_NET_OFF + offset); }
  void other_if(std::uint8_t condition, Register left, std::int32_t right) {
    to_other_.push_back(jump_if(condition, left, right));
  }
  /// mix64 of packet/flow_hash.h. Changes r1.
  void mix(Register x) {
    const auto fold = [&] {
      move(r1, x);
      alu(BPF_RSH, r1, 33);
      alu(BPF_XOR, x, r1);
    };
    const auto multiply = [&](std::uint64_t by) {
      move64(r1, by);
      alu(BPF_MUL, x, r1);
    };
    fold();
    multiply(0xff51afd7ed558ccdULL);
    fold();
    multiply(0xc4ceb9fe1a85ec53ULL);
    fold();
  }
  [[nodiscard]] const std::vector<bpf_insn>& finish() {
    for (const std::size_t jump : to_other_) land(jump);
    move(r0, 0);
    exit();
    return code();
  }

 private:
  std::vector<std::size_t> to_other_;
};

/// The registers: r6 the packet, r7 and r8 the source and destination (packet/flow_hash.h), r9 the protocol.
void load_protocol(Assembler& code, std::int32_t offset) {
  code.load(BPF_B, offset);
  code.move(r9, r0);
  const std::size_t is_tcp = code.jump_if(BPF_JEQ, r9, ip_protocol::kTcp);
  code.other_if(BPF_JNE, r9, ip_protocol::kUdp);
  code.land(is_tcp);
}

/// Adds a port to its address, unless it is one of a tunnel.
void load_port(Assembler& code, Register address, std::int32_t offset) {
  code.load(BPF_H, offset);
  for (std::uint32_t port = 0; port <= 0xffff; ++port) {
    if (is_tunnel_port(static_cast<std::uint16_t>(port))) code.other_if(BPF_JEQ, r0, static_cast<std::int32_t>(port));
  }
  code.alu(BPF_LSH, r0, 40);
  code.alu(BPF_XOR, address, r0);
}

void load_ipv4(Assembler& code) {
  code.load(BPF_B, 0);
  code.other_if(BPF_JNE, r0, 0x45);  // options are rare
  code.load(BPF_H, 6);
  code.alu(BPF_AND, r0, Ipv4Header::kMoreFragments | Ipv4Header::kOffsetMask);
  code.other_if(BPF_JNE, r0, 0);
  load_protocol(code, 9);
  code.load(BPF_W, 12);
  code.move(r7, r0);
  code.load(BPF_W, 16);
  code.move(r8, r0);
  load_port(code, r7, 20);
  load_port(code, r8, 22);
}

/// fold_ipv6
void load_ipv6_address(Assembler& code, Register to, std::int32_t offset) {
  constexpr std::int16_t kSlot = -8;
  code.load(BPF_W, offset);
  code.alu(BPF_LSH, r0, 32);
  code.store(BPF_DW, kSlot, r0);
  code.load(BPF_W, offset + 4);
  code.load(BPF_DW, r2, r10, kSlot);
  code.alu(BPF_OR, r2, r0);
  code.mix(r2);
  code.store(BPF_DW, kSlot, r2);
  code.load(BPF_W, offset + 8);
  code.alu(BPF_LSH, r0, 32);
  code.move(to, r0);
  code.load(BPF_W, offset + 12);
  code.alu(BPF_OR, to, r0);
  code.load(BPF_DW, r2, r10, kSlot);
  code.alu(BPF_XOR, to, r2);
}

void load_ipv6(Assembler& code) {
  load_protocol(code, 6);
  load_ipv6_address(code, r7, 8);
  load_ipv6_address(code, r8, 24);
  load_port(code, r7, 40);
  load_port(code, r8, 42);
}

/// symmetric_hash and worker_of_hash.
void return_worker(Assembler& code, unsigned workers) {
  code.move64(r2, 0x9e3779b97f4a7c15ULL);
  code.alu(BPF_ADD, r7, r2);
  code.alu(BPF_ADD, r8, r2);
  code.mix(r7);
  code.mix(r8);
  code.alu(BPF_ADD, r7, r8);
  code.alu(BPF_ADD, r7, r9);
  code.mix(r7);
  code.alu(BPF_RSH, r7, 32);
  code.other_if(BPF_JEQ, r7, 0);
  code.move64(r2, static_cast<std::uint64_t>(FlowShare::worker));
  code.alu(BPF_XOR, r7, r2);
  code.mix(r7);
  code.alu(BPF_RSH, r7, 32);
  code.alu(BPF_MUL, r7, static_cast<std::int32_t>(workers));
  code.alu(BPF_RSH, r7, 32);
  code.move(r0, r7);
  code.exit();
}

}  // namespace

FileDescriptor load_steering_program(unsigned workers) noexcept {
  Assembler code;
  code.move(r6, r1);
  code.load(BPF_W, r7, r6, offsetof(__sk_buff, protocol));
  const auto big_endian = [](std::uint16_t type) {
    return std::endian::native == std::endian::little ? __builtin_bswap16(type) : type;
  };
  const std::size_t is_ipv6 = code.jump_if(BPF_JEQ, r7, big_endian(ETH_P_IPV6));
  code.other_if(BPF_JNE, r7, big_endian(ETH_P_IP));
  load_ipv4(code);
  const std::size_t hash = code.jump();
  code.land(is_ipv6);
  load_ipv6(code);
  code.land(hash);
  return_worker(code, workers);
  const std::vector<bpf_insn>& program = code.finish();

  constexpr std::string_view kLicense = "GPL";  // only names the helpers that it may call: none
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  attributes.insns = reinterpret_cast<std::uint64_t>(program.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
  attributes.license = reinterpret_cast<std::uint64_t>(kLicense.data());
  return FileDescriptor(static_cast<int>(::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes)));
}

}  // namespace penstock::port
