// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/tuple_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(penstock::firewall::read_tuples({reinterpret_cast<const char*>(data), size}, "fuzz"));
  return 0;
}
