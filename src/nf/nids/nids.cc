// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/nids.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "function/changes.h"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "nf/nids/alert/eve_stats.h"
#include "nf/nids/explain.h"
#include "nf/nids/flow_state_stage.h"
#include "nf/nids/match/automaton_recipe.h"
#include "nf/nids/match/filter_recipe.h"
#include "nf/nids/match/hashed_filter_build.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/rarity.h"
#include "nf/nids/rules/load_table.h"

namespace penstock::nids {

namespace {

/// Adds two structures of 64-bit counts.
template <typename Counts>
void add(Counts& to, const Counts& more) {
  using Words = std::array<std::uint64_t, sizeof(Counts) / sizeof(std::uint64_t)>;
  auto sum = std::bit_cast<Words>(to);
  const auto words = std::bit_cast<Words>(more);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += words[i];
  to = std::bit_cast<Counts>(sum);
}

function::NfTraits make_traits(const Detection& detection, const NidsSettings& settings) {
  function::NfTraits traits;
  traits.name = nids_kind().name;
  traits.summary = nids_kind().summary;
  // Rules may test any byte of a frame. The stack finds flows by its own hash.
  const FieldSet verdict = settings.inspector.drops ? FieldSet{Field::verdict} : FieldSet{};
  traits.cpu = {(FieldSet::all() - FieldSet{Field::mark, Field::flow_hash, Field::verdict}) | verdict, verdict};
  traits.stack = settings.tracker.keep_flows ? stack::StackNeed::tcp_stream : stack::StackNeed::ip_reassembly;
  if (!detection.literals().empty()) {
    traits.devices = {{function::Processor::gpu, scan_access()}};
    traits.finish = traits.cpu;
    traits.findings_bytes = sizeof(PacketLiterals);
    traits.state_bytes = settings.flow_state ? sizeof(FlowState) : 0;
    traits.finish_waits = !settings.inspector.drops;
    traits.fills_gpu = true;
  }
  traits.drop_reasons = kDropReasons;
  return traits;
}

nlohmann::json inspection_json(const InspectorCounters& counters) {
  nlohmann::json dropped_by = nlohmann::json::object();
  for (std::size_t i = 0; i < kDropReasons.size(); ++i) dropped_by[std::string(kDropReasons[i])] = counters.dropped[i];
  return {{"packets", counters.packets},
          {"payload_bytes", counters.payload_bytes},
          {"stream_bytes", counters.stream_bytes},
          {"candidates", counters.candidates},
          {"evaluations", counters.evaluations},
          {"alerts_suppressed", counters.alerts_suppressed},
          {"alerts_over_limit", counters.alerts_over_limit},
          {"dropped", std::accumulate(counters.dropped.begin(), counters.dropped.end(), std::uint64_t{0})},
          {"dropped_by", dropped_by},
          {"pcre_limits", counters.pcre_limits},
          {"step_limits", counters.step_limits},
          {"frames_over_budget", counters.frames_over_budget},
          {"evaluations_given_up", counters.evaluations_given_up},
          {"contested_chunks", counters.contested_chunks},
          {"contested_given_up", counters.contested_given_up}};
}

nlohmann::json stack_json(const stack::TrackerCounters& counters) {
  return {{"packets", counters.packets},
          {"not_ip", counters.not_ip},
          {"tunnelled", counters.tunnelled},
          {"undecodable", counters.undecodable},
          {"fragments", counters.fragments},
          {"reassembled", counters.reassembled},
          {"fragments_timed_out", counters.fragments_timed_out},
          {"fragments_dropped", counters.fragments_dropped},
          {"fragment_memory_refused", counters.fragment_memory_refused},
          {"contested_fragments", counters.contested_fragments},
          {"contested_fragments_given_up", counters.contested_fragments_given_up},
          {"flows", counters.flows},
          {"flows_evicted", counters.flows_evicted},
          {"flow_memory_refused", counters.flow_memory_refused},
          {"tcp_sessions", counters.tcp_sessions},
          {"tcp_segments", counters.tcp_segments},
          {"tcp_unknown_connection", counters.tcp_unknown_connection},
          {"tcp_idle_timeouts", counters.tcp_idle_timeouts},
          {"handshake_timeouts", counters.handshake_timeouts},
          {"tcp_invalid_checksums", counters.tcp_invalid_checksums},
          {"ipv4_invalid_checksums", counters.ipv4_invalid_checksums},
          {"contested_segments", counters.contested_segments},
          {"contested_given_up", counters.contested_given_up},
          {"stream_bytes", counters.stream_bytes},
          {"stream_gaps", counters.stream_gaps},
          {"stream_memory_refused", counters.stream_memory_refused},
          {"stream_depth_reached", counters.stream_depth_reached},
          {"stream_invalid", counters.stream_invalid}};
}

/// The rules that were evaluated, the most expensive first.
nlohmann::json profile_json(const RuleSet& set, const std::vector<RuleProfileSum>& profile) {
  std::vector<std::size_t> order(profile.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return profile[a].work > profile[b].work; });
  nlohmann::json json = nlohmann::json::array();
  for (const std::size_t i : order) {
    if (profile[i].evaluations == 0) continue;
    const Rule& rule = set.rules[i];
    json.push_back({{"gid", rule.gid},
                    {"sid", rule.sid},
                    {"rev", rule.rev},
                    {"message", rule.message},
                    {"evaluations", profile[i].evaluations},
                    {"matches", profile[i].matches},
                    {"work", profile[i].work}});
  }
  return json;
}

/// Whether a packet could match one rule, but not the other, or the alerts would differ. Variables and the files beside
/// the rules change rules whose text stays.
bool is_same(const Rule& a, const Rule& b) {
  return a.text == b.text && a.source == b.source && a.source_ports == b.source_ports &&
         a.destination == b.destination && a.destination_ports == b.destination_ports && a.threshold == b.threshold &&
         a.class_description == b.class_description && a.priority == b.priority;
}

bool is_same(const Suppression& a, const Suppression& b) {
  return a.gid == b.gid && a.sid == b.sid && a.always == b.always && a.track == b.track && a.addresses == b.addresses;
}

/// "12 rules added, 3 removed, 5 changed (of 1,234), other suppressions"; empty: none.
std::string rule_changes(const RuleSet& from, const RuleSet& to) {
  std::unordered_map<std::uint64_t, const Rule*> former;
  for (const Rule& rule : from.rules) former.emplace(rule_key(rule), &rule);
  function::Changes::Counts counts;
  for (const Rule& rule : to.rules) {
    const auto found = former.find(rule_key(rule));
    if (found == former.end()) {
      ++counts.added;
    } else if (!is_same(*found->second, rule)) {
      ++counts.changed;
    }
  }
  counts.removed = from.rules.size() - (to.rules.size() - counts.added);
  function::Changes changes;
  const function::Changes of_rules = function::Changes().count("rule", counts);
  if (!of_rules.empty()) changes.add(fmt::format("{} (of {})", of_rules.text(), format_count(to.rules.size())));
  const bool same_suppressions =
      std::equal(from.suppressions.begin(), from.suppressions.end(), to.suppressions.begin(), to.suppressions.end(),
                 [](const Suppression& a, const Suppression& b) { return is_same(a, b); });
  if (!same_suppressions) changes.add("other suppressions");
  return changes.text();
}

/// In captures taken at the sender, checksums are often filled in by the network card afterwards; then nearly all are
/// wrong.
std::optional<std::string> checksum_warning(const stack::TrackerCounters& counters) {
  constexpr std::uint64_t kFew = 10;
  const auto nearly_all = [](std::uint64_t wrong, std::uint64_t all) { return wrong >= kFew && wrong >= all / 10 * 9; };
  const bool of_ip = nearly_all(counters.ipv4_invalid_checksums, counters.packets);
  const bool of_tcp = nearly_all(counters.tcp_invalid_checksums, counters.tcp_segments);
  if (!of_ip && !of_tcp) return std::nullopt;
  return fmt::format(
      "{} of {} {} have a wrong checksum and were not reassembled: if the capture was taken at the sender, "
      "use -k none (scan) or checksums: ignore",
      format_count(of_tcp ? counters.tcp_invalid_checksums : counters.ipv4_invalid_checksums),
      format_count(of_tcp ? counters.tcp_segments : counters.packets), of_tcp ? "TCP segments" : "packets");
}

}  // namespace

