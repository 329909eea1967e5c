// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/jit.h"

#include <asmjit/x86.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "nf/filter/bpf/assembly.h"
#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {

namespace {

namespace x86 = asmjit::x86;

/// For each packet from `packets` to `end`, writes the program's return value.
using Code = void (*)(const PacketBytes* packets, const PacketBytes* end, std::uint32_t* returns);

// Registers that a function need not preserve, so that none is saved. X is where shifts expect their count.
constexpr x86::Gp kPackets = x86::rdi;  // arguments: the packet in hand, …
constexpr x86::Gp kEnd = x86::rsi;
constexpr x86::Gp kReturns = x86::r10;
constexpr x86::Gp kA = x86::eax;
constexpr x86::Gp kX = x86::ecx;
constexpr x86::Gp kX64 = x86::rcx;  // the upper half of X is 0
constexpr x86::Gp kData = x86::r8;
constexpr x86::Gp kLength = x86::r9d;
constexpr x86::Gp kLength64 = x86::r9;  // as of X
constexpr x86::Gp kRemainder = x86::edx;
constexpr x86::Gp kTemporary = x86::r11d;
constexpr x86::Gp kTemporary64 = x86::r11;

bool is_absolute_load(std::uint16_t code) noexcept {
  return code == kLoadWordAbs || code == kLoadHalfAbs || code == kLoadByteAbs || code == kLoadXHeaderLength;
}
bool is_indirect_load(std::uint16_t code) noexcept {
  return code == kLoadWordInd || code == kLoadHalfInd || code == kLoadByteInd;
}
std::uint32_t bytes_loaded(std::uint16_t code) noexcept {
  switch (code) {
    case kLoadWordAbs:
    case kLoadWordInd: return 4;
    case kLoadHalfAbs:
    case kLoadHalfInd: return 2;
    default: return 1;
  }
}

/// Whether K can be the displacement of an address, with the load's size added.
bool is_displacement(std::uint32_t k) noexcept {
  return k <= static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()) - 4;
}

/// For each instruction, the packet length that loads on all paths to it have checked.
std::vector<std::uint64_t> checked_lengths(std::span<const Instruction> program) {
  constexpr std::uint64_t kNotReached = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::uint64_t> checked(program.size(), kNotReached);
  checked[0] = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Instruction& at = program[i];
    std::uint64_t length = checked[i];
    if (is_return(at.code)) continue;
    if (is_absolute_load(at.code)) length = std::max(length, std::uint64_t{at.k} + bytes_loaded(at.code));
    const auto reach = [&](std::size_t skip) { checked[i + 1 + skip] = std::min(checked[i + 1 + skip], length); };
    if (is_branch(at.code)) {
      reach(at.jump_true);
      reach(at.jump_false);
    } else {
      reach(at.code == kJump ? at.k : 0);
    }
  }
  return checked;
}

/// Generates the code of a program.
class Generator {
 public:
  Generator(std::span<const Instruction> program, asmjit::CodeHolder& holder)
      : program_(program), assembler_(&holder), checked_(checked_lengths(program)) {}

  void generate() {
    x86::Assembler& a = assembler_;
    const asmjit::Label loop = a.newLabel();
    const asmjit::Label end = a.newLabel();
    return_zero_ = a.newLabel();
    return_a_ = a.newLabel();
    next_packet_ = a.newLabel();
    for (std::size_t i = 0; i < program_.size(); ++i) labels_.push_back(a.newLabel());

    a.mov(kReturns, x86::rdx);
    a.sub(x86::rsp, kScratchWords * 4);
    a.cmp(kPackets, kEnd);
    a.je(end);
    a.bind(loop);
    a.mov(kData, x86::ptr(kPackets, offsetof(PacketBytes, data)));
    a.mov(kLength, x86::ptr(kPackets, offsetof(PacketBytes, length)));
    a.xor_(kA, kA);
    a.xor_(kX, kX);
    clear_scratch();
    for (number_ = 0; number_ < program_.size(); ++number_) {
      a.bind(labels_[number_]);
      generate(program_[number_]);
    }
    a.bind(return_zero_);
    a.xor_(kA, kA);
    a.bind(return_a_);
    a.mov(x86::dword_ptr(kReturns), kA);
    a.bind(next_packet_);
    a.add(kReturns, sizeof(std::uint32_t));
    a.add(kPackets, sizeof(PacketBytes));
    a.cmp(kPackets, kEnd);
    a.jne(loop);
    a.bind(end);
    a.add(x86::rsp, kScratchWords * 4);
    a.ret();
  }

 private:
  [[nodiscard]] static x86::Mem scratch(std::uint32_t k) noexcept {
    return x86::dword_ptr(x86::rsp, static_cast<std::int32_t>(k * 4));
  }

