// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/chain_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/output_file.h"
#include "base/text_file.h"
#include "base/units.h"
#include "config/arm_condition.h"
#include "config/yaml_file.h"
#include "gpu/devices.h"
#include "plan/device_plan.h"
#include "port/catalog.h"
#include "ring/packet_ring.h"
#include "run/gpu_run.h"
#include "run/run.h"

namespace penstock::config {

namespace {

constexpr auto kRun = std::to_array<Parameter>({
    {"processor", ParameterType::choice, "auto", "auto|cpu|gpu",
     "where functions with a GPU stage run; auto: on a GPU if there is one"},
    {"gpus", ParameterType::integers, "", "0..255", "indices of the GPUs to use; default: the first"},
    {"workers", ParameterType::integer, "1", "1..256", "number of threads, each with its own queues, ring and stages"},
    {"batch.bytes", ParameterType::size, "", "64KiB..1GiB",
     "maximum size of a batch; default: 512KiB, on a GPU 4MiB or less as `latency` and `rate` require"},
    {"batch.packets", ParameterType::integer, "", "1..1048576",
     "maximum number of packets in a batch; default: 512, on a GPU 16384"},
    {"batch.timeout", ParameterType::duration, "500us", "0..10s", "close a batch after this time, full or not"},
    {"latency", ParameterType::duration, "", "1us..10s",
     "longest time that a batch waits for more packets; on a GPU, also limits batches to what arrives in this time at "
     "`rate`"},
    {"rate", ParameterType::rate, "", "1Mbps..100Tbps",
     "target rate of the whole chain, for `latency` and `gpu_shares: auto`; default: 400Gbps for each GPU"},
    {"streams", ParameterType::integer, "3", "1..64", "batches in flight on the GPU, for each worker"},
    {"transfer", ParameterType::choice, "auto", "auto|direct|streamed|zero_copy",
     "how batches cross PCIe. direct: one at a time; streamed: several at once; zero_copy: kernels access host memory; "
     "auto: streamed, and zero_copy for small batches"},
    {"frames", ParameterType::choice, "planned", "planned|whole",
     "which parts of a frame cross PCIe: those in the transfer plan, or all"},
    {"sharing", ParameterType::choice, "packets", "packets|parsing|none",
     "what functions share on the GPU. parsing and none are for comparison: each function transfers its own packets, "
     "and with none also parses them itself"},
    {"gpu_shares", ParameterType::text, "whole", "",
     "GPU multiprocessors for each function. whole: no limit; `nids=66,ipsec=33`: these numbers; auto: chosen by "
     "measurement at the start, for `rate` and `latency`"},
    {"queue.bytes", ParameterType::size, "128MiB", "64KiB..64GiB",
     "size of a worker's waiting queue; when it is full, packets are dropped and counted"},
    {"duration", ParameterType::duration, "0", "0..8760h", "stop after this time; 0: run until the sources end"},
});

constexpr auto kOutputs = std::to_array<Parameter>({
    {"report", ParameterType::output, "", "", "the report, as JSON"},
    {"eve", ParameterType::output, "", "", "alerts as EVE JSON, one per line, written while the chain runs"},
    {"fast_log", ParameterType::output, "", "",
     "alerts in Suricata's fast.log format, one per line, written while the chain runs"},
    {"append", ParameterType::flag, "true", "",
     "append to existing eve and fast_log files; false: overwrite them in each run"},
    {"esp_sa", ParameterType::output, "", "",
     "the SAs of ipsec with their keys, as Wireshark's esp_sa table; only the owner can read the file"},
    {"timeline", ParameterType::output, "", "",
     "times of transfers and kernels on the GPU for the last batches, for Perfetto and chrome://tracing"},
    {"timeline_batches", ParameterType::integer, "", "1..10000",
     "number of batches per stream to keep in the timeline, the most recent ones; default: 1000"},
});

// Each has queues for every worker.
constexpr std::size_t kMostPorts = 1024;

bool good_port_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '@' || c == ':';
  });
}

template <typename Kinds, typename NameOf>
std::string expected_kind(std::string_view name, const Kinds& kinds, NameOf name_of) {
  std::vector<std::string_view> names;
  names.reserve(kinds.size());
  for (const auto& kind : kinds) names.push_back(name_of(kind));
  return expected_name(name, names);
}

/// "chain.yaml:3", or without the line where there is none.
std::string place_text(const Place& place) {
  return place.line == 0 ? place.file : fmt::format("{}:{}", place.file, place.line);
}

/// Builds a chain from a document; goes on after mistakes.
class Builder {
 public:
  Builder(const YamlFile& file, const LoadOptions& options) : file_(file), options_(options) {
    files_.push_back({file.path(), {file.path(), 0, 0}, false});
  }

  Result<LoadedChain> build() {
    check_top_level();
    read_run();
    read_outputs();
    read_ports();
    read_functions();
    check_writers();
    check_sharing();
    wire();
    check_files();
    choose_processor();
    plan_timeline();
    read_gpu_shares();
    if (options_.strict) refuse_unsupported();
    loaded_.files = std::move(files_);
    if (errors_.empty()) return std::move(loaded_);
    std::erase_if(loaded_.chain.ports, [](const run::NamedPort& p) { return p.port == nullptr; });
    if (!options_.only_plan) append(errors_, config::check_files(loaded_));
    return failure(in_file_order(std::move(errors_)));
  }