Nids::Nids(std::unique_ptr<const Detection> detection, const NidsSettings& settings)
    : detection_(std::move(detection)),
      settings_(settings),
      traits_(make_traits(*detection_, settings_)),
      run_(std::make_shared<Run>()),
      ended_alerts_(rules().rules.size()),
      earlier_alerts_(rules().rules.size()) {
  auto ids = StateIds::assign(rules(), {}, run_->unused_ids);
  if (!ids) throw std::length_error(to_string(ids.error()));  // no reader loads that many rules
  ids_ = std::make_shared<const StateIds>(std::move(*ids));
}

std::unique_ptr<function::CpuStage> Nids::make_cpu_stage() {
  const std::lock_guard lock(run_->mutex);
  if (!run_->begun) run_->begun = std::chrono::steady_clock::now();
  if (!run_->hosts) run_->hosts.emplace(settings_.host_memory);
  // If the stage takes over another one, it uses the counts of that one instead.
  run_->workers.push_back(std::make_shared<WorkerCounts>());
  if (recording_.alert_frames) run_->workers.back()->alert_frames.emplace();
  stages_.push_back(std::make_shared<RuleCounts>(rules().rules.size()));
  if (recording_.profile) stages_.back()->profile = std::vector<RuleProfile>(rules().rules.size());
  NidsStage::AtBoundary at_boundary;
  if (settings_.eve_log != nullptr && settings_.stats_interval.count() > 0)
    at_boundary = [this](report::EventLog::Clock::time_point now) { write_stats_if_due(now); };
  return std::make_unique<NidsStage>(*detection_, *run_->hosts, settings_, ids_, run_->workers.back(), stages_.back(),
                                     std::move(at_boundary));
}

