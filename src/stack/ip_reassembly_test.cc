// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/ip_reassembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "packet/checksum.h"
#include "packet/ip.h"
#include "packet/testing/packet_builder.h"
#include "stack/fragment_tiling.h"
#include "stack/testing/naive_reassembly.h"

namespace penstock::stack {
namespace {

using testing::NaiveFragment;

/// But Linux's, which keeps none of what overlaps.
constexpr std::array kPolicies{OverlapPolicy::first,     OverlapPolicy::last,    OverlapPolicy::bsd,
                               OverlapPolicy::bsd_right, OverlapPolicy::windows, OverlapPolicy::solaris};

/// Fragments of one sender to one receiver.
class Reassembly {
 public:
  explicit Reassembly(TrackerOptions options = {}) : reassembly(options, counters) {}

  /// "" until the datagram is whole, then its data.
  std::string add4(std::uint32_t offset, std::string_view data, bool more, std::uint32_t id = 7) {
    header_.resize(sizeof(Ipv4Header));
    auto& ip = *reinterpret_cast<Ipv4Header*>(header_.data());
    ip = {};
    ip.version_ihl = 0x45;
    ip.tos = tos;
    ip.ttl = 9;
    ip.protocol = 17;
    ip.id.set(static_cast<std::uint16_t>(id));
    ip.fragment.set(static_cast<std::uint16_t>(offset / 8 | (more ? 0x2000U : 0U)));
    ip.total_length.set(static_cast<std::uint16_t>(20 + data.size()));
    ip.checksum.set(checksum(header_.data(), 20));
    packet.ip_version = 4;
    packet.protocol = 17;
    IpFragment fragment;
    fragment.id = id;
    fragment.offset = offset;
    fragment.more = more;
    fragment.header = header_;
    return add(fragment, data);
  }

  std::string add(IpFragment fragment, std::string_view data) {
    data_.assign(data.begin(), data.end());
    fragment.data = data_;
    packet.timestamp_ns = now_s * 1'000'000'000;
    packet.events.reset();
    reassembly.add(fragment, packet);
    return next();
  }
  /// What else the last fragment completed.
  std::string next() {
    whole = reassembly.next(packet, has_room ? std::span<std::uint8_t>(room_) : std::span<std::uint8_t>());
    const std::size_t header = whole.empty() ? 0 : packet.ip_version == 4 ? 20 : 40;
    return {whole.begin() + static_cast<std::ptrdiff_t>(header), whole.end()};
  }
  std::multiset<std::string> all_of(std::string first) {
    std::multiset<std::string> all;
    for (; !first.empty(); first = next()) all.insert(first);
    return all;
  }

  [[nodiscard]] bool told(DecodeEvent event) const { return packet.events[event.index]; }

  bool has_room = true;
  std::uint8_t tos = 0;
  TrackerCounters counters;
  IpReassembly reassembly;
  DecodedPacket packet;
  Bytes whole;
  std::uint64_t now_s = 100;

