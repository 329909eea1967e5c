// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests: builds an `ipsec` function from `ip xfrm` output, with the same IVs in every run; makes such
// output; and runs frames through one direction's function with a worker, returning the verdicts.

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/nanoseconds.h"
#include "function/emitter.h"
#include "function/testing/attached_stage.h"
#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/ipsec.h"
#include "nf/ipsec/numbers/numbers_for_test.h"
#include "nf/ipsec/reasons.h"

namespace penstock::ipsec::testing {

/// A function whose run has not begun. `policies`: empty for no policy file.
inline Result<std::unique_ptr<Ipsec>> load_ipsec(const std::string& states, const std::optional<std::string>& policies,
                                                 Settings settings, SaRegistry& registry,
                                                 std::shared_ptr<NumberSource> numbers) {
  TableSources sources;
  sources.settings = settings;
  sources.numbers = std::move(numbers);
  sources.registry = &registry;
  sources.state_file = "state.txt";
  sources.policy_file = "policy.txt";
  auto read = parse_states(states, sources.state_file);
  EXPECT_TRUE(read) << to_string(read.error());
  EXPECT_TRUE(read->unsupported.empty()) << to_string(read->unsupported);
  sources.sas = std::move(read->value);
  if (policies) {
    auto read_too = parse_policies(*policies, sources.policy_file);
    EXPECT_TRUE(read_too) << to_string(read_too.error());
    sources.policies = std::move(read_too->value);
  }
  auto tables = Tables::build(std::move(sources));
  if (!tables) return failure(std::move(tables).error());
  return std::make_unique<Ipsec>(std::move(tables->value));
}

/// A function whose run has begun. Without a registry, it shares no state with others, as if on a machine of its own.
inline std::unique_ptr<Ipsec> make_ipsec(const std::string& states, const std::optional<std::string>& policies,
                                         Settings settings, SaRegistry* registry = nullptr) {
  SaRegistry own_registry;
  auto function =
      load_ipsec(states, policies, settings, registry == nullptr ? own_registry : *registry, fixed_numbers());
  EXPECT_TRUE(function) << to_string(function.error());
  EXPECT_TRUE((*function)->begin_run());
  return std::move(*function);
}

inline const std::string kGcm = "\taead rfc4106(gcm(aes)) 0x9b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n";
inline const std::string kCbcSha1 =
    "\tauth-trunc hmac(sha1) 0x5c3e9f0a7b2d4861e0f5a9c8d7b6134298eacb07 96\n"
    "\tenc cbc(aes) 0x2f6ad91c58e37b04c1b8f5e29d607a43\n";

/// An SA as `ip xfrm state` prints it; members are what tests vary.
struct StateText {
  std::string source = "192.0.2.1", destination = "192.0.2.2";
  std::uint32_t spi = 0x1000;
  std::uint32_t reqid = 1;
  std::string mode = "tunnel";
  std::string algorithms = kGcm;
  bool esn = false;
  std::uint64_t sent = 0, received = 0;
  std::uint32_t window = 64;  // a multiple of 32
  std::string flags;          // additional flags
  std::string more;           // additional lines at the end

