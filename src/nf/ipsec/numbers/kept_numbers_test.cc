// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs that end, crash and lose power over a failing disk never send the same numbers twice.
//
//     run 1   |──reserved──|          run 2        |──reserved──|
//             1 2 3 … crash           numbers go on here
//             IVs: run 9, from 77     IVs: run 4, from 5

#include "nf/ipsec/numbers/kept_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "base/testing/rounds.h"
#include "nf/ipsec/numbers/faulty_folder_for_test.h"

namespace penstock::ipsec {
namespace {

using testing::FaultyDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Secret secret(std::uint8_t first, std::size_t bytes) { return Secret(std::vector<std::uint8_t>(bytes, first)); }

SecurityAssociation gcm(std::uint32_t spi = 0x1000, std::uint8_t key = 1) {
  SecurityAssociation sa;
  sa.source = Ipv4Address{0xc0000201};
  sa.destination = Ipv4Address{0xc0000202};
  sa.spi = spi;
  sa.cipher = Cipher::aes_gcm;
  sa.cipher_key = secret(key, 16);
  sa.salt = secret(key, 4);
  sa.icv_bytes = 16;
  sa.line = 3;
  return sa;
}

SecurityAssociation cbc(std::uint32_t spi) {
  SecurityAssociation sa = gcm(spi, 9);
  sa.cipher = Cipher::aes_cbc;
  sa.salt.clear();
  sa.integrity = Integrity::hmac_sha1_96;
  sa.integrity_key = secret(7, 20);
  return sa;
}

std::shared_ptr<SaState> state_of(const SecurityAssociation& sa, SaEnd end = SaEnd::sender) {
  return std::make_shared<SaState>(sa, SaOrigin{identity_of(sa, end), "SA", {"state.txt", sa.line, 0}});
}

/// What no two packets under one key may have in common.
struct Nonce {
  std::uint64_t iv, sequence;
};

/// One process using a disk.
class Process {
 public:
  explicit Process(FaultyDisk& disk, RandomBits random = system_random_bits)
      : numbers("/state",
                {[&disk]() -> Result<std::unique_ptr<StateFolder>> { return disk.open(); }, [] { return Errors{}; },
                 [&disk] { return disk.open(); }},
                std::move(random)) {}

  /// The number of one packet; 0 if it may not send any.
  std::uint64_t send_one(SaState& state) {
    const auto nonces = send(state, 1);
    return nonces.empty() ? 0 : nonces.front().sequence;
  }
  /// Sends as many of `count` packets as it may.
  std::vector<Nonce> send(SaState& state, std::uint32_t count) {
    const SequenceRange taken = state.take(count);
    std::vector<Nonce> nonces;
    for (std::uint32_t i = 0; i < taken.count; ++i) {
      nonces.push_back({state.iv_base() + taken.first + i, taken.first + i});
    }
    return nonces;
  }
  [[nodiscard]] bool begin(const std::vector<std::shared_ptr<SaState>>& states) {
    const auto begun = numbers.begin(states);
    error = begun ? "" : to_string(begun.error());
    return begun.has_value();
  }

