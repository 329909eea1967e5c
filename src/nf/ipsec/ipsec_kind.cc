// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of `ipsec`, and the function made from them.

#include <array>
#include <chrono>
#include <utility>

#include "base/text_file.h"
#include "nf/ipsec/ipsec.h"

namespace penstock::ipsec {

namespace {

constexpr auto kParameters = std::to_array<Parameter>({
    {"state", ParameterType::path, "", "", "what `ip xfrm state` prints: the SAs, with their keys", true},
    {"policy", ParameterType::path, "", "",
     "what `ip xfrm policy` prints; without, `direction: in` lets all in that an SA may carry", false},
    {"direction", ParameterType::choice, "out", "in|out", "out: protects; in: opens", false},
    {"unselected", ParameterType::choice, "pass", "pass|drop", "out: packets that no policy selects", false},
    {"mtu", ParameterType::integer, "", "576..65535",
     "out: of the link that protected packets leave by, in bytes of IP; without, of any length", false},
    {"too_big", ParameterType::choice, "fragment", "fragment|icmp",
     "out: what is longer than the MTU: cut behind ESP where that may be done, or refused, as the rest, with an answer",
     false},
    {"interfaces", ParameterType::pairs, "", "",
     "devices in the policies and the ports they are: {eth0: lan, lo: none}", false},
    {"most_entries", ParameterType::integer, "250000", "1..100000000", "most SAs, and most policies, of a file", false},
    {"strict", ParameterType::flag, "false", "", "what the files hold and is not supported is an error", false},
});

/// IVs of one start must not come again at the next: they count on from the time, in nanoseconds.
Result<std::uint64_t> make_iv_epoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  constexpr std::int64_t kYear2026 = 1'767'225'600;
  if (nanoseconds < kYear2026 * 1'000'000'000) {
    return failure(
        Error{{}, "the clock is wrong, on which it depends that no IV comes twice", "a time before 2026", "the time"});
  }
  return static_cast<std::uint64_t>(nanoseconds);
}

Errors out_of_place(const Parameters& parameters, bool inbound, bool behind_router) {
  Errors errors;
  if (inbound && parameters.has("mtu")) {
    errors.push_back({parameters.place("mtu"), "nothing grows on the way in", "an MTU", "direction: out"});
  }
  if (!inbound && !parameters.has("mtu") && parameters.text("too_big") == "icmp") {
    errors.push_back({parameters.place("too_big"), "nothing is too big", "no MTU", "mtu: BYTES"});
  }
  if (inbound && parameters.text("unselected") == "drop") {
    errors.push_back({parameters.place("unselected"), "this is for the way out", "direction: in", "direction: out"});
  }
  if (behind_router && parameters.text("too_big") == "icmp") {
    errors.push_back({parameters.place("too_big"), "an answer needs the link addresses that packets came with",
                      "ipsec behind the function that chooses their way", "ipsec before it, or too_big: fragment"});
  }
  if (inbound) {
    return errors;
  }
  if (!parameters.has("policy")) {
    errors.push_back({parameters.place("state"), "no policies to protect packets by", "", "policy: FILE"});
  }
  return errors;
}

Result<std::unique_ptr<chain::NetworkFunction>> make(const Parameters& parameters, chain::NfContext& context) {
  const auto epoch = make_iv_epoch();
  if (!epoch) return failure(epoch.error());
  return make_ipsec(parameters, context, *epoch);
}

}  // namespace

Result<std::unique_ptr<chain::NetworkFunction>> make_ipsec(const Parameters& parameters, chain::NfContext& context,
                                                           std::uint64_t iv_epoch) {
  TableSources sources;
  sources.settings.inbound = parameters.text("direction") == "in";
  if (Errors errors = out_of_place(parameters, sources.settings.inbound, context.out_port_known); !errors.empty())
    return failure(std::move(errors));
  sources.settings.drops_unselected = parameters.text("unselected") == "drop";
  if (parameters.has("mtu")) sources.settings.mtu = static_cast<std::uint32_t>(parameters.integer("mtu"));
  sources.settings.too_big = parameters.text("too_big") == "icmp" ? TooBig::icmp : TooBig::fragment;
  // Behind a router, the link addresses are not those that the packet came with.
  sources.settings.answers = !context.out_port_known;
  sources.settings.iv_epoch = iv_epoch;

  static const std::vector<std::string> kNoMapping;
  const bool mapped = parameters.has("interfaces");
  auto interfaces =
      firewall::make_interfaces(context.ports, mapped ? parameters.texts("interfaces") : kNoMapping,
                                mapped ? parameters.place("interfaces") : Place{}, context.out_port_known);
  if (!interfaces) return failure(std::move(interfaces).error());
  sources.interfaces = std::move(*interfaces);

  const std::size_t most = parameters.integer("most_entries");
  Errors errors;
  Errors unsupported;
  sources.state_file = input_name(parameters.text("state"));
  if (auto states = read_states(parameters.text("state"), most)) {
    sources.sas = std::move(states->value);
    append(unsupported, std::move(states->unsupported));
  } else {
    append(errors, std::move(states).error());
  }
  if (parameters.has("policy")) {
    sources.policy_file = input_name(parameters.text("policy"));
    if (auto policies = read_policies(parameters.text("policy"), most)) {
      sources.policies = std::move(policies->value);
      append(unsupported, std::move(policies->unsupported));
    } else {
      append(errors, std::move(policies).error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  auto tables = Tables::build(std::move(sources));
  if (!tables) return failure(std::move(tables).error());
  append(unsupported, std::move(tables->unsupported));
  if (parameters.flag("strict") && !unsupported.empty()) return failure(std::move(unsupported));
  append(context.unsupported, std::move(unsupported));
  return std::make_unique<Ipsec>(std::move(tables->value));
}

const chain::NfKind& ipsec_kind() {
  static constexpr chain::NfKind kKind{"ipsec", "protects packets with ESP, and opens them, as ip xfrm says",
                                       kParameters, &make};
  return kKind;
}

}  // namespace penstock::ipsec
