// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "third_party_modules.h"

#include <cstddef>

// The files, between two symbols each.
asm(R"(
  .pushsection .rodata
  drop_port_80: .incbin ")" MODULES R"(/drop_port_80.cubin"
  drop_port_80_end:
  drop_port_90: .incbin ")" MODULES R"(/drop_port_90.cubin"
  drop_port_90_end:
  faulty_80: .incbin ")" MODULES R"(/faulty_kernels_80.cubin"
  faulty_80_end:
  faulty_90: .incbin ")" MODULES R"(/faulty_kernels_90.cubin"
  faulty_90_end:
  .popsection
)");

extern "C" {
extern const char drop_port_80[], drop_port_80_end[], drop_port_90[], drop_port_90_end[];
extern const char faulty_80[], faulty_80_end[], faulty_90[], faulty_90_end[];
}

namespace penstock::on_gpu {

namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

std::string_view drop_port_module(int compute_major) {
  return compute_major == 8 ? between(drop_port_80, drop_port_80_end) : between(drop_port_90, drop_port_90_end);
}

std::string_view faulty_module(int compute_major) {
  return compute_major == 8 ? between(faulty_80, faulty_80_end) : between(faulty_90, faulty_90_end);
}

}  // namespace penstock::on_gpu