  KeptNumbers numbers;
  std::string error;
};

TEST(KeptNumbers, GoOnWhereACrashHasLeftThem) {
  FaultyDisk disk(1);
  for (std::uint64_t run = 0; run < 3; ++run) {
    Process process(disk);
    const auto state = state_of(gcm());
    ASSERT_TRUE(process.begin({state})) << process.error;
    EXPECT_EQ(process.send_one(*state), run * kLeastReservation + 1);
    disk.crash();
  }
}

TEST(KeptNumbers, OfManySasBeginTogetherOrNotAtAll) {
  FaultyDisk disk(1);
  const auto many = [] {
    std::vector<std::shared_ptr<SaState>> states;
    for (std::uint32_t i = 0; i < 2500; ++i) {
      SecurityAssociation sa = gcm(0x1000 + i);
      std::vector<std::uint8_t> key(16, 1);
      key[0] = static_cast<std::uint8_t>(i);
      key[1] = static_cast<std::uint8_t>(i >> 8);
      sa.cipher_key = Secret(key);
      states.push_back(state_of(sa));
    }
    return states;
  }();
  Process process(disk), other(disk);
  ASSERT_TRUE(other.begin({many.back()}));
  EXPECT_FALSE(process.begin(many)) << "another process has the last one";
  for (const auto& state : {many.front(), many[1500]}) {
    EXPECT_EQ(process.send_one(*state), 0U);
    EXPECT_TRUE(other.begin({state})) << "not locked";
    other.numbers.end(std::vector{state});
  }
  other.numbers.end(std::vector{many.back()});
  ASSERT_TRUE(process.begin(many)) << process.error;
  for (const auto& state : many) ASSERT_EQ(process.send_one(*state), 1U);
  process.numbers.end(many);
  EXPECT_TRUE(other.begin(many)) << "not locked";
}

TEST(KeptNumbers, LeaveNoGapWhereARunEnds) {
  FaultyDisk disk(1);
  std::uint64_t sent = 0;
  for (const std::uint32_t packets : {5U, 0U, 7U}) {
    Process process(disk);
    const auto state = state_of(gcm());
    ASSERT_TRUE(process.begin({state}));
    EXPECT_EQ(process.send(*state, packets).size(), packets);
    sent += packets;
    process.numbers.end(std::vector{state});
    EXPECT_EQ(process.send(*state, 1).size(), 0U) << "the run is over";
    EXPECT_EQ(state->sent(), sent);
    disk.crash();
  }
}

TEST(KeptNumbers, BeginWithTheStateFilesWhereTheseAreHigher) {
  FaultyDisk disk(1);
  SecurityAssociation sa = gcm();
  struct Case {
    std::uint64_t of_file, first;
  };
  for (const Case& one : {Case{1000, 1001}, {5, 1002}, {2000, 2001}}) {
    sa.sequence.sent = one.of_file;
    Process process(disk);
    const auto state = state_of(sa);
    ASSERT_TRUE(process.begin({state}));
    EXPECT_EQ(process.send_one(*state), one.first);
    process.numbers.end(std::vector{state});
    disk.kill();
  }
}

TEST(KeptNumbers, GiveEachRunIvsOfItsOwn) {
  FaultyDisk disk(1);
  // A generator that repeats its value until it must give a different one.
  const auto stuck = [calls = 0]() mutable { return std::optional<std::uint64_t>(++calls / 4); };
  std::set<std::uint64_t> runs;
  for (unsigned i = 0; i < 40; ++i) {
    Process process(disk, stuck);
    const auto state = state_of(gcm());
    ASSERT_TRUE(process.begin({state}));
    const auto nonces = process.send(*state, 3);
    ASSERT_THAT(nonces, SizeIs(3));
    EXPECT_EQ(nonces.front().iv >> 48, nonces.back().iv >> 48);
    EXPECT_TRUE(runs.insert(nonces.front().iv >> 48).second) << "run " << i;
    i % 2 == 0 ? disk.crash() : process.numbers.end(std::vector{state});
    disk.kill();
  }
}

TEST(KeptNumbers, TakeARunBackThatHasSentNothing) {
  FaultyDisk disk(1);
  std::size_t bytes = 0;
  for (int i = 0; i < 5; ++i) {
    Process process(disk);
    const auto state = state_of(gcm());
    ASSERT_TRUE(process.begin({state}));
    process.numbers.end(std::vector{state});
    disk.kill();
    const auto record = read_record(*disk.open(), state->origin().identity.file_name(), state->origin().identity.seal);
    ASSERT_TRUE(record);
    EXPECT_THAT(record->runs, IsEmpty());
    EXPECT_EQ(record->entries[0].reserved, 0U);
    if (i == 0) bytes = disk.content(state->origin().identity.file_name()).size();
    EXPECT_EQ(disk.content(state->origin().identity.file_name()).size(), bytes);
  }
}

TEST(KeptNumbers, IvsOfARunStayInTheRunHoweverFarItsCountBegins) {
  FaultyDisk disk(1);
  Process process(disk, [] { return std::optional<std::uint64_t>(~std::uint64_t{0}); });
  SecurityAssociation sa = gcm();
  sa.esn = true;
  sa.sequence.sent = 1000;
  const auto state = state_of(sa);
  ASSERT_TRUE(process.begin({state}));
  const std::uint64_t first = process.send(*state, 1).front().iv;
  EXPECT_EQ(first >> 48, 0xffffU);
  EXPECT_EQ(state->numbers.most(), 1000 + kMostOfRun);
  EXPECT_EQ((state->iv_base() + state->numbers.most()) >> 48, 0xffffU) << "the last that it may have";
}

TEST(KeptNumbers, AreReservedAheadOfTheirUse) {
  FaultyDisk disk(1);
  Process process(disk);
  SecurityAssociation sa = gcm();
  sa.esn = true;
  const auto state = state_of(sa);
  ASSERT_TRUE(process.begin({state}));
  const std::uint64_t first = state->numbers.reserved();
  EXPECT_EQ(first, kLeastReservation);
  process.send(*state, kLeastReservation / 2 - 1);
  process.numbers.extend(1);
  EXPECT_EQ(state->numbers.reserved(), first) << "half is left";
  process.send(*state, 2);
  process.numbers.extend(1);
  EXPECT_GE(state->numbers.reserved(), state->sent() + kLeastReservation);
}

TEST(KeptNumbers, AreReservedForASecondOfWhatAFastSenderSends) {
  FaultyDisk disk(1);
  Process process(disk);
  SecurityAssociation sa = gcm();
  sa.esn = true;
  const auto state = state_of(sa);
  ASSERT_TRUE(process.begin({state}));
  process.send(*state, kLeastReservation * 3 / 4);
  process.numbers.extend(0.1);
  EXPECT_EQ(state->numbers.reserved(), state->sent() + kLeastReservation * 3 / 4 * 10);
  process.send(*state, static_cast<std::uint32_t>(state->numbers.reserved() - state->sent()));
  const std::uint64_t before = state->numbers.reserved();
  process.numbers.extend(0.001);
  EXPECT_EQ(state->numbers.reserved(), before + kMostReservation) << "no further, or a lost write could hide more";
  process.numbers.extend(0);
  EXPECT_EQ(state->numbers.reserved(), before + kMostReservation) << "a clock that stands still";
}

TEST(KeptNumbers, OfAnSaEndWithItsLast) {
  FaultyDisk disk(1);
  SecurityAssociation sa = gcm();
  sa.sequence.sent = 0xffff'fff0;
  Process process(disk);
  const auto state = state_of(sa);
  ASSERT_TRUE(process.begin({state}));
  EXPECT_THAT(process.send(*state, 100), SizeIs(15));
  EXPECT_EQ(state->shortage(), Reason::sequence_exhausted);
  process.numbers.extend(1);
  EXPECT_THAT(process.send(*state, 100), IsEmpty());
  disk.crash();
  Process again(disk);
  const auto state_again = state_of(sa);
  ASSERT_TRUE(again.begin({state_again}));
  EXPECT_THAT(again.send(*state_again, 100), IsEmpty());
}

TEST(KeptNumbers, WithoutThemNothingIsSentAndWithThemAgainItGoesOn) {
  FaultyDisk disk(1);
  Process process(disk);
  const auto state = state_of(gcm());
  ASSERT_TRUE(process.begin({state}));
  disk.fails_with = ENOSPC;
  EXPECT_THAT(process.send(*state, kLeastReservation), SizeIs(kLeastReservation));
  ::testing::internal::CaptureStderr();
  process.numbers.extend(1);
  process.numbers.extend(1);
  EXPECT_THAT(process.send(*state, 1), IsEmpty());
  EXPECT_EQ(state->shortage(), Reason::not_reserved);
  EXPECT_THAT(process.numbers.fault(), HasSubstr("No space left on device"));
  disk.fails_with = 0;
  process.numbers.extend(1);
  EXPECT_EQ(process.numbers.fault(), "");
  EXPECT_EQ(process.send_one(*state), kLeastReservation + 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "ipsec: cannot reserve sequence numbers: /state/" + state->origin().identity.file_name() +
                ": No space left on device; packets will be dropped as not_reserved once the reserved numbers run out\n"
                "ipsec: sequence numbers can be reserved again\n")
      << "once";
}

TEST(KeptNumbers, AreReservedAgainAfterASyncThatFailed) {
  FaultyDisk disk(1);
  Process process(disk);
  const auto state = state_of(gcm());
  ASSERT_TRUE(process.begin({state}));
  process.send(*state, kLeastReservation);
  disk.fails_with = EIO;
  disk.error_from = disk.operations + 2;  // the write itself succeeds
  ::testing::internal::CaptureStderr();
  process.numbers.extend(1);
  EXPECT_EQ(process.send_one(*state), 0U);
  disk.fails_with = 0;
  process.numbers.extend(1);
  static_cast<void>(::testing::internal::GetCapturedStderr());
  EXPECT_EQ(process.send_one(*state), kLeastReservation + 1);
}

TEST(KeptNumbers, AreNotReservedInAFileThatIsGoneOrReplaced) {
  for (const bool replaced : {false, true}) {
    FaultyDisk disk(1);
    Process process(disk);
    const auto lost = state_of(gcm());
    const auto other = state_of(gcm(0x2000, 2));
    ASSERT_TRUE(process.begin({lost, other}));
    const std::string name = lost->origin().identity.file_name();
    replaced ? disk.restore(name, disk.content(name)) : disk.remove(name);
    for (const auto& state : {lost, other}) process.send(*state, kLeastReservation);
    ::testing::internal::CaptureStderr();
    process.numbers.extend(1);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(name));
    EXPECT_THAT(process.send(*lost, 1), IsEmpty());
    EXPECT_THAT(process.send(*other, 1), SizeIs(1)) << "the others go on";
  }
}

TEST(KeptNumbers, AreNotReservedWhereLocksKeepNobodyAway) {
  FaultyDisk disk(1);
  Process process(disk);
  const auto state = state_of(gcm());
  ASSERT_TRUE(process.begin({state}));
  disk.locks_are_gone = true;
  process.send(*state, kLeastReservation);
  ::testing::internal::CaptureStderr();
  process.numbers.extend(1);
  static_cast<void>(::testing::internal::GetCapturedStderr());
  EXPECT_THAT(process.send(*state, 1), IsEmpty());
}

TEST(KeptNumbers, OfOneSaAreForOneProcess) {
  FaultyDisk disk(1);
  Process one(disk);
  const auto state = state_of(gcm());
  ASSERT_TRUE(one.begin({state}));
  {
    Process other(disk);
    EXPECT_FALSE(other.begin({state_of(gcm(0x2000, 2)), state_of(gcm())}));
    EXPECT_EQ(other.error,
              "state.txt:3: another process sends with SA SA, or with its key: found locked in /state, expected one "
              "process: two would use the same sequence numbers");
    EXPECT_FALSE(other.begin({state_of(gcm(0x2000))})) << "another SA with the same key and salt";
    EXPECT_TRUE(other.begin({state_of(gcm(0x2000, 2))})) << "a failure has left nothing locked";
    EXPECT_TRUE(other.begin({state_of(gcm(), SaEnd::receiver)})) << "the other end";
    Process third(disk);
    EXPECT_FALSE(third.begin({state_of(gcm(), SaEnd::receiver)}));
    EXPECT_THAT(third.error, HasSubstr("another process receives with SA SA"));
  }
  one.numbers.end(std::vector{state});
  Process next(disk);
  EXPECT_TRUE(next.begin({state_of(gcm())}));
}

TEST(KeptNumbers, LastAsLongAsAnyFunctionUsesThem) {
  FaultyDisk disk(1);
  Process process(disk);
  const auto state = state_of(gcm());
  ASSERT_TRUE(process.begin({state}));
  const std::uint64_t iv_base = state->iv_base();
  ASSERT_TRUE(process.begin({state})) << "a second function";
  EXPECT_EQ(state->iv_base(), iv_base);
  process.numbers.end(std::vector{state});
  EXPECT_THAT(process.send(*state, 1), SizeIs(1));
  process.numbers.end(std::vector{state});
  EXPECT_THAT(process.send(*state, 1), IsEmpty());
  Process next(disk);
  EXPECT_TRUE(next.begin({state_of(gcm())})) << "not locked any more";
}

TEST(KeptNumbers, OfSasWithOneKeyHaveDifferentIvs) {
  FaultyDisk disk(1);
  std::set<std::uint64_t> runs;
  for (int run = 0; run < 4; ++run) {
    Process process(disk, [calls = 0]() mutable { return std::optional<std::uint64_t>(++calls / 3); });
    const std::vector states{state_of(cbc(0x1000)), state_of(cbc(0x2000))};
    ASSERT_TRUE(process.begin(states)) << process.error;
    for (const auto& state : states) {
      const auto nonces = process.send(*state, kLeastReservation);
      ASSERT_THAT(nonces, SizeIs(kLeastReservation));
      EXPECT_EQ(nonces.front().sequence, static_cast<std::uint64_t>(run) * 3 * kLeastReservation + 1);
      EXPECT_TRUE(runs.insert(nonces.front().iv >> 48).second);
    }
    // One per call, because they share a record.
    for (int call = 0; call < 2; ++call) process.numbers.extend(1);
    for (const auto& state : states) {
      EXPECT_THAT(process.send(*state, kLeastReservation), SizeIs(kLeastReservation));
    }
    for (int call = 0; call < 2; ++call) process.numbers.extend(1);
    disk.crash();
  }
  EXPECT_THAT(disk.names(), SizeIs(1)) << "one key";
}

TEST(KeptNumbers, OfAnSaWithoutACipherHaveNoRuns) {
  FaultyDisk disk(1);
  SecurityAssociation sa = cbc(0x1000);
  sa.cipher = Cipher::null;
  sa.cipher_key.clear();
  SecurityAssociation other = sa;
  other.spi = 0x2000;
  Process process(disk, []() -> std::optional<std::uint64_t> { return std::nullopt; });
  EXPECT_TRUE(process.begin({state_of(sa), state_of(other)})) << "without random numbers too";
  EXPECT_THAT(disk.names(), SizeIs(2)) << "their key says nothing of IVs";
}

TEST(KeptNumbers, WithoutRandomNumbersNothingBegins) {
  FaultyDisk disk(1);
  Process process(disk, []() -> std::optional<std::uint64_t> { return std::nullopt; });
  const auto state = state_of(gcm());
  EXPECT_FALSE(process.begin({state}));
  EXPECT_THAT(process.error, HasSubstr("returned no random numbers"));
  EXPECT_THAT(process.send(*state, 1), IsEmpty());
}

TEST(KeptNumbers, OfARestoredBackupAreRefused) {
  FaultyDisk disk(1);
  std::string backup;
  const std::string name = state_of(gcm())->origin().identity.file_name();
  for (int run = 0; run < 2; ++run) {
    Process process(disk);
    const auto state = state_of(gcm());
    ASSERT_TRUE(process.begin({state}));
    process.send(*state, 100);
    if (run == 0) backup = disk.content(name);
    disk.crash();
  }
  disk.restore(name, backup);
  Process process(disk);
  const auto state = state_of(gcm());
  EXPECT_FALSE(process.begin({state}));
  EXPECT_EQ(
      process.error,
      "state.txt:3: the sequence numbers that SA SA has used are unknown: found a copy (restored from a backup, or "
      "from another folder or machine) in /state/" +
          name + ", expected the state_dir where the SA was last used; if that is lost, give the SA new keys");
  EXPECT_EQ(to_string(process.numbers.check(std::vector{state})), process.error) << "penstock check says so too";
  EXPECT_THAT(process.send(*state, 1), IsEmpty());
}

TEST(KeptNumbers, RolledBackWithTheirDiskHaveNoIvTwice) {
  //  snapshot ─▶ run ─▶ snapshot restored ─▶ run: the record cannot tell
  FaultyDisk disk(1);
  const std::string name = state_of(gcm())->origin().identity.file_name();
  std::string snapshot;
  std::set<std::uint64_t> ivs;
  for (int run = 0; run < 20; ++run) {
    Process process(disk);
    const auto state = state_of(gcm());
    ASSERT_TRUE(process.begin({state}));
    for (const Nonce& nonce : process.send(*state, 1000)) EXPECT_TRUE(ivs.insert(nonce.iv).second);
    if (run == 0) snapshot = disk.content(name);
    disk.kill();
    disk.content(name) = snapshot;
  }
}

TEST(KeptNumbers, CheckChangesNothingAndSeesOnlyWhatIsWrong) {
  FaultyDisk disk(1);
  const auto state = state_of(gcm());
  Process process(disk);
  EXPECT_THAT(process.numbers.check(std::vector{state}), IsEmpty());
  EXPECT_THAT(disk.names(), IsEmpty());
  Process runs(disk);
  ASSERT_TRUE(runs.begin({state_of(gcm())}));
  EXPECT_THAT(process.numbers.check(std::vector{state}), IsEmpty()) << "a run is no mistake";
  disk.content(state->origin().identity.file_name()).clear();
  EXPECT_THAT(to_string(process.numbers.check(std::vector{state})), HasSubstr("found no record in /state/"));
}

TEST(KeptNumbers, OfManySasReportTheFirstMistakes) {
  FaultyDisk disk(1);
  std::vector<std::shared_ptr<SaState>> states, again;
  for (std::uint8_t i = 1; i <= 30; ++i) {
    states.push_back(state_of(gcm(0x1000 + i, i)));
    again.push_back(state_of(gcm(0x1000 + i, i)));
  }
  Process one(disk), other(disk);
  ASSERT_TRUE(one.begin(states));
  EXPECT_FALSE(other.begin(again));
  EXPECT_THAT(other.error, HasSubstr("and 20 more"));
}

/// Nonces sent in all runs.
class Sent {
 public:
  void add(const SecurityAssociation& sa, const std::vector<Nonce>& nonces) {
    for (const Nonce& nonce : nonces) {
      EXPECT_TRUE(ivs_.emplace(sa.cipher_key.bytes()[0], nonce.iv).second) << "an IV comes twice";
      EXPECT_TRUE(sequences_.emplace(sa.spi, nonce.sequence).second) << "number " << nonce.sequence << " comes twice";
    }
  }
  [[nodiscard]] std::size_t size() const { return ivs_.size(); }

