// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/firewall.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"
#include "conntrack/ftp.h"
#include "function/changes.h"
#include "gpu/devices.h"
#include "nf/firewall/connections_file.h"
#include "nf/firewall/device_stage.h"
#include "nf/firewall/explain.h"
#include "nf/firewall/firewall_stage.h"
#include "nf/firewall/nat_log.h"
#include "nf/firewall/rule_pairs.h"
#include "nf/firewall/tracked_stage.h"
#include "nf/firewall/translating_core.h"
#include "nf/firewall/translating_stage.h"

namespace penstock::firewall {

namespace {

RuleCounters::Count& operator+=(RuleCounters::Count& sum, const RuleCounters::Count& more) noexcept {
  sum.packets += more.packets;
  sum.bytes += more.bytes;
  return sum;
}

void add_counts(const RuleCounters& counters, std::vector<RuleCounters::Count>& sums) noexcept {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += counters[i];
}

void add_policy_changes(const classify::Ruleset& before, const classify::Ruleset& now, function::Changes& changes) {
  if (before.ipv4_policy == before.ipv6_policy && now.ipv4_policy == now.ipv6_policy) {
    changes.value("policy", name(before.ipv4_policy), name(now.ipv4_policy));
  } else {
    changes.value("IPv4 policy", name(before.ipv4_policy), name(now.ipv4_policy));
    changes.value("IPv6 policy", name(before.ipv6_policy), name(now.ipv6_policy));
  }
}

/// Where the packets of a hook come from and go.
Route route_at(std::optional<Hook> hook, PortIndex host) {
  using End = Route::End;
  if (!hook || host == kNoPort) return {host};
  switch (*hook) {
    case Hook::prerouting: return {host, End::network, End::any};
    case Hook::forward: return {host, End::network, End::network};
    case Hook::postrouting: return {host, End::any, End::network};
    case Hook::input: return {host, End::network, End::host};
    case Hook::output: break;
  }
  return {host, End::host, End::any};
}

}  // namespace

Firewall::Firewall(classify::Ruleset rules, Setup setup)
    : rules_(std::move(rules)),
      from_(std::move(setup.from)),
      answering_(std::move(setup.answering)),
      nat_(std::move(setup.nat)),
      hook_(setup.hook),
      route_(route_at(setup.hook, setup.host)),
      link_is_written_(setup.link_is_written),
      bridge_(std::move(setup.bridge)),
      place_(std::move(setup.place)),
      tracking_(setup.tracks_in_any_case || nat_ || rules_.tests_connections() ? std::optional(setup.tracking)
                                                                               : std::nullopt),
      clock_(setup.clock),
      port_names_(std::move(setup.port_names)),
      largest_packets_(std::move(setup.largest_packets)),
      log_(setup.log),
      nat_log_(setup.nat_log),
      connections_file_(std::move(setup.connections_file)),
      tables_(make_tables()) {
  traits_.name = firewall_kind().name;
  traits_.summary = firewall_kind().summary;
  const bool helps = tracking_ && tracking_->ftp.offered;
  traits_.drop_reasons = std::span(kDropReasons).first(kDropReasons.size() - (helps ? 0 : nat_ ? 2 : 3));
  traits_.emits = !answering_.ports.empty();
  const bool tests_links = rules_.tests_link_headers() || (nat_ && nat_->rules.tests_link_headers());
  traits_.asks_for_arrivals = (traits_.emits && answering_.as_they_arrived) || (tests_links && setup.link_is_written);
  traits_.cpu = device_access(StageKind::plain);
  // Also without steps: the objects belong to the file, and other functions, or the next rules, may use them.
  step_state_ = StepState::of(rules_, setup.shared);
  if (nat_) nat_step_state_ = StepState::of(nat_->rules, setup.shared);
  if (rules_.has_steps()) steps_ = step_context(&step_state_);
  if (nat_ && nat_->rules.has_steps()) nat_steps_ = step_context(&nat_step_state_);
  if (tracks()) {
    // Packets are looked up with all their headers above the link's, and their checksums are verified.
    constexpr FieldSet kUnused{Field::eth_dst, Field::eth_src, Field::arp,
                               Field::trailer, Field::mark,    Field::flow_hash};
    traits_.cpu.reads = traits_.state_reads = FieldSet::all() - kUnused;
    traits_.state_bytes = sizeof(conntrack::PacketConnection);
    traits_.connections = tracking_;
  }
  if (steps_ || nat_steps_) {
    // What steps read, and what they write: marks, the maximum segment size, the traffic class and the hop limit.
    traits_.cpu.reads |= FieldSet::all() - FieldSet{Field::arp, Field::trailer, Field::flow_hash};
    traits_.cpu.writes |= {Field::mark,     Field::tcp_options,   Field::l4_checksum,      Field::ipv4_tos,
                           Field::ipv4_ttl, Field::ipv4_checksum, Field::ipv6_class_label, Field::ipv6_hop_limit};
  }
  if (bridge_) traits_.cpu.reads |= FieldSet::all() - FieldSet{Field::flow_hash};
  // What is expected may come to another worker, and so may replies to translated addresses.
  traits_.shares_connections = nat_ || helps;
  // So may other connections that count.
  traits_.one_worker = rules_.counts_connections();
  if (nat_ && helps) {
    // Announcements in the payload get other lengths.
    traits_.cpu.writes |= {Field::ipv4_length, Field::ipv6_length, Field::tcp_seq,     Field::tcp_ack,
                           Field::tcp_options, Field::trailer,     Field::frame_shape, Field::wire_length};
    traits_.cpu.reads |= FieldSet{Field::trailer};  // of most packets, it stays
    traits_.growth.tail = conntrack::kMostFtpGrowth;
  }
  if (nat_) {
    // The payload of ICMP errors quotes a packet.
    traits_.cpu.writes |= device_access(StageKind::translating).writes | FieldSet{Field::payload};
    traits_.state_bytes = sizeof(TranslatingState);
  }
  // No stage on a device. Where the host's packets pass other hooks, the host has to know by which port a packet leaves
  // before it decides about its connection.
  if (helps || steps_ || nat_steps_ || host_has_port() || bridge_) return;
  traits_.devices = {{function::Processor::gpu, device_access(stage_kind())}};
  // For counting bytes; an answer quotes the packet, which may have to be as it is at this function.
  const bool quotes = traits_.emits && !answering_.as_they_arrived;
  traits_.finish = Access{quotes ? FieldSet::all() : FieldSet{Field::frame_shape}, {}};
  traits_.finish_counts = !traits_.emits;
  traits_.findings_bytes = sizeof(JudgeCore<classify::LinearView>::Finding);
}

Result<std::unique_ptr<Firewall>> Firewall::build(classify::Ruleset rules, classify::Engine engine, Setup setup) {
  // Other engines have tables for IPv4 and IPv6 only.
  if (setup.bridge) engine = classify::Engine::linear;
  std::unique_ptr<Firewall> firewall(new Firewall(std::move(rules), std::move(setup)));
  Result<std::unique_ptr<classify::Classifier>> classifier = classify::make_classifier(engine, firewall->rules_);
  if (!classifier) return tl::unexpected(std::move(classifier.error()));
  firewall->classifier_ = std::move(*classifier);
  if (firewall->nat_) {
    auto of_nat = classify::make_classifier(engine, firewall->nat_->rules);
    if (!of_nat) return tl::unexpected(std::move(of_nat.error()));
    firewall->nat_->classifier = std::move(*of_nat);
  }
  return firewall;
}

Firewall::~Firewall() = default;

std::mutex Firewall::counters_mutex;

RuleCounters& Firewall::add_counters() {
  const std::lock_guard lock(counters_mutex);
  counters_.push_back(std::make_unique<RuleCounters>(rules_.rules.size()));
  return *counters_.back();
}

std::unique_ptr<function::CpuStage> Firewall::make_cpu_stage() {
  RuleCounters& counters = add_counters();
  const auto context_of = [](const std::optional<StepContext>& steps) { return steps ? &*steps : nullptr; };
  if (bridge_)
    return std::make_unique<BridgeStage>(rules_, *classifier_, counters, answering_, context_of(steps_), *bridge_);
  if (!tracks())
    return std::make_unique<FirewallStage>(rules_, *classifier_, counters, answering_, context_of(steps_), route_);
  if (reads_connections_)
    return std::make_unique<ReadingStage>(rules_, *classifier_, counters, answering_, context_of(steps_), route_);
  function::ConnectionCounters& of_connections = connections_.add();
  if (nat_)
    return std::make_unique<TranslatingStage>(rules_, *classifier_, counters, answering_, context_of(steps_),
                                              of_connections, *nat_, context_of(nat_steps_), route_);
  return std::make_unique<TrackedStage>(rules_, *classifier_, counters, answering_, context_of(steps_), of_connections,
                                        false, route_);
}

std::unique_ptr<function::StateStage> Firewall::make_state_stage(function::CpuStage& twin) {
  return tracks() ? std::make_unique<TrackedStateStage>(static_cast<TrackedStage&>(twin)) : nullptr;
}

std::shared_ptr<conntrack::ConnectionTables> Firewall::make_tables() const {
  return tracks() ? std::make_shared<conntrack::ConnectionTables>(*tracking_, clock_) : nullptr;
}

Errors Firewall::check() const {
  if (!tracks() || connections_file_.empty()) return {};
  const auto possible = check_connections_file(connections_file_);
  return possible ? Errors() : possible.error();
}

Result<void> Firewall::begin_run() {
  tables_ = make_tables();
  if (tracks() && nat_log_ != nullptr) tables_->observe(std::make_unique<NatLog>(*nat_log_));
  step_state_.begin(rules_.objects);
  if (nat_) nat_step_state_.begin(nat_->rules.objects);
  if (!tracks() || connections_file_.empty()) return {};
  auto possible = check_connections_file(connections_file_);
  if (possible) load_connections(connections_file_, *tables_);
  return possible;
}

void Firewall::end_run() noexcept {
  if (!tracks()) return;
  if (!connections_file_.empty()) save_connections(connections_file_, *tables_);
  tables_->end();
}

std::unique_ptr<DeviceStage> Firewall::make_device_stage(function::Processor /*processor*/, const StageUse& /*use*/) {
  const classify::DeviceTables& tables =
      on_devices_.of_current([&] { return std::make_unique<const classify::DeviceTables>(rules_, *classifier_); });
  return nat_ ? make_translating_gpu_stage(tables) : make_firewall_gpu_stage(tables, tracks());
}

StageKind Firewall::stage_kind() const noexcept {
  if (nat_) return StageKind::translating;
  return tracks() ? StageKind::tracked : StageKind::plain;
}

std::optional<function::StageRecipe> Firewall::stage_recipe(function::Processor processor) const {
  if (traits_.access_on(processor) == nullptr || !function::is_device(processor)) return std::nullopt;
  const auto tables = classify::spans_of(rules_, *classifier_);
  if (!tables) return std::nullopt;
  return recipe_of(*tables, stage_kind());
}

std::unique_ptr<function::FinishStage> Firewall::make_finish_stage(function::CpuStage& twin) {
  return std::make_unique<FirewallFinishStage>(add_counters(),
                                               answers() ? &static_cast<DecidingStage&>(twin).rejecter() : nullptr);
}

Result<std::string> Firewall::changes_from(const function::NetworkFunction& running) const {
  const auto& before = static_cast<const Firewall&>(running);
  if (tracks() && !before.tracks()) {
    return failure({{},
                    "rules that test connections: it needs a new run",
                    "",
                    "the parameter `connections` from the start, for reloads that bring such rules"});
  }
  if (nat_.has_value() != before.nat_.has_value() || (nat_ && nat_->hook != before.nat_->hook)) {
    return failure({{}, "another hook: it needs a new run", "", ""});
  }
  if (bridge_.has_value() != before.bridge_.has_value())
    return failure({{}, "another family: it needs a new run", "", ""});
  if (route_.host != before.route_.host) return failure({{}, "another port for the host: it needs a new run", "", ""});
  if (tracks() && before.tracks() && tracking_->ftp != before.tracking_->ftp)
    return failure({{}, "other helpers: it needs a new run", "", ""});
  if (tracks() && before.tracks() && tracking_->port_blocks != before.tracking_->port_blocks)
    return failure({{}, "other port blocks: it needs a new run", "", ""});
  if (traits_.asks_for_arrivals && !before.traits_.asks_for_arrivals)
    return failure({{}, "rules that test the link header with which packets arrived: it needs a new run", "", ""});
  const std::vector<std::uint32_t> same = pair_rules(before.rules_, rules_);
  const auto kept = same.size() - static_cast<std::size_t>(std::ranges::count(same, kNoRule));
  function::Changes changes;
  changes.count("rule", {.added = same.size() - kept, .removed = before.rules_.rules.size() - kept});
  std::vector<std::uint32_t> in_order;
  std::ranges::copy_if(same, std::back_inserter(in_order), [](std::uint32_t rule) { return rule != kNoRule; });
  if (!std::ranges::is_sorted(in_order)) changes.add("rules in another order");
  add_policy_changes(before.rules_, rules_, changes);
  changes.value("decides", name(before.rules_.decides), name(rules_.decides));
  changes.value("engine", before.classifier_->name(), classifier_->name());
  if (tracks() && before.tracks() && *tracking_ != *before.tracking_)
    changes.add("other limits of connections, from the next run on");
  if (nat_) {
    const std::vector<std::uint32_t> same_nat = pair_rules(before.nat_->rules, nat_->rules);
    const auto kept_nat = same_nat.size() - static_cast<std::size_t>(std::ranges::count(same_nat, kNoRule));
    changes.count("NAT rule",
                  {.added = same_nat.size() - kept_nat, .removed = before.nat_->rules.rules.size() - kept_nat});
  }
  if (nat_ && changes.empty() &&
      (nat_->addresses != before.nat_->addresses || !same_meaning(before.nat_->rules, nat_->rules))) {
    changes.add("the same NAT rules, with other addresses or for other packets");
  }
  // For example, if interfaces are mapped to other ports.
  if (changes.empty() && !same_meaning(before.rules_, rules_)) changes.add("the same rules, for other packets");
  return changes.text();
}

Result<void> Firewall::take_over(function::NetworkFunction& predecessor) {
  auto& before = static_cast<Firewall&>(predecessor);
  source_ = before.source_;
  step_state_.take_over(rules_.objects, before.step_state_, before.rules_.objects);
  if (nat_ && before.nat_)
    nat_step_state_.take_over(nat_->rules.objects, before.nat_step_state_, before.nat_->rules.objects);
  if (tracks() && before.tracks()) tables_ = before.tables_;
  std::vector<std::uint32_t> same = pair_rules(before.rules_, rules_);
  for (const NetworkLayer family : {NetworkLayer::ipv4, NetworkLayer::ipv6})
    same.push_back(static_cast<std::uint32_t>(RuleCounters::of_policy(before.rules_.rules.size(), family)));
  const std::lock_guard lock(counters_mutex);
  // If a reload is undone before this function's stages have ended, its counters stay its own.
  if (before.predecessor_ == this) before.predecessor_ = nullptr;
  before.ended_.resize(RuleCounters::cells_for(before.rules_.rules.size()));  // for predecessor_ended
  ended_.resize(same.size());
  same_counters_ = std::move(same);
  predecessor_ = &before;
  return {};
}

void Firewall::predecessor_ended() noexcept {
  const std::lock_guard lock(counters_mutex);
  Firewall* const before = std::exchange(predecessor_, nullptr);
  if (before == nullptr) return;
  // Counts move, so that they are not counted twice if the predecessor takes its place back. Those of rules that are
  // gone stay with it.
  for (const auto& counters : before->counters_) add_counts(*counters, before->ended_);
  before->counters_.clear();
  for (std::size_t i = 0; i < same_counters_.size(); ++i) {
    if (same_counters_[i] != kNoRule) ended_[i] += std::exchange(before->ended_[same_counters_[i]], {});
  }
  before->on_devices_.clear();
}

Errors Firewall::join(std::span<function::NetworkFunction* const> chain) {
  if (!rules_.asks_for_routes() && !(nat_ && nat_->rules.asks_for_routes())) return {};
  std::vector<function::RouteSource*> sources;
  for (function::NetworkFunction* const function : chain) {
    if (auto* const source = dynamic_cast<function::RouteSource*>(function)) sources.push_back(source);
  }
  if (sources.size() != 1) {
    return {Error{place_, "rules ask for routes (rpfilter, or fib with an interface)",
                  fmt::format("{} in the chain", format_count(sources.size(), "router")), "one `router` in the chain"}};
  }
  for (std::optional<StepContext>* const steps : {&steps_, &nat_steps_}) {
    if (*steps) (*steps)->routes = sources.front();
  }
  return {};
}

StepContext Firewall::step_context(StepState* state) const {
  return {.state = state,
          .log = state != nullptr ? log_ : nullptr,
          .port_names = &port_names_,
          .largest_packets = &largest_packets_,
          .link_is_written = link_is_written_,
          .host = route_.host,
          .is_bridge = bridge_.has_value(),
          .addresses = &answering_.addresses};
}

StepContext Firewall::steps_to_explain() const {
  StepContext context = step_context(nullptr);
  for (const std::optional<StepContext>* const steps : {&steps_, &nat_steps_}) {
    if (*steps && (*steps)->routes != nullptr) context.routes = (*steps)->routes;
  }
  return context;
}

std::optional<function::Explanation> Firewall::explain(PacketView packet) const {
  if (const auto connections = function::connections_to_explain(*this)) return explain(packet, *connections);
  return firewall::explain(
      packet, {rules_, *classifier_, steps_to_explain(), nullptr, route_, false, bridge_ ? &*bridge_ : nullptr},
      nullptr);
}

function::Explanation Firewall::explain(PacketView packet, conntrack::Connections& connections) const {
  return firewall::explain(
      packet,
      {rules_, *classifier_, steps_to_explain(), nat_ ? &*nat_ : nullptr, route_, tracking_ && tracking_->port_blocks},
      &connections);
}

std::string Firewall::why_needs_connections() const {
  if (nat_) return "it translates addresses, which changes connections";
  if (tracking_ && tracking_->ftp.offered) return "its helper changes connections, and follows what they announce";
  if (rules_.tracks_between()) return "it has rules that come before connections are looked up";
  if (rules_.steps_test_connections()) return "a rule tests, marks or counts connections by more than their states";
  if (!connections_file_.empty()) return "it keeps connections in a file";
  if (host_has_port()) return "it only looks up connections of packets that pass its hook";
  return "";
}

std::string Firewall::state_of_run() const { return tracks() ? "connections" : ""; }

std::string Firewall::description() const {
  const auto left_out =
      std::count_if(rules_.rules.begin(), rules_.rules.end(), [](const classify::Rule& r) { return r.left_out; });
  std::string text = format_count(rules_.rules.size(), "rule");
  if (from_) text += " of the kernel";
  if (left_out > 0) text += fmt::format(" ({} left out)", format_count(static_cast<std::uint64_t>(left_out)));
  if (bridge_) text += " about bridged frames";
  if (rules_.decides == classify::Match::last) text += ", the last match decides";
  text += fmt::format(", {}, {}; policy {}", classifier_->name(), format_size(classifier_->memory_bytes()),
                      name(rules_.ipv4_policy));
  if (rules_.ipv6_policy != rules_.ipv4_policy) text += fmt::format(", for IPv6 {}", name(rules_.ipv6_policy));
  if (nat_)
    text += fmt::format("; {} of NAT at {}", format_count(nat_->rules.rules.size(), "rule"), name_of(nat_->hook));
  if (tracks())
    text += fmt::format("; tracks up to {} a worker", format_count(tracking_->most_connections, "connection"));
  if (tracks() && tracking_->ftp.offered) {
    text += ", helper ftp";
    for (const std::uint16_t port : tracking_->ftp.ports) {
      if (port != 0) text += fmt::format(" {}", port);
    }
  }
  if (tracks() && tracking_->port_blocks) {
    text += fmt::format("; up to {} of {} a host", format_count(tracking_->port_blocks->per_host, "block"),
                        format_count(tracking_->port_blocks->size, "port"));
  }
  return text;
}

std::vector<RuleCounters::Count> Firewall::sum_counts() const {
  std::vector<RuleCounters::Count> sums = ended_;
  sums.resize(RuleCounters::cells_for(rules_.rules.size()));
  for (const auto& counters : counters_) add_counts(*counters, sums);
  if (predecessor_ == nullptr) return sums;
  const std::vector<RuleCounters::Count> before = predecessor_->sum_counts();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (same_counters_[i] != kNoRule) sums[i] += before[same_counters_[i]];
  }
  return sums;
}