std::unique_ptr<DeviceStage> Nids::make_device_stage(function::Processor /*processor*/, const StageUse& use) {
  const std::lock_guard lock(mutex_);
  auto tables = scan_tables();
  if (!tables) throw gpu::CudaError(0, to_string(tables.error()));
  const DeviceLiterals& literals =
      on_devices_.of_current([&] { return std::make_unique<const DeviceLiterals>(**tables); });
  return make_scan_stage(literals, use.multiprocessors);
}

Result<const ScanTables*> Nids::scan_tables() const {
  if (!scan_tables_) {
    const std::span<const Literal> whole = detection_->literals();
    auto built = settings_.scan == ScanEngine::aho_corasick_packets
                     ? build_scan_tables(whole, settings_.scan)
                     : build_scan_tables(cut_literals(whole), settings_.scan);
    if (!built) return tl::unexpected(std::move(built.error()));
    scan_tables_ = std::move(*built);
  }
  return &*scan_tables_;
}

std::optional<function::StageRecipe> Nids::stage_recipe(function::Processor processor) const {
  if (processor != function::Processor::gpu || !traits_.devices[processor]) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto tables = scan_tables();
  if (!tables) return std::nullopt;
  const auto& engine = (*tables)->engine;
  if (const auto* const automaton = std::get_if<PacketAutomaton>(&engine)) {
    auto recipe = recipe_of(spans_of(automaton->tables));
    return check_recipe(recipe) ? std::optional(std::move(recipe)) : std::nullopt;
  }
  std::optional<HashedFilterTables> built;  // for an engine without a recipe, which finds the same literals
  const auto* filter = std::get_if<HashedFilterTables>(&engine);
  if (filter == nullptr) {
    auto instead = build_hashed_filter(cut_literals(detection_->literals()));
    if (!instead) return std::nullopt;
    filter = &built.emplace(std::move(*instead));
  }
  auto recipe = recipe_of(filter->spans(), traits_.state_bytes > 0);
  return check_filter_recipe(recipe) ? std::optional(std::move(recipe)) : std::nullopt;
}

std::unique_ptr<function::StateStage> Nids::make_state_stage(function::CpuStage& /*twin*/) {
  return traits_.state_bytes > 0 ? std::make_unique<FlowStateStage>() : nullptr;
}

