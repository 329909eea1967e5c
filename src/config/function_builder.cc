// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/function_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/fork_builder.h"
#include "config/outputs.h"
#include "function/chain_member.h"
#include "function/own_process.h"
#include "process/remote_function.h"

namespace penstock::config {

namespace {

class FunctionBuilder {
 public:
  FunctionBuilder(const ChainDescription& description, const FunctionSurroundings& surroundings)
      : description_(description), surroundings_(surroundings) {}

  BuiltFunctions build() && {
    built_.out_port_known = surroundings_.out_port_known;
    std::size_t next = 0;
    for (const ForkDescription& fork : description_.forks) {
      make_functions(next, fork.first);
      make_fork(fork);
      next = fork.last;
    }
    make_functions(next, description_.functions.size());
    built_.complete = description_.functions_complete && known_so_far_;
    if (built_.complete) ask_members();
    return std::move(built_);
  }

 private:
  /// Makes functions [first, last) of the description.
  void make_functions(std::size_t first, std::size_t last) {
    for (std::size_t f = first; f < last; ++f) {
      const FunctionDescription& description = description_.functions[f];
      auto function = make_function(f);
      known_so_far_ &= function != nullptr;
      if (function == nullptr) continue;
      const std::string_view name = description.kind->name;
      const int nth = ++count_by_name_[name];
      run::NamedFunction& named = built_.functions.emplace_back(
          run::NamedFunction{nth == 1 ? std::string(name) : fmt::format("{}#{}", name, nth), std::move(function),
                             function::processor_named(description.parameters->text("processor"))});
      check_processor(named, *description.parameters);
      check_connections(named, description);
      built_.positions.push_back(f);
    }
  }

  std::unique_ptr<function::NetworkFunction> make_function(std::size_t f) {
    const FunctionDescription& description = description_.functions[f];
    if (!description.parameters) return nullptr;
    const std::vector<function::NamedLog> logs = logs_of(*description.kind, surroundings_.logs);
    function::NfContext context{surroundings_.ports, out_port_known()};
    context.ports_write = surroundings_.ports_write;
    context.ports_live = surroundings_.ports_live;
    context.ports_answer = surroundings_.ports_answer;
    context.exits = surroundings_.exits;
    context.logs = logs;
    context.shared = &shared_;
    context.device_is_remote = description_.run && description_.run->has("proxy");
    if (f < surroundings_.running.size()) {
      const function::NetworkFunction& running = *surroundings_.running[f].function;
      if (running.traits().name == description.kind->name) context.running = &running;
    }
    auto function =
        description.in_process ? connect(description) : description.kind->make(*description.parameters, context);
    append(built_.unsupported, std::move(context.unsupported));
    append(built_.cautions, std::move(context.cautions));
    append(built_.without_effect, std::move(context.without_effect));
    if (!function) {
      // Several functions may read the same file, such as the firewalls of all hooks.
      std::erase_if(function.error(), [&](const Error& error) {
        return !error.place.file.empty() && error.place.line == 0 &&
               !mistakes_in_files_.insert(to_string(error)).second;
      });
      append(built_.errors, description.parameters->placed(std::move(function.error())));
      return nullptr;
    }
    if (!surroundings_.own_process && dynamic_cast<const function::OwnProcess*>(function->get()) != nullptr) {
      built_.errors.push_back(
          {description.place,
           fmt::format("{}: it needs a process of its own, since its fault would take all functions along",
                       description.kind->name),
           "a function of the chain's own process",
           fmt::format("{}: {{process: SOCKET}}, and `penstock function serve SOCKET FILE`", description.kind->name)});
      return nullptr;
    }
    // Only functions that choose ports write the verdict's port; their traits say so.
    built_.out_port_known |= (*function)->traits().chooses_port;
    return std::move(*function);
  }

  /// To the process that serves the function.
  Result<std::unique_ptr<function::NetworkFunction>> connect(const FunctionDescription& description) const {
    auto settings = process::remote_settings(*description.parameters);
    if (!settings) return failure(std::move(settings.error()));
    settings->function = description.kind->name;
    settings->in_proxy = description_.run && description_.run->has("proxy");
    settings->surroundings.knows_exits = !surroundings_.exits.empty();
    for (std::size_t p = 0; p < surroundings_.ports.size(); ++p) {
      const auto is = [p](const std::vector<bool>& ports) { return p < ports.size() && ports[p]; };
      settings->surroundings.ports.push_back({surroundings_.ports[p], is(surroundings_.ports_read),
                                              is(surroundings_.ports_write), is(surroundings_.ports_live),
                                              is(surroundings_.ports_answer),
                                              p < surroundings_.exits.size() ? surroundings_.exits[p] : kNoPort});
    }
    settings->surroundings.out_port_known = out_port_known();
    auto function = process::connect_function(std::move(*settings));
    if (!function) {
      // The path of a socket is no place in the chain file.
      for (Error& error : function.error()) {
        if (!error.place.file.empty()) error.message = error.place.file + ": " + error.message;
        error.place = description.parameters->place("process");
      }
    }
    return function;
  }

