// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/reload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/chain_builder.h"
#include "config/chain_description.h"
#include "config/file_conflicts.h"
#include "config/fixed_parts.h"
#include "config/function_builder.h"
#include "config/yaml_file.h"
#include "plan/fit.h"

namespace penstock::config {

namespace {

namespace fs = std::filesystem;

/// Whether the path stands for a descriptor of the process, such as /dev/stdin or the /dev/fd/63 of a shell's <(…).
bool names_descriptor(const fs::path& path) {
  std::error_code error;  // the working directory may be gone
  const std::string text = fs::absolute(path, error).lexically_normal().string();
  if (text == "/dev/stdin") return true;
  if (text.starts_with("/dev/fd/")) return true;
  return text.starts_with("/proc/") && text.find("/fd/") != std::string::npos;
}

/// The same, after symbolic links to it.
bool leads_to_descriptor(fs::path path) {
  constexpr int kMostLinks = 40;  // as in Linux
  std::error_code error;
  for (int links = 0; links < kMostLinks; ++links) {
    if (names_descriptor(path)) return true;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return false;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return false;
}

/// An error if the file is there and reading it a second time would block, or not give its whole content. It must not
/// be opened for that: a pipe would block until it has a writer.
std::optional<Error> check_readable_again(const Parameters::File& file) {
  static constexpr std::size_t kShown = 200;  // bytes; paths can be long
  const auto refuse = [&](std::string_view what) {
    return Error{file.place, fmt::format("{} cannot be read again", what), in_quotes(file.path, kShown),
                 "a regular file"};
  };
  if (file.path == "-" || leads_to_descriptor(file.path)) return refuse("the standard input or a descriptor");
  std::error_code error;
  const fs::file_status status = fs::status(file.path, error);
  switch (status.type()) {
    case fs::file_type::fifo: return refuse("a pipe");
    case fs::file_type::socket: return refuse("a socket");
    case fs::file_type::character:
    case fs::file_type::block: return refuse("a device");
    default: return std::nullopt;  // if it is missing or a folder, its reader reports that
  }
}

class Planner {
 public:
  Planner(const LoadedChain& running, ChainDescription description, const LoadOptions& options)
      : running_(running),
        description_(std::move(description)),
        options_(options),
        errors_(std::move(description_.errors)) {}

  Result<Reload> plan() {
    Errors differences = check_unchanged(running_.fixed, fixed_parts(description_));
    same_chain_ = differences.empty();
    append(errors_, std::move(differences));
    leave_out_unreadable();
    append(errors_, file_conflicts(description_.files));
    const FunctionSurroundings surroundings = same_chain_ ? surroundings_of_running() : surroundings_of_description();
    BuiltFunctions built;
    if (!surroundings.ports.empty()) built = build_functions(description_, surroundings);
    append(errors_, std::move(built.errors));
    if (same_chain_) compare(built);
    reload_.unsupported = std::move(built.unsupported);
    reload_.without_effect = running_.fixed_without_effect;
    append(reload_.without_effect, std::move(built.without_effect));
    reload_.cautions = running_.fixed_cautions;
    append(reload_.cautions, std::move(built.cautions));
    if (options_.strict) refuse_unsupported(reload_.unsupported, errors_);
    if (!errors_.empty()) return failure(in_file_order(std::move(errors_)));
    bind_texts(built.functions);
    for (run::NamedFunction& function : built.functions) reload_.functions.push_back(std::move(function.function));
    return std::move(reload_);
  }

 private:
  /// Functions whose files must not be opened are not built.
  void leave_out_unreadable() {
    for (FunctionDescription& function : description_.functions) {
      if (!function.parameters) continue;
      const std::size_t before = errors_.size();
      for (const Parameters::File& file : function.parameters->files()) {
        if (file.written) continue;
        if (auto error = check_readable_again(file)) errors_.push_back(std::move(*error));
      }
      if (errors_.size() > before) function.parameters.reset();
    }
  }

  /// The ports in their order in the running chain, whatever their order in the file.
  [[nodiscard]] FunctionSurroundings surroundings_of_running() const {
    FunctionSurroundings surroundings;
    for (const run::NamedPort& port : running_.chain.ports) {
      surroundings.ports.push_back(port.name);
      surroundings.ports_read.push_back(port.port->reads());
      surroundings.ports_write.push_back(port.port->writes());
      surroundings.ports_live.push_back(port.port->interface().has_value());
      surroundings.ports_answer.push_back(port::reaches_senders(*port.port));
    }
    surroundings.logs = running_.logs;
    surroundings.exits = running_.chain.wiring;
    surroundings.running = running_.chain.functions;
    return surroundings;
  }

  /// If the ports have changed, functions are only built to find their mistakes, with the ports that the file names.
  [[nodiscard]] FunctionSurroundings surroundings_of_description() const {
    FunctionSurroundings surroundings;
    for (const PortDescription& port : description_.ports) surroundings.ports.push_back(port.name);
    surroundings.ports_read.assign(surroundings.ports.size(), true);
    surroundings.ports_write.assign(surroundings.ports.size(), true);
    surroundings.ports_live.assign(surroundings.ports.size(), false);
    surroundings.ports_answer.assign(surroundings.ports.size(), false);
    surroundings.exits.assign(surroundings.ports.size(), kNoPort);
    surroundings.logs = running_.logs;
    return surroundings;
  }

  /// Compares each function that could be built with the running one at its position.
  void compare(const BuiltFunctions& built) {
    // If mistakes hide a part of the chain, positions have no meaning.
    if (description_.functions.size() != running_.chain.functions.size()) return;
    const plan::Processors processors = running_.chain.processors();
    for (std::size_t i = 0; i < built.functions.size(); ++i) {
      const std::size_t at = built.positions[i];
      const run::NamedFunction& running = running_.chain.functions[at];
      const function::NetworkFunction& next = *built.functions[i].function;
      const bool same_kind = next.traits().name == running.function->traits().name;
      auto changes = same_kind ? next.changes_from(*running.function) : Result<std::string>();
      const Errors misfits = plan::check_fit(running.name, running_.planned[at], next.traits(), processors[at]);
      // What the function says is plainer than what follows from it.
      if (changes && !misfits.empty()) {
        for (const Error& error : misfits) refuse(at, error);
      } else if (!changes) {
        for (Error& error : changes.error()) {
          error.message = fmt::format("{}: {}", running.name, error.message);
          refuse(at, std::move(error));
        }
      } else if (!same_tracking(next, *running.function)) {
        refuse(at, {{},
                    fmt::format("{}: the options of flows and streams cannot change in a reload: it needs a new run",
                                running.name),
                    "",
                    ""});
      } else if (!changes->empty()) {
        reload_.changes.push_back({running.name, std::move(*changes)});
      }
    }
  }

  /// The trackers of the running chain stay. Only how far back streams are offered may follow the rules.
  [[nodiscard]] static bool same_tracking(const function::NetworkFunction& next,
                                          const function::NetworkFunction& running) {
    if (next.traits().stack <= stack::StackNeed::flow) return true;
    stack::TrackerOptions before = running.stack_options();
    stack::TrackerOptions now = next.stack_options();
    before.seam_bytes = now.seam_bytes = 0;
    return now == before;
  }

  /// Errors without a place are about the function at this position.
  void refuse(std::size_t position, Error error) {
    if (error.place.file.empty()) error.place = description_.functions[position].place;
    errors_.push_back(std::move(error));
  }

  void bind_texts(const std::vector<run::NamedFunction>& functions) {
    for (const TextOutput& text : running_.texts) {
      TextOutput bound{text.kind, text.path, {}};
      for (std::size_t i = 0; i < functions.size(); ++i) {
        const FunctionDescription& function = description_.functions[i];
        if (!function.in_process && writes_output(*function.kind, text.kind->name))
          bound.functions.push_back(functions[i].function.get());
      }
      reload_.texts.push_back(std::move(bound));
    }
  }

  const LoadedChain& running_;
  ChainDescription description_;
  const LoadOptions& options_;
  Errors errors_;
  Reload reload_;
  bool same_chain_ = false;
};

}  // namespace

Result<Reload> plan_reload(const LoadedChain& running, const std::string& path, const LoadOptions& options) {
  if (auto error = check_readable_again({path, {path, 0, 0}, false})) return failure(std::move(*error));
  auto description = describe(YamlFile::read(path), options);
  if (!description) return failure(std::move(description).error());
  return Planner(running, std::move(*description), options).plan();
}

}  // namespace penstock::config
