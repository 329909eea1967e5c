// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/sa_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nf/ipsec/numbers/numbers_for_test.h"

namespace penstock::ipsec {
namespace {

using ::testing::HasSubstr;

SecurityAssociation gcm(std::uint32_t spi = 0x1000, std::uint8_t key = 1) {
  SecurityAssociation sa;
  sa.source = Ipv4Address{0xc0000201};
  sa.destination = Ipv4Address{0xc0000202};
  sa.spi = spi;
  sa.cipher = Cipher::aes_gcm;
  sa.cipher_key = Secret(std::vector<std::uint8_t>(16, key));
  sa.salt = Secret(std::vector<std::uint8_t>(4, key));
  sa.icv_bytes = 16;
  sa.line = 3;
  return sa;
}

class Registry : public ::testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<SaState> state_of(const SecurityAssociation& sa, SaEnd end = SaEnd::sender,
                                                  const std::string& file = "a.txt") {
    auto state = registry.state_of(sa, end, file, *numbers);
    error = state ? "" : to_string(state.error());
    return state ? *state : nullptr;
  }

  SaRegistry registry;
  std::shared_ptr<NumberSource> numbers = testing::fixed_numbers();
  std::string error;
};

TEST_F(Registry, HasOneStateForEachEndOfAnSa) {
  const auto state = state_of(gcm());
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state_of(gcm(), SaEnd::sender, "b.txt"), state) << "whichever file names it";
  SecurityAssociation renamed = gcm();
  renamed.source = Ipv4Address{1};
  renamed.reqid = 7;
  EXPECT_EQ(state_of(renamed), state) << "destination and SPI say which SA it is";
  const auto receiver = state_of(gcm(), SaEnd::receiver);
  EXPECT_NE(receiver, state);
  EXPECT_EQ(state_of(gcm(), SaEnd::receiver), receiver);
  EXPECT_NE(state_of(gcm(0x2000, 2)), state);
  SecurityAssociation other_destination = gcm(0x1000, 3);
  other_destination.destination = Ipv4Address{0xc0000203};
  EXPECT_NE(state_of(other_destination), state);
  SecurityAssociation same_bits = gcm(0x1000, 4);
  same_bits.destination = Ipv6Address{0, 0xc0000202};
  EXPECT_NE(state_of(same_bits), state) << "of the other family";
}

TEST_F(Registry, ForgetsAStateThatNobodyUses) {
  auto state = state_of(gcm());
  state->numbers.advance_to(50);
  EXPECT_EQ(state_of(gcm())->sent(), 50U);
  state.reset();
  EXPECT_EQ(state_of(gcm())->sent(), 0U);
  EXPECT_NE(state_of(gcm(0x1000, 2)), nullptr) << "another SA that took its place";
}

TEST_F(Registry, StateGoesOnFromTheFileThatHasSeenMost) {
  SecurityAssociation sa = gcm();
  sa.replay_window = 64;
  sa.sequence.sent = 10;
  sa.sequence.received = 100;
  const auto sender = state_of(sa);
  const auto receiver = state_of(sa, SaEnd::receiver);
  sa.sequence.sent = 20;
  sa.sequence.received = 200;
  EXPECT_EQ(state_of(sa), sender);
  EXPECT_EQ(state_of(sa, SaEnd::receiver), receiver);
  EXPECT_EQ(sender->sent(), 20U);
  EXPECT_EQ(receiver->window.top(), 200U);
  EXPECT_EQ(receiver->window.check(100), Reason::too_old);
  sa.sequence.sent = sa.sequence.received = 5;
  EXPECT_EQ(state_of(sa), sender);
  EXPECT_EQ(state_of(sa, SaEnd::receiver), receiver);
  EXPECT_EQ(sender->sent(), 20U);
  EXPECT_EQ(receiver->window.top(), 200U);
}

