// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/chain_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/file_conflicts.h"
#include "config/fork_builder.h"
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
    make_functions();
    take_function_outputs();
    wire();
    append(errors_, file_conflicts(description_.files));
    run.choose_processor(options_.only_plan, functions_known_);
    plan_timeline();
    run.set_gpu_shares(functions_known_);
    if (options_.strict) refuse_unsupported();
    loaded_.writes_stdout = writes_stdout(description_.files);
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
    function_outputs_.read(*outputs, options_.functions, errors_);
  }

  /// The timeline records only work on GPUs.
  void plan_timeline() {
    const std::optional<Parameters>& outputs = description_.outputs;
    if (!outputs) return;
    constexpr std::size_t kBatches = 1000;
    const bool asked = outputs->has("timeline");
    if (asked && loaded_.chain.settings.processor == function::Processor::gpu) {
      loaded_.timeline_path = outputs->text("timeline");
      loaded_.chain.timeline = std::make_unique<ring::Timeline>(
          outputs->has("timeline_batches") ? outputs->integer("timeline_batches") : kBatches);
    } else if (asked || outputs->has("timeline_batches")) {
      const char* const name = asked ? "timeline" : "timeline_batches";
      loaded_.without_effect.push_back(
          {outputs->place(name), fmt::format("{} has no effect {}", name, asked ? "on the CPU" : "without timeline"),
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

  std::unique_ptr<port::Port> make_port(const PortDescription& description) {
    if (!description.parameters) return nullptr;
    auto port = description.kind->make(*description.parameters, static_cast<PortIndex>(loaded_.chain.ports.size()));
    if (port) return std::move(*port);
    append(errors_, description.parameters->placed(std::move(port.error())));
    return nullptr;
  }

  void make_functions() {
    functions_known_ = description_.functions_complete && !port_names_.empty();
    if (port_names_.empty()) return;  // every port name would be reported as a mistake
    std::size_t next = 0;
    for (const ForkDescription& fork : description_.forks) {
      make_functions(next, fork.first);
      make_fork(fork);
      next = fork.last;
    }
    make_functions(next, description_.functions.size());
    functions_known_ &= known_so_far_;
  }

  /// Makes functions [first, last) of the description.
  void make_functions(std::size_t first, std::size_t last) {
    for (std::size_t f = first; f < last; ++f) {
      const FunctionDescription& description = description_.functions[f];
      auto function = make_function(description);
      known_so_far_ &= function != nullptr;
      if (function == nullptr) continue;
      const std::string_view name = description.kind->name;
      const int nth = ++count_by_name_[name];
      loaded_.chain.functions.push_back(
          {nth == 1 ? std::string(name) : fmt::format("{}#{}", name, nth), std::move(function)});
    }
  }

  std::unique_ptr<function::NetworkFunction> make_function(const FunctionDescription& description) {
    if (!description.parameters) return nullptr;
    const std::vector<function::NamedLog> logs = function_outputs_.logs_of(*description.kind);
    function::NfContext context{port_names_, out_port_known_ || !known_so_far_};
    context.ports_write = ports_that_write();
    context.logs = logs;
    auto function = description.kind->make(*description.parameters, context);
    append(loaded_.unsupported, std::move(context.unsupported));
    append(loaded_.cautions, std::move(context.cautions));
    append(loaded_.without_effect, std::move(context.without_effect));
    if (!function) {
      append(errors_, description.parameters->placed(std::move(function.error())));
      return nullptr;
    }
    function_outputs_.add_writer(*description.kind, **function);
    // Only functions that choose ports write the verdict's port; their traits say so.
    out_port_known_ |= (*function)->traits().chooses_port;
    return std::move(*function);
  }

  void make_fork(const ForkDescription& description) {
    const bool known_before = out_port_known_;
    bool known_after_arms = true;  // after each arm
    plan::Fork fork{loaded_.chain.functions.size(), 0, {}};
    for (const ArmDescription& arm : description.arms) {
      out_port_known_ = known_before;
      make_arm(arm, fork);
      known_after_arms &= out_port_known_;
    }
    // For packets that take no arm, nothing changes.
    out_port_known_ = known_after_arms && (known_before || fork.exhaustive());
    known_so_far_ &= description.complete;
    fork.last = loaded_.chain.functions.size();
    if (fork.last > fork.first) loaded_.chain.forks.push_back(std::move(fork));
  }

  void make_arm(const ArmDescription& description, plan::Fork& fork) {
    std::optional<plan::Arm> arm = config::make_arm(description, fork_context(), errors_);
    known_so_far_ &= arm.has_value();
    const std::size_t first = loaded_.chain.functions.size();
    make_functions(description.first, description.last);
    if (!arm) return;
    if (fork.covers(*arm))
      mistake(description.place, "fork: no packet takes this arm", arm->text, "a condition that no earlier arm covers");
    arm->first = first;
    arm->last = loaded_.chain.functions.size();
    fork.arms.push_back(std::move(*arm));
  }

  [[nodiscard]] ForkContext fork_context() const {
    ForkContext context{port_names_};
    for (const run::NamedPort& p : loaded_.chain.ports)
      context.ports_read.push_back(p.port == nullptr || p.port->reads());
    context.ports_write = ports_that_write();
    context.out_port_known = out_port_known_ || !known_so_far_;
    return context;
  }

  /// A port with mistakes may write, since its parameters are not known.
  [[nodiscard]] std::vector<bool> ports_that_write() const {
    std::vector<bool> write;
    for (const run::NamedPort& p : loaded_.chain.ports) write.push_back(p.port == nullptr || p.port->writes());
    return write;
  }

  /// If a function is missing because of mistakes, it is unknown what it would write.
  void take_function_outputs() {
    if (functions_known_) function_outputs_.leave_out_unwritten(errors_, loaded_.without_effect);
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
    std::vector<PortIndex> writers;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i].port->writes()) writers.push_back(static_cast<PortIndex>(i));
    }
    if (writers.size() == 1) wiring.assign(ports.size(), writers.front());
    if (writers.size() > 1 && !out_port_known_ && functions_known_) {
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

  void refuse_unsupported() {
    const std::size_t count = count_of(loaded_.unsupported);
    if (count == 0) return;
    append(errors_, std::move(loaded_.unsupported));
    loaded_.unsupported.clear();
    mistake({"--strict", 0, 0}, fmt::format("refused because of the {} above",
                                            count == 1 ? "construct" : fmt::format("{} constructs", count)));
  }

  ChainDescription description_;
  const LoadOptions& options_;
  FunctionOutputs function_outputs_;  // must outlive the functions, which may use its logs
  LoadedChain loaded_;
  Errors errors_;
  std::vector<std::string> port_names_;
  bool ports_known_ = false;      // all ports are there; otherwise, those that are missing are unknown
  bool functions_known_ = false;  // the same for functions
  // About the functions made so far:
  std::map<std::string_view, int> count_by_name_;
  bool known_so_far_ = true;     // none is missing; a missing one might choose ports
  bool out_port_known_ = false;  // on every path, one of them chooses the output port
};

}  // namespace

Result<LoadedChain> build_chain(ChainDescription description, const LoadOptions& options) {
  return Builder(std::move(description), options).build();
}

}  // namespace penstock::config