std::unique_ptr<function::FinishStage> Nids::make_finish_stage(function::CpuStage& twin) {
  if (!traits_.finish) return nullptr;
  return std::make_unique<NidsFinishStage>(static_cast<NidsStage&>(twin), detection_->literals().size());
}

Result<std::string> Nids::changes_from(const function::NetworkFunction& running) const {
  const auto& there = static_cast<const Nids&>(running);
  std::vector<std::string_view> set_anew;
  Errors errors;
  for (const NidsParameter& parameter : settings_.parameters) {
    const auto& all = there.settings_.parameters;
    const auto same = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == parameter.name; });
    if (same == all.end() || same->value == parameter.value) continue;
    if (!parameter.is_fixed) {
      set_anew.push_back(parameter.name);
      continue;
    }
    errors.push_back({parameter.place, fmt::format("{}: cannot change while the chain runs", parameter.name),
                      parameter.value, same->value + ", or a new run"});
  }
  if (!errors.empty()) return failure(std::move(errors));
  std::string text = rule_changes(there.rules(), rules());
  if (!set_anew.empty()) text += fmt::format("{}set anew: {}", text.empty() ? "" : "; ", fmt::join(set_anew, ", "));
  return text;
}

Result<void> Nids::take_over(function::NetworkFunction& predecessor) {
  auto& running = static_cast<Nids&>(predecessor);
  const std::lock_guard lock(running.run_->mutex);
  // In a rollback, names that only this rule set has still have the numbers that it gave them.
  std::vector<StateIds::Known> known{{&running.rules(), running.ids_.get()}};
  if (run_ == running.run_) known.push_back({&rules(), ids_.get()});
  auto ids = StateIds::assign(rules(), known, running.run_->unused_ids);
  if (!ids) return tl::unexpected(std::move(ids.error()));
  ids_ = std::make_shared<const StateIds>(std::move(*ids));
  run_ = running.run_;
  recording_ = running.recording_;

  running.end_predecessor();
  forget_ended_stages();
  std::unordered_map<std::uint64_t, std::uint32_t> places;
  for (std::uint32_t i = 0; i < running.rules().rules.size(); ++i)
    places.emplace(rule_key(running.rules().rules[i]), i);
  Predecessor before{&running, std::vector<std::uint32_t>(rules().rules.size(), kNone), running.own_alerts()};
  const std::vector<std::uint64_t> own = own_alerts();
  earlier_alerts_ = inherited_alerts();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto found = places.find(rule_key(rules().rules[i]));
    if (found == places.end()) continue;
    const std::uint32_t there = found->second;
    before.rules[i] = there;
    // Workers go on counting: what `before` has not seen comes with what is counted since then.
    earlier_alerts_[i] = running.earlier_alerts_[there] + before.alerts[there] - own[i];
  }
  predecessor_ = std::move(before);

  // The chain's plan stays.
  const function::NfTraits& plan = running.traits_;
  traits_.devices = plan.devices;
  traits_.finish = plan.finish;
  traits_.findings_bytes = plan.findings_bytes;
  traits_.state_bytes = plan.state_bytes;
  traits_.finish_waits = plan.finish_waits;
  traits_.fills_gpu = plan.fills_gpu;
  return {};
}

void Nids::predecessor_ended() noexcept {
  const std::lock_guard lock(run_->mutex);
  if (!predecessor_) return;
  Nids& former = *predecessor_->function;
  end_predecessor();
  former.forget_ended_stages();
  former.on_devices_.clear();
  // Counts that stages were made with, and did not use because they continue those of their predecessors.
  std::erase_if(run_->workers, [](const std::shared_ptr<WorkerCounts>& worker) {
    const WorkerCounts::Numbers numbers = worker->numbers.get();
    return worker.use_count() == 1 && numbers.tracker.packets == 0 && numbers.frame_bytes == 0;
  });
}

/// The alerts of the predecessor's stages are final: adds them to our own.
void Nids::end_predecessor() {
  if (!predecessor_) return;
  earlier_alerts_ = inherited_alerts();
  predecessor_.reset();
}

