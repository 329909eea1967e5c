// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the inspector with a simple one, without groups, literals, an index of addresses, or conditions that are
// checked first: it evaluates every rule completely on every packet. Both must give the same alerts, in the same order.

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>

#include "base/testing/rounds.h"
#include "nf/nids/detect/compiled_rule.h"
#include "nf/nids/detect/packet_test.h"
#include "nf/nids/detect/rule_order.h"
#include "nf/nids/detect/testing/detection_bed.h"
#include "nf/nids/flow_state_stage.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/scan_range_core.h"
#include "packet/parse_core.h"
#include "stack/tcp_session.h"

namespace penstock::nids::testing {
namespace {

using stack::Bytes;
using stack::TrackedPacket;

class SlowInspector final : public stack::PacketSink {
 public:
  SlowInspector(const RuleSet& set, HostMemory& hosts, AlertSink& alerts) : state_(set, hosts), alerts_(alerts) {
    for (const std::uint32_t index : evaluation_order(set.rules)) {
      rules_.push_back(std::move(*compile_rule(set.rules[index], index)));
    }
  }

  void packet(TrackedPacket& packet) noexcept override {
    std::vector<std::vector<std::uint8_t>> chunks;
    if ((packet.stream_ready || packet.stream_end) && packet.flow != nullptr && packet.flow->tcp != nullptr) {
      packet.flow->tcp->inspect(packet.direction, packet.stream_end, [&](const stack::StreamChunk& chunk) {
        chunks.emplace_back(chunk.bytes.begin(), chunk.bytes.end());
      });
    }
    std::erase_if(chunks, [](const auto& chunk) { return chunk.empty(); });
    if (packet.flow != nullptr && state_.fate(*packet.flow) == StateStore::FlowFate::passed) return;

    struct Match {
      const CompiledRule* rule;
      bool in_stream;
    };
    std::vector<Match> matches;
    // Rules that test only addresses come first, before other rules test the bits that they set.
    for (const bool ip_only : {true, false}) {
      for (const CompiledRule& rule : rules_) {
        if ((rule.type == RuleType::ip_only) != ip_only) continue;
        bool in_stream = false;
        if (!holds(rule, packet, chunks, in_stream)) continue;
        matches.push_back({&rule, in_stream});
        for (const StateChange& change : rule.rule->state_changes) state_.change(change, packet);
      }
    }
    std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) { return a.rule < b.rule; });
    for (const auto& [rule, in_stream] : matches) {
      StateStore::Decision decision;
      if (state_.suppressed(rule->index, packet)) {
        decision.alerts = false;
      } else {
        decision = state_.count(*rule->rule, rule->index, packet);
      }
      if (!decision.acts) continue;
      const bool passes = decision.new_action.value_or(rule->rule->action) == Action::pass;
      if (passes && packet.flow != nullptr &&
          (in_stream || rule->type == RuleType::ip_only || rule->type == RuleType::like_ip_only)) {
        state_.set_fate(*packet.flow, StateStore::FlowFate::passed);
      }
      if (rule->rule->alerts && decision.alerts) {
        alerts_.alert({rule->rule, &packet, false, in_stream, {}});
      }
      if (!rule->rule->tags.empty()) state_.tag(*rule->rule, rule->index, packet);
      if (passes) break;
    }
    if (!packet.stream_end && state_.tagged(packet)) alerts_.alert({nullptr, &packet, false, false, {}});
  }
  void flow_ended(stack::Flow& flow) noexcept override { state_.flow_ended(flow); }

