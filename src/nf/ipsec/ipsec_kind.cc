// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of `ipsec`, and how the function is made from them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "function/interface_names.h"
#include "function/unsupported.h"
#include "nf/ipsec/ipsec.h"
#include "nf/ipsec/numbers/sa_registry.h"
#include "nf/ipsec/numbers/state_folder.h"
#include "nf/ipsec/sa/esp_sa_table.h"

namespace penstock::ipsec {

namespace {

constexpr std::string_view kNoFolder = "none";
constexpr std::size_t kShownPath = 200;  // bytes of a path shown in a message

constexpr auto kParameters = std::to_array<Parameter>({
    {"state", ParameterType::path, "", "", "output of `ip xfrm state`: the SAs with their keys", true},
    {"policy", ParameterType::path, "", "",
     "output of `ip xfrm policy`; without it, `direction: in` accepts everything that an SA may carry", false},
    {"sas_come_later", ParameterType::flag, "false", "",
     "an IKE daemon provides the SAs in reloads, so a `state` without SAs is not an error", false},
    {"direction", ParameterType::choice, "out", "in|out", "out: encapsulate packets in ESP; in: decapsulate them",
     false},
    {"unselected", ParameterType::choice, "pass", "pass|drop", "out: what to do with packets that no policy selects",
     false},
    {"mtu", ParameterType::integer, "", "576..65535",
     "out: IP MTU of the link for protected packets, in bytes; default: no limit", false},
    {"too_big", ParameterType::choice, "fragment", "fragment|icmp",
     "out: what to do with packets that exceed the MTU. fragment: fragment them after ESP if DF and IPv6 allow it, "
     "else drop them and send an ICMP error; icmp: always drop them and send an ICMP error",
     false},
    {"interfaces", ParameterType::pairs, "", "",
     "ports for the interfaces in the policies: {eth0: lan, ppp*: wan, lo: none}", false},
    {"most_entries", ParameterType::integer, "250000", "1..100000000",
     "maximum number of SAs, and of policies, in a file", false},
    {"state_dir", ParameterType::path, "", kNoFolder,
     "folder for locks and for used sequence numbers and IVs, which must survive restarts; default: "
     "/var/lib/penstock/ipsec, or for users other than root ~/.local/state/penstock/ipsec",
     false},
    function::kUnsupportedParameter,
});

/// Includes each SA once, even if several functions use it.
std::string esp_sa_text(std::span<const function::NetworkFunction* const> functions) {
  SecurityAssociations all;
  for (const function::NetworkFunction* function : functions) {
    for (const SecurityAssociation& sa : static_cast<const Ipsec&>(*function).tables().sas()) {
      const bool there = std::ranges::any_of(all, [&](const SecurityAssociation& other) {
        return other.spi == sa.spi && other.destination == sa.destination;
      });
      if (!there) all.push_back(sa);
    }
  }
  return esp_sa_table(all);
}

constexpr auto kOutputs = std::to_array<function::OutputKind>({
    {"esp_sa", "SAs", "the SAs of ipsec with their keys, as Wireshark's esp_sa table; only the owner can read the file",
     &esp_sa_text, "keys"},
});

Errors out_of_place(const Parameters& parameters, bool inbound, bool behind_router) {
  Errors errors;
  if (inbound && parameters.has("mtu")) {
    errors.push_back(
        {parameters.place("mtu"), "mtu applies only to direction: out", "direction: in", "direction: out"});
  }
  if (!inbound && !parameters.has("mtu") && parameters.text("too_big") == "icmp") {
    errors.push_back({parameters.place("too_big"), "too_big: icmp requires an MTU", "no mtu", "mtu: BYTES"});
  }
  if (inbound && parameters.text("unselected") == "drop") {
    errors.push_back({parameters.place("unselected"), "unselected applies only to direction: out", "direction: in",
                      "direction: out"});
  }
  if (behind_router && parameters.text("too_big") == "icmp") {
    errors.push_back({parameters.place("too_big"),
                      "too_big: icmp requires the link addresses that packets arrived with",
                      "ipsec after the function that chooses the port", "ipsec before it, or too_big: fragment"});
  }
  if (inbound) {
    return errors;
  }
  if (!parameters.has("policy")) {
    errors.push_back({parameters.place("state"), "direction: out requires policies", "", "policy: FILE"});
  }
  return errors;
}

/// "2 constructs left out ('mark')", with the words from the files.
std::string left_out_text(const Errors& unsupported) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string_view> words;
  for (const Error& error : unsupported) {
    if (!error.found.empty() && std::ranges::find(words, error.found) == words.end()) words.push_back(error.found);
    if (words.size() > kMost) break;
  }
  std::string text = format_count(count_of(unsupported), "construct") + " left out";
  if (words.empty()) return text;
  const std::size_t shown = std::min(words.size(), kMost);
  return fmt::format("{} ({}{})", text,
                     fmt::join(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < words.size() ? ", …" : "");
}

/// Files passed to the wrong parameter. Reporting that is more helpful than reporting what is missing in them. The
/// files are read a second time, which does not work for pipes.
Errors misplaced_files(const Parameters& parameters, std::size_t most) {
  const std::string& state = parameters.text("state");
  const std::string policy = parameters.has("policy") ? parameters.text("policy") : "-";
  const bool same = state != "-" && policy != "-" && resolved_path(state) == resolved_path(policy);
  Errors errors;
  const auto add = [&](const char* parameter, const std::string& path, const char* is, const char* expected) {
    errors.push_back({parameters.place(parameter),
                      fmt::format("{}: this file is the output of `{}`{}", parameter, is,
                                  same ? ", and the other parameter names it too" : ""),
                      in_quotes(path, kShownPath), fmt::format("a file with the output of `{}`", expected)});
  };
  const auto can_be_read_again = [](const std::string& path) {
    std::error_code none;
    return path != "-" && std::filesystem::is_regular_file(path, none);
  };
  if (can_be_read_again(state)) {
    if (const auto policies = read_policies(state, most); policies && !policies->value.empty())
      add("state", state, "ip xfrm policy", "ip xfrm state");
  }
  if (can_be_read_again(policy)) {
    if (const auto states = read_states(policy, most); states && !states->value.empty())
      add("policy", policy, "ip xfrm state", "ip xfrm policy");
  }
  return errors;
}

/// Files without any SA or policy that applies: most likely the tool that should have printed them failed.
/// `unsupported`: constructs skipped in them.
Errors empty_files(const TableSources& sources, const Errors& unsupported, bool sas_come_later) {
  Errors errors;
  const bool all_read = unsupported.empty();
  const bool inbound = sources.settings.inbound;
  const auto applies = [&](const Policy& policy) { return (policy.direction == Direction::out) != inbound; };
  const auto protects = [&](const Policy& policy) { return applies(policy) && !policy.templates.empty(); };
  const bool needed = !sources.policies || std::ranges::any_of(*sources.policies, protects);
  if (sources.sas.empty() && all_read && needed && !sas_come_later) {
    errors.push_back({{sources.state_file, 0, 0},
                      "no SAs in this file",
                      "",
                      "output of `ip xfrm state`, run as root, with at least one SA"});
  }
  if (sources.policies && std::ranges::none_of(*sources.policies, applies) && !sources.settings.drops_unselected) {
    errors.push_back({{sources.policy_file, 0, 0},
                      fmt::format("no policy for this direction: {}",
                                  inbound ? "all packets would be accepted" : "all packets would leave in the clear"),
                      all_read ? "" : left_out_text(unsupported),
                      inbound ? "policies with dir in or fwd" : "policies with dir out"});
  }
  return errors;
}

/// Outbound policies whose packets no SA can carry; no daemon will negotiate one. `left_out`: skipped constructs that
/// may be the cause.
Errors policies_without_sa(const Selection& selection, const std::string& file, const std::string& left_out) {
  Errors warnings;
  const auto add = [&](Handling handling, std::string_view consequence) {
    std::size_t count = 0;
    std::uint32_t first_line = 0;
    for (std::uint32_t i = 0; i < selection.policies().size(); ++i) {
      const PolicyView& policy = selection.policies()[i];
      if (policy.handling != handling || policy.candidates != 0) continue;
      if (count++ == 0) first_line = selection.line(i);
    }
    if (count == 0) return;
    std::vector<std::string> found;
    if (count > 1) found.push_back(format_count(count) + " such policies");
    if (!left_out.empty()) found.push_back(left_out);
    warnings.push_back({{file, first_line, 0},
                        fmt::format("no SA matches the template of this policy: {}", consequence),
                        fmt::format("{}", fmt::join(found, "; ")),
                        "an SA with its mode, reqid and addresses"});
  };
  add(Handling::protect, "packets that it selects are dropped (no_sa)");
  add(Handling::prefer, "packets that it selects leave in the clear (level use)");
  return warnings;
}

std::set<std::string, std::less<>> devices_of(const TableSources& sources) {
  std::set<std::string, std::less<>> devices;
  for (const SecurityAssociation& sa : sources.sas) {
    if (sa.selector) devices.insert(sa.selector->device);
  }
  if (sources.policies) {
    for (const Policy& policy : *sources.policies) devices.insert(policy.selector.device);
  }
  devices.erase("");
  return devices;
}

/// A warning about what running without state_dir gives up.
Error caution(const Parameters& parameters, bool inbound) {
  return {parameters.place("state_dir"),
          inbound ? "other processes that receive with the same SAs are not detected, so each accepts replays"
                  : "each run begins with the sequence numbers of the state file, other processes that send with the "
                    "same SAs are not detected, and only randomness keeps IVs unique",
          "'none'", "a folder, or no state_dir"};
}

std::shared_ptr<NumberSource> make_numbers(const Parameters& parameters, function::NfContext& context) {
  SaRegistry& registry = SaRegistry::process();
  if (!parameters.has("state_dir")) return registry.kept_in(default_state_folder(), MakeParents::yes);
  const std::string& folder = parameters.text("state_dir");
  if (folder != kNoFolder) return registry.kept_in(folder, MakeParents::no);
  context.cautions.push_back(caution(parameters, parameters.text("direction") == "in"));
  return registry.random();
}

ParameterPlaces places_of(const Parameters& parameters) {
  const auto place = [&](std::string_view name) {
    const Place given = parameters.has(name) ? parameters.place(name) : Place{};
    return given.line != 0 ? given : parameters.place("state");
  };
  return {place("state"), place("direction"), place("mtu"), place("too_big"), place("state_dir")};
}

Result<std::unique_ptr<function::NetworkFunction>> make(const Parameters& parameters, function::NfContext& context) {
  return make_ipsec(parameters, context, SaRegistry::process(), make_numbers(parameters, context));
}

}  // namespace

Result<std::unique_ptr<function::NetworkFunction>> make_ipsec(const Parameters& parameters,
                                                              function::NfContext& context, SaRegistry& registry,
                                                              std::shared_ptr<NumberSource> numbers) {
  TableSources sources;
  sources.registry = &registry;
  sources.numbers = std::move(numbers);
  sources.settings.inbound = parameters.text("direction") == "in";
  if (Errors errors = out_of_place(parameters, sources.settings.inbound, context.out_port_known); !errors.empty())
    return failure(std::move(errors));
  sources.settings.drops_unselected = parameters.text("unselected") == "drop";
  if (parameters.has("mtu")) sources.settings.mtu = static_cast<std::uint32_t>(parameters.integer("mtu"));
  sources.settings.too_big = parameters.text("too_big") == "icmp" ? TooBig::icmp : TooBig::fragment;
  // After a router, a frame's link addresses are no longer those that the packet arrived with.
  sources.settings.answers = !context.out_port_known;
  sources.settings.device_is_remote = context.device_is_remote;

  static const std::vector<std::string> kNoMapping;
  const bool mapped = parameters.has("interfaces");
  auto interfaces =
      classify::make_interfaces(context.ports, mapped ? parameters.texts("interfaces") : kNoMapping,
                                mapped ? parameters.place("interfaces") : Place{}, context.out_port_known);
  if (!interfaces) return failure(std::move(interfaces).error());
  sources.interfaces = std::move(*interfaces);

  const std::size_t most = parameters.integer("most_entries");
  Errors errors;
  Errors unsupported;
  Errors harmless;
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
      append(harmless, std::move(policies->harmless));
    } else {
      append(errors, std::move(policies).error());
    }
  }
  if (!errors.empty()) {
    Errors misplaced = misplaced_files(parameters, most);
    return failure(misplaced.empty() ? std::move(errors) : std::move(misplaced));
  }
  const bool refused = !unsupported.empty() && function::refuses_unsupported(parameters);
  const bool sas_come_later = parameters.flag("sas_come_later");
  if (errors = empty_files(sources, unsupported, sas_come_later); !errors.empty() && !refused)
    return failure(std::move(errors));
  append(context.without_effect, function::unused_interfaces(parameters, devices_of(sources), "policy or SA"));
  const std::string policy_file = sources.policy_file;
  const bool inbound = sources.settings.inbound;
  auto tables = Tables::build(std::move(sources));
  if (!tables) return failure(std::move(tables).error());
  append(unsupported, std::move(tables->unsupported));
  const std::string left_out = unsupported.empty() ? "" : left_out_text(unsupported);
  if (auto checked = function::check_unsupported(parameters, parameters.has("policy") ? "policy" : "state",
                                                 std::move(unsupported), std::move(harmless), context);
      !checked)
    return failure(std::move(checked).error());
  if (!inbound && !sas_come_later)
    append(context.cautions, policies_without_sa(tables->value->selection(), policy_file, left_out));
  return std::make_unique<Ipsec>(std::move(tables->value), left_out, places_of(parameters));
}

const function::NfKind& ipsec_kind() {
  static constexpr function::NfKind kKind{"ipsec",
                                          "protects packets with ESP and decapsulates them, as configured with ip xfrm",
                                          kParameters, &make, kOutputs};
  return kKind;
}

}  // namespace penstock::ipsec
