// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/number_record.h"

#include <gtest/gtest.h>

#include "nf/ipsec/numbers/faulty_folder_for_test.h"

namespace penstock::ipsec {
namespace {

using testing::FaultyDisk;

const Digest kSeal{1, 2, 3};

NumberRecord record_of(std::uint64_t generation, std::uint64_t reserved) {
  NumberRecord record;
  record.generation = generation;
  record.file = {4711, 99};
  record.entries = {{{1, 2}, reserved}, {{3}, 7}};
  record.runs = {0, 65535, 12};
  return record;
}

TEST(NumberRecord, IsReadAsItWasWritten) {
  for (const NumberRecord& record :
       {record_of(1, 5), record_of(~std::uint64_t{0}, ~std::uint64_t{0}), NumberRecord{}}) {
    const auto read = decode(encode(record, kSeal) + "what comes after", kSeal);
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(*read, record);
  }
}

TEST(NumberRecord, MayHaveAsManyRunsAndSasAsThereCanBe) {
  NumberRecord record = record_of(1, 5);
  record.runs.resize(kMostRuns);
  record.entries.resize(kMostRecordEntries);
  const std::string text = encode(record, kSeal);
  EXPECT_LE(text.size(), kSlotBytes);
  EXPECT_EQ(decode(text, kSeal), record);
}

TEST(NumberRecord, IsRefusedWithAnyBitChangedAndCutAnywhere) {
  const std::string good = encode(record_of(1, 5), kSeal);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char bit : {char{1}, char{0x40}}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ bit);
      EXPECT_FALSE(decode(bad, kSeal)) << "byte " << at;
    }
    EXPECT_FALSE(decode(good.substr(0, at), kSeal)) << at << " bytes";
  }
  EXPECT_FALSE(decode(std::string(10'000, '\0'), kSeal));
  EXPECT_FALSE(decode(good, Digest{1, 2, 4})) << "another key's";
}

class RecordFile : public ::testing::Test {
 protected:
  RecordFile() : folder(disk.open()) { file = *folder->make("file"); }

  void write(std::uint64_t generation, std::uint64_t reserved, std::size_t runs = 3) {
    NumberRecord record = record_of(generation, reserved);
    record.file = file;
    record.runs.resize(runs, 5);
    ASSERT_EQ(folder->write("file", slot_of(generation), encode(record, kSeal)), 0);
  }
  [[nodiscard]] auto read() { return read_record(*folder, "file", kSeal); }
  void damage(std::uint64_t generation) { disk.content("file")[slot_of(generation) + 30] ^= 1; }

  FaultyDisk disk{1};
  std::unique_ptr<StateFolder> folder;
  FileIdentity file;
};

TEST_F(RecordFile, HoldsTheNewerOfTwo) {
  write(4, 100);
  write(5, 200);
  EXPECT_EQ(read()->entries[0].reserved, 200U);
  EXPECT_EQ(read()->generation, 5U);
  write(6, 300);
  EXPECT_EQ(read()->entries[0].reserved, 300U);
}

TEST_F(RecordFile, SkipsAllThatADamagedSlotMayHaveReserved) {
  write(4, 100);
  write(5, 200);
  damage(5);
  EXPECT_EQ(read()->entries[0].reserved, 100 + kMostReservation);
  EXPECT_EQ(read()->generation, 4U) << "so that the next write replaces the damaged one";
  write(5, 200);
  damage(4);
  EXPECT_EQ(read()->entries[0].reserved, 200 + kMostReservation);
  write(5, ~std::uint64_t{0} - 1);
  EXPECT_EQ(read()->entries[0].reserved, ~std::uint64_t{0}) << "there are no more";
}

TEST_F(RecordFile, IsUnknownWhereBothSlotsAreDamaged) {
  write(4, 100);
  write(5, 200);
  damage(4);
  damage(5);
  ASSERT_FALSE(read());
  EXPECT_EQ(read().error(), "a record with a wrong checksum");
  disk.content("file").clear();
  EXPECT_EQ(read().error(), "no record");
  disk.remove("file");
  EXPECT_FALSE(read());
}

TEST_F(RecordFile, IsRefusedWhereItIsACopy) {
  write(4, 100);
  write(5, 200);
  disk.restore("file", disk.content("file"));
  ASSERT_FALSE(read());
  EXPECT_EQ(read().error(), "a copy (restored from a backup, or from another folder or machine)");
}

TEST_F(RecordFile, IsNotReadFromTheOthersSlot) {
  write(4, 100);
  std::string& content = disk.content("file");
  content.resize(2 * kSlotBytes);
  // The first slot's, where the second belongs: as if it were one of the two.
  content.replace(kSlotBytes, 4096, content.substr(0, 4096));
  content.replace(0, 4096, std::string(4096, '\0'));
  EXPECT_FALSE(read());
}

TEST_F(RecordFile, MayBeLongerThanWhatIsReadFirst) {
  write(4, 100, 30'000);
  write(5, 200, 30'001);
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->runs.size(), 30'001U);
}

}  // namespace
}  // namespace penstock::ipsec
