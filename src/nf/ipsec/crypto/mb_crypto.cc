// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/mb_crypto.h"

#include <intel-ipsec-mb.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/byte_order.h"
#include "base/log.h"
#include "nf/ipsec/crypto/secret.h"

namespace penstock::ipsec {

namespace {

struct FreeManager {
  void operator()(IMB_MGR* manager) const noexcept {
    // It still contains keys and states of the last packets.
    imb_clear_mem(manager, imb_get_mb_mgr_size());
    free_mb_mgr(manager);
  }
};
using OwnedManager = std::unique_ptr<IMB_MGR, FreeManager>;

struct Library {
  OwnedManager manager;
  IMB_ARCH architecture = IMB_ARCH_NONE;
};

Library make_manager() {
  Library library{OwnedManager(alloc_mb_mgr(0)), IMB_ARCH_NONE};
  if (library.manager == nullptr) throw std::bad_alloc();
  init_mb_mgr_auto(library.manager.get(), &library.architecture);
  return library;
}

/// A single store: reading the whole value right after writing parts of it would stall.
void write_be64(std::uint8_t* to, std::uint64_t value) noexcept {
  static_assert(std::endian::native == std::endian::little);
  value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof value);
}

void write_be32(std::uint8_t* to, std::uint32_t value) noexcept { reinterpret_cast<Be32*>(to)->set(value); }

/// Constant-time comparison of 8, 12 or 16 bytes.
bool equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) noexcept {
  std::uint32_t difference = 0;
  for (std::size_t i = 0; i < bytes; i += 4) {
    std::uint32_t of_a;
    std::uint32_t of_b;
    std::memcpy(&of_a, a + i, 4);
    std::memcpy(&of_b, b + i, 4);
    difference |= of_a ^ of_b;
  }
  return difference == 0;
}

constexpr std::size_t kHmacBlock = 64;  // block size of SHA-1 and SHA-256

/// Ends the process: packets must not be sent unprotected.
[[noreturn]] void stop_for(IMB_MGR& manager) noexcept {
  log_error("ipsec: intel-ipsec-mb refuses a burst: {}", imb_get_strerror(imb_get_errno(&manager)));
  std::abort();
}

}  // namespace

/// Aligned as the library requires for round keys.
struct alignas(64) MbKeys::Key {
  std::array<std::uint32_t, 60> encrypt;
  std::array<std::uint32_t, 60> decrypt;
  std::array<std::uint8_t, 32> inner;  // the hash's state after the key's block with ipad
  std::array<std::uint8_t, 32> outer;
  gcm_key_data gcm;
  aes_gcm_enc_dec_t seal_gcm, open_gcm;
  IMB_JOB job;  // for other ciphers: complete but for packet and direction
  std::uint64_t iv_base;
  std::array<std::uint8_t, 4> salt;
  Cipher cipher;
  bool hmac;
  bool esn;
  bool cuts_tag;  // the ICV's length differs from what the library produces
  bool has_icv;   // there is an ICV to check
};

/// Jobs refer to keys by address, so the keys must not move.
MbKeys::MbKeys(std::span<const KeyMaterial> sas) : keys_(sas.size()) {
  const Library library = make_manager();
  IMB_MGR* const manager = library.manager.get();
  for (std::size_t i = 0; i < sas.size(); ++i) {
    const KeyMaterial& sa = sas[i];
    Key& key = keys_[i];
    std::memset(&key, 0, sizeof key);
    key.iv_base = sa.iv_base;
    key.salt = sa.salt;
    key.cipher = sa.cipher;
    key.esn = sa.esn;
    IMB_JOB& job = key.job;
    job.key_len_in_bytes = sa.cipher_key.size();
    job.iv_len_in_bytes = 16;
    job.enc_keys = key.encrypt.data();
    job.dec_keys = key.decrypt.data();
    job.hash_alg = IMB_AUTH_NULL;
    const std::uint8_t* const secret = sa.cipher_key.bytes().data();
    switch (sa.cipher) {
      case Cipher::null: job.cipher_mode = IMB_CIPHER_NULL; break;
      case Cipher::aes_cbc: job.cipher_mode = IMB_CIPHER_CBC; break;
      case Cipher::aes_ctr: job.cipher_mode = IMB_CIPHER_CNTR; break;
      case Cipher::aes_gcm: break;
    }
    if (sa.cipher == Cipher::aes_gcm) {
      switch (sa.cipher_key.size()) {
        case 16:
          IMB_AES128_GCM_PRE(manager, secret, &key.gcm);
          key.seal_gcm = manager->gcm128_enc;
          key.open_gcm = manager->gcm128_dec;
          break;
        case 24:
          IMB_AES192_GCM_PRE(manager, secret, &key.gcm);
          key.seal_gcm = manager->gcm192_enc;
          key.open_gcm = manager->gcm192_dec;
          break;
        default:
          IMB_AES256_GCM_PRE(manager, secret, &key.gcm);
          key.seal_gcm = manager->gcm256_enc;
          key.open_gcm = manager->gcm256_dec;
      }
    } else if (sa.cipher != Cipher::null) {
      switch (sa.cipher_key.size()) {
        case 16: IMB_AES_KEYEXP_128(manager, secret, key.encrypt.data(), key.decrypt.data()); break;
        case 24: IMB_AES_KEYEXP_192(manager, secret, key.encrypt.data(), key.decrypt.data()); break;
        default: IMB_AES_KEYEXP_256(manager, secret, key.encrypt.data(), key.decrypt.data());
      }
    }
    const bool sha1 = sa.integrity == Integrity::hmac_sha1_96;
    const bool sha256 = sa.integrity == Integrity::hmac_sha256_128 || sa.integrity == Integrity::hmac_sha256_96;
    key.hmac = sha1 || sha256;
    if (key.hmac) {
      job.hash_alg = sha1 ? IMB_AUTH_HMAC_SHA_1 : IMB_AUTH_HMAC_SHA_256;
      job.auth_tag_output_len_in_bytes = sha1 ? 12 : 16;  // the library truncates SHA-256 to no other length
      job.u.HMAC._hashed_auth_key_xor_ipad = key.inner.data();
      job.u.HMAC._hashed_auth_key_xor_opad = key.outer.data();
      const std::span<const std::uint8_t> bytes = sa.integrity_key.bytes();
      for (const bool inner : {true, false}) {
        std::array<std::uint8_t, kHmacBlock> block;
        block.fill(inner ? 0x36 : 0x5c);
        for (std::size_t b = 0; b < bytes.size(); ++b) block[b] ^= bytes[b];
        std::uint8_t* const state = inner ? key.inner.data() : key.outer.data();
        if (sha1) {
          IMB_SHA1_ONE_BLOCK(manager, block.data(), state);
        } else {
          IMB_SHA256_ONE_BLOCK(manager, block.data(), state);
        }
        wipe(block.data(), block.size());
      }
    }
    key.has_icv = key.hmac || sa.cipher == Cipher::aes_gcm;
    key.cuts_tag = !key.has_icv || sa.integrity == Integrity::hmac_sha256_96;
  }
}