TEST_F(Registry, StateThatIsUsedDoesNotFollowAFile) {
  SecurityAssociation sa = gcm();
  sa.replay_window = 64;
  sa.lifetimes.hard.packets = 1000;
  const auto sender = state_of(sa), receiver = state_of(sa, SaEnd::receiver);
  sender->begin_use();
  receiver->begin_use();
  sa.sequence.sent = sa.sequence.received = 0xffff'0000;
  sa.lifetimes.packets = 999;
  EXPECT_EQ(state_of(sa), sender);
  EXPECT_EQ(state_of(sa, SaEnd::receiver), receiver);
  EXPECT_EQ(sender->sent(), 0U);
  EXPECT_EQ(receiver->window.top(), 0U);
  EXPECT_EQ(sender->packets(), 0U);
  sender->end_use();
  EXPECT_EQ(state_of(sa), sender);
  EXPECT_EQ(sender->sent(), 0xffff'0000U) << "once it is not used any more";
}

TEST_F(Registry, RefusesFilesThatContradictEachOther) {
  const auto state = state_of(gcm());
  const auto refused = [&](auto change) {
    SecurityAssociation sa = gcm();
    sa.line = 9;
    change(sa);
    EXPECT_EQ(state_of(sa, SaEnd::sender, "b.txt"), nullptr);
    return error;
  };
  EXPECT_EQ(refused([](auto& sa) { sa.cipher_key = Secret(std::vector<std::uint8_t>(16, 9)); }),
            "b.txt:9: SA 0x00001000 from 192.0.2.1 to 192.0.2.2 was loaded from a.txt:3, with different values: "
            "found keys or algorithms, expected the same values, since its state continues, or a new SPI for new keys");
  EXPECT_THAT(refused([](auto& sa) { sa.salt = Secret(std::vector<std::uint8_t>(4, 9)); }), HasSubstr("found keys"));
  EXPECT_THAT(refused([](auto& sa) { sa.icv_bytes = 8; }), HasSubstr("found keys or algorithms"));
  EXPECT_THAT(refused([](auto& sa) { sa.esn = true; }), HasSubstr("found flag esn"));
  EXPECT_THAT(refused([](auto& sa) { sa.sequence_may_wrap = true; }), HasSubstr("found flag oseq-may-wrap"));
  EXPECT_THAT(refused([](auto& sa) { sa.lifetimes.hard.packets = 5; }), HasSubstr("found the lifetimes"));
  const auto receiver = state_of(gcm(), SaEnd::receiver);
  SecurityAssociation window = gcm();
  window.replay_window = 32;
  EXPECT_EQ(state_of(window, SaEnd::receiver), nullptr);
  EXPECT_THAT(error, HasSubstr("found the replay window"));
  EXPECT_NE(state_of(window), nullptr) << "of no matter to the sender";
}

TEST_F(Registry, RefusesTwoFoldersForOneSa) {
  const auto state = state_of(gcm());
  const auto kept = registry.kept_in("/somewhere", MakeParents::no);
  const auto refused = registry.state_of(gcm(), SaEnd::sender, "b.txt", *kept);
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_string(refused.error()),
              HasSubstr("was loaded from a.txt:3, with a different state_dir: found /somewhere here, none there"));
  EXPECT_EQ(registry.kept_in("/somewhere/", MakeParents::no), kept) << "one source for a folder";
  EXPECT_EQ(registry.random(), registry.random());
}

TEST_F(Registry, RefusesTwoSendersWithOneKeyAndSaltOfACipherThatCounts) {
  const auto state = state_of(gcm());
  EXPECT_EQ(state_of(gcm(0x2000), SaEnd::sender, "b.txt"), nullptr);
  EXPECT_EQ(
      error,
      "b.txt:3: two outbound SAs have the same key and salt, with a counter-mode cipher: found SA 0x00001000 "
      "from 192.0.2.1 to 192.0.2.2 at a.txt:3, expected a separate key for each SA; with a shared key, traffic can be "
      "decrypted");
  SecurityAssociation ctr = gcm(0x2000);
  ctr.cipher = Cipher::aes_ctr;
  ctr.integrity = Integrity::hmac_sha1_96;
  EXPECT_EQ(state_of(ctr), nullptr) << "they count the same blocks";
  SecurityAssociation salted = gcm(0x2000);
  salted.salt = Secret(std::vector<std::uint8_t>(4, 2));
  EXPECT_NE(state_of(salted), nullptr);
  EXPECT_NE(state_of(gcm(0x2000), SaEnd::receiver), nullptr) << "who opens makes no IVs";
  SecurityAssociation cbc = gcm(0x3000);
  cbc.cipher = Cipher::aes_cbc;
  cbc.salt.clear();
  const auto one = state_of(cbc);
  cbc.spi = 0x4000;
  EXPECT_NE(state_of(cbc), nullptr) << "its IVs are encrypted";
}

}  // namespace
}  // namespace penstock::ipsec
