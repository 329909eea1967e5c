// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/explain.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "classify/explain.h"
#include "classify/key.h"
#include "nf/ipsec/esp/encapsulate_core.h"
#include "nf/ipsec/esp/outbound_core.h"
#include "nf/ipsec/selection/selection_core.h"
#include "nf/ipsec/stages.h"

namespace penstock::ipsec {

namespace {

constexpr std::string_view kStatuses[] = {"valid", "near a limit", "has reached a hard limit",
                                          "has no sequence numbers left"};

std::string policy_text(const classify::Ruleset& policies, std::uint32_t policy) {
  return fmt::format("policy in line {}: {}", policies.rules[policy].line, policies.rules[policy].text);
}

void decide(PacketView packet, Reason reason) {
  if (reason != Reason::none) packet.packet->verdict = Verdict::drop(reason);
}

/// The policy that selects the packet, with those before it that do not.
std::uint32_t find_policy(const Tables& tables, const classify::Key& key, function::Explanation& to) {
  const Selection& selection = tables.selection();
  std::uint32_t policy = kNoPolicy;
  selection.find_policies({&key, 1}, &policy);
  classify::add_passed_over(selection.rules(), key, policy, policy_text, to);
  to.decided_by = policy == kNoPolicy ? "no policy selects it" : policy_text(selection.rules(), policy);
  return policy;
}

/// The SAs that match the policy's templates, in order of preference, other than the one that is used.
void add_other_sas(const Tables& tables, std::uint32_t policy, const classify::Key& key, std::uint32_t used,
                   function::Explanation& to) {
  const SelectionView view = tables.selection().view();
  const PolicyView& of = view.policies[policy];
  for (std::uint32_t i = 0; i < of.candidates; ++i) {
    const std::uint32_t sa = view.candidates[of.first_candidate + i];
    if (sa == used) continue;
    if (to.passed_over.size() >= 2 * function::Explanation::kMostListed) {
      ++to.not_listed;
      continue;
    }
    const bool carries = selection_detail::carries(view.sas[sa], view.selectors[sa], key);
    const SaStatus status = tables.status(sa);
    to.passed_over.push_back(
        {"SA " + describe(tables.sas()[sa]),
         !carries
             ? "its selector or its ends do not match the packet"
             : fmt::format("{}{}", kStatuses[static_cast<std::size_t>(status)],
                           status == SaStatus::valid || status == SaStatus::dying ? "; not the first choice" : "")});
  }
}

}  // namespace

function::Explanation explain_outbound(PacketView packet, const Tables& tables, FrameRoom room) {
  function::Explanation explanation;
  const Settings& settings = tables.settings();
  const Reason standing = standing_of(packet.layout());
  if (standing != Reason::none) {
    const bool passes = standing == Reason::not_ip && !drops_not_ip(packet.layout(), settings.drops_unselected);
    decide(packet, passes ? Reason::none : standing);
    explanation.decided_by = standing == Reason::not_ip ? "not IP: no policy applies" : "its headers";
    return explanation;
  }
  classify::Key key;
  make_selector_key(packet, key);
  const std::uint32_t policy = find_policy(tables, key, explanation);
  if (policy == kNoPolicy) {
    decide(packet, settings.drops_unselected ? Reason::no_policy : Reason::none);
    return explanation;
  }
  const SelectionView view = tables.selection().view();
  const Selected selected = select_outbound(view, policy, key, [&](std::uint32_t sa) { return tables.status(sa); });
  const Handling handling = view.policies[policy].handling;
  if (handling == Handling::protect || handling == Handling::prefer)
    add_other_sas(tables, policy, key, selected.sa, explanation);
  Reason reason = selected.reason;
  if (reason == Reason::none && selected.sa != kNoSa) {
    const SaView& sa = view.sas[selected.sa];
    explanation.notes.push_back("SA " + describe(tables.sas()[selected.sa]));
    const Encapsulation plan = plan_encapsulation(packet, sa, room);
    reason = plan.reason;
    if (reason == Reason::none && exceeds_mtu(packet, sa, plan, settings.link())) reason = Reason::too_big;
    if (reason == Reason::none) explanation.ends = "what follows sees it encrypted";
  } else if (reason == Reason::none) {
    explanation.notes.emplace_back("it leaves unprotected");
  }
  decide(packet, reason);
  return explanation;
}

function::Explanation explain_inbound(PacketView packet, const Tables& tables) {
  function::Explanation explanation;
  const Arrival arrival = look_at(packet, tables);
  if (arrival.is_fragment()) {
    explanation.decided_by = "a fragment for one of our SAs: it waits for the others";
    explanation.ends = "the whole datagram decides";
    return explanation;
  }
  const auto& [reason, job] = arrival.opening;
  if (reason != Reason::none) {
    decide(packet, reason);
    explanation.decided_by = "its ESP header, or what carries it";
    return explanation;
  }
  if (job.sa != kNoSa) {
    explanation.decided_by = "SA " + describe(tables.sas()[job.sa]);
    explanation.ends = "its authenticity, the replay window and its content decide";
    return explanation;
  }
  const Reason standing = standing_of(packet.layout());
  if (standing != Reason::none || !tables.has_policies()) {
    decide(packet, standing == Reason::not_ip ? Reason::none : standing);
    explanation.decided_by = standing == Reason::none     ? "in the clear, and there are no policies"
                             : standing == Reason::not_ip ? "not IP: no policy applies"
                                                          : "its headers";
    return explanation;
  }
  classify::Key key;
  make_selector_key(packet, key);
  const std::uint32_t policy = find_policy(tables, key, explanation);
  explanation.notes.emplace_back("it arrives in the clear");
  decide(packet, check_inbound(tables.selection().view(), policy, key, kNoSa));
  return explanation;
}

}  // namespace penstock::ipsec