MbKeys::~MbKeys() { wipe(keys_.data(), keys_.size() * sizeof(Key)); }

const MbKeys::Key& MbKeys::operator[](std::uint32_t sa) const noexcept { return keys_[sa]; }

void MbKeys::set_iv_base(std::uint32_t sa, std::uint64_t iv_base) noexcept { keys_[sa].iv_base = iv_base; }

std::string_view mb_processor_features() {
  switch (make_manager().architecture) {
    case IMB_ARCH_SSE: return "SSE";
    case IMB_ARCH_AVX: return "AVX";
    case IMB_ARCH_AVX2: return "AVX2";
    case IMB_ARCH_AVX512: return "AVX-512";
    default: return "no vector instructions";
  }
}

struct MbCrypto::Manager {
  OwnedManager library = make_manager().manager;
  gcm_context_data gcm;

  ~Manager() { wipe(&gcm, sizeof gcm); }
};

/// What the library reads and writes for a job besides the packet.
struct MbCrypto::Slot {
  alignas(16) std::array<std::uint8_t, 16> iv;
  alignas(16) std::array<std::uint8_t, 32> tag;
  std::array<std::uint8_t, 16> received;  // the received ICV, if its place in the packet is overwritten
  std::array<std::uint8_t, 12> aad;
};

MbCrypto::MbCrypto(const MbKeys& keys)
    : keys_(keys), manager_(std::make_unique<Manager>()), slots_(std::make_unique<Slot[]>(kMostJobs)) {}

MbCrypto::~MbCrypto() = default;

void MbCrypto::seal(std::span<const Work> work) noexcept {
  run(work, true);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto& [job, base] = work[i];
    const MbKeys::Key& key = keys_[job.sa];
    if (!key.cuts_tag) continue;
    std::uint8_t* const icv = base + job.icv();
    if (key.has_icv) {
      std::memcpy(icv, slots_[i].tag.data(), job.icv_bytes);
    } else {
      std::memset(icv, 0, job.icv_bytes);
    }
  }
}

void MbCrypto::open(std::span<const Work> work, std::span<bool> authentic) noexcept {
  run(work, false);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto& [job, base] = work[i];
    const MbKeys::Key& key = keys_[job.sa];
    const std::uint8_t* const received = key.hmac && key.esn ? slots_[i].received.data() : base + job.icv();
    authentic[i] = !key.has_icv || equal(received, slots_[i].tag.data(), job.icv_bytes);
  }
}

void MbCrypto::run(std::span<const Work> work, bool seals) noexcept {
  assert(work.size() <= kMostJobs);
  std::array<std::uint32_t, kMostJobs> alone;
  std::array<std::uint32_t, kMostJobs> in_lanes;
  std::size_t alone_count = 0;
  std::size_t in_lanes_count = 0;
  for (std::uint32_t i = 0; i < work.size(); ++i) {
    if (keys_[work[i].job.sa].cipher == Cipher::aes_gcm) {
      prepare_gcm(work[i], slots_[i], seals);
      alone[alone_count++] = i;
    } else {
      in_lanes[in_lanes_count++] = i;
    }
  }
  for (const std::uint32_t i : std::span(alone).first(alone_count)) run_gcm(work[i], slots_[i], seals);
  run_burst(work, std::span(in_lanes).first(in_lanes_count), seals);
}

