// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/mb_crypto.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "nf/ipsec/crypto/crypto_core.h"

namespace penstock::ipsec {
namespace {

using Random = std::mt19937;

std::vector<std::uint8_t> random_bytes(Random& random, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// All algorithms with each key length, with and without ESN.
std::vector<KeyMaterial> every_algorithm(Random& random) {
  std::vector<KeyMaterial> all;
  const auto add = [&](Cipher cipher, std::size_t key, Integrity integrity, std::size_t auth_key, std::uint16_t icv) {
    for (const bool esn : {false, true}) {
      KeyMaterial material;
      material.cipher = cipher;
      material.cipher_key = Secret(random_bytes(random, key));
      for (auto& byte : material.salt) byte = static_cast<std::uint8_t>(random());
      material.integrity = integrity;
      material.integrity_key = Secret(random_bytes(random, auth_key));
      material.icv_bytes = icv;
      material.esn = esn;
      material.iv_base = (std::uint64_t{random()} << 32) | random();
      EXPECT_TRUE(fits(material));
      all.push_back(material);
    }
  };
  struct Hash {
    Integrity integrity;
    std::size_t key;
    std::uint16_t icv;
  };
  for (const Hash hash : {Hash{Integrity::hmac_sha1_96, 20, 0}, Hash{Integrity::hmac_sha256_128, 32, 0},
                          Hash{Integrity::hmac_sha256_96, 32, 0}, Hash{Integrity::hmac_sha1_96, 64, 0},
                          Hash{Integrity::digest_null, 0, 12}, Hash{Integrity::none, 0, 0}}) {
    add(Cipher::null, 0, hash.integrity, hash.key, hash.icv);
    for (const std::size_t key : {16U, 24U, 32U}) {
      add(Cipher::aes_cbc, key, hash.integrity, hash.key, hash.icv);
      add(Cipher::aes_ctr, key, hash.integrity, hash.key, hash.icv);
    }
  }
  for (const std::size_t key : {16U, 24U, 32U}) {
    for (const std::uint16_t icv : std::initializer_list<std::uint16_t>{8, 12, 16})
      add(Cipher::aes_gcm, key, Integrity::none, 0, icv);
  }
  return all;
}

std::vector<SaKeys> expanded(const std::vector<KeyMaterial>& materials) {
  std::vector<SaKeys> keys(materials.size());
  for (std::size_t i = 0; i < keys.size(); ++i) expand(materials[i], keys[i]);
  return keys;
}

/// Packets of random SAs, one after another at any alignment.
struct Packets {
  std::vector<std::uint8_t> bytes;
  std::vector<CryptoJob> jobs;
};

Packets make_packets(Random& random, const std::vector<SaKeys>& keys, std::size_t count, std::uint32_t longest) {
  Packets packets;
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    CryptoJob job;
    job.sa = static_cast<std::uint32_t>(random() % keys.size());
    job.sequence = (std::uint64_t{random()} << 32) | random();
    const std::uint32_t unit = text_unit(keys[job.sa].cipher);
    job.text_bytes = unit * (1 + static_cast<std::uint32_t>(random()) % (longest / unit));
    job.iv_bytes = keys[job.sa].iv_bytes;
    job.icv_bytes = keys[job.sa].icv_bytes;
    job.esp = at + static_cast<std::uint32_t>(random()) % 5;
    at = job.icv() + job.icv_bytes;
    packets.jobs.push_back(job);
  }
  packets.bytes = random_bytes(random, at);
  return packets;
}

std::vector<MbCrypto::Work> work_of(Packets& packets) {
  std::vector<MbCrypto::Work> work;
  for (const CryptoJob& job : packets.jobs) work.push_back({job, packets.bytes.data()});
  return work;
}

std::string describe(const CryptoJob& job, const SaKeys& keys) {
  return fmt::format("cipher {}, {} rounds, integrity {}, ICV of {}, {}text of {}", static_cast<int>(keys.cipher),
                     keys.rounds, static_cast<int>(keys.integrity), keys.icv_bytes, keys.esn ? "ESN, " : "",
                     job.text_bytes);
}

class MbCryptoTest : public ::testing::Test {
 protected:
  Random random_{7};
  const std::vector<KeyMaterial> materials_ = every_algorithm(random_);
  const std::vector<SaKeys> keys_ = expanded(materials_);
  const MbKeys mb_keys_{materials_};
  MbCrypto crypto_{mb_keys_};
};

TEST_F(MbCryptoTest, SealsAsTheCoreDoes) {
  for (const std::size_t count : {0U, 1U, 7U, 31U, 128U, 128U, 128U, 128U}) {
    Packets packets = make_packets(random_, keys_, count, count == 128 ? 2048 : 100);
    Packets expected = packets;
    for (const CryptoJob& job : expected.jobs) seal(job, keys_[job.sa], expected.bytes.data());
    crypto_.seal(work_of(packets));
    for (const CryptoJob& job : packets.jobs) {
      EXPECT_TRUE(std::equal(packets.bytes.begin() + job.esp, packets.bytes.begin() + job.icv() + job.icv_bytes,
                             expected.bytes.begin() + job.esp))
          << describe(job, keys_[job.sa]);
    }
    EXPECT_EQ(packets.bytes, expected.bytes) << count << " packets";
  }
}

TEST_F(MbCryptoTest, OpensWhatTheCoreHasSealed) {
  Packets packets = make_packets(random_, keys_, 128, 1500);
  const Packets plain = packets;
  for (const CryptoJob& job : packets.jobs) seal(job, keys_[job.sa], packets.bytes.data());
  std::array<bool, 128> authentic{};
  crypto_.open(work_of(packets), authentic);
  for (std::size_t i = 0; i < packets.jobs.size(); ++i) {
    const CryptoJob& job = packets.jobs[i];
    EXPECT_TRUE(authentic[i]) << describe(job, keys_[job.sa]);
    EXPECT_TRUE(std::equal(packets.bytes.begin() + job.text(), packets.bytes.begin() + job.icv(),
                           plain.bytes.begin() + job.text()))
        << describe(job, keys_[job.sa]);
  }
}

TEST_F(MbCryptoTest, RefusesWhatTheCoreRefuses) {
  unsigned refused = 0;
  for (int round = 0; round < 20; ++round) {
    Packets packets = make_packets(random_, keys_, 128, 200);
    for (CryptoJob& job : packets.jobs) {
      seal(job, keys_[job.sa], packets.bytes.data());
      if (random_() % 2 == 0) continue;
      if (keys_[job.sa].esn && random_() % 4 == 0) {
        job.sequence += std::uint64_t{1} << 32;
      } else {
        const std::size_t bytes = job.icv() + job.icv_bytes - job.esp;
        packets.bytes[job.esp + random_() % bytes] ^= static_cast<std::uint8_t>(1U << random_() % 8);
      }
    }
    Packets expected = packets;
    std::array<bool, 128> authentic{};
    crypto_.open(work_of(packets), authentic);
    for (std::size_t i = 0; i < packets.jobs.size(); ++i) {
      const CryptoJob& job = packets.jobs[i];
      EXPECT_EQ(authentic[i], open(job, keys_[job.sa], expected.bytes.data())) << describe(job, keys_[job.sa]);
      refused += authentic[i] ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 500U);
}

TEST_F(MbCryptoTest, LeavesNothingOfABurstForTheNext) {
  const Packets packets = make_packets(random_, keys_, 128, 600);
  Packets at_once = packets;
  crypto_.seal(work_of(at_once));
  Packets one_by_one = packets;
  for (const MbCrypto::Work& work : work_of(one_by_one)) crypto_.seal({&work, 1});
  EXPECT_EQ(at_once.bytes, one_by_one.bytes);
}

}  // namespace
}  // namespace penstock::ipsec
