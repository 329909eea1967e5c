// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ip_address.h"
#include "classify/explain.h"
#include "classify/key.h"
#include "conntrack/nat.h"
#include "conntrack/nat_choice.h"
#include "conntrack/nat_core.h"
#include "nf/firewall/bridged_frame.h"
#include "nf/firewall/judge_core.h"
#include "nf/firewall/steps/step_runner.h"
#include "nf/firewall/tracked_stage.h"
#include "packet/ip.h"

namespace penstock::firewall {

namespace {

using conntrack::NatKind;
using conntrack::NatRange;
using conntrack::Tuple;
using function::Explanation;

std::string describe_nat(const classify::Ruleset& rules, std::uint32_t rule) {
  return "NAT " + classify::describe(rules, rule);
}

bool has_port(const Tuple& tuple) { return conntrack::is_icmp(tuple) || begins_with_ports(tuple.protocol); }

std::string_view port_word(const Tuple& tuple) { return conntrack::is_icmp(tuple) ? "identifier" : "port"; }

/// "10.0.0.1:4000"; of ICMP "10.0.0.1 identifier 7"
std::string end_text(Tuple tuple, NatKind kind) {
  const Ipv6Address& address = kind == NatKind::source ? tuple.source : tuple.destination;
  std::string text =
      tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(address.low)}) : to_string(address);
  if (!has_port(tuple)) return text;
  const std::uint16_t port = conntrack::port_of(tuple, kind);
  if (conntrack::is_icmp(tuple)) return fmt::format("{} identifier {}", text, port);
  return tuple.ip_version == 4 ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

/// How Table::translate chooses the port, if that depends on which ports are in use; otherwise "". `before` is what the
/// range translates.
std::string port_choice(const Tuple& before, NatKind kind, const NatRange& range) {
  const conntrack::PortSearch search = conntrack::port_search(before, kind, range);
  if (!has_port(before) || search.count <= 1) return "";
  const std::string_view port = port_word(before);
  const std::uint32_t last = search.first + search.count - 1;
  const bool keeps_port =
      !range.random_port() && (!range.has(NatRange::kPorts) || conntrack::is_port_in_range(before, kind, range));
  if (!keeps_port && search.from_random) return fmt::format("the {} is a free one of {}-{}", port, search.first, last);
  return fmt::format("or, if that is in use, to a free {} of {}-{}", port, search.first, last);
}

/// The entry that decides, if those steps hold that depend on earlier packets. `failed`: gets the entries of which a
/// step does not hold.
std::uint32_t after_steps(PacketView packet, const classify::Ruleset& rules, const classify::Classifier& classifier,
                          const StepContext& context, const classify::Key& key, std::uint32_t entry,
                          std::vector<std::uint32_t>& failed, Explanation& to, BetweenRules* between = nullptr) {
  if (!rules.has_steps()) return entry;
  const auto depends_on = [&to](std::string_view what) {
    if (to.depends_on.find(what) == std::string::npos)
      to.depends_on += fmt::format("{}{}", to.depends_on.empty() ? "" : "; ", what);
  };
  constexpr std::string_view kAssumption =
      "earlier packets: here, limits and quotas are taken as not used up, and sets that change as the rules list them";
  depends_on(kAssumption);
  if (context.link_is_written && rules.tests_link_headers())
    depends_on("the link header with which it arrived: here, rules that test it do not match");
  StepRunner runner(rules, classifier, nullptr, context);
  if (between != nullptr) runner.set_between(*between);
  const auto decided = runner.decide(packet, key, entry, &failed);
  if (!decided) to.decided_by = runner.why_dropped();
  return decided.value_or(classify::kNoEntry);
}

/// The translation at one hook.
class Translator {
 public:
  Translator(PacketView packet, const Tables& tables, conntrack::Connections& connections, Explanation& to)
      : packet_(packet), tables_(tables), nat_(*tables.nat), connections_(connections), to_(to) {}