 private:
  bool holds(const CompiledRule& rule, const TrackedPacket& packet,
             const std::vector<std::vector<std::uint8_t>>& chunks, bool& in_stream) {
    const Rule& asked = *rule.rule;
    if (rule.type == RuleType::ip_only) {
      const bool first = packet.flow == nullptr || packet.flow->count(packet.direction).packets == 1;
      return first && !packet.stream_end && packet.packet.ip_version != 0 && header_holds(asked, packet);
    }
    if (packet.stream_end && rule.type == RuleType::packet) return false;
    if (packet.packet.ip_version == 0 && rule.type != RuleType::event_only) return false;
    const FlowMatch& flow = asked.flow;
    const bool to_server = packet.direction == stack::Direction::to_server;
    if (flow.to_server != flow.to_client && flow.to_server != to_server) return false;
    if (packet.flow == nullptr &&
        (flow.established || flow.not_established || flow.to_server || flow.to_client || flow.stateless ||
         flow.only_stream || flow.no_stream || flow.only_frag || flow.no_frag || !asked.state_matches.empty())) {
      return false;
    }
    if (!header_holds(asked, packet) || !flow_holds(flow, packet, flow.only_stream)) return false;
    for (const PacketMatch& match : asked.packet_matches) {
      if (!nids::holds(match, packet)) return false;
    }
    for (const StateMatch& match : asked.state_matches) {
      if (!state_.holds(match, packet)) return false;
    }
    scratch_.begin_frame();
    scratch_.begin_rule();
    if (rule.payload) {
      if (rule.looks_at_streams) {
        for (const auto& chunk : chunks) {
          if (!in_stream) in_stream = payload_holds(rule, chunk);
        }
      }
      if (!in_stream) {
        const bool hidden = packet.encrypted || packet.packet.carries_packet;
        const Bytes payload = hidden ? Bytes() : packet.packet.payload;
        if (packet.stream_end || (payload.empty() && chunks.empty())) return false;
        if (rule.looks_at_streams && !rule.looks_at_packets && packet.payload_in_stream) return false;
        if (!payload_holds(rule, payload)) return false;
      }
    }
    for (const auto& [buffer, program] : rule.headers) {
      const Bytes bytes = header_buffer(buffer, packet.packet);
      if (bytes.empty() || !program.matches(bytes, scratch_)) return false;
    }
    return true;
  }
  bool payload_holds(const CompiledRule& rule, Bytes bytes) {
    scratch_.begin_frame();
    scratch_.begin_rule();
    return rule.payload->matches(bytes, scratch_);
  }

  std::vector<CompiledRule> rules_;
  StateStore state_;
  AlertSink& alerts_;
  InspectionScratch scratch_;
};

void expect_same_alerts(const RuleSet& rules, const std::vector<Frame>& frames) {
  const auto run = [&](stack::PacketSink& sink) {
    TrackedFrames tracked({.every_version = false});  // which the simple inspector does not support
    for (const Frame& frame : frames) {
      if (auto* const inspector = dynamic_cast<Inspector*>(&sink)) inspector->begin_frame();
      tracked.track(frame, sink);
    }
    tracked.finish(sink);
  };
  AlertList slow_list, list;
  HostMemory slow_hosts(std::size_t{1} << 20), hosts(std::size_t{1} << 20);
  SlowInspector slow(rules, slow_hosts, slow_list);
  run(slow);
  const auto detection = compiled(rules, {.most_alerts = 100'000});
  Inspector inspector(*detection, hosts, list, {});
  run(inspector);
  ASSERT_EQ(list.seen, slow_list.seen);
  ::testing::Test::RecordProperty("alerts", static_cast<int>(list.seen.size()));
}

template <typename T>
const T& one_of(const std::vector<T>& all, std::mt19937& random) {
  return all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
}

/// A word from a small alphabet, so that many rules match.
std::string word(std::mt19937& random, std::size_t most) {
  std::string made(1 + random() % most, 'a');
  for (char& c : made) c = static_cast<char>('a' + random() % 3);
  return made;
}

std::string random_rule(std::uint32_t sid, std::mt19937& random) {
  const std::string protocol = one_of<std::string>({"tcp", "tcp-pkt", "tcp-stream", "udp", "ip", "icmp"}, random);
  const bool has_ports = protocol != "ip" && protocol != "icmp";
  const std::vector<std::string> addresses{"any", "10.0.0.1", "10.0.0.0/31", "!10.0.0.2", "[10.0.0.1,10.0.0.2]"};
  const std::vector<std::string> ports{"any", "80", "[79:81,2000]", "!80", "40000", "2000"};
  const auto port = [&] { return has_ports ? one_of(ports, random) : std::string("any"); };
  std::string rule = random() % 12 == 0 ? "pass " : "alert ";
  rule += protocol + " " + one_of(addresses, random) + " " + port() + (random() % 6 == 0 ? " <> " : " -> ");
  rule += one_of(addresses, random) + " " + port() + " (";
  switch (random() % 4) {
    case 0: rule += "flow:established,to_server; "; break;
    case 1: rule += random() % 2 == 0 ? "flow:to_client; " : "flow:established; "; break;
    default: break;
  }
  for (unsigned i = static_cast<unsigned>(random() % 4); i > 0; --i) {
    rule += "content:" + std::string(random() % 5 == 0 ? "!" : "") + "\"" + word(random, 5) + "\"; ";
    if (random() % 4 == 0) rule += "nocase; ";
    if (random() % 6 == 0) rule += "offset:" + std::to_string(random() % 5) + "; ";
    if (random() % 6 == 0) rule += "depth:" + std::to_string(6 + random() % 9) + "; ";
  }
  if (random() % 6 == 0) rule += "pcre:\"/" + word(random, 2) + ".?" + word(random, 2) + "/\"; ";
  if (random() % 8 == 0) rule += "dsize:>" + std::to_string(random() % 10) + "; ";
  if (random() % 8 == 0) rule += "flowbits:" + std::string(random() % 2 == 0 ? "isset,x; " : "isnotset,x; ");
  if (random() % 8 == 0) rule += "flowbits:set,x; ";
  if (random() % 10 == 0) rule += "threshold:type limit, track by_src, count 2, seconds 60; ";
  if (random() % 20 == 0) rule += "tag:session,2,packets; ";
  rule += "priority:" + std::to_string(1 + random() % 3) + "; sid:" + std::to_string(sid) + ";)";
  return rule;
}

std::vector<Frame> random_frames(std::mt19937& random) {
  std::vector<Conversation> talks;
  std::vector<std::vector<Frame>> flows;
  for (const std::uint16_t port : std::vector<std::uint16_t>{80, 81, 2000}) {
    Conversation talk(40000, port);
    std::vector<Frame> frames = talk.handshake();
    for (int i = 0; i < 12; ++i) {
      const auto side = static_cast<unsigned>(random() % 2);
      switch (random() % 6) {
        case 0: frames.push_back(talk.ack(side)); break;
        case 1: frames.push_back(talk.data_at(side, -static_cast<std::int64_t>(random() % 9), word(random, 12))); break;
        default: frames.push_back(talk.data(side, word(random, random() % 4 == 0 ? 1400 : 12)));
      }
    }
    if (random() % 2 == 0) frames.push_back(talk.reset(0));
    flows.push_back(std::move(frames));
  }
  std::vector<Frame> of_udp;
  for (int i = 0; i < 10; ++i) {
    of_udp.push_back(random() % 3 == 0
                         ? packet().eth().ipv4("10.0.0.2", "10.0.0.1").icmp(8).payload(word(random, 9)).bytes()
                         : udp(word(random, 20), 1000, one_of<std::uint16_t>({80, 2000}, random)));
  }
  flows.push_back(std::move(of_udp));

  std::vector<Frame> all;
  std::vector<std::size_t> at(flows.size(), 0);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      for (std::size_t burst = random() % 3; burst > 0 && at[flow] < flows[flow].size(); --burst) {
        all.push_back(flows[flow][at[flow]++]);
      }
      more = more || at[flow] < flows[flow].size();
    }
  }
  return all;
}

