// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Options that test bytes: content and its modifiers, pcre, byte_*, base64, the buffers.

#include <gmock/gmock.h>

#include "nf/nids/rules/rules_for_test.h"

namespace penstock::nids {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string text_of(const Content& content) { return {content.bytes.begin(), content.bytes.end()}; }

/// The only match of the only buffer.
template <typename Match>
Match only(const Rule& rule) {
  if (rule.buffers.size() != 1 || rule.buffers[0].matches.size() != 1 ||
      !std::holds_alternative<Match>(rule.buffers[0].matches[0])) {
    ADD_FAILURE() << rule.text << ": not the one match";
    return {};
  }
  return std::get<Match>(rule.buffers[0].matches[0]);
}

Content content_with(std::string_view options) { return only<Content>(rule_with(options)); }

/// The last match of the last buffer.
template <typename Match>
Match last(const Rule& rule) {
  if (rule.buffers.empty() || !std::holds_alternative<Match>(rule.buffers.back().matches.back())) {
    ADD_FAILURE() << rule.text << ": its last match is another";
    return {};
  }
  return std::get<Match>(rule.buffers.back().matches.back());
}

void expect_all_refused(std::initializer_list<const char*> all, std::string_view reason) {
  for (const char* options : all) {
    EXPECT_THAT(complaint_with(options), StartsWith(std::string(reason) + " | ")) << options;
  }
}

TEST(ContentOption, ReadsTextHexAndEscapes) {
  EXPECT_EQ(text_of(content_with("content:\"abc\";")), "abc");
  EXPECT_EQ(text_of(content_with("content:\"a|20 0d|b|0A|\";")), "a \rb\n");
  EXPECT_EQ(text_of(content_with("content:\"|200d|\";")), " \r");
  EXPECT_EQ(text_of(content_with("content:\"a\\;b\\:c\\\\d\\\"e\";")), "a;b:c\\d\"e");
  EXPECT_EQ(text_of(content_with("content: \"x\" ;")), "x");
  EXPECT_EQ(text_of(content_with("Content:\"x\";")), "x");
  EXPECT_TRUE(content_with("content:!\"x\";").negated);
  EXPECT_TRUE(content_with("content: ! \"x\";").negated);
  EXPECT_EQ(text_of(content_with("content:\"!x\";")), "!x");
  EXPECT_EQ(text_of(content_with("content:\"a(b)|29|\";")), "a(b))");
  EXPECT_EQ(content_with("content:\"|00 ff|\";").bytes, (std::vector<std::uint8_t>{0, 255}));
}

TEST(ContentOption, RefusesInvalidContents) {
  expect_all_refused({"content:\"\";", "content:abc;", "content:\"abc;", "content:;", "content;", "content:\"|2|\";",
                      "content:\"|20 \";", "content:\"|2g|\";", "content:\"a\\b\";", "content:\"a\"b\";",
                      "content:\"a\" nocase;", "content:\"||\";", "content:!;"},
                     "syntax");
}

TEST(ContentOption, PointsAtTheWrongByte) {
  const RuleSet set = rules_of(with_options("content:\"|2x|\";"));
  ASSERT_EQ(set.left_out.size(), 1U);
  const std::string text = with_options("content:\"|2x|\";");
  EXPECT_EQ(set.left_out[0].why.place.column, text.find('x', text.find("|2")) + 1);
  EXPECT_EQ(set.left_out[0].why.found, "'x'");
}

TEST(ContentOption, TakesItsModifiers) {
  const Content content = content_with("content:\"abc\"; nocase; offset:3; depth:10; fast_pattern; rawbytes;");
  EXPECT_TRUE(content.nocase);
  EXPECT_EQ(content.offset->value, 3);
  EXPECT_EQ(content.depth->value, 10);  // as written; it counts from the offset
  EXPECT_TRUE(content.fast_pattern);
  EXPECT_FALSE(content.distance);
  const Content relative = last<Content>(rule_with("content:\"a\"; content:\"bc\"; within:20; distance:-5;"));
  EXPECT_EQ(relative.distance->value, -5);
  EXPECT_EQ(relative.within->value, 20);
  EXPECT_TRUE(content_with("content:\"a\"; fast_pattern:only;").fast_pattern_only);
  const Content part = content_with("content:\"abcdef\"; fast_pattern:1,4;");
  EXPECT_EQ(*part.chop_offset, 1);
  EXPECT_EQ(*part.chop_length, 4);
  const Content first = content_with("content:\"abc\"; startswith;");
  EXPECT_TRUE(first.starts_with);
  EXPECT_EQ(first.offset->value, 0);
  EXPECT_EQ(first.depth->value, 3);
  EXPECT_TRUE(content_with("content:\"abc\"; endswith;").ends_with);
  // It applies to the last content, whatever is between them.
  EXPECT_TRUE(std::get<Content>(rule_with("content:\"a\"; pcre:\"/b/\"; nocase;").buffers[0].matches[0]).nocase);
}

TEST(ContentOption, TakesSnortsModifiersInALine) {
  const Content content = content_with("content:\"a,b\", nocase, offset 4, depth 20, fast_pattern;");
  EXPECT_EQ(text_of(content), "a,b");
  EXPECT_TRUE(content.nocase);
  EXPECT_EQ(content.offset->value, 4);
  EXPECT_EQ(content.depth->value, 20);
  EXPECT_TRUE(content.fast_pattern);
  expect_all_refused(
      {"content:\"a\", nonsense;", "content:\"a\", depth;", "content:\"a\", nocase 5;", "content:\"a\",;"}, "syntax");
}

TEST(ContentOption, RefusesModifiersThatExcludeEachOther) {
  expect_all_refused(
      {
          "nocase;",
          "depth:4;",
          "content:\"a\"; nocase; nocase;",
          "content:\"a\"; depth:4; depth:5;",
          "content:\"a\"; offset:4; offset:5;",
          "content:\"a\"; content:\"b\"; distance:1; distance:2;",
          "content:\"a\"; content:\"b\"; within:1; within:2;",
          "content:\"a\"; content:\"b\"; distance:1; offset:2;",
          "content:\"a\"; content:\"b\"; depth:5; within:5;",
          "content:\"a\"; offset:0; distance:0;",
          "content:\"a\"; startswith; depth:4;",
          "content:\"a\"; startswith; offset:0;",
          "content:\"a\"; offset:1; startswith;",
          "content:\"a\"; distance:1; startswith;",
          "content:\"a\"; startswith; distance:0;",
          "content:\"a\"; startswith; startswith;",
          "content:\"a\"; endswith; endswith;",
          "content:\"a\"; fast_pattern; fast_pattern;",
          "content:\"a\"; fast_pattern; content:\"b\"; fast_pattern;",
          "content:\"a\"; depth:4; fast_pattern:only;",
          "content:\"a\"; fast_pattern:only; depth:4;",
          "content:!\"a\"; fast_pattern:only;",
          "content:!\"a\"; offset:2; fast_pattern;",
          "content:!\"a\"; fast_pattern; offset:2;",
          "content:!\"abc\"; fast_pattern:0,2;",
          "content:\"a\"; fast_pattern:only; content:\"b\"; distance:0;",
          "content:\"a\"; fast_pattern:only; content:\"b\"; within:3;",
          "content:\"a\"; fast_pattern:only; pcre:\"/b/R\";",
          "content:\"a\"; fast_pattern:only; isdataat:1,relative;",
      },
      "combination");
}

TEST(ContentOption, AllowsANegatedContentToBeRelative) {
  const Content content = last<Content>(rule_with("content:\"a\"; content:!\"b\"; distance:1; within:4;"));
  EXPECT_TRUE(content.negated);
  EXPECT_EQ(content.within->value, 4);
}

TEST(ContentOption, ChecksNumbers) {
  expect_all_refused({"content:\"abc\"; depth:2;", "content:\"abc\"; within:2;", "content:\"abc\"; offset:65536;",
                      "content:\"abc\"; offset:-1;", "content:\"abc\"; depth:65536;",
                      "content:\"abc\"; distance:1048577;", "content:\"abc\"; distance:-1048577;",
                      "content:\"abc\"; fast_pattern:2,2;", "content:\"abc\"; fast_pattern:0,0;",
                      "content:\"abc\"; offset:99999999999999999999;", "content:\"abc\"; offset:4x;"},
                     "value");
  expect_all_refused(
      {"content:\"abc\"; depth:;", "content:\"abc\"; nocase:1;", "content:\"abc\"; fast_pattern:nonsense;"}, "syntax");
  expect_all_refused({"content:\"abc\"; depth:len;", "isdataat:len;", "byte_jump:len,0;"}, "unknown variable");
}

TEST(PcreOption, ReadsExpressionAndFlags) {
  const Pcre pcre = only<Pcre>(rule_with("pcre:\"/a\\/b[\\\"x]{2}/ismxAEGRBO\";"));
  EXPECT_EQ(pcre.pattern, "a\\/b[\\\"x]{2}");
  EXPECT_TRUE(pcre.caseless && pcre.dotall && pcre.multiline && pcre.extended);
  EXPECT_TRUE(pcre.anchored && pcre.dollar_endonly && pcre.ungreedy && pcre.relative);
  EXPECT_FALSE(pcre.negated);
  EXPECT_TRUE(only<Pcre>(rule_with("pcre:!\"/a/\";")).negated);
  EXPECT_EQ(only<Pcre>(rule_with("pcre:/(a)+/i;")).pattern, "(a)+");
  EXPECT_EQ(only<Pcre>(rule_with("pcre:\"/a\\;b/\";")).pattern, "a\\;b");
  EXPECT_EQ(only<Pcre>(rule_with("pcre:\"/a\\\\/\";")).pattern, "a\\\\");
  EXPECT_EQ(only<Pcre>(rule_with("pcre:\"/(a)/i, pkt:name\";")).pattern, "(a)");
}

TEST(PcreOption, RefusesInvalidExpressions) {
  expect_all_refused({"pcre:\"a\";", "pcre:\"/a\";", "pcre:\"/a\\/\";", "pcre:\"/a/z\";", "pcre:\"/a/i;", "pcre;",
                      "pcre:\"\";", "pcre:\"/\";"},
                     "syntax");
}

TEST(PcreOption, TestsRequestTargetsByItsFlags) {
  EXPECT_EQ(only<Pcre>(rule_with("pcre:/(a)+/U;")).of, Pcre::Of::request_target);
  EXPECT_EQ(only<Pcre>(rule_with("pcre:/(a)+/Ii;")).of, Pcre::Of::raw_request_target);
  EXPECT_EQ(only<Pcre>(rule_with("pcre:/(a)+/i;")).of, Pcre::Of::buffer);
}

TEST(PcreOption, NamesTheBufferItNeeds) {
  EXPECT_THAT(complaint_with("content:\"a\"; pcre:\"/a/UR\";"), StartsWith("option http.uri | "));
  EXPECT_THAT(complaint_with("pcre:\"/a/P\";"), StartsWith("option http.request_body | "));
  EXPECT_THAT(complaint_with("pcre:\"/a/Hi\";"), StartsWith("option http.header | "));
  EXPECT_THAT(complaint_with("pcre:\"/a/C\";"), StartsWith("option http.cookie | "));
}

TEST(ByteTestOption, ReadsAllForms) {
  const ByteTest test = only<ByteTest>(rule_with("byte_test:4,>,1000,20,relative,little,bitmask 0xf0f0;"));
  EXPECT_EQ(test.bytes.value, 4);
  EXPECT_EQ(test.operation, ByteTest::Operator::greater);
  EXPECT_FALSE(test.negated);
  EXPECT_EQ(test.value.value, 1000);
  EXPECT_EQ(test.offset.value, 20);
  EXPECT_TRUE(test.relative);
  EXPECT_EQ(test.order, ByteOrder::little);
  EXPECT_EQ(test.text, NumberText::none);
  EXPECT_EQ(test.bitmask, 0xf0f0U);
  using Operator = ByteTest::Operator;
  const auto operation = [](std::string_view oper) {
    const ByteTest read = only<ByteTest>(rule_with("byte_test: 1 , " + std::string(oper) + " , 0x10 , -2 ;"));
    EXPECT_EQ(read.value.value, 16);
    EXPECT_EQ(read.offset.value, -2);
    return std::pair{read.operation, read.negated};
  };
  EXPECT_EQ(operation("<"), std::pair(Operator::less, false));
  EXPECT_EQ(operation("="), std::pair(Operator::equal, false));
  EXPECT_EQ(operation("!="), std::pair(Operator::equal, true));
  EXPECT_EQ(operation("!"), std::pair(Operator::equal, true));
  EXPECT_EQ(operation("<="), std::pair(Operator::less_equal, false));
  EXPECT_EQ(operation(">="), std::pair(Operator::greater_equal, false));
  EXPECT_EQ(operation("&"), std::pair(Operator::bit_and, false));
  EXPECT_EQ(operation("!&"), std::pair(Operator::bit_and, true));
  EXPECT_EQ(operation("^"), std::pair(Operator::bit_xor, false));
  EXPECT_EQ(operation("! <"), std::pair(Operator::less, true));
  EXPECT_EQ(only<ByteTest>(rule_with("byte_test:10,=,5,0,string,dec;")).text, NumberText::decimal);
  EXPECT_EQ(only<ByteTest>(rule_with("byte_test:10,=,5,0,string;")).text, NumberText::automatic);
  EXPECT_EQ(only<ByteTest>(rule_with("byte_test:10,=,5,0,string,hex;")).text, NumberText::hexadecimal);
  EXPECT_EQ(only<ByteTest>(rule_with("byte_test:10,=,5,0,oct,string;")).text, NumberText::octal);
  EXPECT_EQ(only<ByteTest>(rule_with("byte_test:8,=,18446744073709551615,0;")).value.value, -1);
}

TEST(ByteTestOption, RefusesInvalidTests) {
  expect_all_refused({"byte_test:4,>,1000;", "byte_test:4,<>,1000,0;", "byte_test:4,>,1000,0,nonsense;",
                      "byte_test:4,>,1000,0,bitmask;"},
                     "syntax");
  expect_all_refused({"byte_test:9,>,1000,0;", "byte_test:0,>,1000,0;", "byte_test:24,>,1000,0,string,oct;",
                      "byte_test:15,>,1,0,string,hex;", "byte_test:4,>,1000,65536;", "byte_test:4,>,-1,0;",
                      "byte_test:4,>,1000,0,bitmask 0;", "byte_test:4,>,1000,0,bitmask 0x1ffffffff;"},
                     "value");
  expect_all_refused(
      {"byte_test:4,>,1000,0,hex;", "byte_test:4,>,1000,0,big,little;", "byte_test:4,>,1,0,string,hex,dec;"},
      "combination");
  EXPECT_THAT(complaint_with("byte_test:4,>,1000,0,dce;"), StartsWith("option byte order dce | "));
}

TEST(ByteJumpOption, ReadsAllForms) {
  const ByteJump jump = only<ByteJump>(
      rule_with("byte_jump:2,-4,relative,multiplier 4,little,align,from_beginning,post_offset -6,bitmask 0x3f;"));
  EXPECT_EQ(jump.bytes.value, 2);
  EXPECT_EQ(jump.offset.value, -4);
  EXPECT_TRUE(jump.relative && jump.align && jump.from_beginning);
  EXPECT_FALSE(jump.from_end);
  EXPECT_EQ(jump.multiplier, 4U);
  EXPECT_EQ(jump.post_offset.value, -6);
  EXPECT_EQ(jump.bitmask, 0x3fU);
  EXPECT_EQ(jump.order, ByteOrder::little);
  const ByteJump none = only<ByteJump>(rule_with("byte_jump:0,0,relative,string,from_end,post_offset -3;"));
  EXPECT_EQ(none.bytes.value, 0);
  EXPECT_TRUE(none.from_end);
  const Rule variables = rule_with("byte_extract:1,0,len; byte_jump:len,len,post_offset len;");
  const ByteJump by_variable = last<ByteJump>(variables);
  EXPECT_EQ(by_variable.bytes.variable, 0);
  EXPECT_EQ(by_variable.offset.variable, 0);
  EXPECT_EQ(by_variable.post_offset.variable, 0);
  expect_all_refused({"byte_jump:4;", "byte_jump:4,0,nonsense;", "byte_jump:4,0,multiplier4;"}, "syntax");
  expect_all_refused({"byte_jump:9,0;", "byte_jump:4,0,multiplier 0;", "byte_jump:4,0,multiplier 65536;",
                      "byte_jump:4,0,post_offset 65536;", "byte_jump:-1,0;"},
                     "value");
  expect_all_refused({"byte_jump:4,0,from_beginning,from_end;", "byte_jump:4,0,dec;"}, "combination");
}

TEST(ByteExtractOption, MakesVariablesForLaterOptions) {
  const Rule rule = rule_with(
      "byte_extract:2,1,Some.Name,relative,little,multiplier 3,align 4; byte_extract:1,0,b,string,hex;"
      "content:\"a\"; offset:Some.Name; depth:b; content:\"b\"; distance:b; within:Some.Name; isdataat:!b,relative;"
      "byte_test:1,=,b,Some.Name;");
  EXPECT_EQ(rule.variables, 2U);
  const std::vector<BufferMatch>& matches = rule.buffers[0].matches;
  const auto& extract = std::get<ByteExtract>(matches[0]);
  EXPECT_EQ(extract.bytes, 2);
  EXPECT_EQ(extract.offset, 1);
  EXPECT_EQ(extract.variable, 0);
  EXPECT_EQ(extract.multiplier, 3U);
  EXPECT_EQ(extract.align, 4);
  EXPECT_TRUE(extract.relative);
  EXPECT_EQ(std::get<ByteExtract>(matches[1]).text, NumberText::hexadecimal);
  EXPECT_EQ(std::get<Content>(matches[2]).offset->variable, 0);
  EXPECT_EQ(std::get<Content>(matches[2]).depth->variable, 1);
  EXPECT_EQ(std::get<Content>(matches[3]).within->variable, 0);
  EXPECT_EQ(std::get<IsDataAt>(matches[4]).position.variable, 1);
  EXPECT_EQ(std::get<ByteTest>(matches[5]).value.variable, 1);
  EXPECT_EQ(std::get<ByteTest>(matches[5]).offset.variable, 0);
  EXPECT_EQ(only<ByteExtract>(rule_with("byte_extract:3,0,v,string;")).text, NumberText::decimal);
  expect_all_refused({"byte_extract:1,0;", "byte_extract:1,0,9name;", "byte_extract:1,0,v,nonsense;"}, "syntax");
  expect_all_refused({"byte_extract:9,0,v;", "byte_extract:0,0,v;", "byte_extract:1,0,v,align 3;",
                      "byte_extract:1,0,v,multiplier 0;", "byte_extract:1,70000,v;"},
                     "value");
}

TEST(ByteMathOption, ReadsItsFieldsInAnyOrder) {
  const ByteMath math = only<ByteMath>(
      rule_with("byte_math:bytes 4, offset -2, oper *, rvalue 3, result v, relative, endian little, bitmask 0xff;"));
  EXPECT_EQ(math.bytes.value, 4);
  EXPECT_EQ(math.offset.value, -2);
  EXPECT_EQ(math.operation, ByteMath::Operator::multiply);
  EXPECT_EQ(math.value.value, 3);
  EXPECT_TRUE(math.relative);
  EXPECT_EQ(math.order, ByteOrder::little);
  EXPECT_EQ(math.bitmask, 0xffU);
  const ByteMath other = only<ByteMath>(rule_with("byte_math:result v,rvalue 2,oper <<,offset 0,bytes 2,string dec;"));
  EXPECT_EQ(other.operation, ByteMath::Operator::shift_left);
  EXPECT_EQ(other.text, NumberText::decimal);
  const Rule rule =
      rule_with("byte_extract:1,0,a; byte_math:bytes a,offset 0,oper -,rvalue a,result b; byte_test:1,=,b,0;");
  EXPECT_EQ(rule.variables, 2U);
  expect_all_refused(
      {"byte_math:bytes 1, offset 0, oper +, rvalue 1;", "byte_math:offset 0, oper +, rvalue 1, result v;",
       "byte_math:bytes 1, offset 0, oper %, rvalue 1, result v;",
       "byte_math:bytes 1, offset 0, oper +, rvalue 1, result v, nonsense;", "byte_math:1,2,3;"},
      "syntax");
  expect_all_refused({"byte_math:bytes 11, offset 0, oper +, rvalue 1, result v;",
                      "byte_math:bytes 1, offset 0, oper /, rvalue 0, result v;",
                      "byte_math:bytes 1, offset 0, oper +, rvalue 4294967296, result v;"},
                     "value");
}

TEST(IsDataAtOption, ReadsAllForms) {
  const IsDataAt match = only<IsDataAt>(rule_with("isdataat:!10,relative,rawbytes;"));
  EXPECT_TRUE(match.negated);
  EXPECT_TRUE(match.relative);
  EXPECT_EQ(match.position.value, 10);
  EXPECT_FALSE(only<IsDataAt>(rule_with("isdataat:10;")).relative);
  EXPECT_TRUE(only<IsDataAt>(rule_with("isdataat: 10 , relative ;")).relative);
  expect_all_refused({"isdataat:10,nonsense;"}, "syntax");
  expect_all_refused({"isdataat:-1;", "isdataat:65536;"}, "value");
}

TEST(Base64Options, DecodeBeforeTheDataAreTested) {
  const Rule rule = rule_with("content:\"x\"; base64_decode:bytes 12, offset 2, relative; base64_data; content:\"y\";");
  ASSERT_EQ(rule.buffers.size(), 2U);
  const auto& decode = std::get<Base64Decode>(rule.buffers[0].matches[1]);
  EXPECT_EQ(decode.bytes, 12U);
  EXPECT_EQ(decode.offset, 2U);
  EXPECT_TRUE(decode.relative);
  EXPECT_EQ(rule.buffers[1].buffer, Buffer::base64_data);
  EXPECT_EQ(only<Base64Decode>(rule_with("base64_decode;")).bytes, 0U);
  EXPECT_EQ(only<Base64Decode>(rule_with("base64_decode:relative;")).offset, 0U);
  expect_all_refused({"base64_data; content:\"x\";", "base64_decode; base64_data; base64_decode;"}, "combination");
  expect_all_refused({"base64_decode:nonsense;"}, "syntax");
  expect_all_refused({"base64_decode:bytes 0;", "base64_decode:offset 65536;"}, "value");
}

TEST(BufferOptions, ApplyUntilTheNextOne) {
  const Rule rule = rule_with(
      "content:\"a\"; tcp.hdr; content:\"b\"; ipv4.hdr; content:\"c\"; tcp.hdr; content:\"d\"; distance:0; pkt_data; "
      "content:\"e\";");
  ASSERT_EQ(rule.buffers.size(), 3U);
  EXPECT_EQ(rule.buffers[0].buffer, Buffer::payload);
  EXPECT_EQ(rule.buffers[0].matches.size(), 2U);
  EXPECT_EQ(rule.buffers[1].buffer, Buffer::tcp_header);
  EXPECT_EQ(rule.buffers[1].matches.size(), 2U);
  EXPECT_EQ(rule.buffers[2].buffer, Buffer::ipv4_header);
}

TEST(BufferOptions, ThePayloadIsFirstAndEmptyOnesAreLeftOut) {
  const Rule rule = rule_with("udp.hdr; content:\"b\"; pkt_data; content:\"a\"; ipv6.hdr;", "udp");
  ASSERT_EQ(rule.buffers.size(), 2U);
  EXPECT_EQ(rule.buffers[0].buffer, Buffer::payload);
  EXPECT_EQ(rule.buffers[1].buffer, Buffer::udp_header);
}

TEST(BufferOptions, AllAreSupported) {
  for (const char* name : {"ipv4.hdr", "ipv6.hdr", "tcp.hdr", "udp.hdr", "icmpv4.hdr", "icmpv6.hdr"}) {
    const Rule rule = rule_with(std::string(name) + "; content:\"a\"; bsize:>10;", "ip");
    ASSERT_EQ(rule.buffers.size(), 1U) << name;
    EXPECT_NE(rule.buffers[0].buffer, Buffer::payload) << name;
    EXPECT_EQ(std::get<Bsize>(rule.buffers[0].matches[1]).range.first, 10U) << name;
  }
  EXPECT_THAT(complaint_with("udp.hdr; content:\"a\";", "tcp"), StartsWith("combination | "));
  EXPECT_THAT(complaint_with("tcp.hdr; content:\"a\";", "udp"), StartsWith("combination | "));
  expect_all_refused({"bsize:10;", "content:\"a\"; bsize:10;"}, "combination");
  expect_all_refused({"tcp.hdr:1; content:\"a\";"}, "syntax");
}

TEST(Options, UnsupportedOnesAreNamed) {
  EXPECT_THAT(complaint_with("http.uri; content:\"a\";"), StartsWith("option http.uri | "));
  EXPECT_THAT(complaint_with("content:\"a\"; http_uri;"), StartsWith("option http_uri | "));
  EXPECT_THAT(complaint_with("uricontent:\"a\";"), StartsWith("option uricontent | "));
  EXPECT_THAT(complaint_with("content:\"a\"; replace:\"b\";"), StartsWith("option replace | "));
  EXPECT_THAT(complaint_with("dns.query; content:\"a\";", "dns"), StartsWith("protocol dns | "));
  EXPECT_THAT(complaint_with("dns.query; content:\"a\"; tls.sni; content:\"b\";", "dns"),
              HasSubstr("protocol dns, option dns.query, option tls.sni"));
  EXPECT_THAT(complaint_with("contents:\"a\";"),
              AllOf(StartsWith("unknown option | "), HasSubstr("; did you mean 'content'?")));
  EXPECT_THAT(complaint_with("content:\"a\";", "tpc"),
              AllOf(StartsWith("unknown protocol | "), HasSubstr("; did you mean 'tcp'?")));
}

}  // namespace
}  // namespace penstock::nids