  void check_processor(const run::NamedFunction& named, const Parameters& parameters) {
    if (!named.processor || named.function->traits().access_on(*named.processor) != nullptr) return;
    built_.errors.push_back({parameters.place("processor"),
                             fmt::format("processor: {} has no stage for it", named.name),
                             in_quotes(parameters.text("processor")), "auto or cpu"});
  }

  /// All functions of a chain share the connections of a worker.
  void check_connections(const run::NamedFunction& named, const FunctionDescription& description) {
    const auto& connections = named.function->traits().connections;
    if (!connections) return;
    const auto shares = [&](const run::NamedFunction& other) {
      return other.function->traits().connections.has_value();
    };
    const run::NamedFunction& first = *std::ranges::find_if(built_.functions, shares);
    if (first.function->traits().connections == connections) return;
    built_.errors.push_back(
        {description.place,
         fmt::format("{} and {} track the same connections, but in different ways", first.name, named.name), "",
         "the same parameters about connections in both"});
  }

  /// What the functions say about each other.
  void ask_members() {
    for (std::size_t f = 0; f < built_.functions.size(); ++f) {
      auto* const member = dynamic_cast<function::ChainMember*>(built_.functions[f].function.get());
      if (member == nullptr) continue;
      std::vector<function::NetworkFunction*> chain;
      for (std::size_t other = 0; other < built_.functions.size(); ++other) {
        if (!are_in_different_arms(f, other)) chain.push_back(built_.functions[other].function.get());
      }
      append(built_.errors, member->join(chain));
      append(built_.cautions, member->cautions_in({chain.begin(), chain.end()}));
    }
  }

  /// No packet passes both.
  [[nodiscard]] bool are_in_different_arms(std::size_t a, std::size_t b) const {
    return std::ranges::any_of(built_.forks, [&](const plan::Fork& fork) {
      const auto in = [](std::size_t f, const auto& part) { return part.first <= f && f < part.last; };
      return in(a, fork) && in(b, fork) &&
             std::ranges::none_of(fork.arms, [&](const plan::Arm& arm) { return in(a, arm) && in(b, arm); });
    });
  }

  void make_fork(const ForkDescription& description) {
    const bool known_before = built_.out_port_known;
    bool known_after_arms = true;  // after each arm
    plan::Fork fork{built_.functions.size(), 0, {}};
    for (const ArmDescription& arm : description.arms) {
      built_.out_port_known = known_before;
      make_arm(arm, fork);
      known_after_arms &= built_.out_port_known;
    }
    // For packets that take no arm, nothing changes.
    built_.out_port_known = known_after_arms && (known_before || fork.exhaustive());
    known_so_far_ &= description.complete;
    fork.last = built_.functions.size();
    if (fork.last > fork.first) built_.forks.push_back(std::move(fork));
  }

  void make_arm(const ArmDescription& description, plan::Fork& fork) {
    const ForkContext context{surroundings_.ports, surroundings_.ports_read, surroundings_.ports_write,
                              out_port_known()};
    std::optional<plan::Arm> arm = config::make_arm(description, context, built_.errors);
    known_so_far_ &= arm.has_value();
    const std::size_t first = built_.functions.size();
    make_functions(description.first, description.last);
    if (!arm) return;
    if (fork.covers(*arm)) {
      built_.errors.push_back(
          {description.place, "fork: no packet takes this arm", arm->text, "a condition that no earlier arm covers"});
    }
    arm->first = first;
    arm->last = built_.functions.size();
    fork.arms.push_back(std::move(*arm));
  }

  /// If a function is missing, it might have chosen the port.
  [[nodiscard]] bool out_port_known() const { return built_.out_port_known || !known_so_far_; }

  const ChainDescription& description_;
  const FunctionSurroundings& surroundings_;
  BuiltFunctions built_;
  // About the functions made so far:
  std::map<std::string_view, int> count_by_name_;
  function::SharedObjects shared_;
  bool known_so_far_ = true;  // none is missing
  std::set<std::string> mistakes_in_files_;
};

}  // namespace

BuiltFunctions build_functions(const ChainDescription& description, const FunctionSurroundings& surroundings) {
  return FunctionBuilder(description, surroundings).build();
}

void refuse_unsupported(Errors& unsupported, Errors& errors) {
  const std::size_t count = count_of(unsupported);
  if (count == 0) return;
  append(errors, std::move(unsupported));
  unsupported.clear();
  errors.push_back(
      {{"--strict", 0, 0},
       fmt::format("refused because of the {} above", count == 1 ? "construct" : fmt::format("{} constructs", count)),
       "",
       ""});
}

}  // namespace penstock::config