 private:
  const YAML::Node& root() const { return file_.root(); }
  void mistake(const YAML::Node& node, std::string message, std::string found = "", std::string expected = "") {
    errors_.push_back({file_.place(node), std::move(message), std::move(found), std::move(expected)});
  }

  void check_top_level() {
    static constexpr std::array<std::string_view, 5> kKeys{"ports", "chain", "wire", "run", "outputs"};
    std::set<std::string> seen;
    for (const auto& member : root()) {
      const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
        mistake(member.first, "unknown section", shape_of(member.first), expected_name(key, kKeys));
      } else if (!seen.insert(key).second) {
        mistake(member.first, key + ": given twice");
      }
    }
    for (const char* key : {"ports", "chain"}) {
      if (!seen.contains(key)) mistake(root(), fmt::format("`{}` is missing", key));
    }
  }

  /// The parameters of a section; none where there are mistakes, which are then noted.
  std::optional<Parameters> read_parameters(ParameterTable table, const YAML::Node& node, const YAML::Node& owner) {
    const std::size_t mistakes = errors_.size();
    return check_parameters(table, file_.parameters(node, table, errors_), owner, mistakes);
  }

  /// The same of what was read already; before that there were so many `mistakes`.
  std::optional<Parameters> check_parameters(ParameterTable table, const std::vector<RawParameter>& raw,
                                             const YAML::Node& owner, std::size_t mistakes) {
    auto parameters = Parameters::read(table, raw, file_.place(owner));
    if (!parameters) append(errors_, std::move(parameters.error()));
    if (errors_.size() > mistakes) return std::nullopt;
    files_.insert(files_.end(), parameters->files().begin(), parameters->files().end());
    return std::move(*parameters);
  }

  /// What tells whether two paths lead to one file.
  struct FileIdentity {
    std::string path;
    std::optional<std::pair<dev_t, ino_t>> inode{};  // where it is there
    friend bool operator==(const FileIdentity& a, const FileIdentity& b) {
      return a.path == b.path || (a.inode && a.inode == b.inode);
    }
  };
  static FileIdentity identity_of(const std::string& path) {
    FileIdentity identity{resolved_path(path)};
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) identity.inode.emplace(status.st_dev, status.st_ino);
    return identity;
  }

  /// A file that is written must be no other one of the chain, or a run would destroy its own input.
  void check_files() {
    const auto is_device = [](const std::string& path) {
      std::error_code none;
      return std::filesystem::is_character_file(path, none);
    };
    const auto is_stdout = [](const std::string& path) {
      return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
    };
    std::optional<Place> stdin_reader;
    std::optional<Place> stdout_writer;
    for (const Parameters::File& file : files_) {
      if (!(file.written ? is_stdout(file.path) : file.path == "-")) continue;
      std::optional<Place>& other = file.written ? stdout_writer : stdin_reader;
      if (other) {
        errors_.push_back({file.place,
                           file.written ? "standard output is already in use" : "standard input can be read only once",
                           "- here and at " + place_text(*other), "a file"});
      }
      other = file.place;
    }
    std::vector<FileIdentity> identities;
    identities.reserve(files_.size());
    for (const Parameters::File& file : files_) identities.push_back(identity_of(file.path));
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const Parameters::File& output = files_[i];
      loaded_.writes_stdout |= output.written && is_stdout(output.path);
      if (!output.written || is_stdout(output.path) || is_device(output.path)) continue;
      for (std::size_t j = 0; j < files_.size(); ++j) {
        const Parameters::File& other = files_[j];
        if (i == j || (other.written && j < i) || !(identities[i] == identities[j])) continue;
        errors_.push_back(
            {output.place,
             "would overwrite the file that " + place_text(other.place) + (other.written ? " writes" : " reads"),
             in_quotes(output.path), "another file"});
      }
    }
  }

  void read_run() {
    const YAML::Node node = root()["run"];
    const std::size_t mistakes = errors_.size();
    const std::vector<RawParameter> raw = file_.parameters(node, kRun, errors_);
    for (const RawParameter& given : raw) {
      if (given.name == "processor" && given.items == std::vector<std::string>{"gpu"}) gpu_asked_ = given.place;
      if (given.name == "queue.bytes") queue_place_ = given.place;
    }
    const auto run = check_parameters(kRun, raw, node, mistakes);
    if (!run) return;
    run::RunSettings& settings = loaded_.chain.settings;
    settings.workers = static_cast<unsigned>(run->integer("workers"));
    settings.batch_timeout = run->duration("batch.timeout");
    settings.queue_bytes = run->integer("queue.bytes");
    settings.duration = run->duration("duration");
    if (run->has("latency")) {
      settings.latency = run->duration("latency");
      settings.batch_timeout = std::min(settings.batch_timeout, settings.latency);
    }
    if (run->has("rate")) settings.bits_per_second = run->rate("rate").value;
    settings.streams = static_cast<unsigned>(run->integer("streams"));
    if (run->text("transfer") == "direct") settings.transfer = run::Transfer::direct;
    if (run->text("transfer") == "zero_copy") settings.transfer = run::Transfer::zero_copy;
    if (run->text("transfer") == "streamed") settings.transfer = run::Transfer::streamed;
    if (run->text("sharing") == "none") settings.sharing = plan::Sharing::none;
    if (run->text("sharing") == "parsing") settings.sharing = plan::Sharing::parsing;
    if (run->text("frames") == "whole") settings.whole_frames = plan::WholeFrames::always;
    run_ = *run;
  }

  void note_without_effect(const Parameters& run, std::string_view name, std::string_view where = "on the CPU") {
    const auto parameter = std::find_if(kRun.begin(), kRun.end(), [&](const Parameter& p) { return p.name == name; });
    if (!run.has(name) || run.text(name) == parameter->default_text) return;
    loaded_.without_effect.push_back(
        {run.place(name), fmt::format("{} has no effect {}", name, where), in_quotes(run.text(name)), ""});
  }

  void read_outputs() {
    const YAML::Node node = root()["outputs"];
    const auto outputs = read_parameters(kOutputs, node, node);
    if (!outputs) return;
    if (outputs->has("report")) loaded_.report_path = outputs->text("report");
    const auto log = [&](std::string_view name) -> report::EventLog* {
      if (!outputs->has(name)) return nullptr;
      using Start = report::EventLog::Start;
      const Start start = outputs->flag("append") ? Start::append : Start::anew;
      return loaded_.chain.logs.emplace_back(std::make_unique<report::EventLog>(outputs->text(name), start)).get();
    };
    eve_ = log("eve");
    fast_log_ = log("fast_log");
    if (outputs->has("esp_sa")) {
      loaded_.esp_sa_path = outputs->text("esp_sa");
      if (loaded_.esp_sa_path == "-")
        errors_.push_back(
            {outputs->place("esp_sa"), "esp_sa: keys cannot be written to standard output", "-", "a file"});
    }
    outputs_ = *outputs;
  }

  /// Of what runs on a GPU: elsewhere there is nothing to tell.
  void plan_timeline() {
    if (!outputs_) return;
    constexpr std::size_t kBatches = 1000;
    const bool asked = outputs_->has("timeline");
    if (asked && loaded_.chain.settings.processor == function::Processor::gpu) {
      loaded_.timeline_path = outputs_->text("timeline");
      loaded_.chain.timeline = std::make_unique<ring::Timeline>(
          outputs_->has("timeline_batches") ? outputs_->integer("timeline_batches") : kBatches);
    } else if (asked || outputs_->has("timeline_batches")) {
      const char* const name = asked ? "timeline" : "timeline_batches";
      loaded_.without_effect.push_back(
          {outputs_->place(name), fmt::format("{} has no effect {}", name, asked ? "on the CPU" : "without timeline"),
           in_quotes(outputs_->text(name)), ""});
    }
  }

  void read_ports() {
    const YAML::Node node = root()["ports"];
    if (!node.IsDefined()) return;
    if (!node.IsMap() || node.size() == 0)
      return mistake(node, "ports: wrong value", node.IsMap() ? "an empty mapping" : shape_of(node),
                     "a mapping of names to ports, such as {lan: {pcap: {read: traffic.pcap}}}");
    if (node.size() > kMostPorts) {
      return mistake(node, "ports: too many", fmt::format("{} ports", format_count(node.size())),
                     fmt::format("{} or fewer", format_count(kMostPorts)));
    }
    bool names_ok = true;
    for (const auto& member : node) {
      const std::string name = member.first.IsScalar() ? member.first.Scalar() : "";
      if (!good_port_name(name)) {
        names_ok = false;
        mistake(member.first, "wrong port name", shape_of(member.first),
                member.first.IsNull() ? "a name; 'null' must be quoted"
                                      : "1 to 64 letters, digits, '_', '-', '.', ':' and '@'");
        continue;
      }
      if (std::find(port_names_.begin(), port_names_.end(), name) != port_names_.end()) {
        mistake(member.first, fmt::format("port {}: given twice", name));
        continue;
      }
      // A port that cannot be built keeps its place, so that others' references to it are no mistakes.
      port_names_.push_back(name);
      loaded_.chain.ports.push_back({name, read_port(name, member.first, member.second)});
    }
    ports_ok_ = names_ok && std::all_of(loaded_.chain.ports.begin(), loaded_.chain.ports.end(),
                                        [](const auto& p) { return p.port != nullptr; });
  }

  std::unique_ptr<port::Port> read_port(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    std::string kind_name;
    YAML::Node parameters;
    YAML::Node kind_node = value;
    if (value.IsScalar()) {
      kind_name = value.Scalar();
    } else if (value.IsMap() && value.size() == 1 &&
               (value.begin()->first.IsScalar() || value.begin()->first.IsNull())) {
      // `null` is also YAML's word for nothing, as a key too.
      kind_name = value.begin()->first.IsNull() ? "null" : value.begin()->first.Scalar();
      // Not `=`, which would change the document.
      kind_node.reset(value.begin()->first);
      parameters.reset(value.begin()->second);
    } else {
      constexpr const char* kExpected =
          "one kind of port with its parameters, such as {pcap: {read: traffic.pcap}} or {null: {}}";
      if (value.IsMap() && value.size() > 1) {
        const YAML::Node second = std::next(value.begin())->first;
        mistake(second, fmt::format("port {}: more than one kind", name), shape_of(second), kExpected);
      } else {
        const bool stands = value.IsDefined() && (!value.IsNull() || file_.is_override(value));
        mistake(stands ? value : key, fmt::format("port {}: wrong value", name),
                value.IsMap() ? "an empty mapping" : shape_of(value), kExpected);
      }
      return nullptr;
    }
    const port::PortKind* kind = port::find_kind(kind_name);
    if (kind == nullptr) {
      mistake(kind_node, fmt::format("port {}: unknown kind", name), in_quotes(kind_name),
              expected_kind(kind_name, port::catalog(), [](const auto& k) { return k.name; }));
      return nullptr;
    }
    const auto read = read_parameters(kind->parameters, parameters, key);
    if (!read) return nullptr;
    auto port = kind->make(*read, static_cast<PortIndex>(port_names_.size() - 1));
    if (!port) {
      append(errors_, read->placed(std::move(port.error())));
      return nullptr;
    }
    return std::move(*port);
  }

  void read_functions() {
    const YAML::Node node = root()["chain"];
    if (!node.IsDefined()) return;
    functions_ok_ = false;
    if (!node.IsSequence())
      return mistake(node, "chain: wrong value", shape_of(node), "a list of network functions, in order");
    if (const std::size_t count = count_functions(node); count > 255)
      return mistake(node, "chain: too long", fmt::format("{} functions", count), "255 or fewer");
    mistakes_before_functions_ = errors_.size();
    for (const auto& item : node) {
      is_fork(item) ? read_fork(item.begin()->first, item.begin()->second) : read_function(item);
    }
    functions_ok_ = errors_.size() == mistakes_before_functions_ && !port_names_.empty();
  }

  static bool is_fork(const YAML::Node& item) {
    return item.IsMap() && item.size() == 1 && item.begin()->first.IsScalar() && item.begin()->first.Scalar() == "fork";
  }

  /// Those of arms included.
  static std::size_t count_functions(const YAML::Node& chain) {
    std::size_t count = 0;
    for (const auto& item : chain) {
      if (!is_fork(item)) {
        ++count;
      } else if (const YAML::Node arms = item.begin()->second; arms.IsSequence()) {
        for (const auto& arm : arms) {
          const YAML::Node functions = arm.IsMap() ? arm["chain"] : YAML::Node();
          if (functions.IsDefined() && functions.IsSequence()) count += functions.size();
        }
      }
    }
    return count;
  }

  void read_function(const YAML::Node& item) {
    std::string name;
    YAML::Node parameters;
    if (item.IsScalar()) {
      name = item.Scalar();
    } else if (item.IsMap() && item.size() == 1 && item.begin()->first.IsScalar()) {
      name = item.begin()->first.Scalar();
      parameters.reset(item.begin()->second);
    } else {
      constexpr const char* kExpected =
          "a network function with its parameters, such as {firewall: {rules: rules.txt}}";
      if (item.IsMap() && item.size() > 1) {
        const YAML::Node second = std::next(item.begin())->first;
        mistake(second, "chain: two functions in one list item", shape_of(second), kExpected);
      } else {
        mistake(item, "chain: wrong function", item.IsMap() ? "an empty mapping" : shape_of(item), kExpected);
      }
      return;
    }
    const function::NfKind* kind = nf::find_kind(name, options_.functions);
    if (kind == nullptr) {
      mistake(item, "unknown network function", in_quotes(name),
              expected_kind(name, options_.functions, [](const auto* k) { return k->name; }));
      return;
    }
    const auto read = read_parameters(kind->parameters, parameters, item);
    // Without ports, all that names one would be a mistake.
    if (!read || port_names_.empty()) return;
    function::NfContext context{port_names_, so_far_.out_port_known || lacks_functions(), {}, {}, eve_, fast_log_};
    context.ports_write = ports_that_write();
    auto function = kind->make(*read, context);
    append(loaded_.unsupported, std::move(context.unsupported));
    append(loaded_.cautions, std::move(context.cautions));
    append(loaded_.without_effect, std::move(context.without_effect));
    if (!function) {
      append(errors_, read->placed(std::move(function.error())));
      return;
    }
    const int nth = ++count_by_name_[name];
    // Only a function that chooses ports writes the verdict's port; it says so by its traits.
    so_far_.out_port_known |= (*function)->traits().chooses_port;
    so_far_.marks_set |= (*function)->traits().cpu.writes.has(Field::mark);
    loaded_.chain.functions.push_back({nth == 1 ? name : fmt::format("{}#{}", name, nth), std::move(*function)});
  }

  /// What is not there for a mistake of its own may be what chooses ports, or sets marks.
  [[nodiscard]] bool lacks_functions() const { return errors_.size() > mistakes_before_functions_; }

  void read_fork(const YAML::Node& key, const YAML::Node& node) {
    constexpr const char* kExpected =
        "a list of arms, such as [{when: {in_port: lan}, chain: [nids: {rules: [a.rules]}]}, {chain: []}]";
    if (!node.IsSequence() || node.size() == 0)
      return mistake(node.IsNull() ? key : node, "fork: wrong value",
                     node.IsSequence() ? "an empty list" : shape_of(node), kExpected);
    if (node.size() > plan::Fork::kMostArms)
      return mistake(node, "fork: too many arms", format_count(node.size()),
                     fmt::format("{} or fewer", plan::Fork::kMostArms));
    const SoFar before = so_far_;
    std::optional<SoFar> joined;
    const auto join = [&joined](const SoFar& way) {
      joined = joined ? SoFar{joined->out_port_known && way.out_port_known, joined->marks_set || way.marks_set} : way;
    };
    plan::Fork fork{loaded_.chain.functions.size(), 0, {}};
    bool any_function = false;
    for (const auto& item : node) {
      so_far_ = before;
      any_function |= read_arm(item, fork);
      join(so_far_);
    }
    if (!any_function) mistake(key, "fork: no arm has a function", "", "functions in at least one arm");
    if (!fork.exhaustive()) join(before);
    so_far_ = *joined;
    fork.last = loaded_.chain.functions.size();
    if (fork.last > fork.first) loaded_.chain.forks.push_back(std::move(fork));
  }

  /// Whether the arm has functions.
  bool read_arm(const YAML::Node& item, plan::Fork& fork) {
    static constexpr std::array<std::string_view, 2> kKeys{"when", "chain"};
    if (!item.IsMap()) {
      mistake(item, "fork: wrong arm", shape_of(item),
              "a mapping with `chain`, and with `when` unless it is for all other packets");
      return false;
    }
    std::set<std::string> seen;
    for (const auto& member : item) {
      const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
      if (std::ranges::find(kKeys, key) == kKeys.end()) {
        mistake(member.first, "fork: unknown key in an arm", shape_of(member.first), expected_name(key, kKeys));
      } else if (!seen.insert(key).second) {
        mistake(member.first, key + ": given twice");
      }
    }
    const YAML::Node when = item["when"];
    const YAML::Node chain = item["chain"];
    plan::Arm arm{loaded_.chain.functions.size(), 0, {}, ""};
    const std::size_t mistakes = errors_.size();
    if (when.IsDefined()) arm.conditions = read_arm_conditions(file_, when, fork_context(), errors_);
    arm.text = describe(arm.conditions, port_names_);
    const bool known = errors_.size() == mistakes;
    const auto covered = [&](const plan::ArmCondition& condition) { return fork.covers(condition); };
    if (known && (arm.conditions.empty() ? fork.exhaustive() : std::ranges::all_of(arm.conditions, covered)))
      mistake(item, "fork: no packet takes this arm", arm.text, "a condition that earlier arms leave packets for");
    const bool is_list = chain.IsDefined() && chain.IsSequence();
    if (!is_list) {
      mistake(chain.IsDefined() ? chain : item, "fork: an arm without a list of functions",
              chain.IsDefined() ? shape_of(chain) : "no `chain`", "a list; with `chain: []`, packets go straight on");
    }
    for (std::size_t i = 0; is_list && i < chain.size(); ++i) {
      const YAML::Node function = chain[i];
      if (is_fork(function)) {
        mistake(function.begin()->first, "fork: forks cannot be nested", "a fork in an arm", "network functions");
      } else {
        read_function(function);
      }
    }
    arm.last = loaded_.chain.functions.size();
    if (known) fork.arms.push_back(std::move(arm));
    return is_list && chain.size() > 0;
  }

  [[nodiscard]] ForkContext fork_context() const {
    ForkContext context{port_names_};
    for (const run::NamedPort& p : loaded_.chain.ports)
      context.ports_read.push_back(p.port == nullptr || p.port->reads());
    context.ports_write = ports_that_write();
    context.out_port_known = so_far_.out_port_known || lacks_functions();
    context.marks_set = so_far_.marks_set || lacks_functions();
    return context;
  }

  /// For comparisons, functions bring packets to the GPU each for itself; those of arms could not.
  void check_sharing() {
    if (loaded_.chain.forks.empty() || loaded_.chain.settings.sharing == plan::Sharing::packets) return;
    errors_.push_back({run_->place("sharing"), "sharing: not possible in a chain with forks",
                       in_quotes(run_->text("sharing")), "packets"});
  }

  /// Of a port with a mistake it is not known what it does: it may write.
  [[nodiscard]] std::vector<bool> ports_that_write() const {
    std::vector<bool> write;
    for (const run::NamedPort& p : loaded_.chain.ports) write.push_back(p.port == nullptr || p.port->writes());
    return write;
  }

  /// Logs that no function writes lines to, and a table of SAs without a function that has some.
  void check_writers() {
    if (!outputs_ || !functions_ok_) return;
    const auto has_sas = [](const run::NamedFunction& f) { return f.function->traits().name == "ipsec"; };
    if (outputs_->has("esp_sa") && std::ranges::none_of(loaded_.chain.functions, has_sas)) {
      errors_.push_back({outputs_->place("esp_sa"), "esp_sa: the chain has no ipsec function", "", "one with SAs"});
    }
    const auto writes = [](const run::NamedFunction& f) { return f.function->traits().writes_events; };
    if (std::ranges::any_of(loaded_.chain.functions, writes)) return;
    for (const char* const name : {"eve", "fast_log"}) {
      if (!outputs_->has(name)) continue;
      loaded_.without_effect.push_back(
          {outputs_->place(name), fmt::format("{}: no function of the chain writes it", name),
           in_quotes(outputs_->text(name)), "a function that writes alerts, such as nids"});
    }
    loaded_.chain.logs.clear();  // files that nobody writes stay as they are
    eve_ = fast_log_ = nullptr;
  }

  void wire() {
    std::vector<run::NamedPort>& ports = loaded_.chain.ports;
    std::vector<PortIndex>& wiring = loaded_.chain.wiring;
    wiring.assign(ports.size(), kNoPort);
    const auto reads = [](const run::NamedPort& p) { return p.port->reads(); };
    if (ports_ok_ && std::none_of(ports.begin(), ports.end(), reads))
      mistake(root()["ports"], "no port reads, so there would be no packets");
    const YAML::Node node = root()["wire"];
    if (node.IsDefined() && !node.IsNull()) return read_wiring(node);
    if (!ports_ok_) return;
    std::vector<PortIndex> writers;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i].port->writes()) writers.push_back(static_cast<PortIndex>(i));
    }
    if (writers.size() == 1) wiring.assign(ports.size(), writers.front());
    if (writers.size() > 1 && !so_far_.out_port_known && functions_ok_) {
      mistake(root()["ports"], "several ports write, and the chain does not choose the one that packets leave on", "",
              "a router in the chain, or `wire: {lan: wan, wan: lan}`");
    }
  }

  void read_wiring(const YAML::Node& node) {
    if (!node.IsMap())
      return mistake(node, "wire: wrong value", shape_of(node), "a mapping of ports that read to ports that write");
    // It would switch off the wiring that a chain has without it, and consume every packet without a word.
    if (node.size() == 0)
      return mistake(node, "wire: wrong value", "an empty mapping",
                     "a mapping such as {lan: wan}, or no `wire` at all");
    std::set<PortIndex> wired;
    const std::vector<run::NamedPort>& ports = loaded_.chain.ports;
    for (const auto& member : node) {
      const auto from = port_named(member.first);
      const auto to = port_named(member.second);
      if (!from || !to) continue;
      if (!wired.insert(*from).second)
        mistake(member.first, fmt::format("wire: {} given twice", member.first.Scalar()));
      // Of a port with a mistake it is not known what it does.
      if (ports[*from].port && !ports[*from].port->reads())
        mistake(member.first, "wire: this port does not read", in_quotes(member.first.Scalar()));
      if (ports[*to].port && !ports[*to].port->writes())
        mistake(member.second, "wire: this port does not write", in_quotes(member.second.Scalar()));
      loaded_.chain.wiring[*from] = *to;
    }
  }

  std::optional<PortIndex> port_named(const YAML::Node& node) {
    const std::string name = node.IsScalar() ? node.Scalar() : "";
    const auto found = std::find(port_names_.begin(), port_names_.end(), name);
    if (found != port_names_.end()) return static_cast<PortIndex>(found - port_names_.begin());
    const std::vector<std::string_view> known(port_names_.begin(), port_names_.end());
    mistake(node, "wire: no such port", shape_of(node), expected_name(name, known));
    return std::nullopt;
  }

  /// What the functions run on, and what depends on it.
  void choose_processor() {
    run::RunSettings& settings = loaded_.chain.settings;
    if (options_.only_plan) {
      settings.processor = gpu_asked_ ? function::Processor::gpu : function::Processor::cpu;
    } else if (gpu_asked_ || (run_ && run_->text("processor") == "auto" && errors_.empty())) {
      if (auto gpus = usable_gpus()) {
        settings.processor = function::Processor::gpu;
        settings.gpus = std::move(*gpus);
      } else if (gpu_asked_) {
        append(errors_, gpus.error());
      }
    }
    if (!run_) return;
    const bool on_gpu = settings.processor == function::Processor::gpu;
    settings.batch_bytes = run_->has("batch.bytes") ? run_->integer("batch.bytes")
                           : on_gpu                 ? most_batch_bytes_on_gpu(settings)
                                                    : 512 << 10;
    settings.batch_packets = run_->has("batch.packets") ? run_->integer("batch.packets") : on_gpu ? 16384 : 512;
    if (settings.queue_bytes < settings.batch_bytes) refuse_batch_beyond_queue(settings);
    if (on_gpu) {
      if (run_->has("rate") && !run_->has("latency") && run_->text("gpu_shares") != "auto")
        note_without_effect(*run_, "rate", "without latency");
      return;
    }
    for (const char* name : {"gpus", "rate", "streams", "transfer", "frames", "sharing", "gpu_shares"})
      note_without_effect(*run_, name);
  }

  /// At the value to correct: that of the command line, else the queue's if it was given. The other value's place is
  /// named too.
  void refuse_batch_beyond_queue(const run::RunSettings& settings) {
    const auto is_override = [](const Place& place) { return place.line == 0; };
    const auto batch_place = run_->has("batch.bytes") ? std::optional(run_->place("batch.bytes")) : std::nullopt;
    const auto in_bytes = [](std::size_t bytes) { return format_count(bytes) + " bytes"; };
    const auto other = [&](std::string_view name, std::size_t bytes, const std::optional<Place>& place) {
      return fmt::format("{} ({}; {})", name, in_bytes(bytes), place ? place_text(*place) : "its default");
    };
    if (batch_place && (!queue_place_ || (is_override(*batch_place) && !is_override(*queue_place_)))) {
      errors_.push_back({*batch_place, "batch.bytes: larger than the waiting queue", in_bytes(settings.batch_bytes),
                         "at most " + other("queue.bytes", settings.queue_bytes, queue_place_)});
    } else {
      errors_.push_back({queue_place_.value_or(Place{}), "queue.bytes: smaller than one batch",
                         in_bytes(settings.queue_bytes),
                         "at least " + other("batch.bytes", settings.batch_bytes, batch_place)});
    }
  }

  /// `whole`, `auto`, or shares of functions by their names.
  void read_gpu_shares() {
    if (!run_) return;
    const std::string& text = run_->text("gpu_shares");
    plan::GpuShares& shares = loaded_.chain.settings.gpu_shares;
    if (text == "whole") return;
    if (text == "auto") {
      shares.choice = plan::GpuShares::Choice::automatic;
      return;
    }
    shares.choice = plan::GpuShares::Choice::given;
    shares.functions.resize(loaded_.chain.functions.size());
    for (const std::string_view item : split(text, ',')) read_gpu_share(item);
  }

  void read_gpu_share(std::string_view item) {
    const auto wrong = [&](const std::string& message, std::string_view found, std::string expected) {
      errors_.push_back({run_->place("gpu_shares"), "gpu_shares: " + message, in_quotes(found), std::move(expected)});
    };
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return wrong("wrong value", item, "whole, auto, or multiprocessors per function, such as nids=66,ipsec=33");
    const std::string name(trimmed(item.substr(0, equals)));
    const std::string number(trimmed(item.substr(equals + 1)));
    const auto multiprocessors = parse_integer(number);
    if (!multiprocessors || *multiprocessors == 0 || *multiprocessors > most_multiprocessors_) {
      return wrong(fmt::format("wrong number of multiprocessors for {}", name), number,
                   fmt::format("a whole number in 1..{}", most_multiprocessors_));
    }
    std::vector<std::string_view> all;
    std::vector<std::string_view> with_share;
    std::vector<run::NamedFunction>& functions = loaded_.chain.functions;
    for (const run::NamedFunction& function : functions) {
      all.emplace_back(function.name);
      if (function.function->traits().fills_gpu) with_share.emplace_back(function.name);
    }
    const auto found = std::ranges::find(functions, name, &run::NamedFunction::name);
    if (found == functions.end()) {
      // Functions with mistakes of their own are not there.
      if (functions_ok_) wrong("no such function in the chain", name, expected_name(name, all));
      return;
    }
    if (!found->function->traits().fills_gpu) {
      return wrong(
          "shares cannot limit this function's GPU stage", name,
          with_share.empty() ? "whole: no function of the chain can have a share" : expected_name(name, with_share));
    }
    plan::GpuShares::Share& share =
        loaded_.chain.settings.gpu_shares.functions[static_cast<std::size_t>(found - functions.begin())];
    if (share.multiprocessors != 0) return wrong("given twice", name, "each function once");
    share.multiprocessors = static_cast<std::uint32_t>(*multiprocessors);
  }

  /// By what PCIe carries best, and by the latency bound.
  static std::size_t most_batch_bytes_on_gpu(const run::RunSettings& settings) {
    constexpr std::size_t kMost = 4 << 20;
    constexpr std::size_t kLeast = 64 << 10;
    if (settings.latency.count() == 0) return kMost;
    const std::size_t all = ring::ring_bytes(settings.wished_bits_per_second() / 8, settings.latency);
    // Each worker has those on the GPU, one that waits, and one that is being filled.
    const std::size_t batches = std::size_t{settings.workers} * (run::lanes_of(settings) + 2);
    return std::clamp(all / batches / kFrameAlignment * kFrameAlignment, kLeast, kMost);
  }

  /// Those that the chain is to run on; else why it can run on none. Of a chain with mistakes, what is known of it.
  Result<std::vector<int>> usable_gpus() {
    const Place place = gpu_asked_.value_or(Place{});
    const auto refuse = [&](std::string message) {
      return failure(Error{place, std::move(message), "'gpu'", "auto or cpu; `penstock doctor` has details"});
    };
    const std::vector<function::NfTraits> traits = loaded_.chain.traits();
    const bool any = std::ranges::any_of(traits, [](const function::NfTraits& t) { return t.gpu.has_value(); });
    if (functions_ok_ && !any) {
      return refuse("no function of the chain has a GPU stage");
    }
    const gpu::DeviceList list = gpu::list_devices();
    if (list.availability != gpu::Availability::kUsable) return refuse("no GPU can be used here: " + list.reason);
    if (!functions_ok_ || !run_) return std::vector<int>{};
    if (auto plan = plan::plan_device(traits, loaded_.chain.settings.whole_frames, loaded_.chain.settings.sharing,
                                      loaded_.chain.forks);
        !plan) {
      for (Error& error : plan.error()) error.place = place;
      return failure(std::move(plan.error()));
    }
    std::vector<int> there;
    for (const gpu::Device& device : list.devices) {
      if (device.supported) there.push_back(device.index);
    }
    const auto is_chosen = [&](const gpu::Device& device) {
      if (!run_->has("gpus")) return device.index == there.front();
      const std::vector<std::uint64_t>& numbers = run_->integers("gpus");
      return std::ranges::find(numbers, static_cast<std::uint64_t>(device.index)) != numbers.end();
    };
    for (const gpu::Device& device : list.devices) {
      if (!is_chosen(device)) continue;
      most_multiprocessors_ = std::min(most_multiprocessors_, static_cast<std::uint32_t>(device.multiprocessors));
    }
    if (!run_->has("gpus")) return std::vector<int>{there.front()};
    std::vector<int> chosen;
    for (const std::uint64_t number : run_->integers("gpus")) {
      const int index = static_cast<int>(number);
      if (std::ranges::find(there, index) == there.end()) {
        return failure(Error{run_->place("gpus"), "no such GPU, or this program has no code for it",
                             std::to_string(index), fmt::format("one of {}", fmt::join(there, ", "))});
      }
      chosen.push_back(index);
    }
    return chosen;
  }

  void refuse_unsupported() {
    const std::size_t count = count_of(loaded_.unsupported);
    if (count == 0) return;
    append(errors_, std::move(loaded_.unsupported));
    loaded_.unsupported.clear();
    errors_.push_back(
        {{"--strict", 0, 0},
         fmt::format("refused because of the {} above", count == 1 ? "construct" : fmt::format("{} constructs", count)),
         "",
         ""});
  }

  const YamlFile& file_;
  const LoadOptions& options_;
  LoadedChain loaded_;
  Errors errors_;
  std::vector<std::string> port_names_;
  std::vector<Parameters::File> files_;
  bool ports_ok_ = false;
  bool functions_ok_ = true;  // all are there; otherwise it is not known what those do that are not
  /// What the functions that have been read so far do, on the way to the next one.
  struct SoFar {
    bool out_port_known = false;  // one of them chooses the port that packets leave by, on every way
    bool marks_set = false;       // one of them sets marks
  };
  SoFar so_far_;
  std::map<std::string, int> count_by_name_;  // functions
  std::size_t mistakes_before_functions_ = 0;
  report::EventLog* eve_ = nullptr;  // the chain's
  report::EventLog* fast_log_ = nullptr;
  std::optional<Place> gpu_asked_;    // where `processor: gpu` stands
  std::optional<Place> queue_place_;  // of `queue: bytes`, if given
  std::optional<Parameters> run_;
  std::optional<Parameters> outputs_;
  std::uint32_t most_multiprocessors_ = 1024;  // of the GPUs; more than any has, where they are not known
};

}  // namespace

