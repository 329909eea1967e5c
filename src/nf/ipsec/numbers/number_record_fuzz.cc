// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/testing/fuzz_check.h"
#include "nf/ipsec/numbers/number_record.h"

using namespace penstock;
using penstock::testing::check;

/// A slot with arbitrary content, with and without a correct checksum: a record that is accepted must encode to the
/// same bytes. A slot may have further bytes after its record.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ipsec::Digest seal{1};
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(ipsec::decode(text, seal));
  const ipsec::Digest checksum = ipsec::keyed_digest(seal, {data, size});
  const std::string sealed = text + std::string(reinterpret_cast<const char*>(checksum.data()), 16);
  if (const auto record = ipsec::decode(sealed, seal)) check(sealed.starts_with(ipsec::encode(*record, seal)));
  return 0;
}