  /// Uses a key that no other SPI has: two outbound SAs must not share a key with a cipher that counts its IVs.
  void take_own_key() {
    for (const std::string_view cipher : {"gcm(aes)) 0x", "ctr(aes)) 0x"}) {
      const std::size_t at = algorithms.find(cipher);
      if (at != std::string::npos) algorithms.replace(at + cipher.size(), 8, fmt::format("{:08x}", spi * 0x9e37'79b9U));
    }
  }

  [[nodiscard]] std::string operator()() const {
    const std::string all_flags = flags + (esn ? " esn" : "");
    std::string zeros;
    for (std::uint32_t word = 0; word < window / 32; ++word) zeros += "00000000 ";
    StateText own = *this;
    if (algorithms == kGcm) own.take_own_key();
    return fmt::format(
        "src {} dst {}\n\tproto esp spi 0x{:08x} reqid {} mode {}\n\treplay-window 0 {}\n{}"
        "\tanti-replay esn context:\n\t seq-hi 0x{:x}, seq 0x{:x}, oseq-hi 0x{:x}, oseq 0x{:x}\n"
        "\t replay_window {}, bitmap-length {}\n\t {}\n{}",
        source, destination, spi, reqid, mode, all_flags.empty() ? "" : "flag " + all_flags, own.algorithms,
        received >> 32, received & 0xffff'ffff, sent >> 32, sent & 0xffff'ffff, window, window / 32, zeros, more);
  }
};

inline const std::string kInUdp = "\tencap type espinudp sport 4500 dport 4500 addr 0.0.0.0\n";

/// Lines that limit an SA's lifetime: "soft 5(packets), hard (INF)(packets)".
inline std::string limited(const std::string& packets,
                           const std::string& bytes = "soft (INF)(bytes), hard (INF)(bytes)",
                           const std::string& added = "2001-01-01 00:00:00",
                           const std::string& add = "soft 0(sec), hard 0(sec)",
                           const std::string& use = "soft 0(sec), hard 0(sec)") {
  return fmt::format(
      "\tlifetime config:\n\t  limit: {}\n\t  limit: {}\n\t  expire add: {}\n\t  expire use: {}\n"
      "\tlifetime current:\n\t  0(bytes), 0(packets)\n\t  add {} use -\n",
      bytes, packets, add, use, added);
}
inline const std::string kNoLimit = "soft (INF)(packets), hard (INF)(packets)";

inline std::string tunnel_template(std::uint32_t reqid = 1, const std::string& source = "192.0.2.1",
                                   const std::string& destination = "192.0.2.2", const std::string& rest = "") {
  return fmt::format("\ttmpl src {} dst {}\n\t\tproto esp reqid {} mode tunnel{}\n", source, destination, reqid, rest);
}
inline std::string transport_template(std::uint32_t reqid = 1) {
  return fmt::format("\ttmpl src 0.0.0.0 dst 0.0.0.0\n\t\tproto esp reqid {} mode transport\n", reqid);
}
inline std::string policy_text(const std::string& selector, const std::string& direction, const std::string& rest = "",
                               unsigned priority = 100) {
  return fmt::format("{}\n\tdir {} priority {} ptype main\n{}", selector, direction, priority, rest);
}
/// Policies that select all packets of both families.
inline std::string everything(const std::string& direction, const std::string& rest) {
  return policy_text("src 0.0.0.0/0 dst 0.0.0.0/0", direction, rest) +
         policy_text("src ::/0 dst ::/0", direction, rest);
}

/// A frame to run through a function.
struct Arriving {
  Bytes bytes;
  LinkType link = LinkType::ethernet;
  std::uint32_t wire_length = 0;  // if the capture truncated it
  std::uint64_t time_s = 1;

  Arriving(Bytes frame, LinkType of = LinkType::ethernet, std::uint32_t on_wire = 0)  // NOLINT: a frame is one
      : bytes(std::move(frame)), link(of), wire_length(on_wire) {}
};

/// The outcome: "forwarded", "consumed", or the drop reason.
struct Done {
  std::string fate;
  Bytes bytes;

  friend bool operator==(const Done&, const Done&) = default;
};
inline void PrintTo(const Done& done, std::ostream* out) {
  *out << done.fate << ", " << done.bytes.size() << " bytes";
  for (const std::uint8_t byte : done.bytes) *out << fmt::format(" {:02x}", byte);
}

inline std::string fate_of(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::consume) return "consumed";
  return verdict.alive() ? "forwarded" : std::string(kReasons.at(verdict.value));
}

/// Runs one batch. Each frame has exactly the head- and tailroom that the function asks for.
inline std::vector<Done> run(function::CpuStage& stage, const Ipsec& ipsec, const std::vector<Arriving>& batch) {
  std::vector<std::unique_ptr<RoomyFrame>> frames;
  std::vector<PacketView> views;
  for (const Arriving& one : batch) {
    frames.push_back(std::make_unique<RoomyFrame>(one.bytes, ipsec.traits().growth, one.link, one.wire_length));
    views.push_back(frames.back()->view);
    views.back().packet->timestamp_ns = one.time_s * kNsPerSecond;
  }
  stage.begin_batch();
  if (!views.empty()) stage.process(views);
  std::vector<Done> done;
  for (const PacketView& view : views) {
    done.push_back({fate_of(view.packet->verdict), Bytes(view.frame, view.frame + view.length())});
  }
  return done;
}

/// What a worker provides for packets and frames that its stages emit.
struct Making {
  Making() {
    emissions.make_room_for_frames(1 << 16, {});
    emitter.go_into(&emissions);
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  function::Emissions emissions{1 << 16, 16};
  function::Emitter emitter;
};

class End {
 public:
  End(const std::string& states, const std::optional<std::string>& policies, const Settings& settings,
      SaRegistry* registry = nullptr)
      : function(make_ipsec(states, policies, settings, registry)), stage(*function) {
    stage->set_emitter(making->emitter);
  }

