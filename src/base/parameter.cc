// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/parameter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text_file.h"

namespace penstock {

namespace {

std::string resolve_path(const std::string& path, const std::string& base) {
  if (base.empty() || path.empty() || path.front() == '/' || path == "-") return path;  // "-": standard input or output
  return (std::filesystem::path(base) / path).lexically_normal().string();
}

std::string_view type_name(ParameterType type) {
  switch (type) {
    case ParameterType::text: return "text";
    case ParameterType::path: return "a file";
    case ParameterType::texts: return "a text or a list of texts";
    case ParameterType::paths: return "a file or a list of files";
    case ParameterType::output: return "a file to write";
    case ParameterType::integer: return "a whole number";
    case ParameterType::integers: return "distinct whole numbers such as 0,1";
    case ParameterType::cpus: return "distinct numbers and ranges such as 2-5,8";
    case ParameterType::size: return "a size such as 4MiB";
    case ParameterType::duration: return "a time such as 500us or 1ms";
    case ParameterType::rate: return "a rate such as 10Gbps or 2Mpps";
    case ParameterType::choice: return "one of";
    case ParameterType::flag: return "true or false";
    case ParameterType::pairs: return "a mapping";
    case ParameterType::entries: return "a list of mappings";
  }
  return "";
}

std::string expected_of(const Parameter& parameter) {
  std::string range(parameter.range);
  if (parameter.type == ParameterType::choice) {
    std::string list;
    const auto choices = split(parameter.range, '|');
    for (std::size_t i = 0; i < choices.size(); ++i) {
      list += i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ";
      list += choices[i];
    }
    return list;
  }
  if (parameter.type == ParameterType::rate && !range.empty()) return "a rate in " + range;  // the range shows the unit
  std::string text(type_name(parameter.type));
  if (parameter.type == ParameterType::pairs && !range.empty()) {
    return fmt::format("{} or {}", fmt::join(split(range, '|'), ", "), text);
  }
  if (parameter.type == ParameterType::path && !range.empty()) return "a path, or " + range;
  if ((parameter.type == ParameterType::paths || parameter.type == ParameterType::output) && !range.empty())
    return text + ", or " + range;
  if (!range.empty()) text += " in " + range;
  return text;
}

bool in_range(std::uint64_t value, std::string_view range, auto parse) {
  if (range.empty()) return true;
  const std::size_t dots = range.find("..");
  const auto least = parse(range.substr(0, dots));
  const auto most = parse(range.substr(dots + 2));
  return (!least || value >= *least) && (!most || value <= *most);
}

bool rate_in_range(Rate rate, std::string_view range) {
  if (range.empty()) return true;
  const auto bound = [&](std::string_view text) { return parse_rate(text).value_or(Rate{}); };
  const std::size_t dots = range.find("..");
  const Rate least = bound(range.substr(0, dots));
  const Rate most = bound(range.substr(dots + 2));
  return rate.unit == least.unit && rate.value >= least.value && rate.value <= most.value;
}

/// Empty if a text is not a number, a number is out of `range`, or a number occurs twice.
std::optional<std::vector<std::uint64_t>> read_integers(std::span<const std::string> texts, std::string_view range) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& text : texts) {
    const auto number = parse_integer(trimmed(text));
    if (!number || !in_range(*number, range, parse_integer)) return std::nullopt;
    if (std::ranges::find(numbers, *number) != numbers.end()) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

/// The number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);  // the row before the last
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1)});
      const bool exchanged = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (exchanged) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last.back();
}

}  // namespace