  /// The words that the program loads.
  void clear_scratch() {
    bool cleared[kScratchWords] = {};
    for (const Instruction& at : program_) {
      if ((at.code != kLoadScratch && at.code != kLoadXScratch) || std::exchange(cleared[at.k], true)) continue;
      assembler_.mov(scratch(at.k), kA);
    }
  }

  void jump_to(std::size_t number) {
    if (number != number_ + 1) assembler_.jmp(labels_[number]);
  }

  /// A = the bytes at an address that has been checked; for the header length, X.
  void load_from(std::uint16_t code, x86::Mem address) {
    address.setSize(bytes_loaded(code));
    switch (bytes_loaded(code)) {
      case 4:
        assembler_.mov(kA, address);
        assembler_.bswap(kA);
        return;
      case 2:
        assembler_.movzx(kA, address);
        assembler_.rol(x86::ax, 8);
        return;
      default: break;
    }
    assembler_.movzx(code == kLoadXHeaderLength ? kX : kA, address);
    if (code != kLoadXHeaderLength) return;
    assembler_.and_(kX, 15);
    assembler_.shl(kX, 2);
  }

  void load_absolute(const Instruction& at) {
    const std::uint64_t needed = std::uint64_t{at.k} + bytes_loaded(at.code);
    if (needed > std::numeric_limits<std::uint32_t>::max()) {
      assembler_.jmp(return_zero_);
      return;
    }
    if (checked_[number_] < needed) {
      assembler_.cmp(kLength, static_cast<std::uint32_t>(needed));
      assembler_.jb(return_zero_);
    }
    if (is_displacement(at.k)) return load_from(at.code, x86::ptr(kData, static_cast<std::int32_t>(at.k)));
    assembler_.mov(kTemporary, at.k);
    load_from(at.code, x86::ptr(kData, kTemporary64));
  }

  /// With 64 bits, X + K does not wrap.
  void load_indirect(const Instruction& at) {
    const auto size = static_cast<std::int32_t>(bytes_loaded(at.code));
    if (is_displacement(at.k)) {
      const auto k = static_cast<std::int32_t>(at.k);
      assembler_.lea(kTemporary64, x86::ptr(kX64, k + size));
      assembler_.cmp(kTemporary64, kLength64);
      assembler_.ja(return_zero_);
      return load_from(at.code, x86::ptr(kData, kX64, 0, k));
    }
    assembler_.mov(kTemporary, at.k);
    assembler_.add(kTemporary64, kX64);
    assembler_.lea(x86::rdx, x86::ptr(kTemporary64, size));
    assembler_.cmp(x86::rdx, kLength64);
    assembler_.ja(return_zero_);
    load_from(at.code, x86::ptr(kData, kTemporary64));
  }

  void divide(const Instruction& at) {
    const bool by_x = at.code == kDivideX || at.code == kModuloX;
    if (by_x) {
      assembler_.test(kX, kX);
      assembler_.jz(return_zero_);
    } else {
      assembler_.mov(kTemporary, at.k);
    }
    assembler_.xor_(kRemainder, kRemainder);
    assembler_.div(by_x ? kX : kTemporary);
    if (at.code == kModuloK || at.code == kModuloX) assembler_.mov(kA, kRemainder);
  }

  /// The processor uses five bits of X. A becomes 0 if X is over 31.
  void shift_by_x(std::uint16_t code) {
    if (code == kShiftLeftX)
      assembler_.shl(kA, x86::cl);
    else
      assembler_.shr(kA, x86::cl);
    assembler_.cmp(kX, 32);
    assembler_.sbb(kTemporary, kTemporary);  // all bits set if X < 32
    assembler_.and_(kA, kTemporary);
  }

  void branch(const Instruction& at) {
    const std::size_t on_true = number_ + 1 + at.jump_true;
    const std::size_t on_false = number_ + 1 + at.jump_false;
    if (on_true == on_false) return jump_to(on_true);
    using Condition = x86::CondCode;
    Condition holds = Condition::kNotZero;
    switch (at.code) {
      case kJumpSetK: assembler_.test(kA, at.k); break;
      case kJumpSetX: assembler_.test(kA, kX); break;
      case kJumpEqualX:
      case kJumpGreaterX:
      case kJumpGreaterEqualX: assembler_.cmp(kA, kX); break;
      default: assembler_.cmp(kA, at.k);
    }
    if (at.code == kJumpEqualK || at.code == kJumpEqualX) holds = Condition::kEqual;
    if (at.code == kJumpGreaterK || at.code == kJumpGreaterX) holds = Condition::kUnsignedGT;
    if (at.code == kJumpGreaterEqualK || at.code == kJumpGreaterEqualX) holds = Condition::kUnsignedGE;
    if (at.jump_true == 0) {
      assembler_.j(x86::negateCond(holds), labels_[on_false]);
      return;
    }
    assembler_.j(holds, labels_[on_true]);
    jump_to(on_false);
  }

