// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error_list.h"
#include "base/units.h"

namespace penstock::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRecordExpected = "output of `penstock bench --json`";

Json json_of(double number) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::abs(number) < kExact && std::trunc(number) == number) return static_cast<std::int64_t>(number);
  return number;
}

Json json_of(const Value& value) {
  if (const bool* const flag = std::get_if<bool>(&value)) return *flag;
  if (const double* const number = std::get_if<double>(&value)) return json_of(*number);
  if (const std::string* const text = std::get_if<std::string>(&value)) return *text;
  Json list = Json::array();
  for (const double number : std::get<Repeats>(value)) list.push_back(json_of(number));
  return list;
}

Json json_of(const Point& point) {
  Json json = Json::object();
  for (const auto& [name, value] : point) json[name] = json_of(value);
  return json;
}

/// Reads expected members, and collects errors for those that are missing or have another type.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const Json& json, const char* path, const char* key, std::string& into) {
    if (const Json* const value = member(json, path, key, "a string", &Json::is_string))
      into = value->get<std::string>();
  }
  void read(const Json& json, const char* path, const char* key, bool& into) {
    if (const Json* const value = member(json, path, key, "true or false", &Json::is_boolean))
      into = value->get<bool>();
  }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) void read(const Json& json, const char* path, const char* key, Integer& into) {
    const Json* const value = member(json, path, key, "a whole number", &Json::is_number_integer);
    if (value == nullptr) return;
    const bool fits = value->is_number_unsigned() ? std::in_range<Integer>(value->get<std::uint64_t>())
                                                  : std::in_range<Integer>(value->get<std::int64_t>());
    if (fits) {
      into = value->get<Integer>();
    } else {
      wrong(name(path, key), *value, "a whole number in its range");
    }
  }
  void read(const Json& json, const char* path, const char* key, std::vector<std::string>& into) {
    const Json* const list = member(json, path, key, "a list of strings", &Json::is_array);
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      if ((*list)[i].is_string()) {
        into.push_back((*list)[i].get<std::string>());
      } else {
        wrong(fmt::format("{}[{}]", name(path, key), i), (*list)[i], "a string");
      }
    }
  }
  void read_point(const Json& json, const std::string& where, Point& into) {
    if (!json.is_object()) return wrong(where, json, "an object");
    for (const auto& [key, value] : json.items()) {
      if (value.is_boolean()) {
        into.set(key, value.get<bool>());
      } else if (value.is_number()) {
        into.set(key, value.get<double>());
      } else if (value.is_string()) {
        into.set(key, value.get<std::string>());
      } else if (value.is_array() && std::ranges::all_of(value, &Json::is_number)) {
        into.set(key, value.get<Repeats>());
      } else {
        wrong(fmt::format("{}.{}", where, key), value, "a number, a string, true, false or a list of numbers");
      }
    }
  }
  /// Returns null, and reports an error, if the member is missing or has another type.
  const Json* member(const Json& json, const char* path, const char* key, const char* expected,
                     bool (Json::*is_right)() const noexcept) {
    const auto value = json.find(key);
    if (value == json.end()) {
      errors_.add(Error{{file_, 0, 0}, name(path, key) + " is missing", "", expected});
      return nullptr;
    }
    if (((*value).*is_right)()) return &*value;
    wrong(name(path, key), *value, expected);
    return nullptr;
  }
  void wrong(const std::string& where, const Json& found, const char* expected) {
    const std::string text = found.is_structured()
                                 ? (found.is_array() ? "a list" : "an object")
                                 : in_quotes(found.dump(-1, ' ', false, Json::error_handler_t::replace));
    errors_.add(Error{{file_, 0, 0}, where + ": wrong value", text, expected});
  }
  [[nodiscard]] bool has_errors() const noexcept { return !errors_.empty(); }
  [[nodiscard]] Errors take() && { return std::move(errors_).take({file_, 0, 0}); }

 private:
  static std::string name(const char* path, const char* key) {
    return *path == '\0' ? std::string(key) : fmt::format("{}.{}", path, key);
  }

  std::string file_;
  ErrorList errors_;
};

void read_machine(const Json& json, Record::Machine& machine, Reader& reader) {
  reader.read(json, "machine", "cpu", machine.cpu);
  reader.read(json, "machine", "cores", machine.cores);
  reader.read(json, "machine", "memory_bytes", machine.memory_bytes);
  reader.read(json, "machine", "driver", machine.driver);
  const Json* const gpus = reader.member(json, "machine", "gpus", "a list", &Json::is_array);
  for (std::size_t i = 0; gpus != nullptr && i < gpus->size(); ++i) {
    const std::string where = fmt::format("machine.gpus[{}]", i);
    if (!(*gpus)[i].is_object()) {
      reader.wrong(where, (*gpus)[i], "an object");
      continue;
    }
    Record::Gpu& gpu = machine.gpus.emplace_back();
    reader.read((*gpus)[i], where.c_str(), "index", gpu.index);
    reader.read((*gpus)[i], where.c_str(), "name", gpu.name);
  }
}

