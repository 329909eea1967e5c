// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/chain_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/listen_address.h"
#include "config/file_conflicts.h"
#include "config/fixed_parts.h"
#include "config/function_builder.h"
#include "config/outputs.h"
#include "config/run_section.h"
#include "port/port.h"
#include "run/chain.h"

namespace penstock::config {

namespace {

/// Continues after mistakes, to report all of them.
class Builder {
 public:
  Builder(ChainDescription description, const LoadOptions& options)
      : description_(std::move(description)), options_(options), errors_(std::move(description_.errors)) {}

  Result<LoadedChain> build() {
    RunSection run(description_, loaded_.chain, errors_, loaded_.without_effect);
    run.set_basics();
    read_outputs();
    make_ports();
    check_interfaces();
    wire();
    make_functions();
    take_function_outputs();
    check_exits();
    append(errors_, file_conflicts(description_.files));
    run.choose_processor(options_.only_plan, functions_known_);
    plan_timeline();
    run.check_one_worker();
    append(loaded_.cautions, run.check_queueing());
    run.set_gpu_shares(functions_known_);
    run.place_workers(options_.machine, options_.only_plan);
    append(loaded_.cautions, loaded_.chain.settings.placement.warnings);
    take_warnings();
    if (options_.strict) refuse_unsupported(loaded_.unsupported, errors_);
    loaded_.writes_stdout = writes_stdout(description_.files);
    loaded_.fixed = fixed_parts(description_);
    loaded_.planned = loaded_.chain.traits();
    loaded_.files = std::move(description_.files);
    if (errors_.empty()) return std::move(loaded_);
    std::erase_if(loaded_.chain.ports, [](const run::NamedPort& p) { return p.port == nullptr; });
    if (!options_.only_plan) append(errors_, check_files(loaded_));
    return failure(in_file_order(std::move(errors_)));
  }

 private:
  void mistake(const Place& place, std::string message, std::string found = "", std::string expected = "") {
    errors_.push_back({place, std::move(message), std::move(found), std::move(expected)});
  }

  void read_outputs() {
    const std::optional<Parameters>& outputs = description_.outputs;
    if (!outputs) return;
    if (outputs->has("report")) loaded_.report_path = outputs->text("report");
    if (outputs->has("control")) loaded_.control_path = outputs->text("control");
    read_log(*outputs);
    read_metrics(*outputs);
    function_outputs_.read(*outputs, options_.functions, errors_);
  }

  void read_log(const Parameters& outputs) {
    loaded_.log_level = log_level(outputs.text("log.level")).value_or(LogLevel::info);
    if (outputs.is_word("log.to")) return;
    loaded_.log_path = outputs.text("log.to");
    if (loaded_.log_path == "-") mistake(outputs.place("log.to"), "log.to: wrong value", "'-'", "stderr or a file");
  }

  void read_metrics(const Parameters& outputs) {
    constexpr std::string_view kListen = "metrics.listen";
    if (!outputs.has(kListen)) return;
    auto address = parse_listen_address(outputs.text(kListen));
    if (!address) {
      for (Error& error : address.error())
        mistake(outputs.place(kListen), fmt::format("{}: {}", kListen, error.message), error.found, error.expected);
      return;
    }
    loaded_.metrics_address = *address;
    if (address->is_loopback()) return;
    loaded_.cautions.push_back({outputs.place(kListen),
                                "metrics.listen: whoever reaches this address can see the run, without authentication",
                                in_quotes(outputs.text(kListen)),
                                "127.0.0.1 or [::1], or a firewall that lets only the monitoring system through"});
  }

  /// The timeline records only work on devices.
  void plan_timeline() {
    const std::optional<Parameters>& outputs = description_.outputs;
    if (!outputs) return;
    constexpr std::size_t kBatches = 1000;
    const bool asked = outputs->has("timeline");
    const bool in_proxy = !loaded_.chain.settings.proxy.empty();
    if (asked && is_device(loaded_.chain.settings.processor) && !in_proxy) {
      loaded_.timeline_path = outputs->text("timeline");
      loaded_.chain.timeline = std::make_unique<ring::Timeline>(
          outputs->has("timeline_batches") ? outputs->integer("timeline_batches") : kBatches);
    } else if (asked || outputs->has("timeline_batches")) {
      const char* const name = asked ? "timeline" : "timeline_batches";
      loaded_.without_effect.push_back({outputs->place(name),
                                        fmt::format("{} has no effect {}", name,
                                                    !asked     ? "without timeline"
                                                    : in_proxy ? "in a proxy"
                                                               : "on the CPU"),
                                        in_quotes(outputs->text(name)), ""});
    }
  }

  /// A port that cannot be made keeps its position, so that references to it are not mistakes.
  void make_ports() {
    ports_known_ = description_.ports_complete;
    for (const PortDescription& port : description_.ports) {
      port_names_.push_back(port.name);
      loaded_.chain.ports.push_back({port.name, make_port(port)});
      ports_known_ &= loaded_.chain.ports.back().port != nullptr;
    }
  }

  /// Two ports that read from one interface would both get each frame.
  void check_interfaces() {
    const std::vector<run::NamedPort>& ports = loaded_.chain.ports;
    const auto reads_from = [](const run::NamedPort& port) {
      return port.port != nullptr && port.port->reads() ? port.port->interface() : std::nullopt;
    };
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const auto interface = reads_from(ports[i]);
      for (std::size_t j = 0; interface && j < i; ++j) {
        if (reads_from(ports[j]) != interface) continue;
        mistake(description_.ports[i].place,
                fmt::format("port {} reads what port {} reads", ports[i].name, ports[j].name),
                in_quotes(interface->name), "another interface");
      }
    }
  }

