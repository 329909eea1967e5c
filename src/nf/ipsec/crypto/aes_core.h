// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// AES (FIPS 197). Each column is a word with its first row in the least significant byte, as in memory. A round is four
// table lookups per column; the table combines SubBytes and MixColumns. The caller chooses where the table is stored: a
// `Table` looks up byte k of a word and returns the entry (`first`) or the entry rotated left by one byte (`second`).
// The other two rotations are derived from these, both at once. The last round, which has no MixColumns, extracts the
// S-box values from the same entries.
//
// Lookups in host memory depend on the key, so caches can leak it. On the host this code is therefore only the test
// oracle; chains encrypt with another library. On a device each lane has its own copy of the table.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/host_device.h"
#include "nf/ipsec/crypto/block_core.h"

namespace penstock::ipsec {

inline constexpr int kMostAesRounds = 14;

struct AesTables {
  std::array<std::uint8_t, 256> sbox;
  std::array<std::uint32_t, 256>
      encryption;  // of S(x): the products by 2, 1, 1, 3 (FIPS 197 §5.1.3), from the lowest byte
  std::array<std::uint32_t, 256> decryption;  // of S^-1(x): the products by 14, 9, 13, 11 (§5.3.3)
};

namespace detail {

/// In GF(2^8) with the polynomial x^8 + x^4 + x^3 + x + 1 (FIPS 197 §4.2).
constexpr std::uint32_t gf_times(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product ^= a;
    a = a << 1 ^ ((a & 0x80) != 0 ? 0x11b : 0);
  }
  return product;
}

constexpr AesTables make_aes_tables() noexcept {
  // Every element but 0 is a power of 3; the inverse of the k-th power is the (255 - k)-th.
  std::array<std::uint32_t, 256> power{};
  std::array<std::uint32_t, 256> exponent{};
  for (std::uint32_t k = 0, x = 1; k < 255; ++k, x = gf_times(x, 3)) {
    power[k] = x;
    exponent[x] = k;
  }
  AesTables tables{};
  for (std::uint32_t x = 0; x < 256; ++x) {
    const std::uint32_t inverse = x == 0 ? 0 : power[(255 - exponent[x]) % 255];
    std::uint32_t s = 0x63;
    for (unsigned turn = 0; turn < 5; ++turn) s ^= (inverse << turn | inverse >> (8 - turn)) & 0xff;
    tables.sbox[x] = static_cast<std::uint8_t>(s);
    tables.encryption[x] = gf_times(s, 2) | s << 8 | s << 16 | gf_times(s, 3) << 24;
    tables.decryption[s] = gf_times(x, 14) | gf_times(x, 9) << 8 | gf_times(x, 13) << 16 | gf_times(x, 11) << 24;
  }
  return tables;
}

}  // namespace detail

inline constexpr AesTables kAesTables = detail::make_aes_tables();

/// Looks up entries in a single table of 256 words.
struct AesTableView {
  const std::uint32_t* words;

  template <int k>
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t first(std::uint32_t word) const noexcept {
    return words[word >> (8 * k) & 0xff];
  }
  template <int k>
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t second(std::uint32_t word) const noexcept {
    return rotate_left(first<k>(word), 8);
  }
  /// The table for lookups outside the loop over the rounds. Some tables access it differently there.
  [[nodiscard]] PENSTOCK_HOST_DEVICE AesTableView outside_rounds() const noexcept { return *this; }
};

[[nodiscard]] inline AesTableView host_encryption_table() noexcept { return {kAesTables.encryption.data()}; }
[[nodiscard]] inline AesTableView host_decryption_table() noexcept { return {kAesTables.decryption.data()}; }

/// `step` is the distance between the columns that a column's rows come from: 1 for ShiftRows, 3 for its inverse.
template <int step, typename Table>
PENSTOCK_HOST_DEVICE Block aes_round(const Table& table, const Block& state, const Block& key) noexcept {
  Block next;
  unrolled<4>([&](auto c) {
    const std::uint32_t near = table.template first<0>(state.w[c]) ^ table.template second<1>(state.w[(c + step) % 4]);
    const std::uint32_t far =
        table.template first<2>(state.w[(c + 2) % 4]) ^ table.template second<3>(state.w[(c + 3 * step) % 4]);
    next.w[c] = near ^ select_bytes(far, far, 0x1032) ^ key.w[c];
  });
  return next;
}

/// S(x) is the second and third byte of the encryption table's entry.
template <typename Table>
PENSTOCK_HOST_DEVICE Block aes_last_encryption_round(const Table& table, const Block& state,
                                                     const Block& key) noexcept {
  Block out;
  unrolled<4>([&](auto c) {
    const std::uint32_t low =
        select_bytes(table.template first<0>(state.w[c]), table.template first<1>(state.w[(c + 1) % 4]), 0x0051);
    const std::uint32_t high = select_bytes(table.template first<2>(state.w[(c + 2) % 4]),
                                            table.template first<3>(state.w[(c + 3) % 4]), 0x6200);
    out.w[c] = select_bytes(low, high, 0x7610) ^ key.w[c];
  });
  return out;
}

