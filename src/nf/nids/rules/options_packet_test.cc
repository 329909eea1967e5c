// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Options about headers, flows and state, and options that describe a rule.

#include <gmock/gmock.h>

#include "nf/nids/rules/rules_for_test.h"

namespace penstock::nids {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Operator = NumberRange::Operator;

template <typename Match>
Match only(std::string_view options, std::string_view protocol = "ip") {
  const Rule rule = rule_with(options, protocol);
  if (rule.packet_matches.size() != 1 || !std::holds_alternative<Match>(rule.packet_matches[0])) {
    ADD_FAILURE() << options << ": not the one match";
    return {};
  }
  return std::get<Match>(rule.packet_matches[0]);
}

void expect_all_refused(std::initializer_list<const char*> all, std::string_view reason) {
  for (const char* options : all) {
    EXPECT_THAT(complaint_with(options), StartsWith(std::string(reason) + " | ")) << options;
  }
}

TEST(Header, ReadsEveryActionAndProtocol) {
  const auto action = [](std::string_view name) {
    return rule_of(std::string(name) + " tcp any any -> any any (sid:1;)").action;
  };
  EXPECT_EQ(action("alert"), Action::alert);
  EXPECT_EQ(action("drop"), Action::drop);
  EXPECT_EQ(action("pass"), Action::pass);
  EXPECT_EQ(action("reject"), Action::reject);
  EXPECT_EQ(action("rejectsrc"), Action::reject_source);
  EXPECT_EQ(action("rejectdst"), Action::reject_destination);
  EXPECT_EQ(action("rejectboth"), Action::reject_both);
  EXPECT_THAT(complaint_of("log tcp any any -> any any (sid:1;)"), StartsWith("action log | "));
  EXPECT_THAT(complaint_of("alrt tcp any any -> any any (sid:1;)"),
              AllOf(StartsWith("unknown action | "), HasSubstr("; did you mean 'alert'?")));
  const auto protocol = [](std::string_view name) { return rule_with("", name).protocol; };
  EXPECT_EQ(protocol("tcp"), RuleProtocol::tcp);
  EXPECT_EQ(protocol("tcp-pkt"), RuleProtocol::tcp_pkt);
  EXPECT_EQ(protocol("tcp-stream"), RuleProtocol::tcp_stream);
  EXPECT_EQ(protocol("udp"), RuleProtocol::udp);
  EXPECT_EQ(protocol("icmp"), RuleProtocol::icmp);
  EXPECT_EQ(protocol("icmpv4"), RuleProtocol::icmpv4);
  EXPECT_EQ(protocol("icmpv6"), RuleProtocol::icmpv6);
  EXPECT_EQ(protocol("sctp"), RuleProtocol::sctp);
  EXPECT_EQ(protocol("ip"), RuleProtocol::ip);
  EXPECT_EQ(protocol("ipv4"), RuleProtocol::ipv4);
  EXPECT_EQ(protocol("ip6"), RuleProtocol::ipv6);
  EXPECT_EQ(protocol("pkthdr"), RuleProtocol::pkthdr);
  EXPECT_EQ(protocol("TCP"), RuleProtocol::tcp);
  for (const char* name : {"http", "dns", "tls", "smb", "ssh", "ftp-data", "http2", "modbus"}) {
    EXPECT_THAT(complaint_with("", name), StartsWith("protocol " + std::string(name) + " | "));
  }
  EXPECT_THAT(complaint_of("alert tcp any any => any any (sid:1;)"), StartsWith("direction => | "));
  EXPECT_EQ(rule_of("alert tcp any any <> any any (sid:1;)").direction, RuleDirection::both_ways);
}

TEST(Header, APassRuleAlertsOnlyOnRequest) {
  EXPECT_FALSE(rule_of("pass tcp any any -> any any (sid:1;)").alerts);
  EXPECT_TRUE(rule_of("pass tcp any any -> any any (alert; sid:1;)").alerts);
  EXPECT_TRUE(rule_of("drop tcp any any -> any any (sid:1;)").alerts);
  EXPECT_FALSE(rule_with("noalert;").alerts);
  EXPECT_FALSE(rule_with("flowbits:noalert;").alerts);
}

TEST(FlowOption, ReadsItsWords) {
  const FlowMatch flow = rule_with("flow: established , from_client,no_frag;").flow;
  EXPECT_TRUE(flow.to_server && flow.established && flow.no_frag);
  EXPECT_FALSE(flow.to_client || flow.stateless || flow.only_stream);
  EXPECT_TRUE(rule_with("flow:from_server,only_stream;").flow.to_client);
  EXPECT_TRUE(rule_with("flow:not_established;").flow.not_established);
  EXPECT_TRUE(rule_with("flow:to_client,no_stream;").flow.no_stream);
  EXPECT_TRUE(rule_with("flow:stateless,only_frag;").flow.only_frag);
  expect_all_refused({"flow:to_server,to_client;", "flow:to_server,from_client;", "flow:established,not_established;",
                      "flow:established,stateless;", "flow:only_stream,no_stream;", "flow:only_frag,no_frag;",
                      "flow:established,established;", "flow:established; flow:to_server;"},
                     "combination");
  expect_all_refused({"flow:nonsense;", "flow;", "flow:;", "flow:established,;"}, "syntax");
}

TEST(NumberRanges, ReadSuricatasForms) {
  const auto range = [](std::string_view text) { return only<Dsize>("dsize:" + std::string(text) + ";").range; };
  const auto is = [&](std::string_view text, Operator operation, std::uint64_t first, std::uint64_t second = 0) {
    const NumberRange read = range(text);
    EXPECT_EQ(read.operation, operation) << text;
    EXPECT_EQ(read.first, first) << text;
    EXPECT_EQ(read.second, second) << text;
  };
  is("10", Operator::equal, 10);
  is("=10", Operator::equal, 10);
  is("!10", Operator::not_equal, 10);
  is("!= 10", Operator::not_equal, 10);
  is("<10", Operator::less, 10);
  is("> 10", Operator::greater, 10);
  is("<=10", Operator::less_equal, 10);
  is(">=10", Operator::greater_equal, 10);
  is("10<>20", Operator::between, 10, 20);
  is("10 - 20", Operator::between, 10, 20);
  is("!10-20", Operator::not_between, 10, 20);
  is("0x10", Operator::equal, 16);
  is("2kb", Operator::equal, 2048);
}

TEST(NumberRanges, RefuseRangesThatNeverMatch) {
  expect_all_refused({"dsize:65536;", "dsize:20<>10;", "dsize:10<>11;", "dsize:<0;", "dsize:>65535;", "dsize:>=0;",
                      "dsize:nonsense;", "dsize:10,20;", "dsize:10<>;", "dsize:<>10;", "dsize:-1;", "dsize:1 2;",
                      "dsize:100kb;", "dsize:>10<>20;", "ttl:256;", "icode:256;", "window:65536;", "ack:4294967296;"},
                     "value");
  expect_all_refused({"dsize:1; dsize:2;"}, "combination");
}

TEST(HeaderNumbers, AreThoseOfTheirOptions) {
  using Header = HeaderNumber::Header;
  const auto is = [](std::string_view options, Header header, std::uint64_t number) {
    const HeaderNumber match = only<HeaderNumber>(options);
    EXPECT_EQ(match.header, header) << options;
    EXPECT_EQ(match.range.first, number) << options;
  };
  is("ack:0;", Header::tcp_ack, 0);
  is("tcp.ack:4294967295;", Header::tcp_ack, 4294967295);
  is("seq:1;", Header::tcp_sequence, 1);
  is("tcp.seq:1;", Header::tcp_sequence, 1);
  is("window:!55808;", Header::tcp_window, 55808);
  is("tcp.window:1;", Header::tcp_window, 1);
  is("tcp.mss:<536;", Header::tcp_mss, 536);
  is("ttl:10;", Header::ttl, 10);
  is("tos:!8;", Header::tos, 8);
  is("tos:x1f;", Header::tos, 31);
  is("id:\"1\";", Header::ip_id, 1);
  is("itype:8;", Header::icmp_type, 8);
  is("icode:>5;", Header::icmp_code, 5);
  is("icmp_id:\"300\";", Header::icmp_id, 300);
  is("icmp_seq:2216;", Header::icmp_sequence, 2216);
  is("icmpv6.mtu:<1280;", Header::icmpv6_mtu, 1280);
  is("ip_proto:103;", Header::ip_protocol, 103);
  is("ip_proto:TCP;", Header::ip_protocol, 6);
  is("ip_proto:!udp;", Header::ip_protocol, 17);
  is("ip_proto:>100;", Header::ip_protocol, 100);
  EXPECT_EQ(only<HeaderNumber>("ip_proto:!udp;").range.operation, Operator::not_equal);
  EXPECT_EQ(only<HeaderNumber>("tos:!8;").range.operation, Operator::not_equal);
  EXPECT_EQ(only<HeaderNumber>("tos:!x8;").range.operation, Operator::not_equal);
  EXPECT_EQ(only<HeaderNumber>("ttl:5-10;").range.operation, Operator::between);
  EXPECT_EQ(only<HeaderNumber>("ttl:-5;").range.operation, Operator::less_equal);
  EXPECT_EQ(only<HeaderNumber>("ttl:5-;").range.operation, Operator::greater_equal);
  EXPECT_THAT(complaint_with("ip_proto:nonsense;"), StartsWith("value | "));
  EXPECT_THAT(complaint_with("tos:x100;"), StartsWith("value | "));
}

TEST(FlagsOption, ReadsSuricatasAndSnortsForms) {
  using How = TcpFlags::How;
  const auto is = [](std::string_view text, How how, unsigned flags, unsigned ignored = 0) {
    const TcpFlags match = only<TcpFlags>("flags:" + std::string(text) + ";", "tcp");
    EXPECT_EQ(match.how, how) << text;
    EXPECT_EQ(match.flags, flags) << text;
    EXPECT_EQ(match.ignored, ignored) << text;
  };
  is("S", How::exactly, 0x02);
  is(" S,12", How::exactly, 0x02, 0xc0);
  is("S,CE", How::exactly, 0x02, 0xc0);
  is("FSRPAU", How::exactly, 0x3f);
  is("SF12", How::exactly, 0xc3);
  is("A+", How::all_of, 0x10);
  is("+A", How::all_of, 0x10);
  is("*SF", How::any_of, 0x03);
  is("!R", How::not_these, 0x04);
  is("0", How::exactly, 0);
  is("CE", How::exactly, 0xc0);
  EXPECT_EQ(only<TcpFlags>("tcp.flags:S;", "tcp").flags, 0x02);
  expect_all_refused({"flags:X;", "flags:;", "flags:+;", "flags:S,X;", "flags:S,1,2;"}, "syntax");
  expect_all_refused({"flags:+A*;"}, "combination");
}

TEST(IpOptions, AreNumbers) {
  EXPECT_EQ(only<IpOption>("ipopts:rr;").option, 7);
  EXPECT_EQ(only<IpOption>("ipopts:lsrr;").option, 131);
  EXPECT_EQ(only<IpOption>("ipopts:ssrr;").option, 137);
  EXPECT_EQ(only<IpOption>("ipopts:esec;").option, 133);
  EXPECT_EQ(only<IpOption>("ipopts:sec;").option, 130);
  EXPECT_EQ(only<IpOption>("ipopts:satid;").option, 136);
  EXPECT_EQ(only<IpOption>("ipopts:ts;").option, 68);
  EXPECT_EQ(only<IpOption>("ipopts:nop;").option, 1);
  EXPECT_EQ(only<IpOption>("ipopts:eol;").option, 0);
  EXPECT_TRUE(only<IpOption>("ipopts:any;").any);
  expect_all_refused({"ipopts:nonsense;", "ipopts;"}, "syntax");
}

TEST(FragmentOptions, ReadBitsAndOffset) {
  using How = FragmentBits::How;
  const FragmentBits more = only<FragmentBits>("fragbits:M+;");
  EXPECT_EQ(more.how, How::all_of);
  EXPECT_TRUE(more.more_fragments && !more.dont_fragment && !more.reserved);
  EXPECT_EQ(only<FragmentBits>("fragbits:!MDR;").how, How::not_these);
  EXPECT_EQ(only<FragmentBits>("fragbits:*RD;").how, How::any_of);
  EXPECT_EQ(only<FragmentBits>("fragbits:D;").how, How::exactly);
  EXPECT_EQ(only<FragmentOffset>("fragoffset:>10;").range.operation, Operator::greater);
  EXPECT_EQ(only<FragmentOffset>("fragoffset:!0;").range.operation, Operator::not_equal);
  expect_all_refused({"fragbits:X;", "fragbits:+;"}, "syntax");
}

TEST(OtherPacketOptions, AreRead) {
  EXPECT_EQ(rule_with("sameip;", "ip").packet_matches.size(), 1U);
  for (const char* name :
       {"ipv4-csum", "tcpv4-csum", "tcpv6-csum", "udpv4-csum", "udpv6-csum", "icmpv4-csum", "icmpv6-csum"}) {
    EXPECT_TRUE(only<ChecksumMatch>(std::string(name) + ":valid;").valid) << name;
    EXPECT_FALSE(only<ChecksumMatch>(std::string(name) + ":\"invalid\";").valid) << name;
  }
  EXPECT_EQ(only<ChecksumMatch>("udpv6-csum:valid;").of, ChecksumMatch::Of::udpv6);
  const StreamSize size = only<StreamSize>("stream_size:server, <=, 10;", "tcp");
  EXPECT_EQ(size.side, StreamSize::Side::server);
  EXPECT_EQ(size.range.operation, Operator::less_equal);
  EXPECT_EQ(size.range.first, 10U);
  EXPECT_EQ(only<StreamSize>("stream_size:either,!=,10;", "tcp").side, StreamSize::Side::either);
  EXPECT_EQ(only<StreamSize>("stream_size:both,=,10;", "tcp").side, StreamSize::Side::both);
  expect_all_refused({"stream_size:server,<;", "stream_size:nobody,<,1;", "stream_size:server,?,1;", "sameip:1;",
                      "ipv4-csum:nonsense;"},
                     "syntax");
  expect_all_refused({"stream_size:server,<,x;"}, "value");
}

TEST(EventOptions, NameTheStacksEvents) {
  EXPECT_EQ(only<StreamEventMatch>("stream-event:reassembly_seq_gap;", "tcp").event.index,
            only<StreamEventMatch>("engine-event:stream.reassembly_seq_gap;", "tcp").event.index);
  EXPECT_EQ(only<DecodeEventMatch>("decode-event:ipv4.pkt_too_small;", "pkthdr").event.index,
            only<DecodeEventMatch>("engine-event:decoder.ipv4.pkt_too_small;", "pkthdr").event.index);
  expect_all_refused({"stream-event:nonsense;", "decode-event:nonsense;", "stream-event:ipv4.pkt_too_small;"},
                     "syntax");
}

TEST(FlowbitsOption, ReadsItsCommands) {
  const RuleSet set = rules_of(
      "alert tcp any any -> any any (flowbits:set,a; flowbits:isset, b.c ; flowbits:isnotset,a|b.c|d; sid:1;)\n"
      "alert tcp any any -> any any (flowbits:unset,d; flowbits:toggle,a; flowbits:isset,a&d; sid:2;)\n");
  ASSERT_EQ(set.rules.size(), 2U);
  EXPECT_THAT(set.flowbits, ElementsAre("a", "b.c", "d"));
  const Rule& first = set.rules[0];
  ASSERT_EQ(first.state_matches.size(), 2U);
  EXPECT_THAT(std::get<FlowbitsMatch>(first.state_matches[0]).bits, ElementsAre(1U));
  EXPECT_THAT(std::get<FlowbitsMatch>(first.state_matches[1]).bits, ElementsAre(0U, 1U, 2U));
  EXPECT_TRUE(std::get<FlowbitsMatch>(first.state_matches[1]).negated);
  EXPECT_EQ(std::get<FlowbitsChange>(first.state_changes[0]).how, FlowbitsChange::How::set);
  const Rule& second = set.rules[1];
  EXPECT_EQ(second.state_matches.size(), 2U);  // Snort's `&` means both
  EXPECT_EQ(std::get<FlowbitsChange>(second.state_changes[0]).how, FlowbitsChange::How::unset);
  EXPECT_EQ(std::get<FlowbitsChange>(second.state_changes[1]).how, FlowbitsChange::How::toggle);
  expect_all_refused({"flowbits:set;", "flowbits:set,;", "flowbits:nonsense,a;", "flowbits:set,a b;",
                      "flowbits:set,a|b;", "flowbits:noalert,a;", "flowbits;", "flowbits:isset,a||b;"},
                     "syntax");
}

TEST(FlowintOption, ReadsItsOperators) {
  const RuleSet set = rules_of(
      "alert tcp any any -> any any (flowint:n,=,5; flowint:n, +, m; flowint:n,-,1; flowint:n,isset; flowint:n,notset; "
      "flowint: n , > , 3; flowint:n,==,m; sid:1;)");
  ASSERT_EQ(set.rules.size(), 1U);
  const Rule& rule = set.rules[0];
  EXPECT_THAT(set.flowints, ElementsAre("n", "m"));
  ASSERT_EQ(rule.state_changes.size(), 3U);
  EXPECT_EQ(std::get<FlowintChange>(rule.state_changes[0]).value, 5U);
  EXPECT_EQ(*std::get<FlowintChange>(rule.state_changes[1]).other, 1U);
  EXPECT_EQ(std::get<FlowintChange>(rule.state_changes[2]).how, FlowintChange::How::subtract);
  ASSERT_EQ(rule.state_matches.size(), 4U);
  EXPECT_EQ(std::get<FlowintMatch>(rule.state_matches[2]).operation, FlowintMatch::Operator::greater);
  EXPECT_EQ(*std::get<FlowintMatch>(rule.state_matches[3]).other, 1U);
  expect_all_refused({"flowint:n;", "flowint:n,?,1;", "flowint:n,+;", "flowint:n,isset,1;", "flowint:,=,1;"}, "syntax");
  expect_all_refused({"flowint:n,=,4294967296;"}, "value");
}

TEST(XbitsOption, ReadsItsWords) {
  const RuleSet set = rules_of(
      "alert tcp any any -> any any (xbits:set,a,track ip_pair,expire 60; xbits:isnotset,b,track ip_dst; "
      "xbits:unset,a,track ip_src; sid:1;)");
  ASSERT_EQ(set.rules.size(), 1U);
  const auto& change = std::get<XbitsChange>(set.rules[0].state_changes[0]);
  EXPECT_EQ(change.track, TrackBy::ip_pair);
  EXPECT_EQ(change.expire_s, 60U);
  const auto& match = std::get<XbitsMatch>(set.rules[0].state_matches[0]);
  EXPECT_EQ(match.bit, 1U);
  EXPECT_EQ(match.track, TrackBy::destination);
  EXPECT_TRUE(match.negated);
  expect_all_refused({"xbits:set,a;", "xbits:set,a,track nonsense;", "xbits:set,a,expire 5;",
                      "xbits:nonsense,a,track ip_src;", "xbits:set,a b,track ip_src;"},
                     "syntax");
  expect_all_refused({"xbits:set,a,track ip_src,expire 0;"}, "value");
}

TEST(ThresholdOptions, ReadTheirWordsInAnyOrder) {
  const Threshold limit = *rule_with("threshold: type limit, track by_src, count 1, seconds 60;").threshold;
  EXPECT_EQ(limit.type, Threshold::Type::limit);
  EXPECT_EQ(limit.track, TrackBy::source);
  EXPECT_EQ(limit.count, 1U);
  EXPECT_EQ(limit.seconds, 60U);
  const Threshold both = *rule_with("threshold:type both,seconds 5,count 3 , track  by_both;").threshold;
  EXPECT_EQ(both.type, Threshold::Type::both);
  EXPECT_EQ(both.track, TrackBy::both);
  const Threshold backoff = *rule_with("threshold:type backoff, track by_flow, count 1, multiplier 10;").threshold;
  EXPECT_EQ(backoff.type, Threshold::Type::backoff);
  EXPECT_EQ(backoff.multiplier, 10U);
  const Threshold filter = *rule_with("detection_filter:track by_dst, count 30, seconds 10;").threshold;
  EXPECT_EQ(filter.type, Threshold::Type::detection_filter);
  EXPECT_EQ(filter.track, TrackBy::destination);
  EXPECT_EQ(rule_with("threshold:type threshold,track by_rule,count 2,seconds 1;").threshold->track, TrackBy::rule);
  expect_all_refused(
      {"threshold:type limit, track by_src, count 1;", "threshold:type nonsense, track by_src, count 1, seconds 1;",
       "threshold:type limit, track nonsense, count 1, seconds 1;", "threshold:nonsense;",
       "detection_filter:type limit, track by_src, count 1, seconds 1;",
       "threshold:type backoff, track by_flow, count 1, seconds 1;"},
      "syntax");
  expect_all_refused({"threshold:type limit, track by_src, count 0, seconds 1;",
                      "threshold:type limit, track by_src, count x, seconds 1;"},
                     "value");
  expect_all_refused(
      {"threshold:type limit, track by_src, count 1, seconds 1; detection_filter:track by_src, count 1, seconds 1;",
       "threshold:type limit, type limit, track by_src, count 1, seconds 1;",
       "threshold:type backoff, track by_src, count 1, multiplier 1;"},
      "combination");
}

TEST(TagOption, ReadsItsForms) {
  const auto tag = [](std::string_view text) { return rule_with("tag:" + std::string(text) + ";").tags.at(0); };
  EXPECT_EQ(tag("session").of, Tag::Of::session);
  EXPECT_EQ(tag("session").count, 256U);
  EXPECT_EQ(tag("session, 5, packets").count, 5U);
  EXPECT_EQ(tag("session,20,seconds").unit, Tag::Unit::seconds);
  const Tag host = tag("host,100,packets,src");
  EXPECT_EQ(host.of, Tag::Of::host);
  EXPECT_TRUE(host.by_source);
  EXPECT_FALSE(tag("host,9000,bytes,dst").by_source);
  EXPECT_EQ(rule_with("tag:host,2,packets,src; tag:session;").tags.size(), 2U);
  expect_all_refused({"tag:nonsense;", "tag:session,5;", "tag:session,5,nonsense;", "tag:host,5,packets,up;"},
                     "syntax");
  expect_all_refused({"tag:session,0,packets;"}, "value");
}

TEST(AboutOptions, DescribeTheRule) {
  const Rule rule = rule_of(
      "alert tcp any any -> any any (msg:\"A \\\"rule\\\"\\; of ours\"; reference:cve,2021-1; "
      "reference:URL,x.org/?a=b,c; "
      "classtype:trojan-activity; metadata:service http, policy a drop,alone; target:src_ip; gid:3; rev:4; sid:77;)");
  EXPECT_EQ(rule.message, "A \"rule\"; of ours");
  ASSERT_EQ(rule.references.size(), 2U);
  EXPECT_EQ(rule.references[0].kind, "cve");
  EXPECT_EQ(rule.references[1].kind, "url");
  EXPECT_EQ(rule.references[1].id, "x.org/?a=b,c");
  EXPECT_EQ(rule.classtype, "trojan-activity");
  EXPECT_EQ(rule.class_description, "A Network Trojan was detected");
  EXPECT_EQ(rule.priority, 1);
  EXPECT_THAT(rule.metadata,
              ElementsAre(ElementsAre("service", "http"), ElementsAre("policy", "a drop"), ElementsAre("alone", "")));
  EXPECT_EQ(rule.target, "src_ip");
  EXPECT_EQ(rule.gid, 3U);
  EXPECT_EQ(rule.rev, 4U);
  EXPECT_EQ(rule.sid, 77U);
  EXPECT_EQ(rule.file, "test.rules");
  EXPECT_EQ(rule.line, 1U);
  EXPECT_THAT(rule.text, StartsWith("alert tcp any any -> any any (msg:"));
}

TEST(AboutOptions, PriorityOverridesTheClass) {
  EXPECT_EQ(rule_with("classtype:trojan-activity; priority:7;").priority, 7);
  EXPECT_EQ(rule_with("priority:7; classtype:trojan-activity;").priority, 7);
  EXPECT_EQ(rule_with("").priority, 3);
  EXPECT_EQ(rule_with("classtype:no-such-class;").priority, 3);
  EXPECT_EQ(rule_with("classtype:bad-unknown;").priority, 2);
}

TEST(AboutOptions, RefuseInvalidValues) {
  EXPECT_THAT(complaint_of("alert tcp any any -> any any (msg:\"x\";)"), StartsWith("no sid | "));
  expect_all_refused({"sid:2;", "rev:1; rev:2;", "gid:1; gid:2;", "msg:\"a\"; msg:\"b\";",
                      "target:src_ip; target:src_ip;", "prefilter;"},
                     "combination");
  expect_all_refused({"rev:x;", "rev:4294967296;", "gid:-1;", "priority:256;"}, "value");
  expect_all_refused({"msg:a;", "reference:cve;", "reference:,1;", "target:nobody;", "sid:;", "noalert:1;"}, "syntax");
  EXPECT_THAT(complaint_of("alert tcp any any -> any any (sid:0;)"), StartsWith("value | "));
}

TEST(AboutOptions, PrefilterFollowsAConditionThatMaySelectARule) {
  for (const std::string_view options :
       {"ttl:10; prefilter;", "flowbits:isset,a; prefilter;", "flowbits:isset,a; msg:\"x\"; prefilter;",
        "flow:established; prefilter;", "stream_size:server,>,1; prefilter;", "dsize:>1; prefilter;",
        "content:\"a\"; nocase; prefilter;", "pcre:\"/a/\"; content:\"b\"; prefilter;", "content:!\"a\"; prefilter;",
        "pkt_data; content:\"a\"; prefilter; ttl:10; prefilter;"}) {
    EXPECT_EQ(complaint_with(options), "") << options;
  }
  expect_all_refused({"prefilter;", "msg:\"x\"; prefilter;", "pcre:\"/a/\"; prefilter;", "isdataat:1; prefilter;",
                      "byte_test:1,>,1,0; prefilter;", "flowint:a,>,1; prefilter;",
                      "xbits:isset,a,track ip_src; prefilter;", "ttl:10; tag:session; prefilter;",
                      "ttl:10; prefilter; id:1; prefilter;", "content:!\"a\"; offset:1; prefilter;"},
                     "combination");
}

TEST(AboutOptions, PrefilterOfAContentIsItsFastPattern) {
  const Rule rule = rule_with("content:\"a\"; prefilter; content:\"longer\";");
  EXPECT_TRUE(std::get<Content>(rule.buffers.at(0).matches.at(0)).fast_pattern);
  EXPECT_FALSE(std::get<Content>(rule.buffers.at(0).matches.at(1)).fast_pattern);
}

}  // namespace
}  // namespace penstock::nids
