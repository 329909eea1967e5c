// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of `kernel`, and how it is built from them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "nf/kernel/gpu_device.h"
#include "nf/kernel/kernel.h"

namespace penstock::kernel {

namespace {

constexpr auto kParameters = std::to_array<Parameter>({
    {"module", ParameterType::path, "", "", "cubin, fatbin or PTX with the kernel (see kernel_abi.h)", true},
    {"entry", ParameterType::text, "", "", "name of the kernel in the module", true},
    {"reads", ParameterType::texts, "", "",
     "fields of frames that the kernel reads; by default all. Without payload and trailer, it sees frames up to the "
     "end "
     "of their headers"},
    {"writes", ParameterType::texts, "", "", "fields of frames that the kernel writes, and mark; by default none"},
    {"drops", ParameterType::texts, "", "",
     "reasons for which the kernel drops packets, in the order of their numbers; by default it drops none"},
    {"parameters", ParameterType::pairs, "", "", "integer variables of the module, and the values that they get"},
    {"table", ParameterType::path, "", "", "file of which the kernel gets the content, in the GPU's memory"},
    {"block", ParameterType::integer, "128", "1..1024", "threads of a block"},
    {"gpu", ParameterType::integer, "0", "0..255", "index of the GPU"},
    {"limit", ParameterType::duration, "1s", "", "time for a launch; then the function's process ends"},
});

constexpr std::size_t kMostReasons = 64;
constexpr std::size_t kLongestReason = 47;

/// Empty: there is none of this name.
FieldSet field_named(std::string_view text) {
  for (unsigned f = 0; f < kFieldCount; ++f) {
    if (name(static_cast<Field>(f)) == text) return {static_cast<Field>(f)};
  }
  return {};
}

/// Those of frames, and `more`.
FieldSet read_fields(const Parameters& parameters, std::string_view list, FieldSet more, Errors& errors) {
  FieldSet allowed = more;
  std::vector<std::string_view> names;
  for (unsigned f = 0; f < kByteFieldCount; ++f) allowed |= {static_cast<Field>(f)};
  for (unsigned f = 0; f < kFieldCount; ++f) {
    if (allowed.has(static_cast<Field>(f))) names.push_back(name(static_cast<Field>(f)));
  }
  FieldSet fields;
  for (std::size_t i = 0; i < parameters.texts(list).size(); ++i) {
    const std::string& text = parameters.texts(list)[i];
    const FieldSet named = field_named(text);
    if ((named & allowed).empty()) {
      errors.push_back({parameters.place(list, i),
                        fmt::format("{}: {}", list, named.empty() ? "unknown field" : "not a field of a frame"),
                        in_quotes(text), expected_name(text, names)});
    }
    fields |= named & allowed;
  }
  return fields;
}

std::vector<std::string> read_drops(const Parameters& parameters, Errors& errors) {
  std::vector<std::string> drops;
  if (!parameters.has("drops")) return drops;
  const auto is_word = [](std::string_view text) {
    return !text.empty() && text.size() <= kLongestReason && std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
  };
  const std::vector<std::string>& texts = parameters.texts("drops");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!is_word(texts[i]) || texts[i] == "process_lost") {
      errors.push_back(
          {parameters.place("drops", i), "drops: wrong name of a reason", in_quotes(texts[i]),
           fmt::format("at most {} lower-case letters, digits and '_', other than process_lost", kLongestReason)});
    } else if (std::ranges::find(drops, texts[i]) != drops.end()) {
      errors.push_back({parameters.place("drops", i), "drops: given twice", in_quotes(texts[i]), "another reason"});
    } else {
      drops.push_back(texts[i]);
    }
  }
  if (drops.size() > kMostReasons)
    errors.push_back({parameters.place("drops"), "drops: too many reasons", std::to_string(drops.size()),
                      fmt::format("{} or fewer", kMostReasons)});
  return drops;
}

std::optional<std::uint64_t> read_number(std::string_view text) noexcept {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<Value> read_values(const Parameters& parameters, Errors& errors) {
  std::vector<Value> values;
  if (!parameters.has("parameters")) return values;
  const std::vector<std::string>& pairs = parameters.texts("parameters");
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::size_t equals = pairs[i].find('=');
    const std::string text = pairs[i].substr(equals + 1);
    const auto number = read_number(text);
    if (!number) {
      errors.push_back({parameters.place("parameters", i), "parameters: not a number", in_quotes(text),
                        "0 to 18446744073709551615, or hexadecimal digits after 0x"});
    }
    values.push_back({pairs[i].substr(0, equals), number.value_or(0)});
  }
  return values;
}

Result<std::unique_ptr<function::NetworkFunction>> make(const Parameters& parameters,
                                                        function::NfContext& /*context*/) {
  Errors errors;
  Declaration declaration;
  if (parameters.has("reads")) {
    declaration.reads = read_fields(parameters, "reads", {}, errors);
  } else {
    for (unsigned f = 0; f < kByteFieldCount; ++f) declaration.reads |= {static_cast<Field>(f)};
  }
  if (parameters.has("writes")) declaration.writes = read_fields(parameters, "writes", {Field::mark}, errors);
  declaration.drops = read_drops(parameters, errors);
  Program program;
  program.entry = parameters.text("entry");
  program.values = read_values(parameters, errors);
  program.block = static_cast<unsigned>(parameters.integer("block"));
  program.gpu = static_cast<int>(parameters.integer("gpu"));
  program.limit = parameters.duration("limit");
  constexpr std::chrono::milliseconds kLeast{1}, kMost{60'000};
  if (program.limit < kLeast || program.limit > kMost)
    errors.push_back({parameters.place("limit"), "limit: out of range", in_quotes(parameters.text("limit")),
                      fmt::format("{} to {}", format_duration(kLeast), format_duration(kMost))});
  if (parameters.has("processor") && parameters.text("processor") == "cpu")
    errors.push_back(
        {parameters.place("processor"), "processor: a kernel has no stage for it", "'cpu'", "auto or gpu"});
  program.path = parameters.text("module");
  if (auto module = read_module(program.path, program.entry)) {
    program.module = std::move(*module);
  } else {
    append(errors, std::move(module.error()));
  }
  if (parameters.has("table")) {
    if (auto table = read_binary_file(parameters.text("table"), kMostTableBytes)) {
      program.table = std::move(*table);
    } else {
      append(errors, std::move(table.error()));
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  declaration.what = fmt::format("kernel {} of a {} of {}", program.entry, name(program.module.format),
                                 format_size(program.module.code.size()));
  if (!program.table.empty()) declaration.what += fmt::format(", table of {}", format_size(program.table.size()));
  const Place& place = parameters.place("module");
  return make_kernel(std::move(declaration), [program = std::move(program), place] {
    auto device = make_gpu_device(program);
    if (!device) {
      for (Error& error : device.error()) {
        if (error.place.file.empty()) error.place = place;
      }
    }
    return device;
  });
}

}  // namespace

const function::NfKind& kernel_kind() {
  static constexpr function::NfKind kKind{"kernel", "runs somebody else's kernel on a GPU, in a process of its own",
                                          kParameters, &make};
  return kKind;
}

}  // namespace penstock::kernel