  std::vector<Done> operator()(const std::vector<Arriving>& batch) {
    making->emissions.begin({});
    return run(*stage, *function, batch);
  }
  Done operator()(const Arriving& one) { return (*this)(std::vector<Arriving>{one}).front(); }
  [[nodiscard]] std::string explain(const Arriving& one) const {
    const RoomyFrame frame(one.bytes, {}, one.link, one.wire_length);
    return stage->explain(frame.view);
  }
  [[nodiscard]] const SaState& state(std::size_t sa = 0) const { return *function->tables().states()[sa]; }

  std::unique_ptr<Ipsec> function;
  std::unique_ptr<Making> making = std::make_unique<Making>();
  function::testing::AttachedStage stage;
};

/// Ends that share a registry act as functions of one process.
inline End outwards(const std::string& states, const std::string& policies, Settings settings = {},
                    SaRegistry* registry = nullptr) {
  return {states, policies, settings, registry};
}
inline End inwards(const std::string& states, const std::optional<std::string>& policies = std::nullopt,
                   SaRegistry* registry = nullptr) {
  Settings settings;
  settings.inbound = true;
  return {states, policies, settings, registry};
}

inline std::vector<std::string> fates(const std::vector<Done>& all) {
  std::vector<std::string> fates;
  for (const Done& done : all) fates.push_back(done.fate);
  return fates;
}

/// The frames that were forwarded.
inline std::vector<Arriving> forwarded(const std::vector<Done>& all) {
  std::vector<Arriving> frames;
  for (const Done& done : all) {
    if (done.fate == "forwarded") frames.emplace_back(done.bytes);
  }
  return frames;
}

/// Offset of ESP in an Ethernet frame after an IPv4 header without options.
inline constexpr std::size_t kEspAt = 14 + 20;
inline std::uint32_t word_at(const Bytes& frame, std::size_t at) {
  return static_cast<std::uint32_t>(frame.at(at)) << 24 | static_cast<std::uint32_t>(frame.at(at + 1)) << 16 |
         static_cast<std::uint32_t>(frame.at(at + 2)) << 8 | frame.at(at + 3);
}
inline std::uint32_t spi_of(const Bytes& frame) { return word_at(frame, kEspAt); }
inline std::uint32_t sequence_of(const Bytes& frame) { return word_at(frame, kEspAt + 4); }

/// A packet from one private network to another, with `payload` bytes of payload.
inline Bytes plain(std::size_t payload = 5, std::uint16_t port = 2000) {
  return penstock::testing::packet()
      .eth()
      .ipv4("10.1.0.1", "10.2.0.2")
      .udp(1000, port)
      .payload(std::string(payload, 'x'))
      .bytes();
}

/// `ipsec` with the same numbers in every run, not shared with other functions.
inline const function::NfKind& fixed_iv_kind() {
  static const function::NfKind kKind{ipsec_kind().name, ipsec_kind().summary, ipsec_kind().parameters,
                                      [](const Parameters& parameters, function::NfContext& context) {
                                        SaRegistry registry;
                                        return ipsec::make_ipsec(parameters, context, registry, fixed_numbers());
                                      }};
  return kKind;
}

}  // namespace penstock::ipsec::testing
