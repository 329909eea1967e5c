// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/expression_automaton.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "nf/nids/detect/expression_tokens.h"

namespace penstock::nids {

namespace {

using Token = ExpressionToken;
using ByteSet = ExpressionAutomaton::ByteSet;

ByteSet all_bytes() { return ByteSet{}.set(); }

/// The bytes that a class (`.`, `\d`, `[a-f]`) matches, as PCRE2 reports them; all bytes if it cannot.
ByteSet bytes_of(std::string_view item, std::uint32_t options) {
  const std::string pattern = "(?:" + std::string(item) + ")+";
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                         options | PCRE2_NO_AUTO_CAPTURE, &error, &at, nullptr);
  if (code == nullptr) return all_bytes();
  std::array<std::uint8_t, 256> bytes;
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  ByteSet set;
  pcre2_match_data* const data = pcre2_match_data_create(1, nullptr);
  for (std::size_t from = 0; from < bytes.size();) {
    if (pcre2_match(code, bytes.data(), bytes.size(), from, 0, data, nullptr) < 0) break;
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data);
    for (std::size_t i = ends[0]; i < ends[1]; ++i) set.set(i);
    from = std::max(ends[1], from + 1);
  }
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  return set;
}

/// The expression as a tree.
struct Node {
  enum class Kind : std::uint8_t { empty, bytes, begin, end, sequence, alternatives, repeat };
  Kind kind = Kind::empty;
  ByteSet bytes{};
  std::vector<Node> parts{};
  std::uint32_t least = 1, most = 1;
};

/// Parses the tokens. If options change within the expression, the less strict ones apply everywhere.
class Parser {
 public:
  explicit Parser(const Pcre& pcre) : pcre_(pcre), tokens_(pcre.pattern, pcre.extended) { look_for_options(); }

  std::optional<Node> parse() {
    Node all = alternatives();
    if (!tokens_.understood()) return std::nullopt;
    return all;
  }

 private:
  void look_for_options() {
    caseless_ = pcre_.caseless;
    dotall_ = pcre_.dotall;
    multiline_ = pcre_.multiline;
    ExpressionTokens tokens(pcre_.pattern, pcre_.extended);
    for (Token token; tokens.next(token);) {
      if (!token.sets_options) continue;
      caseless_ = caseless_ || token.text.find('i') != token.text.npos;
      dotall_ = dotall_ || token.text.find('s') != token.text.npos;
      multiline_ = multiline_ || token.text.find('m') != token.text.npos;
    }
  }

  /// Parses up to the end of the group, whose token `closed_by_` then is, or of the expression.
  Node alternatives() {
    Node all{.kind = Node::Kind::alternatives};
    Node sequence{.kind = Node::Kind::sequence};
    for (Token token; tokens_.next(token);) {
      switch (token.kind) {
        case Token::Kind::options: break;
        case Token::Kind::bar: all.parts.push_back(std::exchange(sequence, Node{.kind = Node::Kind::sequence})); break;
        case Token::Kind::close:
          closed_by_ = token;
          all.parts.push_back(std::move(sequence));
          return all;
        case Token::Kind::open: {
          Node group = alternatives();
          if (closed_by_.group == Token::Group::plain) {
            sequence.parts.push_back(
                repeated(std::move(group), closed_by_.quantifier.least, closed_by_.quantifier.most));
          }
          break;
        }
        case Token::Kind::item:
          sequence.parts.push_back(repeated(item(token), token.quantifier.least, token.quantifier.most));
          break;
      }
    }
    all.parts.push_back(std::move(sequence));
    return all;
  }

  Node item(const Token& token) const {
    if (token.refers) {
      constexpr auto kAny = ExpressionQuantifier::kAnyNumber;
      return repeated({.kind = Node::Kind::bytes, .bytes = all_bytes()}, 0, kAny);
    }
    if (token.is_empty) return assertion(token.text);
    if (token.literal < 0) return {.kind = Node::Kind::bytes, .bytes = bytes_of(token.text, options())};
    const auto byte = static_cast<std::uint8_t>(token.literal);
    const bool is_space = byte == ' ' || (byte >= '\t' && byte <= '\r');
    if (tokens_.is_extended() && is_space && token.text.size() == 1) return {};
    Node node{.kind = Node::Kind::bytes};
    node.bytes.set(byte);
    const auto other_case = static_cast<std::uint8_t>(byte ^ 0x20);
    const auto lower = static_cast<std::uint8_t>(byte | 0x20);
    if (caseless_ && lower >= 'a' && lower <= 'z') node.bytes.set(other_case);
    return node;
  }

  Node assertion(std::string_view text) const {
    if (text == "\\A" || text == "\\G" || (text == "^" && !multiline_)) return {.kind = Node::Kind::begin};
    if (text == "\\z" || text == "\\Z" || (text == "$" && !multiline_)) return {.kind = Node::Kind::end};
    return {};
  }

