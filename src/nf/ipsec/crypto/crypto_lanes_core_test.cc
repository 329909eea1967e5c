// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/crypto_lanes_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

/// A packet of random bytes surrounded by others, and the same packet sealed by `seal`.
struct Sealed {
  explicit Sealed(const SaKeys& keys, std::uint32_t text_bytes, RandomCrypto& draw)
      : job(job_of(keys, 0, 32 + draw.below(32), text_bytes, draw.number())),
        plain(draw.bytes(job.esp + packet_bytes(job) + 32)),
        sealed(plain) {
    seal(job, keys, sealed.data());
  }

  CryptoJob job;
  Bytes plain;
  Bytes sealed;
};

/// Calls `check` for every SA that `wanted` accepts, with packets of every block count that matters.
template <typename Wanted, typename Check>
void for_each_packet(Wanted wanted, Check check) {
  RandomCrypto draw(30);
  for (const KeyMaterial& material : draw.every_algorithm()) {
    const SaKeys keys = expanded(material);
    if (!wanted(keys)) continue;
    std::vector<std::uint32_t> lengths{65'000};
    for (std::uint32_t bytes = 0; bytes < 1100; bytes += penstock::testing::stride() * (1 + draw.below(9)))
      lengths.push_back(bytes);
    for (const std::uint32_t bytes : lengths) {
      const bool whole = keys.cipher == Cipher::aes_cbc;
      check(keys, Sealed(keys, whole ? bytes / kBlockBytes * kBlockBytes : bytes, draw));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(CryptoLanes, EncryptByCounterTogetherAsOneThreadDoes) {
  std::uint32_t packets = 0;
  for_each_packet([](const SaKeys& keys) { return keys.cipher == Cipher::aes_ctr || keys.cipher == Cipher::aes_gcm; },
                  [&](const SaKeys& keys, const Sealed& packet) {
                    Bytes room = packet.plain;
                    const Block iv = make_counter_iv(packet.job, keys);
                    store_block(room.data() + packet.job.iv(), iv, 8);
                    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                      crypt_by_counter_lane(host_encryption_table(), packet.job, keys, room.data(), iv, lane);
                    }
                    std::copy(packet.sealed.begin() + packet.job.icv(), packet.sealed.end(),
                              room.begin() + packet.job.icv());
                    ASSERT_EQ(to_hex(room), to_hex(packet.sealed)) << packet.job.text_bytes;
                    ++packets;
                  });
  EXPECT_GT(packets, penstock::testing::rounds(5000));
}

TEST(CryptoLanes, DecryptCbcTogetherAsOneThreadDoes) {
  std::uint32_t packets = 0;
  for_each_packet([](const SaKeys& keys) { return keys.cipher == Cipher::aes_cbc; },
                  [&](const SaKeys& keys, const Sealed& packet) {
                    Bytes room = packet.sealed;
                    std::vector<CbcLane> lanes;
                    for (std::uint32_t lane = 0; lane < kLanes; ++lane) lanes.emplace_back(packet.job, lane);
                    for (std::uint32_t stripe = lanes[0].stripes(); stripe-- > 0;) {
                      for (CbcLane& lane : lanes) {
                        lane.read(host_decryption_table(), packet.job, keys, room.data(), stripe);
                      }
                      for (const CbcLane& lane : lanes) lane.write(packet.job, room.data(), stripe);
                    }
                    Bytes expected = packet.sealed;
                    std::copy(packet.plain.begin() + packet.job.text(), packet.plain.begin() + packet.job.icv(),
                              expected.begin() + packet.job.text());
                    ASSERT_EQ(to_hex(room), to_hex(expected)) << packet.job.text_bytes;
                    ++packets;
                  });
  EXPECT_GT(packets, penstock::testing::rounds(5000));
}

TEST(CryptoLanes, HashTogetherAsOneThreadDoes) {
  std::uint32_t packets = 0;
  for_each_packet([](const SaKeys& keys) { return keys.cipher == Cipher::aes_gcm; },
                  [&](const SaKeys& keys, const Sealed& packet) {
                    Block hash{};
                    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
                      hash = hash ^ ghash_lane(packet.job, keys, packet.sealed.data(), lane);
                    }
                    const Block tag = gcm_tag(host_encryption_table(), packet.job, keys, packet.sealed.data(), hash);
                    ASSERT_TRUE(same_icv(packet.job, packet.sealed.data(), tag)) << packet.job.text_bytes;
                    ++packets;
                  });
  EXPECT_GT(packets, penstock::testing::rounds(3000));
}

TEST(AlignedMessageBytes, GivesWhatByteWiseReadingGives) {
  RandomCrypto draw(31);
  const Bytes room = draw.bytes(600);
  for (std::uint32_t offset = 32; offset < 48; ++offset) {
    for (std::uint32_t bytes = 0; bytes < 300; ++bytes) {
      MessageBytes plain(room.data() + offset, bytes);
      AlignedMessageBytes aligned(room.data() + offset, bytes);
      for (std::uint32_t at = 0; at < bytes; at += kShaBlockBytes) {
        std::uint32_t expected[16];
        std::uint32_t words[16];
        plain.next(expected);
        aligned.next(words);
        for (std::uint32_t i = 0; i < 16; ++i) {
          const std::uint32_t from = at + 4 * i;
          const std::uint32_t there = from >= bytes ? 0 : bytes - from;
          const std::uint32_t mask = there >= 4 ? ~0U : ~(~0U >> 8 * there);
          ASSERT_EQ(words[i] & mask, expected[i] & mask) << offset << " " << bytes << " " << from;
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::ipsec