 private:
  std::set<std::pair<std::uint8_t, std::uint64_t>> ivs_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> sequences_;
};

/// A run that begins, sends, reserves and ends, as far as it gets. Checks a few packets of each block.
void run_once(FaultyDisk& disk, const std::vector<SecurityAssociation>& sas, Sent& sent, std::mt19937_64& random) {
  // Random numbers with few bits, so that uniqueness does not rest on them.
  Process process(disk, [&random] { return std::optional<std::uint64_t>(random() % 64); });
  std::vector<std::shared_ptr<SaState>> states;
  const auto send = [&] {
    for (std::size_t i = 0; i < states.size(); ++i) {
      sent.add(sas[i], process.send(*states[i], 2));
      static_cast<void>(states[i]->take(static_cast<std::uint32_t>(random() % kLeastReservation)));
      sent.add(sas[i], process.send(*states[i], 2));
    }
    for (int call = 0; call < 2; ++call) process.numbers.extend(1);
  };
  // One function per SA, one after another; the last two SAs share a key.
  for (const SecurityAssociation& sa : sas) {
    const auto state = state_of(sa);
    if (!process.begin({state})) break;
    states.push_back(state);
    if (random() % 2 == 0) send();
  }
  for (int step = 0; step < 3; ++step) send();
  if (random() % 2 == 0) process.numbers.end(states);
}

/// Runs over a disk that `disturb` modifies before each run and before the machine restarts.
template <typename Disturb>
std::size_t never_twice(std::uint64_t seed, int runs, Disturb disturb) {
  FaultyDisk disk(seed);
  std::mt19937_64 random(seed);
  const std::vector sas{gcm(), gcm(0x2000, 2), cbc(0x3000), cbc(0x4000)};
  Sent sent;
  for (int run = 0; run < runs && !::testing::Test::HasFailure(); ++run) {
    disturb(disk, run, random);
    run_once(disk, sas, sent, random);
    random() % 4 == 0 ? disk.kill() : disk.crash();
  }
  EXPECT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  return sent.size();
}

TEST(KeptNumbers, NeverComeTwiceWhereverPowerFails) {
  ::testing::internal::CaptureStderr();
  std::size_t sent = 0;
  for (std::uint64_t seed = 0; seed < penstock::testing::rounds(500) && !HasFailure(); ++seed) {
    sent += never_twice(seed, 6, [seed](FaultyDisk& disk, int run, std::mt19937_64& random) {
      // The first run completes; the second is interrupted at each operation in turn, the others anywhere.
      if (run > 0) disk.power_fails_at = disk.operations + 1 + (run == 1 ? seed : random()) % 100;
    });
  }
  static_cast<void>(::testing::internal::GetCapturedStderr());
  EXPECT_GT(sent, penstock::testing::rounds(50'000));
}

TEST(KeptNumbers, NeverComeTwiceWhicheverOperationsFail) {
  ::testing::internal::CaptureStderr();
  std::size_t sent = 0;
  for (std::uint64_t seed = 0; seed < penstock::testing::rounds(500) && !HasFailure(); ++seed) {
    sent += never_twice(seed, 8, [](FaultyDisk& disk, int, std::mt19937_64& random) {
      disk.fails_with = random() % 3 == 0 ? 0 : random() % 2 == 0 ? ENOSPC : EIO;
      disk.error_from = disk.operations + 1 + random() % 60;
      disk.error_to = random() % 2 == 0 ? disk.error_from : ~std::uint64_t{0};
    });
  }
  static_cast<void>(::testing::internal::GetCapturedStderr());
  EXPECT_GT(sent, penstock::testing::rounds(50'000));
}

TEST(KeptNumbers, NeverComeTwiceWhereTheDiskDamagesHalfOfAFile) {
  ::testing::internal::CaptureStderr();
  std::size_t sent = 0;
  for (std::uint64_t seed = 0; seed < penstock::testing::rounds(500) && !HasFailure(); ++seed) {
    sent += never_twice(seed, 8, [](FaultyDisk& disk, int run, std::mt19937_64& random) {
      for (const std::string& name : disk.names()) {
        if (random() % 2 == 0) disk.damage(name, random() % 2 == 0, kSlotBytes);
      }
      if (run % 2 == 1) disk.power_fails_at = disk.operations + 1 + random() % 60;
    });
  }
  static_cast<void>(::testing::internal::GetCapturedStderr());
  EXPECT_GT(sent, penstock::testing::rounds(50'000));
}

TEST(KeptNumbers, AreExtendedByAThread) {
  std::string folder = ::testing::TempDir() + "/penstock-kept-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  {
    const auto numbers = kept_numbers(folder + "/state", MakeParents::no);
    SecurityAssociation sa = gcm();
    sa.esn = true;
    const std::vector states{state_of(sa)};
    ASSERT_TRUE(numbers->begin(states));
    std::uint64_t sent = 0;
    // Ends once the thread has reserved more than there was at first.
    while (sent < 3 * kLeastReservation) sent += states[0]->take(1'000'000).count;
    EXPECT_EQ(states[0]->sent(), sent);
    numbers->end(states);
  }
  const auto again = kept_numbers(folder + "/state", MakeParents::no);
  SecurityAssociation sa = gcm();
  sa.esn = true;
  const std::vector states{state_of(sa)};
  ASSERT_TRUE(again->begin(states));
  EXPECT_GE(states[0]->take(1).first, 3 * kLeastReservation);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::ipsec