/// S^-1(x) is the XOR of the four bytes of the decryption table's entry, because 14 + 9 + 13 + 11 = 1 in GF(2^8).
template <typename Table>
PENSTOCK_HOST_DEVICE Block aes_last_decryption_round(const Table& table, const Block& state,
                                                     const Block& key) noexcept {
  const auto halves = [](std::uint32_t a, std::uint32_t b) {
    return select_bytes(a, b, 0x5410) ^ select_bytes(a, b, 0x7632);
  };
  Block out;
  unrolled<4>([&](auto c) {
    const std::uint32_t low =
        halves(table.template first<0>(state.w[c]), table.template first<1>(state.w[(c + 3) % 4]));
    const std::uint32_t high =
        halves(table.template first<2>(state.w[(c + 2) % 4]), table.template first<3>(state.w[(c + 1) % 4]));
    out.w[c] = select_bytes(low, high, 0x6420) ^ select_bytes(low, high, 0x7531) ^ key.w[c];
  });
  return out;
}

/// The rounds from `round` on, for several blocks under one key, interleaved so that their lookups do not wait for each
/// other. `keys` holds the round keys in order of use, rounds + 1 of them: 11, 13 or 15.
template <int step, int count, typename Table, typename LastRound>
PENSTOCK_HOST_DEVICE void aes_rounds_from(const Table& table, const Block* keys, int round, int rounds,
                                          Block (&blocks)[count], const LastRound& last_round) noexcept {
  Block key = load_constant(keys[round]);
  for (; round < rounds; ++round) {
    const Block next_key = load_constant(keys[round + 1]);
    for (Block& block : blocks) block = aes_round<step>(table, block, key);
    key = next_key;
  }
  for (Block& block : blocks) block = last_round(block, key);
}

template <int count, typename Table>
PENSTOCK_HOST_DEVICE void aes_encrypt_from(const Table& table, const Block* keys, int round, int rounds,
                                           Block (&blocks)[count]) noexcept {
  aes_rounds_from<1>(table, keys, round, rounds, blocks, [&](const Block& block, const Block& key) {
    return aes_last_encryption_round(table, block, key);
  });
}

template <int count, typename Table>
PENSTOCK_HOST_DEVICE void aes_encrypt(const Table& table, const Block* keys, int rounds,
                                      Block (&blocks)[count]) noexcept {
  const Block key = load_constant(keys[0]);
  for (Block& block : blocks) block = block ^ key;
  aes_encrypt_from(table, keys, 1, rounds, blocks);
}

/// Counter blocks that differ only in their last two bytes, the count. The contribution of the other fourteen bytes to
/// the first two rounds is computed once (Bernstein & Schwabe, "New AES Software Speed Records", 2008, §4), which
/// leaves ten lookups per block of 32.
class AesCounter {
 public:
  /// `block` is a counter block with count 0.
  template <typename Table>
  PENSTOCK_HOST_DEVICE AesCounter(const Table& table, const Block* keys, const Block& block) noexcept {
    const Block s = block ^ load_constant(keys[0]);
    const Block key1 = load_constant(keys[1]);
    const Block key2 = load_constant(keys[2]);
    last_ = s.w[3];
    // The count's two bytes affect columns 0 and 1, one each. These two lack one entry; the others are complete.
    column0_ = table.template first<0>(s.w[0]) ^ table.template second<1>(s.w[1]) ^
               half_turn(table.template first<2>(s.w[2])) ^ key1.w[0];
    column1_ = table.template first<0>(s.w[1]) ^ table.template second<1>(s.w[2]) ^
               half_turn(table.template second<3>(s.w[0])) ^ key1.w[1];
    const std::uint32_t column2 = table.template first<0>(s.w[2]) ^ table.template second<1>(s.w[3]) ^
                                  half_turn(table.template first<2>(s.w[0]) ^ table.template second<3>(s.w[1])) ^
                                  key1.w[2];
    const std::uint32_t column3 = table.template first<0>(s.w[3]) ^ table.template second<1>(s.w[0]) ^
                                  half_turn(table.template first<2>(s.w[1]) ^ table.template second<3>(s.w[2])) ^
                                  key1.w[3];
    fixed_.w[0] = half_turn(table.template first<2>(column2) ^ table.template second<3>(column3)) ^ key2.w[0];
    fixed_.w[1] = table.template second<1>(column2) ^ half_turn(table.template first<2>(column3)) ^ key2.w[1];
    fixed_.w[2] = table.template first<0>(column2) ^ table.template second<1>(column3) ^ key2.w[2];
    fixed_.w[3] = table.template first<0>(column3) ^ half_turn(table.template second<3>(column2)) ^ key2.w[3];
  }