std::string_view name(ParameterType type) noexcept {
  switch (type) {
    case ParameterType::text: return "text";
    case ParameterType::texts: return "texts";
    case ParameterType::path: return "path";
    case ParameterType::paths: return "paths";
    case ParameterType::output: return "output";
    case ParameterType::integer: return "integer";
    case ParameterType::integers: return "integers";
    case ParameterType::cpus: return "cpus";
    case ParameterType::size: return "size";
    case ParameterType::duration: return "duration";
    case ParameterType::rate: return "rate";
    case ParameterType::choice: return "choice";
    case ParameterType::flag: return "flag";
    case ParameterType::pairs: return "pairs";
    case ParameterType::entries: return "entries";
  }
  return "";
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, (name.size() + 1) / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string expected_name(std::string_view name, std::span<const std::string_view> known) {
  const std::string_view near = nearest_name(name, known);
  if (!near.empty() || known.empty()) return std::string(near);
  return (known.size() == 1 ? "" : "one of ") + fmt::format("{}", fmt::join(known, ", "));
}

namespace {

/// YAML forbids duplicate keys, but parsers accept them and use one of the values.
Result<void> check_unique_keys(const Parameter& parameter, const RawParameter& raw) {
  std::set<std::string_view> keys;
  for (std::size_t i = 0; i < raw.items.size(); ++i) {
    const std::string_view item = raw.items[i];
    const std::string_view key = item.substr(0, item.find('='));
    if (keys.insert(key).second) continue;
    return failure({i < raw.item_places.size() ? raw.item_places[i] : raw.place,
                    fmt::format("{}: a key is given twice", parameter.name), in_quotes(key), "each key once"});
  }
  return {};
}

}  // namespace

Result<Parameters::Value> Parameters::convert(const Parameter& parameter, const RawParameter& raw) {
  Value value{raw.place, raw.items, 0, {}, raw.item_places};
  const bool is_numbers = parameter.type == ParameterType::integers || parameter.type == ParameterType::cpus;
  const auto wrong = [&] {
    std::string found = raw.items.empty() && raw.entries.empty() ? "an empty list"
                        : is_numbers && raw.shape == RawParameter::Shape::list
                            ? in_quotes(fmt::format("[{}]", fmt::join(raw.items, ", ")))
                        : raw.shape == RawParameter::Shape::list    ? "a list"
                        : raw.shape == RawParameter::Shape::mapping ? "a mapping"
                        : raw.shape == RawParameter::Shape::entries ? "a list"
                                                                    : in_quotes(raw.items.front());
    return failure({raw.place, fmt::format("{}: wrong value", parameter.name), found, expected_of(parameter)});
  };
  const bool scalar = raw.shape == RawParameter::Shape::scalar;
  switch (parameter.type) {
    case ParameterType::texts:
    case ParameterType::paths:
      if (raw.shape == RawParameter::Shape::mapping || raw.items.empty()) return wrong();
      if (const auto empty = std::ranges::find(raw.items, ""); empty != raw.items.end()) {
        const auto at = static_cast<std::size_t>(empty - raw.items.begin());
        return failure({at < raw.item_places.size() ? raw.item_places[at] : raw.place,
                        fmt::format("{}: wrong value", parameter.name), "''", expected_of(parameter)});
      }
      if (parameter.type == ParameterType::texts) return value;
      if (scalar && raw.items.front() == parameter.range) {
        value.is_word = true;
        return value;
      }
      for (std::string& path : value.texts) path = resolve_path(path, raw.base_directory);
      return value;
    case ParameterType::integers: {
      if (raw.shape == RawParameter::Shape::mapping || raw.items.empty()) return wrong();
      std::vector<std::string> texts = raw.items;
      if (scalar) {
        const auto parts = split(raw.items.front(), ',');
        texts.assign(parts.begin(), parts.end());
      }
      auto numbers = read_integers(texts, parameter.range);
      if (!numbers) return wrong();
      value.texts = {fmt::format("{}", fmt::join(*numbers, ","))};
      value.integers = std::move(*numbers);
      return value;
    }
    case ParameterType::cpus: {
      if (raw.shape == RawParameter::Shape::mapping || raw.items.empty()) return wrong();
      auto cpus = parse_cpu_list(fmt::format("{}", fmt::join(raw.items, ",")));
      if (!cpus) return wrong();
      value.texts = {format_cpu_list(*cpus)};
      value.cpus = std::move(*cpus);
      return value;
    }
    case ParameterType::entries:
      if (raw.shape != RawParameter::Shape::entries || raw.entries.empty()) return wrong();
      return convert_entries(parameter, raw);
    case ParameterType::pairs:
      if (const auto words = split(parameter.range, '|');
          scalar && !parameter.range.empty() && std::ranges::find(words, raw.items.front()) != words.end()) {
        return value;
      }
      if (raw.shape != RawParameter::Shape::mapping) return wrong();
      if (auto unique = check_unique_keys(parameter, raw); !unique) return tl::unexpected(unique.error());
      return value;
    default: break;
  }
  if (!scalar) return wrong();
  const std::string& text = raw.items.front();
  switch (parameter.type) {
    case ParameterType::text:
      if (text.empty()) return wrong();
      return value;
    case ParameterType::path:
    case ParameterType::output:
      if (text.empty()) return wrong();
      value.is_word = text == parameter.range;
      if (!value.is_word) value.texts.front() = resolve_path(text, raw.base_directory);
      return value;
    case ParameterType::choice: {
      const auto choices = split(parameter.range, '|');
      if (std::find(choices.begin(), choices.end(), text) == choices.end()) return wrong();
      return value;
    }
    case ParameterType::integer: {
      const auto number = parse_integer(text);
      if (!number || !in_range(*number, parameter.range, parse_integer)) return wrong();
      value.integer = *number;
      return value;
    }
    case ParameterType::size: {
      const auto bytes = parse_size(text);
      if (!bytes || !in_range(*bytes, parameter.range, parse_size)) return wrong();
      value.integer = *bytes;
      return value;
    }
    case ParameterType::duration: {
      const auto as_ns = [](std::string_view t) -> std::optional<std::uint64_t> {
        const auto time = parse_duration(t);
        return time ? std::optional(static_cast<std::uint64_t>(time->count())) : std::nullopt;
      };
      const auto time = as_ns(text);
      if (!time || !in_range(*time, parameter.range, as_ns)) return wrong();
      value.integer = *time;
      return value;
    }
    case ParameterType::rate: {
      const auto rate = parse_rate(text);
      if (!rate || rate->value <= 0 || !rate_in_range(*rate, parameter.range)) return wrong();
      value.rate = *rate;
      return value;
    }
    case ParameterType::flag:
      if (text != "true" && text != "false") return wrong();
      value.integer = text == "true" ? 1 : 0;
      return value;
    default: return wrong();
  }
}

Result<Parameters::Value> Parameters::convert_entries(const Parameter& parameter, const RawParameter& raw) {
  Value value{raw.place, {}, 0, {}, raw.item_places};
  Errors errors;
  for (std::size_t i = 0; i < raw.entries.size(); ++i) {
    const Place& place = i < raw.item_places.size() ? raw.item_places[i] : raw.place;
    auto entry = read(*parameter.entries, raw.entries[i], place);
    if (entry) {
      value.entries.push_back(std::move(*entry));
    } else {
      append(errors, std::move(entry.error()));
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return value;
}

Result<Parameters> Parameters::read(ParameterTable table, const std::vector<RawParameter>& given, const Place& owner) {
  Parameters parameters;
  Errors errors;
  std::vector<std::string_view> known;
  for (const Parameter& parameter : table) known.push_back(parameter.name);
  for (const RawParameter& raw : given) {
    const auto parameter =
        std::find_if(table.begin(), table.end(), [&](const Parameter& p) { return p.name == raw.name; });
    if (parameter == table.end()) {
      errors.push_back({raw.name_place, "unknown parameter", in_quotes(raw.name), expected_name(raw.name, known)});
      continue;
    }
    if (parameters.values_.contains(raw.name)) {
      errors.push_back({raw.name_place, raw.name + ": given twice", "", ""});
      continue;
    }
    if (raw.shape == RawParameter::Shape::wrong) {
      parameters.values_.emplace(raw.name, Value{});
      continue;
    }
    auto value = convert(*parameter, raw);
    if (value) {
      const bool written = parameter->type == ParameterType::output;
      const bool names_files =
          written || parameter->type == ParameterType::path || parameter->type == ParameterType::paths;
      const auto placed = parameters.values_.emplace(raw.name, std::move(*value)).first;
      for (std::size_t i = 0; names_files && i < placed->second.texts.size(); ++i) {
        if (placed->second.is_word) continue;
        parameters.files_.push_back({placed->second.texts[i], parameters.place(raw.name, i), written});
      }
      for (const Parameters& entry : placed->second.entries) {
        parameters.files_.insert(parameters.files_.end(), entry.files_.begin(), entry.files_.end());
      }
    } else {
      append(errors, std::move(value.error()));
      parameters.values_.emplace(raw.name, Value{});  // so that it is not reported as missing too
    }
  }
  for (const Parameter& parameter : table) {
    if (parameters.values_.contains(parameter.name)) continue;
    if (parameter.required) {
      errors.push_back({owner, fmt::format("{} is missing", parameter.name), "",
                        fmt::format("{} ({})", expected_of(parameter), parameter.help)});
    } else if (!parameter.default_text.empty()) {
      RawParameter raw{std::string(parameter.name), owner, owner, {std::string(parameter.default_text)}, {}, ""};
      auto value = convert(parameter, raw);
      if (!value) std::abort();  // the table's default is not in its range
      parameters.values_.emplace(parameter.name, std::move(*value));
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return parameters;
}

const Parameters::Value& Parameters::at(std::string_view name) const {
  const auto value = values_.find(name);
  if (value == values_.end()) std::abort();  // a programming error: no default, and the user gave no value
  return value->second;
}

bool Parameters::has(std::string_view name) const { return values_.find(name) != values_.end(); }
const Place& Parameters::place(std::string_view name) const { return at(name).place; }
const Place& Parameters::place(std::string_view name, std::size_t item) const {
  const Value& value = at(name);
  return value.item_places.empty() ? value.place : value.item_places.at(item);
}
const std::string& Parameters::text(std::string_view name) const { return at(name).texts.front(); }
const std::vector<std::string>& Parameters::texts(std::string_view name) const { return at(name).texts; }
std::uint64_t Parameters::integer(std::string_view name) const { return at(name).integer; }
std::chrono::nanoseconds Parameters::duration(std::string_view name) const {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(at(name).integer)};
}
const std::vector<std::uint64_t>& Parameters::integers(std::string_view name) const { return at(name).integers; }
Rate Parameters::rate(std::string_view name) const { return at(name).rate; }
const CpuList& Parameters::cpus(std::string_view name) const { return at(name).cpus; }
bool Parameters::flag(std::string_view name) const { return at(name).integer != 0; }
bool Parameters::is_word(std::string_view name) const { return at(name).is_word; }
const std::vector<Parameters>& Parameters::entries(std::string_view name) const { return at(name).entries; }

std::string Parameters::normal_form(const Parameter& parameter) const {
  const Value& value = at(parameter.name);
  std::vector<std::string> texts = value.texts;
  switch (parameter.type) {
    case ParameterType::integer:
    case ParameterType::size:
    case ParameterType::duration:
    case ParameterType::flag: return std::to_string(value.integer);
    case ParameterType::rate: return fmt::format("{} {}", value.rate.value, static_cast<int>(value.rate.unit));
    case ParameterType::pairs: std::ranges::sort(texts); break;  // the order of keys has no meaning
    case ParameterType::entries:
      for (const Parameters& entry : value.entries) {
        for (const Parameter& inner : *parameter.entries) {
          texts.push_back(entry.has(inner.name) ? fmt::format("{}={}", inner.name, entry.normal_form(inner)) : "");
        }
      }
      break;
    case ParameterType::text:
    case ParameterType::texts:
    case ParameterType::path:
    case ParameterType::paths:
    case ParameterType::output:
    case ParameterType::integers:
    case ParameterType::cpus:
    case ParameterType::choice: break;
  }
  // With lengths, so that no text can look like several.
  std::string form;
  for (const std::string& text : texts) form += fmt::format("{}:{} ", text.size(), text);
  return form;
}

std::string Parameters::shown(std::string_view name) const {
  const Value& value = at(name);
  if (value.entries.empty()) return fmt::format("{}", fmt::join(value.texts, ", "));
  std::vector<std::string> entries;
  for (const Parameters& entry : value.entries) {
    std::vector<std::string> members;
    for (const auto& [member, unused] : entry.values_)
      members.push_back(fmt::format("{}: {}", member, entry.shown(member)));
    entries.push_back(fmt::format("{{{}}}", fmt::join(members, ", ")));
  }
  return fmt::format("[{}]", fmt::join(entries, ", "));
}

Errors Parameters::placed(Errors errors) const { return penstock::placed(std::move(errors), files_); }

Errors placed(Errors errors, std::span<const Parameters::File> files) {
  if (errors.empty()) return errors;
  std::unordered_map<std::string_view, const Parameters::File*> by_path;  // the first file of each path
  for (const Parameters::File& file : files) by_path.try_emplace(file.path, &file);
  for (Error& error : errors) {
    if (error.place.line != 0) continue;
    const auto file = by_path.find(error.place.file);
    if (file == by_path.end()) continue;
    error.message = fmt::format("{}: {}", error.place.file, error.message);
    error.place = file->second->place;
  }
  return errors;
}

std::string describe(ParameterTable table) {
  std::string text;
  for (const Parameter& parameter : table) {
    const std::string kind = expected_of(parameter);
    const std::string fallback = parameter.required               ? "required"
                                 : parameter.default_text.empty() ? "optional"
                                                                  : fmt::format("default {}", parameter.default_text);
    text += fmt::format("  {:<18} {} ({}; {})\n", parameter.name, parameter.help, kind, fallback);
    if (parameter.entries == nullptr) continue;
    const std::string inner = describe(*parameter.entries);
    for (const std::string_view line : split(std::string_view(inner).substr(0, inner.size() - 1), '\n')) {
      text += fmt::format("  {}\n", line);
    }
  }
  return text;
}

}  // namespace penstock