 private:
  std::vector<std::uint8_t> header_, data_;
  std::vector<std::uint8_t> room_ = std::vector<std::uint8_t>(IpReassembly::kMostBytes);
};

std::string units(std::string_view labels) {
  std::string text;
  for (const char label : labels) text += std::string(8, label);
  return text;
}

//   [ECT(0)]  [CE]   ─▶  CE;     [not ECT]  [CE]   ─▶  as the first fragment       (RFC 3168 §5.3)
TEST(IpReassembly, TakesOverCongestionOfAnyFragmentIfAllCanTellIt) {
  for (std::uint8_t first = 0x80; first <= 0x83; ++first) {
    for (std::uint8_t second = 0x80; second <= 0x83; ++second) {
      Reassembly r;
      r.tos = first;
      EXPECT_EQ(r.add4(0, units("a"), true), "");
      r.tos = second;
      EXPECT_EQ(r.add4(8, units("b"), false), units("ab"));
      const bool both_tell = (first & 3) != 0 && (second & 3) != 0;
      const bool congested = both_tell && ((first & 3) == 3 || (second & 3) == 3);
      EXPECT_EQ(r.whole[1], congested ? 0x83 : first);
      EXPECT_EQ(checksum(r.whole.data(), 20), 0);
    }
  }
}

TEST(IpReassembly, PutsFragmentsTogetherInAnyOrder) {
  std::array<int, 3> order{0, 1, 2};
  do {
    Reassembly r;
    std::string whole;
    for (const int i : order) {
      EXPECT_EQ(whole, "");
      whole = r.add4(static_cast<std::uint32_t>(i) * 16,
                     units(i == 0   ? "ab"
                           : i == 1 ? "cd"
                                    : "e") +
                         (i == 2 ? "xyz" : ""),
                     i != 2);
      EXPECT_FALSE(r.told(decode_event("ipv4.frag_overlap")));
    }
    EXPECT_EQ(whole, units("abcde") + "xyz");
    EXPECT_EQ(r.reassembly.datagrams(), 0U);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(IpReassembly, MakesAHeaderOfAWholeDatagram) {
  Reassembly r;
  r.add4(8, "end", false);
  r.add4(0, units("a"), true);
  const auto& ip = *reinterpret_cast<const Ipv4Header*>(r.whole.data());
  EXPECT_EQ(ip.total_length.value(), 31);
  EXPECT_EQ(ip.fragment.value(), 0);
  EXPECT_EQ(ip.ttl, 9);
  EXPECT_EQ(checksum(r.whole.data(), 20), 0);
}

TEST(IpReassembly, KeepsTheBytesThatThePolicyKeeps) {
  struct F {
    std::uint32_t unit;
    const char* labels;
  };
  const auto of = [&](OverlapPolicy policy, F a, F b) {
    Reassembly r({.fragment_policy = policy, .every_version = false});
    r.add4(0, units("0"), true);
    r.add4(a.unit * 8, units(a.labels), true);
    r.add4(b.unit * 8, units(b.labels), true);
    EXPECT_TRUE(r.told(decode_event("ipv4.frag_overlap")));
    const std::string result = r.add4(48, units("z"), false);
    EXPECT_FALSE(r.told(decode_event("ipv4.frag_overlap")));
    std::string labels;
    for (std::size_t i = 8; i < 48 && i < result.size(); i += 8) labels += result[i];
    return labels;
  };
  struct Case {
    F earlier, later;
    std::array<const char*, kPolicies.size()> kept;  // in the order of kPolicies
  };
  const std::array cases{
      // the later begins to the left
      Case{{2, "aaaa"}, {1, "bbb"}, {"baaaa", "bbbaa", "bbbaa", "baaaa", "baaaa", "baaaa"}},
      // and ends with the earlier
      Case{{3, "aaa"}, {1, "bbbbb"}, {"bbaaa", "bbbbb", "bbbbb", "bbaaa", "bbaaa", "bbbbb"}},
      // the later begins to the right
      Case{{1, "aaaa"}, {2, "bbbb"}, {"aaaab", "abbbb", "aaaab", "abbbb", "aaaab", "aaaab"}},
      // both begin at one place
      Case{{1, "aaa"}, {1, "bbbbb"}, {"aaabb", "bbbbb", "aaabb", "bbbbb", "aaabb", "aaabb"}},
      Case{{1, "aaaaa"}, {1, "bbb"}, {"aaaaa", "bbbaa", "aaaaa", "bbbaa", "aaaaa", "aaaaa"}},
  };
  for (std::size_t c = 0; c < cases.size(); ++c) {
    for (std::size_t i = 0; i < kPolicies.size(); ++i) {
      EXPECT_EQ(of(kPolicies[i], cases[c].earlier, cases[c].later), cases[c].kept[i])
          << "case " << c << " policy " << i;
    }
  }
}

TEST(IpReassembly, LetsWindowsReplaceOnlyWhatIsQuiteCovered) {
  Reassembly r({.fragment_policy = OverlapPolicy::windows, .every_version = false});
  r.add4(16, units("a"), true);
  r.add4(40, units("z"), false);
  r.add4(32, units("y"), true);
  r.add4(0, units("0"), true);
  EXPECT_EQ(r.add4(8, units("bbb"), true), units("0bbbyz"));
}

TEST(IpReassembly, AgreesWithANaiveOneOnRandomFragments) {
  std::uint32_t state = 12345;
  const auto random = [&](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  int whole = 0;
  for (int round = 0; round < 20000; ++round) {
    const OverlapPolicy policy = kPolicies[random(kPolicies.size())];
    Reassembly r({.fragment_policy = policy, .every_version = false, .fragment_memory = 1 << 16});
    std::vector<NaiveFragment> fragments;
    for (std::uint32_t i = 0; i < 12; ++i) {
      NaiveFragment f;
      f.begin = random(6) * 8;
      const bool odd = random(8) == 0;
      f.data = std::string(odd ? 1 + random(30) : 8 * (1 + random(4)), static_cast<char>('a' + i));
      f.more = random(6) != 0;
      fragments.push_back(f);
      const std::string result = r.add4(f.begin, f.data, f.more);
      const auto expected = testing::naive_reassembly(policy, fragments);
      ASSERT_EQ(result, expected.value_or("")) << "round " << round << ", fragment " << i;
      if (expected) {
        ++whole;
        break;
      }
    }
  }
  EXPECT_GT(whole, 5000);
}

TEST(IpReassembly, AgreesWithANaiveLinuxOnRandomFragments) {
  std::mt19937 random(1);
  int whole = 0, overlapped = 0;
  for (int round = 0; round < 20000; ++round) {
    Reassembly r({.every_version = false, .fragment_memory = 1 << 16});
    testing::NaiveLinux naive;
    for (std::uint32_t i = 0; i < 12; ++i) {
      NaiveFragment f;
      f.begin = static_cast<std::uint32_t>(random() % 6) * 8;
      const bool odd = random() % 8 == 0;
      f.data = std::string(odd ? 1 + random() % 30 : 8 * (1 + random() % 3), static_cast<char>('a' + i));
      f.more = random() % 6 != 0;
      if (naive.ends_elsewhere(f)) continue;
      const std::string result = r.add4(f.begin, f.data, f.more);
      const auto expected = naive.add(f);
      ASSERT_EQ(result, expected.value_or("")) << "round " << round << ", fragment " << i;
      if (expected) ++whole;
      if (r.told(decode_event("ipv4.frag_overlap"))) ++overlapped;
    }
  }
  EXPECT_GT(whole, 3000);
  EXPECT_GT(overlapped, 3000);
}

// ---- Each version

using ::testing::ElementsAre;

//   0        8        16       24
//   |─ aaaa ─|─ bbbb ─|─ cccc ─|      which of b and x the host has, it alone knows
//            |─ xxxx ─|
TEST(IpReassembly, GivesEachDatagramThatFragmentsMake) {
  Reassembly r;
  r.add4(8, units("x"), true);
  r.add4(8, units("b"), true);
  r.add4(16, units("c"), false);
  EXPECT_THAT(r.all_of(r.add4(0, units("a"), true)), ElementsAre(units("abc"), units("axc")));
  EXPECT_EQ(r.counters.reassembled, 2U);
}

//   |─ aaaa ─|─ xxxx ─|      whole, as far as the watcher knows; but x died on the way,
//            |─ bbbb ─|      and this is what completes the datagram at the host
TEST(IpReassembly, GivesWhatAFragmentMakesThatComesAgainWithOtherContent) {
  Reassembly r;
  r.add4(0, units("a"), true);
  EXPECT_EQ(r.add4(8, units("x"), false), units("ax"));
  EXPECT_EQ(r.reassembly.datagrams(), 0U) << "it does not wait any more";
  EXPECT_THAT(r.all_of(r.add4(8, units("b"), false)), ElementsAre(units("ab")));
}

// The host begins anew after the overlap: what came before it may be gone, or came never.
TEST(IpReassembly, GivesTheDatagramThatIsSentAgainAfterAnOverlap) {
  Reassembly r;
  r.add4(0, units("ab"), true);
  r.add4(8, units("xyz"), true);  // overlaps in part
  r.add4(0, units("ab"), true);
  EXPECT_THAT(r.all_of(r.add4(16, units("c"), false)), ElementsAre(units("abc")));
}

TEST(IpReassembly, GivesTheSameAgainOnlyOnceAllOfItHasComeAgain) {
  Reassembly r;
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(r.add4(0, units("a"), true), "") << time;
    EXPECT_THAT(r.all_of(r.add4(8, units("b"), false)), ElementsAre(units("ab"))) << time;
  }
}

// An identifier is used again within the timeout: the other datagram's parts are none of this one.
TEST(IpReassembly, GivesNoDatagramWhoseTransportChecksumIsWrong) {
  const auto udp = [](std::string_view text, std::uint16_t port) {
    const std::vector<std::uint8_t> frame =
        penstock::testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(port, 53).payload(text).bytes();
    return std::string(frame.begin() + 34, frame.end());
  };
  Reassembly r({.verify_checksums = true});
  r.packet.source.address.low = 0x0a000001;
  r.packet.destination.address.low = 0x0a000002;
  const std::string one = udp("one datagram of two", 1000), two = udp("two fragments, again", 2000);
  r.add4(0, one.substr(0, 16), true);
  EXPECT_THAT(r.all_of(r.add4(16, one.substr(16), false)), ElementsAre(one));
  EXPECT_EQ(r.add4(0, two.substr(0, 16), true), "");
  EXPECT_THAT(r.all_of(r.add4(16, two.substr(16), false)), ElementsAre(two));
}

TEST(IpReassembly, GivesAllThatTryingGivesOfRandomFragments) {
  std::mt19937 random(2);
  std::size_t given = 0;
  for (int round = 0; round < 5000; ++round) {
    Reassembly r({.fragment_memory = 1 << 16});
    std::vector<NaiveFragment> fragments;
    std::multiset<std::string> all;
    for (std::uint32_t i = 0; i < 6; ++i) {
      NaiveFragment f;
      f.begin = static_cast<std::uint32_t>(random() % 3) * 8;
      f.data = units(std::string(1 + random() % 2, static_cast<char>('a' + i)));
      f.more = f.end() < 24;
      fragments.push_back(f);
      for (const std::string& one : r.all_of(r.add4(f.begin, f.data, f.more))) all.insert(one);
    }
    std::multiset<std::string> expected;
    const auto extend = [&](const auto& self, const std::string& so_far) -> void {
      for (const NaiveFragment& f : fragments) {
        if (f.begin != so_far.size()) continue;
        if (f.more) {
          self(self, so_far + f.data);
        } else {
          expected.insert(so_far + f.data);
        }
      }
    };
    extend(extend, "");
    given += all.size();
    // Of more than eight at once, some are not given.
    if (r.counters.contested_fragments_given_up == 0) {
      ASSERT_EQ(all, expected) << round;
    }
  }
  EXPECT_GT(given, 3000U);
}

// Decoys that die on the way, in front of and behind the genuine ones. Without a checksum nothing says which is which:
//
//   genuine  G  E  V  I  L  G  G  …  G
//   decoy    d  d  d  d  d  d  d  …  d     behind the genuine one at every second place
TEST(IpReassembly, FindsNeighboursAmongManyDecoys) {
  Reassembly r({.verify_checksums = false});
  std::string genuine(40, 'G');
  genuine.replace(1, 4, "EVIL");
  std::multiset<std::string> given;
  for (std::uint32_t at = 0; at < genuine.size(); ++at) {
    const bool decoy_first = at % 2 == 0;
    for (const bool decoy : {decoy_first, !decoy_first}) {
      const char label = decoy ? 'd' : genuine[at];
      for (const std::string& one : r.all_of(r.add4(at * 8, units({&label, 1}), true))) given.insert(one);
    }
  }
  given = r.all_of(r.add4(40 * 8, "end", false));
  EXPECT_GE(given.size(), FragmentTilings::kMostCovering);
  EXPECT_LE(given.size(), IpReassembly::kMostDatagrams);
  const auto has = [&](const std::string& text) {
    return std::any_of(given.begin(), given.end(),
                       [&](const std::string& one) { return one.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(has(units("GEVILG")));
  EXPECT_TRUE(has(units("GdVILd")));
  EXPECT_EQ(std::set<std::string>(given.begin(), given.end()).size(), given.size()) << "none twice";
  EXPECT_GT(r.counters.contested_fragments_given_up, 0U);
}

// However small the fragment that completes them.
TEST(IpReassembly, BoundsTheBytesThatOneFragmentCompletes) {
  Reassembly r({.verify_checksums = false, .fragment_memory = 1 << 22});
  for (std::uint32_t at = 0; at < 20; ++at) {
    for (const char label : {'a', 'b'}) r.add4(8 + at * 3000, std::string(3000, label), true);
  }
  r.add4(8 + 20 * 3000, "end", false);
  std::size_t bytes = 0;
  for (const std::string& one : r.all_of(r.add4(0, units("x"), true))) bytes += one.size();
  EXPECT_GT(bytes, 6 * 60'000U);
  EXPECT_LE(bytes, 9 * IpReassembly::kMostBytes);
}

TEST(IpReassembly, RefusesInlineAFragmentThatContradictsAnother) {
  for (const OverlapPolicy policy : {OverlapPolicy::linux_host, OverlapPolicy::last, OverlapPolicy::bsd}) {
    Reassembly r({.fragment_policy = policy, .inline_streams = true});
    r.add4(0, units("ab"), true);
    EXPECT_EQ(r.packet.refused, Refusal::none);
    r.add4(8, units("x"), true);
    EXPECT_EQ(r.packet.refused, Refusal::changed_bytes);
    r.packet.refused = Refusal::none;
    r.add4(8, units("bc"), true);
    EXPECT_EQ(r.packet.refused, Refusal::none) << "the same bytes";
    r.add4(8, units("b"), false);
    EXPECT_EQ(r.packet.refused, Refusal::changed_bytes) << "another end";
    r.packet.refused = Refusal::none;
    EXPECT_EQ(r.add4(24, "end", false), units("abc") + "end");
  }
}

TEST(IpReassembly, TellsFragmentsOfDifferentDatagramsApart) {
  Reassembly r;
  EXPECT_EQ(r.add4(0, units("a"), true, 1), "");
  EXPECT_EQ(r.add4(8, "b", false, 2), "");
  r.packet.vlan_ids[0] = 5;
  EXPECT_EQ(r.add4(8, "b", false, 1), "");
  r.packet.vlan_ids[0] = 0;
  r.packet.source.address.low = 1;
  EXPECT_EQ(r.add4(8, "b", false, 1), "");
  r.packet.source.address.low = 0;
  EXPECT_EQ(r.reassembly.datagrams(), 4U);
  EXPECT_EQ(r.add4(8, "b", false, 1), units("a") + "b");
  EXPECT_EQ(r.reassembly.datagrams(), 3U);
}

TEST(IpReassembly, GivesUpWhatWaitsForTooLong) {
  TrackerOptions options;
  options.fragment_timeout_s = 30;
  Reassembly r(options);
  r.add4(0, units("a"), true);
  r.now_s += 31;
  EXPECT_EQ(r.add4(8, "b", false), "");  // it begins anew
  EXPECT_EQ(r.counters.fragments_timed_out, 1U);
  r.reassembly.expire((r.now_s + 30) * 1'000'000'000);
  EXPECT_EQ(r.reassembly.datagrams(), 1U);
  r.reassembly.expire((r.now_s + 31) * 1'000'000'000);
  EXPECT_EQ(r.reassembly.datagrams(), 0U);
  EXPECT_EQ(r.counters.fragments_timed_out, 2U);
}

TEST(IpReassembly, TellsOfDatagramsThatAreTooLarge) {
  Reassembly r;
  EXPECT_EQ(r.add4(65528, units("a"), false), "");
  EXPECT_TRUE(r.told(decode_event("ipv4.frag_pkt_too_large")));
  EXPECT_EQ(r.reassembly.datagrams(), 0U);
  r.add4(65504, units("a"), false);
  EXPECT_FALSE(r.told(decode_event("ipv4.frag_pkt_too_large")));
  EXPECT_EQ(r.reassembly.datagrams(), 1U);
}

TEST(IpReassembly, PutsTheLargestDatagramTogether) {
  Reassembly r;
  const std::string part(1480, 'x');
  std::string expected, whole;
  for (std::uint32_t at = 0; at < 65515; at += 1480) {
    const std::string data = part.substr(0, std::min<std::size_t>(1480, 65515 - at));
    whole = r.add4(at, data, at + 1480 < 65515);
    expected += data;
  }
  EXPECT_EQ(whole, expected);
  EXPECT_EQ(r.whole.size(), 65535U);
}

TEST(IpReassembly, KeepsNothingBehindTheLastFragment) {
  Reassembly r;
  EXPECT_EQ(r.add4(16, units("c"), true), "");
  EXPECT_EQ(r.add4(8, units("b"), false), "");
  EXPECT_EQ(r.add4(0, units("a"), true), units("ab"));
}

// First fragments without the rest, from one host: others' are put together, however long theirs wait.
TEST(IpReassembly, LetsNoSourceTakeTheRoomOfOthers) {
  for (const bool refuses : {false, true}) {
    Reassembly r({.refuse_when_full = refuses, .fragment_memory = 1 << 20});
    const auto add_from = [&](std::uint32_t source, std::uint32_t offset, const std::string& data, bool more,
                              std::uint32_t id) {
      r.packet.source.address.low = source;
      r.packet.refused = Refusal::none;
      return r.add4(offset, data, more, id);
    };
    for (std::uint32_t id = 0; id < 20; ++id) add_from(1, 0, units("a"), true, id);
    for (std::uint32_t id = 0; id < 60000; ++id) add_from(2, 0, units("f"), true, id);
    for (std::uint32_t id = 0; id < 20; ++id) {
      EXPECT_EQ(add_from(1, 8, "b", false, id), units("a") + "b") << id << refuses;
    }
    EXPECT_GT(r.counters.fragment_memory_refused, 0U);
  }
}

// Inline, what passed waits at its receiver: what is given up does not pass any more.
TEST(IpReassembly, RefusesTheRestOfWhatWasGivenUpIfItIsTo) {
  Reassembly r({.refuse_when_full = true, .fragment_memory = 1 << 16});
  r.add4(0, units("a"), true, 1);
  for (std::uint32_t id = 2; id < 60; ++id) r.add4(0, std::string(4000, 'f'), true, id);
  r.packet.refused = Refusal::none;
  EXPECT_EQ(r.add4(8, "b", false, 1), "");
  EXPECT_EQ(r.packet.refused, Refusal::fragment);
  r.now_s += 61;
  r.packet.refused = Refusal::none;
  r.add4(0, units("a"), true, 1);
  EXPECT_EQ(r.packet.refused, Refusal::none) << "it has waited for too long there as well";
}

TEST(IpReassembly, StaysWithinItsMemoryUnderAFlood) {
  for (const std::size_t memory : {std::size_t{1} << 16, std::size_t{1} << 20, std::size_t{16} << 20}) {
    TrackerOptions options;
    options.fragment_memory = memory;
    Reassembly r(options);
    const std::size_t before = r.reassembly.memory_bytes();
    EXPECT_LE(before, memory + memory / 64 + (std::size_t{1} << 19)) << "with tables";
    std::uint64_t sent = 0;
    for (std::uint32_t id = 0; id < 30000; ++id) {
      r.add4(0, std::string(id % 3 == 0 ? 9000 : 8, 'f'), true, id & 0xffff);
      ++sent;
      if (id % 100 != 0) continue;
      // What comes at once is put together all the same.
      const std::uint32_t good = 0x1ffff;
      r.add4(0, units("g"), true, good);
      EXPECT_EQ(r.add4(8, "ood", false, good), units("g") + "ood");
      sent += 2;
    }
    EXPECT_EQ(r.reassembly.memory_bytes(), before);
    EXPECT_EQ(r.counters.fragments, sent);
    EXPECT_GT(r.counters.fragments_dropped, 0U);
    r.reassembly.expire(~std::uint64_t{0});
    EXPECT_EQ(r.reassembly.datagrams(), 0U);
    EXPECT_EQ(r.counters.fragments_dropped + r.counters.fragments_timed_out + 2 * r.counters.reassembled, sent);
  }
}

TEST(IpReassembly, IgnoresWhatADatagramHasTooMuchOf) {
  Reassembly r;
  for (int i = 0; i < 10000; ++i) r.add4(8, units("a"), true);
  EXPECT_FALSE(r.told(decode_event("ipv4.frag_ignored"))) << "all the same";
  const auto other = [](int i) { return std::string(1, static_cast<char>(i)) + std::to_string(100'000 + i) + "x"; };
  Reassembly inline_one({.fragment_policy = OverlapPolicy::bsd, .every_version = false});
  for (int i = 0; i < 10000; ++i) inline_one.add4(8, other(i), true);
  EXPECT_TRUE(inline_one.told(decode_event("ipv4.frag_ignored")));
  EXPECT_EQ(inline_one.reassembly.datagrams(), 1U);
  Reassembly large({.fragment_policy = OverlapPolicy::bsd, .every_version = false});
  for (int i = 0; i < 100; ++i) large.add4(8, std::string(8000, static_cast<char>(i)), true);
  EXPECT_TRUE(large.told(decode_event("ipv4.frag_ignored")));
}

TEST(IpReassembly, KeepsTheNewestOfADatagramThatContradictsItselfTooOften) {
  Reassembly r;
  r.add4(0, units("a"), true);
  for (int i = 0; i < 10000; ++i) r.add4(8, std::to_string(10'000'000 + i), true);
  EXPECT_FALSE(r.told(decode_event("ipv4.frag_ignored")));
  EXPECT_GT(r.counters.contested_fragments_given_up, 0U);
}

TEST(IpReassembly, NamesWhatIpv6sFragmentHeaderNamed) {
  Reassembly r;
  r.packet.ip_version = 6;
  std::vector<std::uint8_t> header(48);
  header[0] = 0x60;
  header[6] = ip_protocol::kHopByHop;
  header[40] = ip_protocol::kFragment;
  IpFragment fragment;
  fragment.header = header;
  fragment.next_header = 17;
  fragment.next_header_at = 40;
  fragment.more = true;
  EXPECT_EQ(r.add(fragment, units("a")), "");
  fragment.more = false;
  fragment.offset = 8;
  r.add(fragment, "b");
  ASSERT_EQ(r.whole.size(), 48U + 9);
  EXPECT_EQ(r.whole[6], ip_protocol::kHopByHop);
  EXPECT_EQ(r.whole[40], 17);
  EXPECT_EQ(r.whole[5], 17);  // payload length
  EXPECT_EQ(r.counters.reassembled, 1U);
}

TEST(IpReassembly, RefusesFragmentsThatMemoryHasNoRoomForIfItIsTo) {
  for (const bool refuses : {false, true}) {
    Reassembly r({.refuse_when_full = refuses, .fragment_memory = 16384});
    r.add4(0, units("ab"), true, 1);
    std::uint32_t id = 2;
    while (r.counters.fragment_memory_refused == 0) {
      r.add4(0, std::string(1200, 'x'), true, id++);
      ASSERT_LT(id, 100U);
    }
    EXPECT_EQ(r.packet.refused, refuses ? Refusal::fragment_memory : Refusal::none);
    r.packet.refused = Refusal::none;
    EXPECT_EQ(r.add4(16, "end", false, 1), refuses ? units("ab") + "end" : "") << "what waits is not given up";
    // What has waited for too long makes way all the same.
    r.now_s += 61;
    r.packet.refused = Refusal::none;
    r.add4(0, std::string(1200, 'x'), true, 500);
    EXPECT_EQ(r.packet.refused, Refusal::none);
    EXPECT_EQ(r.add4(1200, "end", false, 500).size(), 1203U);
  }
}

TEST(IpReassembly, GivesUpFragmentsForWhoseDatagramThereIsNoMemory) {
  for (const bool refuses : {false, true}) {
    Reassembly r({.refuse_when_full = refuses});
    r.add4(0, units("ab"), true);
    r.has_room = false;
    EXPECT_EQ(r.add4(16, "end", false), "");
    EXPECT_EQ(r.counters.fragment_memory_refused, 1U);
    EXPECT_EQ(r.packet.refused, refuses ? Refusal::fragment_memory : Refusal::none);
    r.has_room = true;
    EXPECT_EQ(r.add4(16, "end", false), units("ab") + "end") << "it comes again";
  }
}

TEST(IpReassembly, RefusesFragmentsOfADatagramThatHasTooManyIfItIsTo) {
  for (const bool refuses : {false, true}) {
    Reassembly r({.fragment_policy = OverlapPolicy::bsd, .every_version = false, .refuse_when_full = refuses});
    for (unsigned i = 0; i < 100'000 && r.counters.fragment_memory_refused == 0; ++i) {
      r.add4(8, std::to_string(10'000'000 + i), true);
    }
    EXPECT_EQ(r.counters.fragment_memory_refused, 1U);
    EXPECT_EQ(r.packet.refused, refuses ? Refusal::fragment_memory : Refusal::none);
  }
}

}  // namespace
}  // namespace penstock::stack