Override override_by_option(std::string_view option, std::string path, std::string value) {
  std::string text = fmt::format("{} {}", option, value.empty() ? "''" : value);
  return {std::move(path), std::move(value), std::move(text)};
}

Result<Override> parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return failure(Error{{}, "--set: wrong value", in_quotes(text), "key.key=value"});
  }
  return Override{text.substr(0, equals), text.substr(equals + 1), "--set " + text};
}

namespace {

Result<LoadedChain> load(Result<YamlFile> file, const LoadOptions& options) {
  if (!file) return failure(std::move(file.error()));
  Errors errors;
  for (const Override& o : options.overrides) {
    if (auto set = file->set(o.path, o.value, o.text, "ports"); !set) append(errors, std::move(set.error()));
  }
  if (!errors.empty()) return failure(std::move(errors));
  if (auto within = file->check_bounds(); !within) return failure(std::move(within.error()));
  return Builder(*file, options).build();
}

}  // namespace

Result<LoadedChain> load_chain(const std::string& path, const LoadOptions& options) {
  return load(YamlFile::read(path), options);
}

Result<LoadedChain> load_chain_text(const std::string& text, std::string name, const LoadOptions& options) {
  return load(YamlFile::of_text(text, std::move(name)), options);
}

Errors check_files(const LoadedChain& loaded) {
  Errors errors = run::check_system(loaded.chain);
  for (const std::string* const path : {&loaded.report_path, &loaded.esp_sa_path, &loaded.timeline_path}) {
    if (path->empty() || *path == "-") continue;
    if (auto writable = check_text_file_writable(*path); !writable) append(errors, std::move(writable.error()));
  }
  for (const auto& log : loaded.chain.logs) {
    if (log->path() == "-") continue;
    if (auto named = check_compression(log->path()); !named) append(errors, std::move(named.error()));
    if (auto writable = check_writable(log->path()); !writable) append(errors, std::move(writable.error()));
  }
  return placed(std::move(errors), loaded.files);
}

Errors busy_outputs(const LoadedChain& loaded) {
  Errors warnings;
  for (const Parameters::File& file : loaded.files) {
    if (!file.written || file.path == "-" || !is_being_written(file.path)) continue;
    warnings.push_back({file.place, "a running process is writing this file; until it ends, a run is refused",
                        in_quotes(file.path), "another file"});
  }
  return warnings;
}

ParameterTable run_parameters() { return kRun; }
ParameterTable output_parameters() { return kOutputs; }

}  // namespace penstock::config
