// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock ike`: what it writes over, and what not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class IkeProgram : public Program {
 protected:
  /// Follows an empty log until the state file has changed.
  [[nodiscard]] int follow(const std::string& state) const {
    return shell("umask 077; touch charon.log; cp " + state +
                 " before\n'" PENSTOCK_PROGRAM
                 "' ike --socket none.sock --charon-log charon.log --child net=1 --state " +
                 state + " & ike=$!\nwhile kill -0 $ike && cmp -s " + state +
                 " before; do sleep 0.02; done 2>/dev/null\n" + "kill $ike 2>/dev/null; wait $ike");
  }
};

TEST_F(IkeProgram, WritesNoFileTwice) {
  write("charon.log", "a log\n");
  ASSERT_EQ(shell("chmod 600 charon.log; ln charon.log hard; ln -s charon.log soft; ln -s new to-new; ln -s . here"),
            0);
  for (const char* const same : {"charon.log", "./charon.log", "hard", "soft", "here/charon.log"}) {
    EXPECT_EQ(follow(same), 2) << same;
    EXPECT_THAT(read("err"), HasSubstr("--state: would overwrite the file that --charon-log reads: found '"));
    EXPECT_EQ(read("charon.log"), "a log\n");
  }
  for (const char* const same : {"new", "./new", "to-new", "here/new"}) {
    EXPECT_EQ(shell("penstock ike --kernel --socket none.sock --state new --policy " + std::string(same)), 2) << same;
    EXPECT_THAT(read("err"), HasSubstr("--state: would overwrite the file that --policy writes: found 'new'"));
    EXPECT_FALSE(exists("new"));
  }
}

TEST_F(IkeProgram, ReplacesOnlyListsOfSas) {
  const auto is_replaced = [&](const std::string& text) {
    write("state", text);
    const int code = follow("state");
    const bool same = read("state") == text;
    EXPECT_EQ(code, same ? 2 : 0) << text << read("err");
    EXPECT_EQ(
        read("err").find("state: not overwritten: an existing file that is not a list of SAs (`ip xfrm state`)") ==
            std::string::npos,
        !same)
        << read("err");
    return !same;
  };
  EXPECT_TRUE(is_replaced(""));
  EXPECT_TRUE(is_replaced("src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00000001 reqid 1 mode tunnel\n"));
  EXPECT_TRUE(is_replaced(read("state") + "src …")) << "its own, which begins with a heading";
  EXPECT_FALSE(is_replaced("src 10.1.0.0/24 dst 10.2.0.0/24\n\tdir out priority 1 ptype main\n"))
      << "the policies, which are the operator's";
  EXPECT_FALSE(is_replaced("src 192.0.2.1 dst 192.0.2.2\n"));
  EXPECT_FALSE(is_replaced("root:x:0:0::/root:/bin/sh\n"));
}

TEST_F(IkeProgram, ReplacesOnlyListsOfPolicies) {
  write("policy", "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00000001 reqid 1 mode tunnel\n");
  EXPECT_EQ(shell("penstock ike --kernel --socket none.sock --state chain.yaml --policy policy"), 2);
  EXPECT_THAT(read("err"), HasSubstr("chain.yaml: not overwritten"));
  EXPECT_THAT(read("err"), HasSubstr("policy: not overwritten: an existing file that is not a list of policies"));
  EXPECT_THAT(read("policy"), HasSubstr("proto esp"));
}

}  // namespace
}  // namespace penstock