  /// As TranslatingStage does. Says why the packet is dropped, if it is.
  void operator()(const conntrack::Tracked& tracked) {
    if (tracked.connection == nullptr) {
      to_.notes.emplace_back("not translated: it has no connection");
      return;
    }
    if ((tracked.connection->status & conntrack::done_bit(nat_.kind())) != 0) {
      to_.notes.push_back(
          fmt::format("an earlier firewall at {} has decided about its translation", name_of(nat_.hook)));
    } else if (!choose(tracked)) {
      return;
    }
    const auto rewrite = conntrack::rewrite_for(tracked, conntrack::side_of(nat_.kind()));
    if (!conntrack::rewrite(packet_, rewrite)) drop(DropReason::untranslated, "its headers: it cannot be translated");
  }

 private:
  /// False: it is dropped.
  bool choose(const conntrack::Tracked& tracked) {
    classify::Key key;
    classify::make_key(packet_, key, number_of(connection_of(tracked)));
    std::uint32_t entry = classify::kNoEntry;
    nat_.classifier->classify({&key, 1}, &entry);
    std::vector<std::uint32_t> failed;
    entry = after_steps(packet_, nat_.rules, *nat_.classifier, tables_.steps, key, entry, failed, to_);
    classify::add_passed_over(nat_.rules, key, entry, describe_nat, to_, failed);
    const bool matches = entry != classify::kNoEntry;
    const std::string rule = matches ? describe_nat(nat_.rules, nat_.rules.entries[entry].rule) : "no NAT rule matches";
    const auto range = nat_.range_of(packet_, key.family, entry);
    if (!range) {
      drop(range.error(),
           range.error() == DropReason::denied
               ? (matches ? rule : fmt::format("policy {} of NAT: {}", name(nat_.rules.policy(key.family)), rule))
               : fmt::format("{}: {}", rule, why_untranslated(entry, key.family)));
      return false;
    }
    const NatKind kind = nat_.kind();
    const Tuple before = *conntrack::inverse_of(tracked.connection->reply);
    if (!connections_.translate(tracked, kind, *range)) {
      drop(DropReason::untranslated, tables_.has_port_blocks && !has_port(before)
                                         ? fmt::format("{}: its protocol has no ports, which are in blocks", rule)
                                         : fmt::format("{}: no {} is free", rule, port_word(before)));
      return false;
    }
    if (*range == NatRange{}) {
      to_.notes.push_back(fmt::format("{}: not translated", rule));
      return true;
    }
    const std::string choice = tables_.has_port_blocks && kind == NatKind::source
                                   ? fmt::format("the {} is one of a block of its host", port_word(before))
                                   : port_choice(before, kind, *range);
    to_.notes.push_back(fmt::format(
        "{}: {} {} to {}{}{}", rule, kind == NatKind::source ? "source" : "destination", end_text(before, kind),
        end_text(*conntrack::inverse_of(tracked.connection->reply), kind), choice.empty() ? "" : ", ", choice));
    if (!choice.empty()) to_.depends_on += fmt::format("; and by which {}s are in use", port_word(before));
    return true;
  }

  [[nodiscard]] std::string why_untranslated(std::uint32_t entry, NetworkLayer family) const {
    using Way = classify::Translation::Way;
    const Way way = nat_.rules.rules[nat_.rules.entries[entry].rule].translation->way;
    const bool of_source = way == Way::source || way == Way::masquerade;
    if (of_source != (nat_.kind() == NatKind::source)) {
      return fmt::format("it translates the {}, which {} cannot", of_source ? "source" : "destination",
                         name_of(nat_.hook));
    }
    return fmt::format("the port by which it {} has no {} address in `addresses`", of_source ? "leaves" : "arrived",
                       family == NetworkLayer::ipv4 ? "IPv4" : "IPv6");
  }

  void drop(DropReason reason, std::string why) {
    packet_.packet->verdict = Verdict::drop(reason);
    std::string filters = std::exchange(to_.decided_by, std::move(why));
    if (!filters.empty()) to_.notes.push_back("its filters accept it: " + std::move(filters));
  }