void MbCrypto::prepare_gcm(const Work& work, Slot& slot, bool seals) noexcept {
  const auto& [job, base] = work;
  const MbKeys::Key& key = keys_[job.sa];
  std::uint8_t* const esp = base + job.esp;
  std::uint8_t* const iv = base + job.iv();
  if (seals) write_be64(iv, key.iv_base + job.sequence);
  std::memcpy(slot.iv.data(), key.salt.data(), 4);  // RFC 4106 §4
  std::memcpy(slot.iv.data() + 4, iv, 8);
  if (!key.esn) return;
  std::memcpy(slot.aad.data(), esp, 4);  // §5
  write_be32(slot.aad.data() + 4, static_cast<std::uint32_t>(job.sequence >> 32));
  std::memcpy(slot.aad.data() + 8, esp + 4, 4);
}

/// One packet at a time: GCM shares no lanes between packets, and the library's job interface would only add cost.
void MbCrypto::run_gcm(const Work& work, Slot& slot, bool seals) noexcept {
  const auto& [job, base] = work;
  const MbKeys::Key& key = keys_[job.sa];
  std::uint8_t* const text = base + job.text();
  const std::uint8_t* const aad = key.esn ? slot.aad.data() : base + job.esp;
  std::uint8_t* const tag = seals ? base + job.icv() : slot.tag.data();
  (seals ? key.seal_gcm : key.open_gcm)(&key.gcm, &manager_->gcm, text, text, job.text_bytes, slot.iv.data(), aad,
                                        key.esn ? slot.aad.size() : kEspHeaderBytes, tag, job.icv_bytes);
}

/// Runs the jobs listed in `which`, in parallel lanes.
void MbCrypto::run_burst(std::span<const Work> work, std::span<const std::uint32_t> which, bool seals) noexcept {
  IMB_MGR* const manager = manager_->library.get();
  std::array<IMB_JOB*, kMostJobs> jobs;
  const auto count = static_cast<std::uint32_t>(which.size());
  if (count == 0) return;
  // The manager is empty between bursts, so a whole burst fits.
  if (IMB_GET_NEXT_BURST(manager, count, jobs.data()) != count) stop_for(*manager);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& [job, base] = work[which[i]];
    const MbKeys::Key& key = keys_[job.sa];
    Slot& slot = slots_[which[i]];
    IMB_JOB& to = *jobs[i];
    to = key.job;
    to.cipher_direction = seals ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
    to.chain_order = seals ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
    std::uint8_t* const esp = base + job.esp;
    std::uint8_t* const iv = base + job.iv();
    const std::uint64_t number = key.iv_base + job.sequence;
    std::uint32_t cipher_from = job.text() - job.esp;
    std::uint32_t cipher_bytes = job.text_bytes;
    switch (key.cipher) {
      case Cipher::null:
      case Cipher::aes_gcm: break;
      case Cipher::aes_cbc:
        if (seals) {
          // The IV is the encrypted block of this number (SP 800-38A appendix C). Encrypting that block as the first of
          // the text, with an IV of zeros, produces it, and it then serves as the IV for what follows.
          write_be64(iv, 0);
          write_be64(iv + 8, number);
          slot.iv.fill(0);
          cipher_from -= job.iv_bytes;
          cipher_bytes += job.iv_bytes;
        } else {
          std::memcpy(slot.iv.data(), iv, slot.iv.size());
        }
        break;
      case Cipher::aes_ctr:  // RFC 3686 §4: nonce, IV, and a count from 1
        if (seals) write_be64(iv, number);
        std::memcpy(slot.iv.data(), key.salt.data(), 4);
        std::memcpy(slot.iv.data() + 4, iv, 8);
        write_be32(slot.iv.data() + 12, 1);
        break;
    }
    to.src = esp;
    to.dst = esp + cipher_from;
    to.iv = slot.iv.data();
    to.cipher_start_src_offset_in_bytes = cipher_from;
    to.msg_len_to_cipher_in_bytes = cipher_bytes;
    to.auth_tag_output = seals && !key.cuts_tag ? base + job.icv() : slot.tag.data();
    if (key.hmac) {
      to.msg_len_to_hash_in_bytes = job.authenticated_bytes();
      if (key.esn) {
        // The upper half of the number is authenticated after the text, where the ICV is or will be (RFC 4303 §2.2.1).
        if (!seals) std::memcpy(slot.received.data(), base + job.icv(), job.icv_bytes);
        write_be32(base + job.icv(), static_cast<std::uint32_t>(job.sequence >> 32));
        to.msg_len_to_hash_in_bytes += 4;
      }
    }
  }
  std::uint32_t done = IMB_SUBMIT_BURST(manager, count, jobs.data());
  while (done < count) {
    const std::uint32_t more = IMB_FLUSH_BURST(manager, count - done, jobs.data());
    if (more == 0) stop_for(*manager);
    done += more;
  }
}

}  // namespace penstock::ipsec