  void generate(const Instruction& at) {
    x86::Assembler& a = assembler_;
    if (is_absolute_load(at.code)) return load_absolute(at);
    if (is_indirect_load(at.code)) return load_indirect(at);
    if (is_branch(at.code)) return branch(at);
    const x86::Mem wire_length = x86::dword_ptr(kPackets, offsetof(PacketBytes, wire_length));
    switch (at.code) {
      case kLoadImmediate: a.mov(kA, at.k); break;
      case kLoadXImmediate: a.mov(kX, at.k); break;
      case kLoadScratch: a.mov(kA, scratch(at.k)); break;
      case kLoadXScratch: a.mov(kX, scratch(at.k)); break;
      case kLoadLength: a.mov(kA, wire_length); break;
      case kLoadXLength: a.mov(kX, wire_length); break;
      case kStore: a.mov(scratch(at.k), kA); break;
      case kStoreX: a.mov(scratch(at.k), kX); break;
      case kAddK: a.add(kA, at.k); break;
      case kAddX: a.add(kA, kX); break;
      case kSubtractK: a.sub(kA, at.k); break;
      case kSubtractX: a.sub(kA, kX); break;
      case kMultiplyK: a.imul(kA, kA, at.k); break;
      case kMultiplyX: a.imul(kA, kX); break;
      case kDivideK:
      case kDivideX:
      case kModuloK:
      case kModuloX: divide(at); break;
      case kOrK: a.or_(kA, at.k); break;
      case kOrX: a.or_(kA, kX); break;
      case kAndK: a.and_(kA, at.k); break;
      case kAndX: a.and_(kA, kX); break;
      case kXorK: a.xor_(kA, at.k); break;
      case kXorX: a.xor_(kA, kX); break;
      case kShiftLeftK: a.shl(kA, at.k); break;
      case kShiftRightK: a.shr(kA, at.k); break;
      case kShiftLeftX:
      case kShiftRightX: shift_by_x(at.code); break;
      case kNegate: a.neg(kA); break;
      case kCopyAToX: a.mov(kX, kA); break;
      case kCopyXToA: a.mov(kA, kX); break;
      case kJump: jump_to(number_ + 1 + at.k); break;
      case kReturnA: a.jmp(return_a_); break;
      default:  // kReturnK
        a.mov(x86::dword_ptr(kReturns), at.k);
        a.jmp(next_packet_);
    }
  }

  std::span<const Instruction> program_;
  x86::Assembler assembler_;
  std::vector<std::uint64_t> checked_;
  std::vector<asmjit::Label> labels_;  // of each instruction
  asmjit::Label return_zero_;
  asmjit::Label return_a_;
  asmjit::Label next_packet_;
  std::size_t number_ = 0;
};

/// Keeps the first error.
class FirstError final : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error error, const char* /*message*/, asmjit::BaseEmitter* /*origin*/) override {
    if (error_ == asmjit::kErrorOk) error_ = error;
  }
  [[nodiscard]] asmjit::Error error() const noexcept { return error_; }

 private:
  asmjit::Error error_ = asmjit::kErrorOk;
};

/// No memory is both writable and executable: code is written through a second mapping.
asmjit::JitAllocator::CreateParams allocation() noexcept {
  asmjit::JitAllocator::CreateParams parameters;
  parameters.options = asmjit::JitAllocatorOptions::kUseDualMapping;
  return parameters;
}

class Jit final : public Matcher {
 public:
  Jit() : parameters_(allocation()), runtime_(&parameters_) {}

  asmjit::Error add(const Program& program) {
    FirstError errors;
    asmjit::CodeHolder holder;
    if (const auto error = holder.init(runtime_.environment())) return error;
    holder.setErrorHandler(&errors);
    Generator(program.instructions(), holder).generate();
    if (errors.error() != asmjit::kErrorOk) return errors.error();
    Code code = nullptr;
    if (const auto error = runtime_.add(&code, &holder)) return error;
    codes_.push_back(code);
    return asmjit::kErrorOk;
  }

  void run(std::size_t program, std::span<const PacketBytes> packets, std::uint32_t* returns) const noexcept override {
    codes_[program](packets.data(), packets.data() + packets.size(), returns);
  }
  [[nodiscard]] std::size_t programs() const noexcept override { return codes_.size(); }
  [[nodiscard]] std::string_view name() const noexcept override { return "jit"; }

 private:
  asmjit::JitAllocator::CreateParams parameters_;
  asmjit::JitRuntime runtime_;  // owns the code
  std::vector<Code> codes_;
};

}  // namespace

bool has_jit() noexcept { return true; }

Result<std::unique_ptr<Matcher>> make_jit_matcher(const std::vector<Program>& programs) {
  auto jit = std::make_unique<Jit>();
  for (const Program& program : programs)
    if (const auto error = jit->add(program))
      return failure(Error{
          {},
          std::string("cannot compile a BPF program to machine code: ") + asmjit::DebugUtils::errorAsString(error),
          "engine 'jit'",
          "interpreter or libpcap"});
  return jit;
}

}  // namespace penstock::filter