  /// The state after two rounds of the block with this count, which must be below 65536.
  template <typename Table>
  [[nodiscard]] PENSTOCK_HOST_DEVICE Block after_two_rounds(const Table& table, std::uint32_t count) const noexcept {
    const std::uint32_t last = last_ ^ swap_bytes(count);
    const std::uint32_t column0 = column0_ ^ half_turn(table.template second<3>(last));
    const std::uint32_t column1 = column1_ ^ half_turn(table.template first<2>(last));
    return {{fixed_.w[0] ^ table.template first<0>(column0) ^ table.template second<1>(column1),
             fixed_.w[1] ^ table.template first<0>(column1) ^ half_turn(table.template second<3>(column0)),
             fixed_.w[2] ^ half_turn(table.template first<2>(column0) ^ table.template second<3>(column1)),
             fixed_.w[3] ^ table.template second<1>(column0) ^ half_turn(table.template first<2>(column1))}};
  }

 private:
  [[nodiscard]] PENSTOCK_HOST_DEVICE static std::uint32_t half_turn(std::uint32_t entry) noexcept {
    return select_bytes(entry, entry, 0x1032);
  }

  std::uint32_t last_;               // the column that contains the count, XORed with the first round key
  std::uint32_t column0_, column1_;  // after one round, without the count's entries
  Block fixed_;                      // after two rounds, without the entries of these two columns
};

/// Like `aes_encrypt`, with the keys of `aes_decryption_keys` and the decryption table.
template <int count, typename Table>
PENSTOCK_HOST_DEVICE void aes_decrypt(const Table& table, const Block* keys, int rounds,
                                      Block (&blocks)[count]) noexcept {
  const Block key = load_constant(keys[0]);
  for (Block& block : blocks) block = block ^ key;
  aes_rounds_from<3>(table, keys, 1, rounds, blocks, [&](const Block& block, const Block& round_key) {
    return aes_last_decryption_round(table, block, round_key);
  });
}

template <typename Table>
PENSTOCK_HOST_DEVICE Block aes_encrypt(const Table& table, const Block* keys, int rounds, const Block& block) noexcept {
  Block blocks[1] = {block};
  aes_encrypt(table, keys, rounds, blocks);
  return blocks[0];
}

template <typename Table>
PENSTOCK_HOST_DEVICE Block aes_decrypt(const Table& table, const Block* keys, int rounds, const Block& block) noexcept {
  Block blocks[1] = {block};
  aes_decrypt(table, keys, rounds, blocks);
  return blocks[0];
}

/// `key_bytes` is 16, 24 or 32.
[[nodiscard]] constexpr int aes_rounds(std::size_t key_bytes) noexcept { return static_cast<int>(key_bytes / 4) + 6; }

/// Key expansion (FIPS 197 §5.2); host only. Writes the first `aes_rounds(key.size()) + 1` of `keys`.
inline void aes_encryption_keys(std::span<const std::uint8_t> key, Block (&keys)[kMostAesRounds + 1]) noexcept {
  const std::size_t key_words = key.size() / 4;
  const std::size_t words = 4 * static_cast<std::size_t>(aes_rounds(key.size()) + 1);
  const auto word = [&](std::size_t i) -> std::uint32_t& { return keys[i / 4].w[i % 4]; };
  const auto substitute = [](std::uint32_t x) {
    std::uint32_t s = 0;
    for (unsigned k = 0; k < 32; k += 8) s |= std::uint32_t{kAesTables.sbox[x >> k & 0xff]} << k;
    return s;
  };
  std::uint32_t round_constant = 1;
  for (std::size_t i = 0; i < words; ++i) {
    if (i < key_words) {
      std::uint32_t x = 0;
      for (std::size_t k = 0; k < 4; ++k) x |= std::uint32_t{key[4 * i + k]} << (8 * k);
      word(i) = x;
      continue;
    }
    std::uint32_t x = word(i - 1);
    if (i % key_words == 0) {
      x = substitute(rotate_left(x, 24)) ^ round_constant;
      round_constant = detail::gf_times(round_constant, 2);
    } else if (key_words > 6 && i % key_words == 4) {
      x = substitute(x);
    }
    word(i) = word(i - key_words) ^ x;
  }
}

/// Round keys of the equivalent inverse cipher (FIPS 197 §5.3.5), derived from the encryption keys; host only.
inline void aes_decryption_keys(const Block (&encryption)[kMostAesRounds + 1], int rounds,
                                Block (&keys)[kMostAesRounds + 1]) noexcept {
  for (int round = 0; round <= rounds; ++round) {
    Block key = encryption[rounds - round];
    if (round != 0 && round != rounds) {
      for (std::uint32_t& word : key.w) {
        std::uint32_t mixed = 0;
        for (int k = 0; k < 4; ++k) {
          const std::uint8_t byte = static_cast<std::uint8_t>(word >> (8 * k));
          mixed ^= k == 0 ? kAesTables.decryption[kAesTables.sbox[byte]]
                          : rotate_left(kAesTables.decryption[kAesTables.sbox[byte]], 8 * k);
        }
        word = mixed;
      }
    }
    keys[round] = key;
  }
}

}  // namespace penstock::ipsec