void Nids::forget_ended_stages() {
  std::erase_if(stages_, [this](const std::shared_ptr<RuleCounts>& stage) {
    if (stage.use_count() > 1) return false;
    for (std::size_t i = 0; i < ended_alerts_.size(); ++i) ended_alerts_[i] += stage->alerts[i].get();
    ended_profile_.resize(std::max(ended_profile_.size(), stage->profile.size()));
    for (std::size_t i = 0; i < stage->profile.size(); ++i) ended_profile_[i] += stage->profile[i];
    return true;
  });
}

/// Of all stages that this function has made.
std::vector<std::uint64_t> Nids::own_alerts() const {
  std::vector<std::uint64_t> alerts = ended_alerts_;
  for (const auto& stage : stages_) {
    for (std::size_t i = 0; i < alerts.size(); ++i) alerts[i] += stage->alerts[i].get();
  }
  return alerts;
}

/// Those of earlier functions: that have been final, and the predecessor's since then.
std::vector<std::uint64_t> Nids::inherited_alerts() const {
  std::vector<std::uint64_t> alerts = earlier_alerts_;
  if (!predecessor_) return alerts;
  const std::vector<std::uint64_t> theirs = predecessor_->function->own_alerts();
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    const std::uint32_t there = predecessor_->rules[i];
    if (there != kNone) alerts[i] += theirs[there] - predecessor_->alerts[there];
  }
  return alerts;
}

std::vector<std::uint64_t> Nids::all_alerts() const {
  std::vector<std::uint64_t> alerts = own_alerts();
  const std::vector<std::uint64_t> inherited = inherited_alerts();
  for (std::size_t i = 0; i < alerts.size(); ++i) alerts[i] += inherited[i];
  return alerts;
}

std::vector<std::uint64_t> Nids::alerts_by_rule() const {
  const std::lock_guard lock(run_->mutex);
  return all_alerts();
}

std::vector<RuleProfileSum> Nids::profile() const {
  if (!recording_.profile) return {};
  const std::lock_guard lock(run_->mutex);
  std::vector<RuleProfileSum> sums = ended_profile_;
  sums.resize(rules().rules.size());
  for (const auto& stage : stages_) {
    for (std::size_t i = 0; i < stage->profile.size(); ++i) sums[i] += stage->profile[i];
  }
  return sums;
}

FrameSet Nids::alert_frames() const {
  FrameSet all;
  const std::lock_guard lock(run_->mutex);
  for (const auto& worker : run_->workers) {
    if (worker->alert_frames) all.add(*worker->alert_frames);
  }
  return all;
}

WorkerCounts::Numbers Nids::numbers() const {
  const std::lock_guard lock(run_->mutex);
  return sum_numbers();
}

WorkerCounts::Numbers Nids::sum_numbers() const {
  WorkerCounts::Numbers sum;
  for (const auto& worker : run_->workers) {
    const WorkerCounts::Numbers numbers = worker->numbers.get();
    const std::uint64_t last_ns = std::max(sum.last_ns, numbers.last_ns);
    add(sum, numbers);
    sum.last_ns = last_ns;
  }
  return sum;
}

void Nids::end_run() noexcept {
  if (settings_.eve_log == nullptr) return;
  const std::lock_guard lock(run_->mutex);
  const WorkerCounts::Numbers counted = sum_numbers();
  write_stats(counted, counted.last_ns);
}

/// Called by a worker. It does not wait for a report or a reload: then the record comes at the next batch boundary.
void Nids::write_stats_if_due(report::EventLog::Clock::time_point now) noexcept {
  using Clock = report::EventLog::Clock;
  Clock::rep due = run_->stats_due.load(std::memory_order_relaxed);
  const Clock::rep time = now.time_since_epoch().count();
  if (time < due) return;
  const Clock::rep next = time + std::chrono::duration_cast<Clock::duration>(settings_.stats_interval).count();
  if (!run_->stats_due.compare_exchange_strong(due, next, std::memory_order_relaxed)) return;  // another worker does it
  if (due == 0) return;  // the first interval begins
  const std::unique_lock lock(run_->mutex, std::try_to_lock);
  if (!lock) return run_->stats_due.store(time, std::memory_order_relaxed);
  const auto unix_time = std::chrono::system_clock::now().time_since_epoch();
  write_stats(sum_numbers(), static_cast<std::uint64_t>(std::chrono::nanoseconds(unix_time).count()));
}