/// Records without remarks have no such member.
void read_remarks(const Json& json, std::vector<Record::Remark>& remarks, Reader& reader) {
  if (!json.contains("remarks")) return;
  const Json* const list = reader.member(json, "", "remarks", "a list", &Json::is_array);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string where = fmt::format("remarks[{}]", i);
    if (!(*list)[i].is_object()) {
      reader.wrong(where, (*list)[i], "an object");
      continue;
    }
    Record::Remark& remark = remarks.emplace_back();
    reader.read((*list)[i], where.c_str(), "figure", remark.figure);
    reader.read((*list)[i], where.c_str(), "text", remark.text);
  }
}

/// Whether this can be a record at all. JSON of another program is one mistake, not a list of all missing members.
bool looks_like_record(const Json& json) {
  return json.empty() || json.contains("penstock") || json.contains("experiment") || json.contains("points");
}

/// For example "an object with context, benchmarks": its first few names.
std::string description_of(const Json& object) {
  constexpr std::size_t kMost = 4;
  std::string text = "an object with ";
  std::size_t count = 0;
  for (const auto& [key, value] : object.items()) {
    if (count == kMost) return text + ", …";
    text += (count++ == 0 ? "" : ", ") + printable(std::string_view(key).substr(0, 40));
  }
  return text;
}

/// Line and column of a byte of the text.
Place place_of(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, byte);
  const std::size_t line_start = before.rfind('\n');
  return {file, static_cast<std::uint32_t>(1 + std::count(before.begin(), before.end(), '\n')),
          static_cast<std::uint32_t>(1 + (line_start == before.npos ? before.size() : before.size() - line_start - 1))};
}

Result<Json> parse(std::string_view text, const std::string& file) {
  if (text.size() > kMostRecordBytes) {
    const std::string most = format_size(kMostRecordBytes);
    return failure({{file, 0, 0}, "too large for a record", "more than " + most, "at most " + most});
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::size_t byte = error.byte == 0 ? 0 : std::min(error.byte - 1, text.size());
    return failure({place_of(text, byte, file), "not JSON",
                    byte >= text.size() ? "the end of the file" : in_quotes(text.substr(byte, 20)), kRecordExpected});
  } catch (const Json::exception&) {  // a number that does not fit into a double
    return failure({{file, 0, 0}, "a number is out of range", "", kRecordExpected});
  }
}

}  // namespace

bool had_uncommitted_changes(const Record& record) noexcept { return record.commit.ends_with("-dirty"); }

std::string to_json(const Record& record) {
  Json gpus = Json::array();
  for (const Record::Gpu& gpu : record.machine.gpus) gpus.push_back({{"index", gpu.index}, {"name", gpu.name}});
  Json points = Json::array();
  for (const Point& point : record.points) points.push_back(json_of(point));
  Json remarks = Json::array();
  for (const Record::Remark& remark : record.remarks) {
    remarks.push_back({{"figure", remark.figure}, {"text", remark.text}});
  }
  Json head{{"penstock", {{"version", record.version}, {"commit", record.commit}}},
            {"experiment", record.experiment},
            {"command", record.command},
            {"date", record.date},
            {"complete", record.complete},
            {"machine",
             {{"cpu", record.machine.cpu},
              {"cores", record.machine.cores},
              {"memory_bytes", record.machine.memory_bytes},
              {"gpus", gpus},
              {"driver", record.machine.driver}}},
            {"limits", json_of(record.limits)},
            {"left_out", Json(record.left_out)},
            {"errors", Json(record.errors)}};
  if (!remarks.empty()) head["remarks"] = remarks;
  // One line per point: a record has hundreds, and is compared by lines. Texts that users typed may be invalid UTF-8.
  std::string text = head.dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n  \"points\": [";
  for (std::size_t i = 0; i < points.size(); ++i) {
    text += i == 0 ? "\n    " : ",\n    ";
    text += points[i].dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text + (points.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

Result<Record> parse_record(std::string_view text, const std::string& file) {
  const auto parsed = parse(text, file);
  if (!parsed) return tl::unexpected(parsed.error());
  const Json& json = *parsed;
  Reader reader(file);
  if (!json.is_object()) {
    reader.wrong("the record", json, "an object");
    return failure(std::move(reader).take());
  }
  if (!looks_like_record(json)) {
    return failure({{file, 0, 0}, "not a record of an experiment", description_of(json), kRecordExpected});
  }
  Record record;
  if (const Json* const build = reader.member(json, "", "penstock", "an object", &Json::is_object)) {
    reader.read(*build, "penstock", "version", record.version);
    reader.read(*build, "penstock", "commit", record.commit);
  }
  reader.read(json, "", "experiment", record.experiment);
  reader.read(json, "", "command", record.command);
  reader.read(json, "", "date", record.date);
  reader.read(json, "", "complete", record.complete);
  if (const Json* const machine = reader.member(json, "", "machine", "an object", &Json::is_object)) {
    read_machine(*machine, record.machine, reader);
  }
  if (const Json* const limits = reader.member(json, "", "limits", "an object", &Json::is_object)) {
    reader.read_point(*limits, "limits", record.limits);
  }
  reader.read(json, "", "left_out", record.left_out);
  reader.read(json, "", "errors", record.errors);
  read_remarks(json, record.remarks, reader);
  if (const Json* const points = reader.member(json, "", "points", "a list", &Json::is_array)) {
    for (std::size_t i = 0; i < points->size(); ++i) {
      reader.read_point((*points)[i], fmt::format("points[{}]", i), record.points.emplace_back());
    }
  }
  if (reader.has_errors()) return failure(std::move(reader).take());
  return record;
}

}  // namespace penstock::experiments