TEST(InspectorOracle, AgreesOnRandomRulesAndPackets) {
  std::size_t rules_read = 0;
  for (unsigned seed = 0; seed < penstock::testing::rounds(60); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string text;
    for (std::uint32_t sid = 1; sid <= 40; ++sid) text += random_rule(sid, random) + "\n";
    auto rules = read_rules_text(text);
    ASSERT_TRUE(rules) << to_string(rules.error());
    rules_read += rules->rules.size();
    expect_same_alerts(*rules, random_frames(random));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(rules_read, penstock::testing::rounds(1500));
}

// --- Candidates from a GPU -----------------------------------------------------------------------------------------

bool occurs(const Literal& literal, Bytes text, std::size_t most) {
  const Bytes wanted = Bytes(literal.bytes).first(std::min(most, literal.bytes.size()));
  const auto same = [&](std::uint8_t a, std::uint8_t b) {
    return a == b || (literal.nocase && std::tolower(a) == std::tolower(b));
  };
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), same) != text.end();
}

/// What a GPU would report about the frame: literals cut to 8 bytes; empty if there are more than fit.
std::optional<std::vector<std::uint32_t>> found_elsewhere(const Detection& detection, const Frame& frame) {
  constexpr std::size_t kCut = 8, kMost = 7;
  const std::uint8_t protocol = frame[14 + 9];
  const std::size_t header = 14 + 20 + (protocol == 6 ? 20 : 8);
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < detection.literals().size(); ++i) {
    if (occurs(detection.literals()[i], Bytes(frame).subspan(header), kCut)) found.push_back(i);
  }
  if (found.size() > kMost) return std::nullopt;
  return found;
}