void Nids::write_stats(const WorkerCounts::Numbers& counted, std::uint64_t timestamp_ns) const {
  EveStats stats;
  stats.timestamp_ns = timestamp_ns;
  if (run_->begun) {
    const auto uptime = std::chrono::steady_clock::now() - *run_->begun;
    stats.uptime_s = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(uptime).count());
  }
  stats.bytes = counted.frame_bytes;
  stats.tracker = counted.tracker;
  stats.rules_loaded = rules().rules.size();
  stats.rules_failed = rules().left_out.size();
  stats.alerts = counted.inspector.alerts;
  stats.alerts_over_limit = counted.inspector.alerts_over_limit;
  stats.alerts_suppressed = counted.inspector.alerts_suppressed;
  if (settings_.inspector.drops) stats.dropped = counted.inspector.dropped;
  stats.pcre_limits = counted.inspector.pcre_limits;
  stats.step_limits = counted.inspector.step_limits;
  stats.frames_over_budget = counted.inspector.frames_over_budget;
  stats.evaluations_given_up = counted.inspector.evaluations_given_up;
  report::EventLog::Writer writer(*settings_.eve_log);
  report::TimeText times;
  writer.line([&](std::string& out) { append_eve_stats(out, stats, times); });
}

std::optional<function::Explanation> Nids::explain(PacketView packet) const {
  return nids::explain(packet, *detection_, settings_.inspector.drops);
}

std::string Nids::description() const {
  const std::size_t loaded = rules().rules.size();
  const std::size_t left_out = rules().left_out.size();
  std::string text = format_count(loaded, "rule");
  if (left_out > 0) text += fmt::format(" ({} left out)", format_count(left_out));
  return text + ", " + detection_->description();
}

std::string Nids::load_table() const { return to_string(nids::load_table(rules())); }

void Nids::load_report(nlohmann::ordered_json& into) const {
  const LoadTable table = nids::load_table(rules());
  into["loaded"] = table.loaded;
  into["left_out"] = rules().left_out.size();
  into["disabled"] = table.disabled;
  into["reasons"] = nlohmann::ordered_json::array();
  for (const LoadTable::Row& row : table.left_out) {
    into["reasons"].push_back({{"reason", row.reason}, {"rules", row.rules}, {"first", to_string(row.first)}});
  }
}

void Nids::report(nlohmann::json& into) const {
  const std::vector<std::uint64_t> alerts = alerts_by_rule();
  std::vector<std::size_t> order(alerts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return alerts[i] == 0; });
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return alerts[a] > alerts[b]; });
  const WorkerCounts::Numbers counted = numbers();
  into["alerts"] = counted.inspector.alerts;
  into["rules"] = nlohmann::json::array();
  for (const std::size_t i : order) {
    const Rule& rule = rules().rules[i];
    into["rules"].push_back(
        {{"gid", rule.gid}, {"sid", rule.sid}, {"rev", rule.rev}, {"message", rule.message}, {"alerts", alerts[i]}});
  }
  if (recording_.profile) into["profile"] = profile_json(rules(), profile());
  nlohmann::ordered_json load;
  load_report(load);
  into["load"] = load;
  into["inspection"] = inspection_json(counted.inspector);
  into["inspection"]["scanned_on_gpu"] = counted.scanned_on_gpu;
  into["inspection"]["clear"] = counted.clear;
  if (settings_.flow_state) {
    into["inspection"]["flow_states"] = counted.flow_states;
    into["inspection"]["seams_known"] = counted.inspector.seams_known;
  }
  into["stack"] = stack_json(counted.tracker);
  if (auto warning = checksum_warning(counted.tracker)) into["warnings"].push_back(std::move(*warning));
  if (const std::uint64_t frames = counted.inspector.frames_over_budget; frames > 0) {
    into["warnings"].push_back(format_count(frames, "frame") +
                               " exceeded the work limit: some rules were not evaluated, alerts may be missing");
  }
}

}  // namespace penstock::nids
