// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/filter.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "cli/chain_arguments.h"
#include "cli/filter_engines.h"
#include "cli/filter_pass.h"
#include "cli/filter_programs.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"
#include "cli/stop_watch.h"
#include "nf/filter/bpf/dump.h"
#include "nf/filter/bpf/read_program.h"
#include "port/raw_capture_reader.h"

namespace penstock::cli {

namespace {

/// libpcap's greatest, and tcpdump's default.
constexpr std::uint64_t kMostSnapLength = 262144;

struct FilterArguments {
  std::optional<std::string> read;
  std::vector<std::string> outputs;
  std::optional<std::string> program;
  std::vector<std::string> expression;
  std::string engine = "auto";
  std::uint64_t most = FilterPass::kAll;
  std::string link_type;
  std::uint64_t snap_length = kMostSnapLength;
  int dump = 0;
  bool count = false, returns = false, json = false, no_optimize = false;
};

/// A program and what is done with its packets.
struct Filter {
  std::string output;      // a path; empty if none
  std::string expression;  // or the file of -F
  Place place;             // of the expression
  bool from_file = false;
};

/// The words as one expression, as tcpdump joins them.
std::string join(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

Result<std::vector<Filter>> filters_of(const FilterArguments& arguments) {
  const bool has_expression = !arguments.expression.empty() || arguments.program;
  const Filter common{
      "", arguments.program ? *arguments.program : join(arguments.expression), {}, arguments.program.has_value()};
  if (arguments.program && !arguments.expression.empty()) {
    return failure(
        {{"-F", 0, 0}, "given together with an expression", in_quotes(join(arguments.expression)), "one of them"});
  }
  std::vector<Filter> filters;
  bool is_used = false;
  for (const std::string& output : arguments.outputs) {
    const std::size_t at = output.find('=');
    // tcpdump's only form: any file name.
    const bool is_name = at == output.npos || (arguments.outputs.size() == 1 && has_expression);
    Filter filter = common;
    filter.output = is_name ? output : output.substr(0, at);
    if (!is_name) {
      filter.expression = output.substr(at + 1);
      filter.place.file = "-w " + filter.output;
      filter.from_file = false;
    }
    is_used |= is_name;
    if (filter.output.empty()) return failure({{"-w", 0, 0}, "no file", in_quotes(output), "NAME=EXPRESSION"});
    // All packets would match, which is hardly what a script with an unset variable wants.
    if (!is_name && trimmed(filter.expression).empty()) {
      return failure({{"-w", 0, 0}, "no expression", in_quotes(output), "NAME=EXPRESSION"});
    }
    if (!is_name && trimmed(filter.output) != filter.output) {
      return failure(
          {{"-w", 0, 0}, "the name of the file begins or ends with a space", in_quotes(output), "NAME=EXPRESSION"});
    }
    filters.push_back(std::move(filter));
  }
  if (!filters.empty() && has_expression && !is_used) {
    return failure({{"-w", 0, 0},
                    "every output has an expression of its own, so this one has no use",
                    in_quotes(common.expression),
                    "an output without ="});
  }
  if (filters.empty()) filters.push_back(common);
  return filters;
}

/// The file or pipe behind a path; "-" is the descriptor. None for devices, such as /dev/null.
std::optional<struct stat> file_of(const std::string& path, int descriptor) {
  struct stat status {};
  const int result = path == "-" ? ::fstat(descriptor, &status) : ::stat(path.c_str(), &status);
  if (result != 0 || !(S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))) return {};
  return status;
}

bool is_same(const std::optional<struct stat>& a, const std::optional<struct stat>& b) {
  return a && b && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/// Whether the path names a descriptor that this program does not have yet, but may open for its input.
bool is_missing_descriptor(const std::string& path) {
  struct stat status {};
  return (path.starts_with("/dev/fd/") || path.starts_with("/proc/")) && ::stat(path.c_str(), &status) != 0;
}

/// Two names of one file, or of the input, would destroy it.
Errors check_files(const FilterArguments& arguments, const std::vector<Filter>& filters) {
  const std::string input = arguments.read.value_or("-");
  const auto input_file = file_of(input, STDIN_FILENO);
  const auto program_file = arguments.program ? file_of(*arguments.program, STDIN_FILENO) : std::nullopt;
  std::vector<std::optional<struct stat>> output_files;
  output_files.reserve(filters.size());
  for (const Filter& filter : filters) output_files.push_back(file_of(filter.output, STDOUT_FILENO));
  Errors errors;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const std::string& output = filters[i].output;
    if (output.empty()) continue;
    const auto& output_file = output_files[i];
    if (is_same(input_file, output_file) && S_ISREG(input_file->st_mode)) {
      errors.push_back({{"-w", 0, 0}, "would overwrite the input", in_quotes(output), "another file"});
    }
    if (is_same(program_file, output_file) && S_ISREG(program_file->st_mode)) {
      errors.push_back({{"-w", 0, 0}, "would overwrite the file of -F", in_quotes(output), "another file"});
    }
    if (is_missing_descriptor(output)) {
      errors.push_back({{"-w", 0, 0}, "no such descriptor", in_quotes(output), "one that is open"});
    }
    for (std::size_t j = 0; j < i; ++j) {
      const std::string& other = filters[j].output;
      const bool same_path =
          output != "-" && other != "-" && !other.empty() && resolved_path(other) == resolved_path(output);
      if (other == output || is_same(output_files[j], output_file) || same_path) {
        errors.push_back({{"-w", 0, 0}, "given twice for the same file", in_quotes(output), "another file"});
        break;
      }
    }
    if (output == "-" && (arguments.count || arguments.returns || arguments.json)) {
      errors.push_back(
          {{"-w", 0, 0}, "the packets and the result would both go to the standard output", "-", "a file"});
    }
  }
  if (arguments.returns && (filters.size() > 1 || !filters.front().output.empty())) {
    errors.push_back(
        {{"--returns", 0, 0}, "prints the return values of one program and writes no packets", "-w", "no -w"});
  }
  if (arguments.returns && (arguments.count || arguments.json)) {
    errors.push_back({{"--returns", 0, 0}, "given together with --count or --json", "", "one of them"});
  }
  if (arguments.program == "-" && input == "-" && arguments.dump == 0) {
    errors.push_back({{"-F", 0, 0}, "the standard input is read for the packets", "-", "a file"});
  }
  return errors;
}

/// Programs are verified; `instructions` are those before that.
struct Compiled {
  std::vector<filter::Instruction> instructions;
  filter::Program program;
};

Result<Compiled> compile(const Filter& filter, pcap* capture, bool optimize) {
  std::string expression = filter.expression;
  Place place = filter.place;
  const int link_type = pcap_datalink(capture);
  if (filter.from_file) {
    auto file = read_filter_file(filter.expression);
    if (!file) return tl::unexpected(std::move(file.error()));
    if (file->is_program) {
      auto program = filter::read_program(file->text, file->name, link_type);
      if (!program) return tl::unexpected(std::move(program.error()));
      const auto instructions = program->source();
      return Compiled{{instructions.begin(), instructions.end()}, std::move(*program)};
    }
    expression = std::move(file->text);
    place.file = file->name;
  }
  auto instructions = compile_for(capture, expression, optimize, place);
  if (!instructions) return tl::unexpected(std::move(instructions.error()));
  auto program = filter::Program::verify(*instructions, place, false, link_type);
  if (!program) return tl::unexpected(std::move(program.error()));
  return Compiled{std::move(*instructions), std::move(*program)};
}

/// Compiles all filters, so that all mistakes are reported at once.
Result<std::vector<Compiled>> compile(const std::vector<Filter>& filters, pcap* capture, bool optimize) {
  std::vector<Compiled> all;
  Errors errors;
  for (const Filter& filter : filters) {
    auto compiled = compile(filter, capture, optimize);
    if (compiled) {
      all.push_back(std::move(*compiled));
    } else {
      append(errors, std::move(compiled.error()));
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return all;
}

int print_programs(const std::vector<Compiled>& programs, int form) {
  std::string text;
  for (const Compiled& compiled : programs) {
    const auto as = form == 1 ? filter::DumpForm::listing : form == 2 ? filter::DumpForm::c : filter::DumpForm::decimal;
    text += filter::dump(compiled.instructions, as);
  }
  return print_results(text, false, {});
}

/// -d without a capture.
int print_programs_of(const std::vector<Filter>& filters, const FilterArguments& arguments) {
  int link_type = DLT_EN10MB;
  if (!arguments.link_type.empty()) {
    const auto number = parse_integer(arguments.link_type);
    link_type =
        number && *number <= 65535 ? static_cast<int>(*number) : pcap_datalink_name_to_val(arguments.link_type.c_str());
    if (link_type < 0) {
      return refuse({{{"-y", 0, 0}, "unknown link type", in_quotes(arguments.link_type), "a name such as EN10MB"}});
    }
  }
  const std::uint64_t snap_length = arguments.snap_length == 0 ? kMostSnapLength : arguments.snap_length;
  const port::PcapHandle dead(pcap_open_dead(link_type, static_cast<int>(snap_length)));
  const auto programs = compile(filters, dead.get(), !arguments.no_optimize);
  return programs ? print_programs(*programs, arguments.dump) : refuse(programs.error());
}

// A page of the input cannot be read any more: there is no way to go on.
extern "C" void end_at_lost_page(int) {
  constexpr std::string_view kText = "penstock filter: reading the input failed, or it was truncated meanwhile\n";
  static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
  ::_exit(kFailed);
}

bool print_returns(std::span<const std::uint32_t> returns, Errors& errors) {
  fmt::memory_buffer text;
  for (const std::uint32_t value : returns) fmt::format_to(fmt::appender(text), "{}\n", value);
  auto written = write_stdout({text.data(), text.size()});
  if (!written) errors = std::move(written.error());
  return errors.empty();
}

std::string packets_text(std::uint64_t count) { return fmt::format("{} packet{}", count, count == 1 ? "" : "s"); }

/// tcpdump's line for one filter.
std::string summary(const FilterPass& pass, const std::vector<Filter>& filters) {
  if (filters.size() == 1) return packets_text(pass.matches(0)) + "\n";
  std::string text;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    text += fmt::format("{}: {}\n", printable(filters[i].output), packets_text(pass.matches(i)));
  }
  return text;
}

std::string json_summary(const FilterPass& pass, const std::vector<Filter>& filters, const FilterEngine& engine,
                         const Errors& errors) {
  nlohmann::ordered_json json{{"packets", pass.packets()}, {"engine", engine.name()}};
  json["filters"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < filters.size(); ++i) {
    nlohmann::ordered_json filter{{filters[i].from_file ? "file" : "expression", filters[i].expression},
                                  {"output", nullptr},
                                  {"matches", pass.matches(i)}};
    if (!filters[i].output.empty()) filter["output"] = filters[i].output;
    json["filters"].push_back(std::move(filter));
  }
  json["errors"] = nlohmann::ordered_json::array();
  for (const Error& error : errors) json["errors"].push_back(to_string(error));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Replaces the progress line now and then.
class ProgressLine {
 public:
  ProgressLine(const port::ReadControl& control, std::uint64_t size) noexcept : control_(&control), size_(size) {}
  void show(std::uint64_t packets) {
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(500)) return;
    last_ = now;
    run::Progress progress;
    progress.elapsed = now - start_;
    progress.packets_in = packets;
    progress.bytes_in = control_->bytes_read.load(std::memory_order_relaxed);
    if (size_ > 0) progress.part = static_cast<double>(progress.bytes_in) / static_cast<double>(size_);
    print_progress(progress);
  }

 private:
  using Clock = std::chrono::steady_clock;

  const port::ReadControl* control_;
  std::uint64_t size_;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

int filter(const FilterArguments& arguments) {
  const auto filters = filters_of(arguments);
  if (!filters) return refuse(filters.error());
  if (const Errors errors = check_files(arguments, *filters); !errors.empty()) return refuse(errors);
  if (arguments.dump > 0 && !arguments.read) return print_programs_of(*filters, arguments);
  if (!arguments.read && ::isatty(STDIN_FILENO) == 1) {
    return refuse({{{"-r", 0, 0}, "no capture, and the standard input is a terminal", "", "-r FILE"}});
  }
  const std::atomic<bool>& stop = stop_on_signals();
  std::signal(SIGBUS, end_at_lost_page);
  const StopWatch watch(stop);
  port::ReadControl control;
  control.stop_fd = watch.fd();
  auto reader = port::RawCaptureReader::open(arguments.read.value_or("-"), control);
  if (!reader) return fail(reader.error());
  auto compiled = [&] {
    const SignalsEndProgram compiling;  // libpcap takes minutes for some expressions
    return compile(*filters, (*reader)->capture(), !arguments.no_optimize);
  }();
  if (!compiled) return refuse(compiled.error());
  if (arguments.dump > 0) return print_programs(*compiled, arguments.dump);

  std::vector<filter::Program> programs;
  for (Compiled& one : *compiled) programs.push_back(std::move(one.program));
  auto engine = make_filter_engine(arguments.engine, std::move(programs), arguments.returns);
  if (!engine) return refuse(engine.error());

  FilterPass pass(**reader, **engine, filters->size());
  pass.stop_after(arguments.most);
  const Result<port::RawCaptureReader::FileHeader> header = (*reader)->file_header();
  std::vector<FilterOutput> outputs;
  for (const Filter& one : *filters) {
    if (one.output.empty()) break;
    if (!header) return fail(header.error());
    auto output = FilterOutput::open(one.output, watch.fd());
    if (!output) return fail(output.error());
    outputs.push_back(std::move(*output));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].begin(*header);
    pass.write(i, std::move(outputs[i]));
  }
  Errors print_errors;
  if (arguments.returns) {
    pass.take_returns([&](std::span<const std::uint32_t> returns) { return print_returns(returns, print_errors); });
  }
  const bool progress = shows_progress();
  ProgressLine line(control, (*reader)->size_on_disk());
  if (progress) {
    pass.on_progress([&](std::uint64_t packets) { line.show(packets); });
  }
  Errors errors = pass.run(stop);
  nothing_left_to_stop();
  if (progress) end_progress();
  append(errors, std::move(print_errors));
  std::string text;
  if (arguments.json) {
    text = json_summary(pass, *filters, **engine, errors);
  } else if (arguments.count || (!arguments.returns && filters->front().output.empty())) {
    text = summary(pass, *filters);
  }
  return print_results(text, false, std::move(errors));
}

}  // namespace

void add_filter(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<FilterArguments>();
  CLI::App* command = app.add_subcommand("filter", "Write the packets of a capture that match, like tcpdump -r -w");
  command->add_option("EXPRESSION", arguments->expression,
                      "libpcap expression (pcap-filter(7)), as one or several arguments; default: all packets match");
  command
      ->add_option("-r", arguments->read,
                   "pcap or pcapng file, also compressed with gzip or zstd; - is standard input (the default)")
      ->check(not_empty("a file, or -"))
      ->type_name("FILE");
  command
      ->add_option("-w", arguments->outputs,
                   "write the packets that match to this capture; - is standard output. NAME=EXPRESSION writes the\n"
                   "packets that match another expression; may be repeated")
      ->check(not_empty("a file, -, or NAME=EXPRESSION"))
      ->type_name("FILE|NAME=EXPRESSION")
      ->allow_extra_args(false)
      ->take_all();
  command
      ->add_option("-F", arguments->program,
                   "read the filter from this file: a program, as tcpdump -ddd prints it, or an expression, in which\n"
                   "# begins a comment. The first line of a program is a number")
      ->check(not_empty("a file, or -"))
      ->type_name("FILE");
  command->add_option("-c", arguments->most, "end after this number of packets that match; for each output")
      ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()))
      ->type_name("N");
  command->add_flag("--count", arguments->count, "print the number of packets that match; the default without -w");
  command->add_flag("--returns", arguments->returns, "print the program's return value for each packet, one per line");
  command->add_flag("-d", arguments->dump,
                    "print the program instead of running it: -d as a listing, -dd as C, -ddd as numbers for -F.\n"
                    "Without -r for an Ethernet capture");
  command->add_option("-y", arguments->link_type, "link type for -d without -r, instead of EN10MB")->type_name("NAME");
  command
      ->add_option("-s", arguments->snap_length,
                   "snapshot length for -d without -r: what programs return for packets that match. As in tcpdump,\n"
                   "packets that are read from a capture are not truncated, and 0 means the default")
      ->check(whole_number(0, std::numeric_limits<std::int32_t>::max()))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("-O", arguments->no_optimize, "do not optimise the program");
  command
      ->add_flag_function(
          "-n,-U,-v,-e,-q,-t,-A,-X,-x,-l,-K,-N,-S,-p", [](std::int64_t) {},
          "for scripts written for tcpdump: no effect, as packets are not printed")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option(
          "--engine", arguments->engine,
          "what runs the programs: auto is jit, machine code, if this build has it, or else interpreter;\n"
          "libpcap is the interpreter of libpcap; gpu interprets on a GPU, and gpu-generated runs code that was\n"
          "generated from the programs, which pays off with many of them")
      ->check(CLI::IsMember(filter_engine_names()))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "print the numbers of packets as JSON");
  command->footer(
      "The output is, byte for byte, what tcpdump -r FILE -w FILE EXPRESSION writes. Packets are not printed: without\n"
      "-w and --returns, the result is their number. Of a damaged capture, the packets before the damage are written,\n"
      "and the exit code is 1. A wrong expression is refused with exit code 2. So is a program that jumps\n"
      "beyond its end, has an unknown instruction or divides by the constant 0.");
  command->callback([arguments, &exit_code] { exit_code = filter(*arguments); });
}

}  // namespace penstock::cli