  PacketView packet_;
  const Tables& tables_;
  const NatRules& nat_;
  conntrack::Connections& connections_;
  Explanation& to_;
};

/// As the stages do between rules.
class Between final : public BetweenRules {
 public:
  Between(const Tables& tables, conntrack::Connections* connections, Explanation& to)
      : tables_(tables), connections_(connections), to_(to) {}

  std::string_view track(PacketView packet, classify::Key& key, bool untracked) noexcept override {
    if (connections_ == nullptr) return {};
    if (untracked) connections_->leave_untracked(packet);
    key.connection = number_of(connection_of(connections_->of(packet)));
    return {};
  }
  std::string_view translate(PacketView packet, classify::Key& key) noexcept override {
    if (connections_ == nullptr || tables_.nat == nullptr) return {};
    Translator(packet, tables_, *connections_, to_)(connections_->of(packet));
    if (!packet.packet->verdict.alive()) return "it cannot be translated";
    classify::make_key(packet, key, number_of(connection_of(connections_->of(packet))));
    return {};
  }

 private:
  const Tables& tables_;
  conntrack::Connections* connections_;
  Explanation& to_;
};

}  // namespace

Explanation explain(PacketView packet, const Tables& tables, conntrack::Connections* connections) {
  const classify::Ruleset& rules = tables.rules;
  Explanation explanation;
  Verdict& verdict = packet.packet->verdict;
  const Standing standing = tables.bridge != nullptr ? bridged_standing(packet) : standing_of(packet, tables.route);
  if (standing != Standing::judged) {
    verdict = verdict_of(standing, verdict);
    explanation.decided_by = standing == Standing::not_ip      ? "not IP: no rule applies"
                             : standing == Standing::elsewhere ? "the host's port: rules of another hook apply"
                                                               : "its headers";
    return explanation;
  }
  const bool translates_first = tables.nat != nullptr && translates_before_filters(tables.nat->hook);
  if (translates_first) {
    Translator(packet, tables, *connections, explanation)(connections->of(packet));
    if (!verdict.alive()) return explanation;
  }
  const bool tracks_first = connections != nullptr && !rules.tracks_between();
  classify::Key key;
  if (tables.bridge != nullptr) {
    key = bridged_key(packet, tables.bridge->exits);
  } else {
    classify::make_key(packet, key);
  }
  if (tracks_first) key.connection = number_of(connection_of(connections->of(packet)));
  std::uint32_t entry = classify::kNoEntry;
  tables.classifier.classify({&key, 1}, &entry);
  std::vector<std::uint32_t> failed;
  Between between(tables, connections, explanation);
  entry = after_steps(packet, rules, tables.classifier, tables.steps, key, entry, failed, explanation, &between);
  if (!explanation.decided_by.empty()) {
    if (verdict.alive()) verdict = Verdict::drop(DropReason::denied);
    return explanation;
  }
  const bool ends_chain = classify::add_passed_over(rules, key, entry, classify::describe, explanation, failed);
  explanation.decided_by = entry == classify::kNoEntry
                               ? fmt::format("policy {}: no rule {}", name(rules.policy(key.family)),
                                             ends_chain ? "after those that match decides" : "matches")
                               : classify::describe(rules, rules.entries[entry].rule);
  const auto said = connections != nullptr ? connections->said(packet) : std::nullopt;
  if (said) {
    explanation.depends_on += fmt::format("{}its connection; here, it belongs to none that is known: {}",
                                          explanation.depends_on.empty() ? "" : "; ", to_string(connection_of(*said)));
  }
  verdict = verdict_of(classify::decision(classify::view_of(rules), entry, key.family).action, verdict);
  if (tables.nat == nullptr || !said || !verdict.alive() || rules.translates_between()) return explanation;
  explanation.depends_on += " (a known one keeps its translation: `penstock ctl conntrack list`)";
  if (!translates_first) Translator(packet, tables, *connections, explanation)(*said);
  return explanation;
}

}  // namespace penstock::firewall