  static Node repeated(Node node, std::uint32_t least, std::uint32_t most) {
    if (least == 1 && most == 1) return node;
    Node repeat{.kind = Node::Kind::repeat, .least = least, .most = most};
    repeat.parts.push_back(std::move(node));
    return repeat;
  }

  [[nodiscard]] std::uint32_t options() const {
    return (caseless_ ? PCRE2_CASELESS : 0U) | (dotall_ ? PCRE2_DOTALL : 0U);
  }

  const Pcre& pcre_;
  ExpressionTokens tokens_;
  Token closed_by_;
  bool caseless_ = false, dotall_ = false, multiline_ = false;
};

}  // namespace

class ExpressionAutomaton::Builder {
 public:
  explicit Builder(ExpressionAutomaton& automaton) : automaton_(automaton) {}

  /// False if it is too long.
  bool build(const Node& node) {
    add(node);
    put(Instruction::Kind::match);
    return automaton_.instructions_.size() <= kMostInstructions;
  }

 private:
  std::uint16_t here() const { return static_cast<std::uint16_t>(automaton_.instructions_.size()); }
  bool is_full() const { return automaton_.instructions_.size() > kMostInstructions; }

  std::uint16_t put(Instruction::Kind kind, std::uint16_t first = 0) {
    const std::uint16_t at = here();
    if (!is_full()) automaton_.instructions_.push_back({kind, first, 0});
    return at;
  }
  Instruction& at(std::uint16_t index) {
    return automaton_.instructions_[std::min<std::size_t>(index, automaton_.instructions_.size() - 1)];
  }
  /// A split with one branch to the next instruction.
  std::uint16_t put_split() {
    const std::uint16_t split = put(Instruction::Kind::split);
    at(split).first = here();
    return split;
  }
  void go_to(std::uint16_t target) {
    const std::uint16_t split = put(Instruction::Kind::split, target);
    at(split).second = target;
  }

  void add(const Node& node) {
    switch (node.kind) {
      case Node::Kind::empty: break;
      case Node::Kind::bytes: put(Instruction::Kind::bytes, index_of(node.bytes)); break;
      case Node::Kind::begin: put(Instruction::Kind::begin); break;
      case Node::Kind::end: put(Instruction::Kind::end); break;
      case Node::Kind::sequence:
        for (const Node& part : node.parts) add(part);
        break;
      case Node::Kind::alternatives: add_alternatives(node.parts); break;
      case Node::Kind::repeat: add_repeat(node); break;
    }
  }

  void add_alternatives(std::span<const Node> parts) {
    std::vector<std::uint16_t> ends;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool is_last = i + 1 == parts.size();
      const std::uint16_t split = is_last ? here() : put_split();
      add(parts[i]);
      if (is_last) break;
      ends.push_back(put(Instruction::Kind::split));
      at(split).second = here();
    }
    for (const std::uint16_t end : ends) at(end).first = at(end).second = here();
  }

  void add_repeat(const Node& node) {
    constexpr std::uint32_t kMostCopies = 128;
    const Node& part = node.parts.front();
    const bool exact =
        node.most == ExpressionQuantifier::kAnyNumber ? node.least <= kMostCopies : node.most <= kMostCopies;
    const std::uint32_t least = exact ? node.least : std::min<std::uint32_t>(node.least, 1);
    for (std::uint32_t i = 0; i < least && !is_full(); ++i) add(part);
    if (!exact || node.most == ExpressionQuantifier::kAnyNumber) {
      const std::uint16_t split = put_split();
      add(part);
      go_to(split);
      at(split).second = here();
      return;
    }
    std::vector<std::uint16_t> splits;
    for (std::uint32_t i = least; i < node.most && !is_full(); ++i) {
      splits.push_back(put_split());
      add(part);
    }
    for (const std::uint16_t split : splits) at(split).second = here();
  }

  std::uint16_t index_of(const ByteSet& set) {
    const auto found = std::find(automaton_.sets_.begin(), automaton_.sets_.end(), set);
    const auto index = static_cast<std::uint16_t>(found - automaton_.sets_.begin());
    if (found == automaton_.sets_.end()) automaton_.sets_.push_back(set);
    return index;
  }

  ExpressionAutomaton& automaton_;
};

std::optional<ExpressionAutomaton> ExpressionAutomaton::of(const Pcre& pcre) {
  const std::optional<Node> node = Parser(pcre).parse();
  if (!node) return std::nullopt;
  ExpressionAutomaton automaton;
  automaton.is_anchored_ = pcre.anchored;
  if (!Builder(automaton).build(*node)) return std::nullopt;
  automaton.instructions_.shrink_to_fit();
  return automaton;
}

}  // namespace penstock::nids