  std::unique_ptr<port::Port> make_port(const PortDescription& description) {
    if (!description.parameters) return nullptr;
    auto port = description.kind->make(*description.parameters, static_cast<PortIndex>(loaded_.chain.ports.size()));
    if (port) return std::move(*port);
    append(errors_, description.parameters->placed(std::move(port.error())));
    return nullptr;
  }

  void make_functions() {
    if (port_names_.empty()) return;  // every port name would be reported as a mistake
    FunctionSurroundings surroundings{port_names_, {}, {}, {}, {}, function_outputs_.logs()};
    // A port with mistakes may read and write, since its parameters are not known.
    for (const run::NamedPort& p : loaded_.chain.ports) {
      surroundings.ports_read.push_back(p.port == nullptr || p.port->reads());
      surroundings.ports_write.push_back(p.port == nullptr || p.port->writes());
      surroundings.ports_live.push_back(p.port != nullptr && p.port->interface().has_value());
      surroundings.ports_answer.push_back(p.port != nullptr && port::reaches_senders(*p.port));
    }
    surroundings.exits = loaded_.chain.wiring;
    BuiltFunctions built = build_functions(description_, surroundings);
    for (std::size_t i = 0; i < built.functions.size(); ++i) {
      const FunctionDescription& description = description_.functions[built.positions[i]];
      // The outputs of a function in another process are written there.
      if (!description.in_process) function_outputs_.add_writer(*description.kind, *built.functions[i].function);
    }
    loaded_.chain.functions = std::move(built.functions);
    loaded_.chain.forks = std::move(built.forks);
    functions_known_ = built.complete;
    out_port_known_ = built.out_port_known;
    append(errors_, std::move(built.errors));
    append(loaded_.unsupported, std::move(built.unsupported));
    function_cautions_ = std::move(built.cautions);
    functions_without_effect_ = std::move(built.without_effect);
  }

  /// A reload replaces those of functions.
  void take_warnings() {
    loaded_.fixed_cautions = loaded_.cautions;
    loaded_.fixed_without_effect = loaded_.without_effect;
    append(loaded_.cautions, std::move(function_cautions_));
    append(loaded_.without_effect, std::move(functions_without_effect_));
  }

  /// If a function is missing because of mistakes, it is unknown what it would write.
  void take_function_outputs() {
    if (functions_known_) function_outputs_.leave_out_unwritten(errors_, loaded_.without_effect);
    loaded_.logs = function_outputs_.logs();
    loaded_.chain.logs = function_outputs_.take_logs();
    loaded_.texts = function_outputs_.take_texts();
  }

  void wire() {
    std::vector<run::NamedPort>& ports = loaded_.chain.ports;
    std::vector<PortIndex>& wiring = loaded_.chain.wiring;
    wiring.assign(ports.size(), kNoPort);
    const auto reads = [](const run::NamedPort& p) { return p.port->reads(); };
    if (ports_known_ && std::none_of(ports.begin(), ports.end(), reads))
      mistake(description_.ports_place, "no port reads, so there would be no packets");
    if (description_.has_wire) return wire_as_given();
    if (!ports_known_) return;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i].port->writes()) writers_.push_back(static_cast<PortIndex>(i));
    }
    if (writers_.size() == 1) wiring.assign(ports.size(), writers_.front());
  }

  void check_exits() {
    if (writers_.size() > 1 && !out_port_known_ && functions_known_) {
      mistake(description_.ports_place,
              "several ports write, and the chain does not choose the one that packets leave on", "",
              "a router in the chain, or `wire: {lan: wan, wan: lan}`");
    }
  }

  void wire_as_given() {
    std::set<PortIndex> wired;
    const std::vector<run::NamedPort>& ports = loaded_.chain.ports;
    for (const auto& [from_name, to_name] : description_.wires) {
      const auto from = port_named(from_name);
      const auto to = port_named(to_name);
      if (!from || !to) continue;
      if (!wired.insert(*from).second) mistake(from_name.place, fmt::format("wire: {} given twice", from_name.text));
      // If a port has mistakes, it is unknown whether it reads or writes.
      if (ports[*from].port && !ports[*from].port->reads())
        mistake(from_name.place, "wire: this port does not read", in_quotes(from_name.text));
      if (ports[*to].port && !ports[*to].port->writes())
        mistake(to_name.place, "wire: this port does not write", in_quotes(to_name.text));
      loaded_.chain.wiring[*from] = *to;
    }
  }

  std::optional<PortIndex> port_named(const PortName& name) {
    const auto found = std::find(port_names_.begin(), port_names_.end(), name.text);
    if (found != port_names_.end()) return static_cast<PortIndex>(found - port_names_.begin());
    const std::vector<std::string_view> known(port_names_.begin(), port_names_.end());
    mistake(name.place, "wire: no such port", name.found, expected_name(name.text, known));
    return std::nullopt;
  }

  ChainDescription description_;
  const LoadOptions& options_;
  FunctionOutputs function_outputs_;  // must outlive the functions, which may use its logs
  LoadedChain loaded_;
  Errors errors_;
  std::vector<std::string> port_names_;
  std::vector<PortIndex> writers_;  // ports that write, where the chain file wires none
  Errors function_cautions_, functions_without_effect_;
  bool ports_known_ = false;      // all ports are there; otherwise, those that are missing are unknown
  bool functions_known_ = false;  // the same for functions
  bool out_port_known_ = false;   // on every path, a function chooses the output port
};

}  // namespace

Result<LoadedChain> build_chain(ChainDescription description, const LoadOptions& options) {
  return Builder(std::move(description), options).build();
}

}  // namespace penstock::config
