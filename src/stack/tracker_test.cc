// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "stack/testing/tcp_talk.h"

namespace penstock::stack {
namespace {

using namespace testing;  // NOLINT: the words of conversations
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Tracker, FollowsAConnectionFromItsHandshakeToItsEnd) {
  Talk talk;
  EXPECT_EQ(talk.client({.flags = kSyn, .sequence = 99}).state, TcpState::syn_sent);
  EXPECT_EQ(talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100}).state, TcpState::syn_received);
  EXPECT_FALSE(talk.client({.sequence = 100, .ack = 1000}).established) << "before this packet it was not";
  EXPECT_EQ(talk.seen.back().state, TcpState::established);
  const Seen& request = talk.client({.sequence = 100, .ack = 1000, .data = "GET"});
  EXPECT_TRUE(request.established);
  EXPECT_TRUE(request.in_stream);
  EXPECT_FALSE(request.ready);
  talk.server({.sequence = 1000, .ack = 103, .data = "HTTP"});
  EXPECT_EQ(talk.client({.flags = kFin | kAck, .sequence = 103, .ack = 1004}).state, TcpState::close_wait);
  EXPECT_EQ(talk.inspected(), "GET") << "the client's end is in sight";
  EXPECT_EQ(talk.server({.flags = kFin | kAck, .sequence = 1004, .ack = 104}).state, TcpState::last_ack);
  EXPECT_EQ(talk.inspected(Direction::to_client), "HTTP");
  EXPECT_EQ(talk.client({.sequence = 104, .ack = 1005}).state, TcpState::closed);
  for (const Seen& seen : talk.seen) EXPECT_THAT(seen.events, IsEmpty());
  talk.finish();
  EXPECT_EQ(talk.ends, 0) << "all was inspected";
  EXPECT_EQ(talk.ended.size(), 1U);
}

TEST(Tracker, InspectsWhatIsLeftOfAStreamThatNeverEnded) {
  Talk talk;
  talk.handshake();
  talk.client({.sequence = 100, .ack = 1000, .data = "never acknowledged"});
  talk.finish();
  EXPECT_EQ(talk.inspected(), "never acknowledged");
  EXPECT_EQ(talk.ends, 2);
}

TEST(Tracker, InspectsWhatWaitsWhenAResetEndsTheSession) {
  // A server's data, never acknowledged in full; the client's reset carries data.
  Talk talk;
  talk.client({.flags = kSyn, .sequence = 1, .options = window_scale(14)});
  talk.server({.flags = kSyn | kAck, .sequence = 1000, .ack = 2, .window = 65535, .options = window_scale(14)});
  talk.client({.sequence = 2, .ack = 1001, .window = 65535});
  talk.server({.sequence = 1001, .ack = 2, .data = "Let Me "});
  talk.server({.sequence = 1008, .ack = 2, .data = "In, "});
  const Seen& reset = talk.client({.flags = kRst | kAck, .sequence = 2, .ack = 1008, .data = "why not"});
  EXPECT_EQ(reset.state, TcpState::closed);
  EXPECT_THAT(reset.events, IsEmpty());
  EXPECT_EQ(talk.inspected(Direction::to_client), "Let Me In, ");
  EXPECT_EQ(talk.inspected(), "why not");
}

TEST(Tracker, TellsOfASynAckThatIgnoresFastOpenData) {
  Talk talk;
  const std::string hello(100, 'h');
  talk.client({.flags = kSyn, .sequence = 99, .data = hello, .options = fast_open_cookie()});
  const Seen& answer = talk.server({.flags = kSyn | kAck, .sequence = 999, .ack = 100, .options = fast_open_cookie()});
  EXPECT_THAT(answer.events, ElementsAre("3whs_synack_tfo_data_ignored"));
  talk.client({.sequence = 100, .ack = 1000, .data = hello});
  EXPECT_EQ(talk.seen.back().state, TcpState::established);
  talk.finish();
  EXPECT_EQ(talk.inspected(), hello);
}

}  // namespace
}  // namespace penstock::stack
