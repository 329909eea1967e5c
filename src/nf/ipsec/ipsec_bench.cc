// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Cost per core of protecting and opening packets, compared with intel-ipsec-mb alone for the same jobs. The packets
// are UDP over IPv4 over Ethernet in a single tunnel. 512 of them lie one after another with room for ESP, so that they
// stay in the second-level cache.
//
//   library    the library alone, bursts of 128 jobs: headers and IVs are there, tags stay where the library puts them
//   ciphers    MbCrypto: the jobs of a burst of packets, from their IVs to their ICVs
//   stage      the whole CPU stage, from parsed packets on: policies, SA, headers, numbers, replay window, counters
//
// Axes: direction, algorithm, and the length of the inner IP packet in bytes. Only the work is timed, not the restoring
// of the packets. `of_library`: the library's time divided by this one's, for the same packets in the same run.
//
// `decide` is what a worker does outbound for a device of another process: parsing, policies, SA, numbers, counters.
// Axes: the number of SAs, each with a policy for the packets of one network, and whether the packets are `near`, in
// the second-level cache as above, or `far`, so many that each has left the caches when its turn comes again. Packets
// of several SAs come in random order.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <intel-ipsec-mb.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_time.h"
#include "function/burst.h"
#include "nf/ipsec/esp/decision_core.h"
#include "nf/ipsec/ipsec.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::ipsec {
namespace {

double thread_seconds() { return std::chrono::duration<double>(thread_time()).count(); }

constexpr std::size_t kPackets = 512;
constexpr std::size_t kSha1Key = 20;       // bytes, of the keys below
constexpr std::uint32_t kEspAt = 14 + 20;  // in a protected frame: after Ethernet and the outer IPv4 header

struct Algorithm {
  const char* name;
  const char* xfrm;  // as `ip xfrm state` prints it
};
constexpr Algorithm kAlgorithms[] = {
    {"aes128_cbc_sha1",
     "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
     "\tenc cbc(aes) 0x202122232425262728292a2b2c2d2e2f\n"},
    {"aes128_ctr_sha1",
     "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
     "\tenc rfc3686(ctr(aes)) 0x202122232425262728292a2b2c2d2e2f30313233\n"},
    {"aes128_gcm", "\taead rfc4106(gcm(aes)) 0x202122232425262728292a2b2c2d2e2f30313233 128\n"},
};

template <typename T>
T require(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", to_string(result.error()));
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The network whose packets the SA protects, if there are several.
std::string network_of(std::uint32_t sa) { return fmt::format("10.{}.{}", sa / 250, sa % 250); }

std::string state_of(std::uint32_t sa, const Algorithm& algorithm) {
  return fmt::format(
      "src 192.0.2.1 dst 198.51.100.2\n\tproto esp spi 0x{:08x} reqid {} mode tunnel\n\treplay-window 32 \n{}",
      0x100 + sa, sa + 1, algorithm.xfrm);
}

std::string policy_of(std::uint32_t sa, std::uint32_t sas) {
  return fmt::format(
      "src {} dst 0.0.0.0/0 \n\tdir out priority 1 ptype main \n"
      "\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid {} mode tunnel\n",
      sas == 1 ? "0.0.0.0/0" : network_of(sa) + ".0/24", sa + 1);
}

std::unique_ptr<Ipsec> make_ipsec(const Algorithm& algorithm, bool inbound, std::uint32_t sas = 1) {
  SaRegistry registry;
  TableSources sources;
  sources.settings.inbound = inbound;
  sources.settings.device_is_remote = true;  // so that there are state stages; changes no other stage
  sources.numbers = random_numbers();
  sources.registry = &registry;
  std::string states, policies;
  for (std::uint32_t sa = 0; sa < sas; ++sa) {
    states += state_of(sa, algorithm);
    policies += policy_of(sa, sas);
  }
  sources.sas = require(parse_states(states, "states")).value;
  if (!inbound) sources.policies = require(parse_policies(policies, "policies")).value;
  auto function = std::make_unique<Ipsec>(require(Tables::build(std::move(sources))).value);
  require(function->begin_run());
  return function;
}

/// Packets with room around them: the originals, and the working copies.
class Packets {
 public:
  Packets(FrameRoom room, std::uint32_t ip_bytes, std::size_t count = kPackets, std::uint32_t sas = 1) {
    std::mt19937 random(1);
    std::uniform_int_distribution<std::uint32_t> any_sa(0, sas - 1);
    for (std::size_t i = 0; i < count; ++i) {
      const auto port = static_cast<std::uint16_t>(1024 + i % kPackets);
      const penstock::testing::Bytes frame = penstock::testing::packet()
                                                 .eth()
                                                 .ipv4(network_of(any_sa(random)) + ".1", "198.18.0.1")
                                                 .udp(port, 80)
                                                 .payload(std::string(ip_bytes - 28, 'x'))
                                                 .bytes();
      PacketDescriptor& packet = came_.emplace_back();
      packet.offset = static_cast<std::uint32_t>(bytes_came_.size()) + room.head;
      packet.length = packet.wire_length = static_cast<std::uint32_t>(frame.size());
      bytes_came_.resize(bytes_came_.size() + room.head);
      bytes_came_.insert(bytes_came_.end(), frame.begin(), frame.end());
      bytes_came_.resize((bytes_came_.size() + room.tail + 63) / 64 * 64);
    }
    for (PacketDescriptor& packet : came_) parse(PacketView{bytes_came_.data() + packet.offset, &packet});
    restore();
  }

  /// Restores the originals.
  void restore() {
    bytes_ = bytes_came_;
    packets_ = came_;
    views_.clear();
    for (PacketDescriptor& packet : packets_) views_.push_back({bytes_.data() + packet.offset, &packet});
  }
  /// Makes the current packets the originals.
  void keep() {
    for (const PacketView& view : views_) parse(view);
    bytes_came_ = bytes_;
    came_ = packets_;
  }

  [[nodiscard]] std::uint8_t* bytes() { return bytes_.data(); }
  [[nodiscard]] std::span<PacketView> views() { return views_; }

 private:
  std::vector<std::uint8_t> bytes_came_, bytes_;
  std::vector<PacketDescriptor> came_, packets_;
  std::vector<PacketView> views_;
};

void run(function::CpuStage& stage, Packets& packets) {
  stage.begin_batch();
  const std::span<PacketView> all = packets.views();
  for (std::size_t i = 0; i < all.size(); i += function::kBurst) stage.process(all.subspan(i, function::kBurst));
}

struct Case {
  const Algorithm& algorithm;
  bool inbound;
  std::uint32_t ip_bytes;
};

/// Seconds per iteration for `kPackets`.
template <typename Prepare, typename Work>
double time(benchmark::State& state, const Prepare& prepare, const Work& work) {
  double all = 0;
  for (auto _ : state) {
    prepare();
    const double start = thread_seconds();
    work();
    const double seconds = thread_seconds() - start;
    state.SetIterationTime(seconds);
    all += seconds;
  }
  return all / static_cast<double>(state.iterations());
}

void tell(benchmark::State& state, const Case& what, double seconds, bool is_library) {
  static std::map<std::string, double> of_library;
  const std::string key = fmt::format("{} {} {}", what.inbound, what.algorithm.name, what.ip_bytes);
  if (is_library) of_library[key] = seconds;
  const double each = seconds / kPackets;
  state.counters["ns/packet"] = each * 1e9;
  state.counters["Gbit/s"] = what.ip_bytes * 8 / each / 1e9;
  if (of_library.contains(key)) state.counters["of_library"] = of_library[key] / seconds;
}

bool all_alive(Packets& packets) {
  return std::ranges::all_of(packets.views(), [](PacketView view) { return view.packet->verdict.alive(); });
}

void run_stage(benchmark::State& state, const Case& what) {
  const auto out = make_ipsec(what.algorithm, false);
  const auto in = make_ipsec(what.algorithm, true);
  const auto protects = out->make_cpu_stage();
  const auto opens = in->make_cpu_stage();
  Packets packets(out->traits().growth, what.ip_bytes);
  double seconds = 0;
  if (what.inbound) {
    seconds = time(
        state,
        [&] {
          packets.restore();
          run(*protects, packets);
          for (const PacketView& view : packets.views()) parse(view);
        },
        [&] { run(*opens, packets); });
  } else {
    seconds = time(
        state, [&] { packets.restore(); }, [&] { run(*protects, packets); });
  }
  if (!all_alive(packets)) return state.SkipWithError("packets were dropped");
  tell(state, what, seconds, false);
}

struct DecideCase {
  std::uint32_t sas;
  bool far;
};

void run_decide(benchmark::State& state, const DecideCase& what) {
  constexpr std::uint32_t kIpBytes = 1472;
  constexpr std::size_t kFarPackets = 160 * kPackets;  // 120 MiB
  const auto out = make_ipsec(kAlgorithms[0], false, what.sas);
  const auto twin = out->make_cpu_stage();
  const auto worker = out->make_state_stage(*twin);
  Packets packets(out->traits().growth, kIpBytes, what.far ? kFarPackets : kPackets, what.sas);
  std::vector<Decision> decisions(packets.views().size());
  std::vector<std::byte*> states;
  for (Decision& decision : decisions) states.push_back(reinterpret_cast<std::byte*>(&decision));
  std::size_t next = 0;
  const double seconds = time(
      state, [] {},
      [&] {
        twin->begin_batch();
        for (std::size_t end = next + kPackets; next < end; next += function::kBurst) {
          worker->fill(packets.views().subspan(next, function::kBurst),
                       std::span(states).subspan(next, function::kBurst));
        }
        next %= packets.views().size();
      });
  const auto is_protected = [](const Decision& one) { return one.kind == Decision::Kind::protected_by_sa; };
  if (!std::all_of(decisions.begin(), decisions.begin() + kPackets, is_protected))
    return state.SkipWithError("packets were dropped");
  state.counters["ns/packet"] = seconds / kPackets * 1e9;
}

/// The packets, protected, and the jobs that did that, by an SA's shape.
std::vector<CryptoJob> protect(Ipsec& out, Packets& packets) {
  run(*out.make_cpu_stage(), packets);
  packets.keep();
  const SaView& sa = out.tables().selection().sas().front();
  std::vector<CryptoJob> jobs;
  for (const PacketView& view : packets.views()) {
    CryptoJob& job = jobs.emplace_back();
    job.sequence = view.at<EspHeader>(kEspAt).sequence.value();
    job.sa = 0;
    job.esp = view.packet->offset + kEspAt;
    job.iv_bytes = sa.iv_bytes;
    job.icv_bytes = sa.icv_bytes;
    job.text_bytes = view.length() - kEspAt - kEspHeaderBytes - sa.iv_bytes - sa.icv_bytes;
  }
  return jobs;
}

void run_ciphers(benchmark::State& state, const Case& what) {
  const auto out = make_ipsec(what.algorithm, false);
  Packets packets(out->traits().growth, what.ip_bytes);
  const std::vector<CryptoJob> jobs = protect(*out, packets);
  std::vector<MbCrypto::Work> work;
  for (const CryptoJob& job : jobs) work.push_back({job, packets.bytes()});
  const auto authentic = std::make_unique<bool[]>(kPackets);
  MbCrypto crypto(out->tables().mb_keys());
  const double seconds = time(
      state, [&] { packets.restore(); },
      [&] {
        for (std::size_t i = 0; i < kPackets; i += function::kBurst) {
          const auto burst = std::span(work).subspan(i, function::kBurst);
          if (what.inbound) {
            crypto.open(burst, {authentic.get() + i, function::kBurst});
          } else {
            crypto.seal(burst);
          }
        }
      });
  if (what.inbound && !std::all_of(authentic.get(), authentic.get() + kPackets, [](bool is) { return is; }))
    return state.SkipWithError("not authentic");
  tell(state, what, seconds, false);
}

/// Keys as the library needs them, and a job that is complete but for its packet.
struct LibraryKeys {
  alignas(64) std::array<std::uint32_t, 60> encrypt;
  alignas(64) std::array<std::uint32_t, 60> decrypt;
  alignas(64) gcm_key_data gcm;
  std::array<std::uint8_t, 20> inner, outer;  // SHA-1's state
  IMB_JOB job{};

  LibraryKeys(IMB_MGR* manager, const SecurityAssociation& sa, bool inbound) {
    const std::uint8_t* const key = sa.cipher_key.bytes().data();
    job.cipher_direction = inbound ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT;
    job.chain_order = inbound ? IMB_ORDER_HASH_CIPHER : IMB_ORDER_CIPHER_HASH;
    job.key_len_in_bytes = 16;
    job.iv_len_in_bytes = 16;
    job.auth_tag_output_len_in_bytes = 12;
    if (sa.cipher == Cipher::aes_gcm) {
      IMB_AES128_GCM_PRE(manager, key, &gcm);
      job.cipher_mode = IMB_CIPHER_GCM;
      job.hash_alg = IMB_AUTH_AES_GMAC;
      job.iv_len_in_bytes = 12;
      job.auth_tag_output_len_in_bytes = 16;
      job.enc_keys = job.dec_keys = &gcm;
      job.u.GCM.aad_len_in_bytes = 8;
      return;
    }
    IMB_AES_KEYEXP_128(manager, key, encrypt.data(), decrypt.data());
    job.enc_keys = encrypt.data();
    job.dec_keys = decrypt.data();
    job.cipher_mode = sa.cipher == Cipher::aes_cbc ? IMB_CIPHER_CBC : IMB_CIPHER_CNTR;
    job.hash_alg = IMB_AUTH_HMAC_SHA_1;
    std::array<std::uint8_t, 64> block{};
    std::memcpy(block.data(), sa.integrity_key.bytes().data(), kSha1Key);
    for (auto& byte : block) byte ^= 0x36;
    IMB_SHA1_ONE_BLOCK(manager, block.data(), inner.data());
    for (auto& byte : block) byte ^= 0x36 ^ 0x5c;
    IMB_SHA1_ONE_BLOCK(manager, block.data(), outer.data());
    job.u.HMAC._hashed_auth_key_xor_ipad = inner.data();
    job.u.HMAC._hashed_auth_key_xor_opad = outer.data();
  }
};

void run_library(benchmark::State& state, const Case& what) {
  const auto out = make_ipsec(what.algorithm, false);
  Packets packets(out->traits().growth, what.ip_bytes);
  const std::vector<CryptoJob> jobs = protect(*out, packets);
  const std::unique_ptr<IMB_MGR, void (*)(IMB_MGR*)> owned(alloc_mb_mgr(0), &free_mb_mgr);
  IMB_MGR* const manager = owned.get();
  init_mb_mgr_auto(manager, nullptr);
  const SecurityAssociation& sa = out->tables().sas().front();
  const LibraryKeys keys(manager, sa, what.inbound);
  struct alignas(16) Slot {
    std::array<std::uint8_t, 16> iv, tag;
  };
  std::vector<Slot> slots(kPackets);
  for (std::size_t i = 0; i < kPackets; ++i) {
    const std::uint8_t* const iv = packets.bytes() + jobs[i].iv();
    if (sa.cipher == Cipher::aes_cbc) {
      std::memcpy(slots[i].iv.data(), iv, 16);
    } else {
      std::memcpy(slots[i].iv.data(), sa.salt.bytes().data(), 4);
      std::memcpy(slots[i].iv.data() + 4, iv, 8);
      slots[i].iv[15] = 1;
    }
  }
  const bool aead = sa.cipher == Cipher::aes_gcm;
  bool refused = false;
  const double seconds = time(
      state, [&] { packets.restore(); },
      [&] {
        std::array<IMB_JOB*, function::kBurst> burst;
        for (std::size_t i = 0; i < kPackets && !refused;) {
          const std::uint32_t count = IMB_GET_NEXT_BURST(manager, function::kBurst, burst.data());
          for (std::uint32_t k = 0; k < count; ++k, ++i) {
            const CryptoJob& of_packet = jobs[i];
            IMB_JOB& job = *burst[k];
            job = keys.job;
            std::uint8_t* const esp = packets.bytes() + of_packet.esp;
            const std::uint32_t text = of_packet.text() - of_packet.esp;
            job.src = esp;
            job.dst = esp + text;
            job.iv = slots[i].iv.data();
            job.auth_tag_output = slots[i].tag.data();
            job.cipher_start_src_offset_in_bytes = text;
            job.msg_len_to_cipher_in_bytes = of_packet.text_bytes;
            job.hash_start_src_offset_in_bytes = aead ? text : 0;
            job.msg_len_to_hash_in_bytes = aead ? of_packet.text_bytes : of_packet.authenticated_bytes();
            if (aead) job.u.GCM.aad = esp;
          }
          std::uint32_t done = IMB_SUBMIT_BURST(manager, count, burst.data());
          refused = done == 0;
          while (done < count && !refused) done += IMB_FLUSH_BURST(manager, count - done, burst.data());
        }
      });
  if (refused) return state.SkipWithError(imb_get_strerror(imb_get_errno(manager)));
  for (std::size_t i = 0; what.inbound && i < kPackets; ++i) {
    if (!std::equal(slots[i].tag.begin(), slots[i].tag.begin() + jobs[i].icv_bytes, packets.bytes() + jobs[i].icv()))
      return state.SkipWithError("other jobs than the stage's: an ICV differs");
  }
  tell(state, what, seconds, true);
}

void add_all() {
  using Run = void (*)(benchmark::State&, const Case&);
  constexpr std::pair<const char*, Run> kParts[] = {
      {"library", &run_library}, {"ciphers", &run_ciphers}, {"stage", &run_stage}};
  for (const bool inbound : {false, true}) {
    for (const Algorithm& algorithm : kAlgorithms) {
      for (const std::uint32_t ip_bytes : {64U, 256U, 512U, 1024U, 1472U}) {
        for (const auto& [part, run] : kParts) {
          const std::string name =
              fmt::format("{}/{}/bytes:{}/{}", inbound ? "open" : "protect", algorithm.name, ip_bytes, part);
          benchmark::RegisterBenchmark(name.c_str(), [what = Case{algorithm, inbound, ip_bytes},
                                                      run](benchmark::State& state) {
            run(state, what);
          })->UseManualTime();
        }
      }
    }
  }
  for (const std::uint32_t sas : {1U, 1000U}) {
    for (const bool far : {false, true}) {
      const std::string name = fmt::format("decide/sas:{}/{}", sas, far ? "far" : "near");
      benchmark::RegisterBenchmark(name.c_str(), [what = DecideCase{sas, far}](benchmark::State& state) {
        run_decide(state, what);
      })->UseManualTime();
    }
  }
}

}  // namespace
}  // namespace penstock::ipsec

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  penstock::ipsec::add_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