std::vector<RuleCounters::Count> Firewall::counts() const {
  const std::lock_guard lock(counters_mutex);
  return sum_counts();
}

void Firewall::report(nlohmann::json& into) const {
  if (source_ != nullptr) source_->report(into["kernel"]);
  nlohmann::json& matched = into["rules"] = nlohmann::json::array();
  const std::vector<RuleCounters::Count> sums = counts();
  for (std::size_t i = 0; i < rules_.rules.size(); ++i) {
    if (sums[i].packets == 0) continue;
    const classify::Rule& rule = rules_.rules[i];
    matched.push_back({{"index", i},
                       {"line", rule.line},
                       {"target", name(rule.target)},
                       {"packets", sums[i].packets},
                       {"bytes", sums[i].bytes},
                       {"text", rule.text}});
  }
  const auto write_policy = [&](const char* name_of_family, classify::Target target, const RuleCounters::Count& rest) {
    into["policy"][name_of_family] = {{"target", name(target)}, {"packets", rest.packets}, {"bytes", rest.bytes}};
  };
  if (bridge_) {
    RuleCounters::Count rest = sums[RuleCounters::of_policy(rules_.rules.size(), NetworkLayer::ipv4)];
    rest += sums[RuleCounters::of_policy(rules_.rules.size(), NetworkLayer::other)];
    write_policy("bridge", rules_.ipv4_policy, rest);
    return;
  }
  for (const NetworkLayer family : {NetworkLayer::ipv4, NetworkLayer::ipv6}) {
    const RuleCounters::Count& rest = sums[RuleCounters::of_policy(rules_.rules.size(), family)];
    write_policy(family == NetworkLayer::ipv4 ? "ipv4" : "ipv6", rules_.policy(family), rest);
  }
  if (!tracks()) return;
  const conntrack::Counters of_all = connection_counters();
  nlohmann::json& connections = into["connections"] = function::report_of(of_all);
  if (const auto blocks = tables_->port_blocks(); blocks != nullptr) {
    const conntrack::PortBlocks::Usage usage = blocks->usage();
    connections["port_blocks"] = {{"now", usage.blocks},
                                  {"most", usage.most_blocks},
                                  {"addresses", usage.addresses},
                                  {"allocated", usage.allocated},
                                  {"released", usage.released},
                                  {"refused",
                                   {{"per_host", of_all.over_block_limit},
                                    {"no_block", of_all.no_free_block},
                                    {"without_ports", of_all.without_ports}}}};
  }
  if (tracking_->ftp.offered) {
    connections["expected"] = {{"now", of_all.expectations},
                               {"announced", of_all.announced},
                               {"arrived", of_all.arrived},
                               {"expired", of_all.expectations_expired},
                               {"incomplete", of_all.incomplete_announcements},
                               {"refused", of_all.unexpected}};
  }
}

}  // namespace penstock::firewall