TEST(InspectorOracle, GivesTheSameAlertsWithCandidatesFromAGpu) {
  std::uint64_t saved = 0;
  for (unsigned seed = 0; seed < penstock::testing::rounds(60); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string text;
    for (std::uint32_t sid = 1; sid <= 40; ++sid) text += random_rule(sid, random) + "\n";
    // A long literal across several seams at once.
    text += "alert tcp any any -> any any (content:\"abcabcabcabcabc\"; sid:41;)\n";
    auto rules = read_rules_text(text);
    ASSERT_TRUE(rules) << to_string(rules.error());
    const std::vector<Frame> frames = random_frames(random);
    const auto detection = compiled(*rules, {.most_alerts = 100'000});
    std::array<AlertList, 2> lists;
    for (const bool with : {false, true}) {
      HostMemory hosts(std::size_t{1} << 20);
      Inspector inspector(*detection, hosts, lists[with ? 1 : 0], {});
      TrackedFrames tracked;
      std::mt19937 which(seed);
      const unsigned unknown_one_in = seed % 3 == 0 ? 1'000'000 : 6;
      for (const Frame& frame : frames) {
        const auto found = found_elsewhere(*detection, frame);
        const bool known = with && found && which() % unknown_one_in != 0;
        inspector.begin_frame(known ? FoundLiterals{true, *found} : FoundLiterals{});
        tracked.track(frame, inspector);
        saved += known ? 1 : 0;
      }
      inspector.begin_frame();
      tracked.finish(inspector);
    }
    ASSERT_EQ(lists[1].seen, lists[0].seen);
  }
  EXPECT_GT(saved, penstock::testing::rounds(1000));
}

/// A device that searches frames with the state of their flow, from the state stage.
class FlowStateDevice {
 public:
  explicit FlowStateDevice(const Detection& detection) : detection_(detection) {}

  /// `wrong`: the device gets a state that is not the stream's.
  FoundLiterals scan(Frame frame, bool wrong) {
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    const PacketView packet{frame.data(), &descriptor};
    std::byte* const place = reinterpret_cast<std::byte*>(&state_);
    stage_.fill({&packet, 1}, {&place, 1});
    const std::array<std::uint8_t, 1> other{'a'};
    if (wrong && state_.count() > 0) state_.append(other);
    parse(packet);
    const ScanRange range = scan_range(packet.layout(), packet.length());
    if (range.begin == range.end) state_ = {};
    // Literals cut to eight bytes that end in the payload.
    const std::uint64_t before = state_.bytes();
    Frame text(reinterpret_cast<const std::uint8_t*>(&before), reinterpret_cast<const std::uint8_t*>(&before) + 8);
    text.resize(state_.count());
    text.insert(text.end(), frame.begin() + range.begin, frame.begin() + range.end);
    found_.clear();
    for (std::uint32_t i = 0; i < detection_.literals().size(); ++i) {
      const Literal& literal = detection_.literals()[i];
      const std::size_t first = state_.count() + 1 - std::min<std::size_t>(state_.count() + 1, cut(literal));
      if (occurs(literal, Bytes(text).subspan(std::min(first, text.size())), kCutLiteralBytes)) found_.push_back(i);
    }
    const bool complete = found_.size() <= PacketLiterals::kMost;
    return {complete, found_, true, complete ? state_ : FlowState()};
  }

 private:
  static std::size_t cut(const Literal& literal) { return std::min(literal.bytes.size(), kCutLiteralBytes); }
  const Detection& detection_;
  FlowStateStage stage_{8};
  FlowState state_;
  std::vector<std::uint32_t> found_;
};

/// Two connections with segments of a few bytes, and some long ones, mostly in order. The contents cross segments.
std::vector<Frame> mostly_in_order(const std::vector<std::string>& contents, std::mt19937& random) {
  std::string waiting;
  const auto next = [&](std::size_t most) {
    const std::size_t size = 1 + random() % most;
    while (waiting.size() < size) waiting += random() % 2 == 0 ? one_of(contents, random) : word(random, 6);
    std::string text = waiting.substr(0, size);
    waiting.erase(0, size);
    return text;
  };
  std::array<Conversation, 2> talks{Conversation(40000, 80), Conversation(40000, 81)};
  std::vector<Frame> frames;
  for (Conversation& talk : talks) {
    for (Frame& frame : talk.handshake()) frames.push_back(std::move(frame));
  }
  for (int i = 0; i < 120; ++i) {
    Conversation& talk = talks[random() % 2];
    const unsigned side = random() % 8 == 0 ? 1 : 0;
    switch (random() % 16) {
      case 0:
      case 1: frames.push_back(talk.ack(1 - side)); break;
      case 2: frames.push_back(talk.data_at(side, -static_cast<std::int64_t>(random() % 40), word(random, 30))); break;
      case 3: frames.push_back(talk.data_at(side, static_cast<std::int64_t>(random() % 20), word(random, 12))); break;
      default: frames.push_back(talk.data(side, next(random() % 8 == 0 ? 1400 : 24)));
    }
  }
  return frames;
}

//   ┄┄┄┄ a b c a b | c a b | c a b c ┄┄┄┄     one content over several segments, its rarest part in any of them
TEST(InspectorOracle, GivesTheSameAlertsIfADeviceHasSearchedTheSeams) {
  std::uint64_t seams_known = 0;
  std::size_t alerts = 0;
  for (unsigned seed = 0; seed < penstock::testing::rounds(150); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string text;
    std::vector<std::string> contents;
    for (std::uint32_t sid = 1; sid <= 30; ++sid) {
      const std::size_t length = 1 + random() % (sid % 3 == 0 ? 18 : 7);
      std::string content;
      while (content.size() < length) content += word(random, length);
      contents.push_back(content.substr(0, length));
      text += "alert tcp any any -> any any (content:\"" + content.substr(0, length) + "\"; ";
      if (random() % 4 == 0) text += "nocase; ";
      if (random() % 4 == 0)
        text += "content:\"" + word(random, 4) + "\"; distance:" + std::to_string(random() % 9) + "; ";
      text += "sid:" + std::to_string(sid) + ";)\n";
    }
    auto rules = read_rules_text(text);
    ASSERT_TRUE(rules) << to_string(rules.error());
    const std::vector<Frame> frames = mostly_in_order(contents, random);
    const auto detection = compiled(*rules, {.most_alerts = 100'000});
    stack::TrackerOptions options;
    options.seam_bytes = detection->seam_bytes();
    options.inline_streams = seed % 2 == 1;
    std::array<AlertList, 2> lists;
    for (const bool with : {false, true}) {
      HostMemory hosts(std::size_t{1} << 20);
      Inspector inspector(*detection, hosts, lists[with ? 1 : 0], {});
      TrackedFrames tracked(options);
      FlowStateDevice device(*detection);
      std::mt19937 which(seed);
      const unsigned unusual_one_in = seed % 3 == 0 ? 1'000'000 : 12;
      for (const Frame& frame : frames) {
        const unsigned what = with ? static_cast<unsigned>(which() % (3 * unusual_one_in)) : 0;
        // The packet is left to the CPU twin, which has no state; or it is not shown to the state stage; or it has a
        // wrong state.
        const bool is_twins = !with || what == 1;
        inspector.begin_frame(is_twins ? FoundLiterals{} : device.scan(frame, what == 2));
        tracked.track(frame, inspector);
      }
      inspector.begin_frame();
      tracked.finish(inspector);
      seams_known += inspector.counters().seams_known;
    }
    ASSERT_EQ(lists[1].seen, lists[0].seen);
    alerts += lists[0].seen.size();
  }
  EXPECT_GT(seams_known, penstock::testing::rounds(500));
  EXPECT_GT(alerts, penstock::testing::rounds(10'000));
}

// --- The corpus ----------------------------------------------------------------------------------------------------

std::string corpus(const std::string& path) {
  const char* const given = std::getenv("PENSTOCK_CORPUS");
  return (given != nullptr ? given : PENSTOCK_SOURCE_DIR "/../shared/data") + ("/" + path);
}

std::uint32_t number_at(const Frame& bytes, std::size_t at) {
  return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | static_cast<std::uint32_t>(bytes[at + 3]) << 24;
}

/// The frames of an uncompressed little-endian pcap file with Ethernet.
std::vector<Frame> frames_of(const std::string& path, std::size_t most) {
  std::vector<Frame> frames;
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return frames;
  Frame header(24);
  if (gzread(file, header.data(), 24) != 24) header.clear();
  while (!header.empty() && frames.size() < most) {
    Frame record(16);
    if (gzread(file, record.data(), 16) != 16) break;
    Frame frame(number_at(record, 8));
    if (gzread(file, frame.data(), static_cast<unsigned>(frame.size())) != static_cast<int>(frame.size())) break;
    frames.push_back(std::move(frame));
  }
  gzclose(file);
  return frames;
}

TEST(InspectorOracle, AgreesOnRealRulesAndPackets) {
  const std::vector<Frame> frames = frames_of(corpus("captures/mix.pcap.gz"), 20'000);
  RuleFiles files;
  files.rules = {corpus("ids/mix/payload-147.rules")};
  if (frames.empty() || !std::ifstream(files.rules[0])) {
    GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  }
  auto rules = read_rules(files);
  ASSERT_TRUE(rules) << to_string(rules.error());
  ASSERT_GT(rules->rules.size(), 100U);
  expect_same_alerts(*rules, frames);
}

}  // namespace
}  // namespace penstock::nids::testing
