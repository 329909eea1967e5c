// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/sa_identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <string_view>
#include <vector>

#include "nf/ipsec/crypto/hmac_core.h"
#include "nf/ipsec/crypto/keys.h"
#include "nf/ipsec/sa/addresses.h"

namespace penstock::ipsec {

namespace {

/// Encodes the parts of a message so that no two lists of parts yield the same bytes.
class Parts {
 public:
  explicit Parts(std::string_view label) { add(label); }
  Parts& add(std::string_view text) {
    number(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  Parts& number(std::uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes_.push_back(static_cast<std::uint8_t>(value >> shift));
    return *this;
  }
  Parts& sa(const SecurityAssociation& sa) {
    const Ipv6Address destination = table_address(sa.destination);
    return number(is_ipv6(sa.destination) ? 6 : 4).number(destination.high).number(destination.low).number(sa.spi);
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Key material, wiped on destruction.
struct Material {
  std::array<std::uint8_t, kShaBlockBytes> bytes{};
  std::size_t size = 0;

  Material() = default;
  Material(const Material&) = delete;
  Material& operator=(const Material&) = delete;
  ~Material() { wipe(bytes.data(), bytes.size()); }
  void add(const Secret& secret) noexcept {
    assert(size + secret.size() <= bytes.size());
    std::ranges::copy(secret.bytes(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    size += secret.size();
  }
  [[nodiscard]] std::span<const std::uint8_t> span() const noexcept { return {bytes.data(), size}; }
};

}  // namespace

Digest keyed_digest(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message) noexcept {
  Sha256::State states[2];
  hmac_states<Sha256>(key, states);
  const auto bytes = static_cast<std::uint32_t>(message.size());
  const Sha256::State digest = hmac<Sha256>(MessageBytes(message.data(), bytes), bytes, false, 0, states[0], states[1]);
  wipe(states, sizeof states);
  Digest result;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::uint8_t>(digest.w[i / 4] >> (24 - 8 * (i % 4)));
  }
  return result;
}

Digest fingerprint_of(const SecurityAssociation& sa) {
  // Two digests, since both keys together may be longer than an HMAC key.
  Material cipher;
  cipher.add(sa.cipher_key);
  cipher.add(sa.salt);
  const Digest inner = keyed_digest(cipher.span(), Parts("penstock fingerprint").bytes());
  Material integrity;
  integrity.add(sa.integrity_key);
  return keyed_digest(integrity.span(), Parts("penstock fingerprint")
                                            .add({reinterpret_cast<const char*>(inner.data()), inner.size()})
                                            .number(static_cast<std::uint64_t>(sa.cipher))
                                            .number(static_cast<std::uint64_t>(sa.integrity))
                                            .number(sa.icv_bytes)
                                            .number(sa.cipher_key.size())
                                            .number(sa.integrity_key.size())
                                            .bytes());
}

SaIdentity identity_of(const SecurityAssociation& sa, SaEnd end) {
  const bool of_key = end == SaEnd::sender && sa.cipher != Cipher::null;
  Material material;
  if (sa.cipher == Cipher::null) {
    material.add(sa.integrity_key);
  } else {
    material.add(sa.cipher_key);
    material.add(sa.salt);
  }
  const auto digest = [&](std::string_view label, bool with_sa) {
    Parts parts(label);
    if (with_sa) parts.sa(sa);
    return keyed_digest(material.span(), parts.bytes());
  };
  return {end, sa.cipher != Cipher::null,
          digest(end == SaEnd::sender ? "penstock sender" : "penstock receiver", !of_key), digest("penstock SA", true),
          digest("penstock record", !of_key)};
}

std::string SaIdentity::file_name() const { return fmt::format("{:02x}", fmt::join(std::span(owner).first(16), "")); }

std::uint64_t SaIdentity::lock_place() const noexcept {
  std::uint64_t place = 0;
  for (std::size_t i = 16; i < 24; ++i) place = place << 8 | owner[i];
  return place >> 2;  // file offsets have 63 bits, and the byte must end before the last one
}

}  // namespace penstock::ipsec
