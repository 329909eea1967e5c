// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One table of parameters for each network function, port kind and section drives how its values are read, its `--help`
// and its docs. Values are checked when they are read, so the accessors of `Parameters` cannot fail.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_list.h"
#include "base/error.h"
#include "base/units.h"

namespace penstock {

enum class ParameterType : std::uint8_t {
  text,      // one word or line
  texts,     // one text or a list of texts
  path,      // a file; relative to the file that names it. `range`: a word that means "no file"
  paths,     // one file or a list of files. `range`: a word that stands for no file, if it is the whole value
  output,    // a file that will be written. `range`: a word that means no file
  integer,   // `range` "least..most"
  integers,  // several distinct integers: "0,1" or a list; `range` applies to each
  cpus,      // numbers of CPUs: "2-5,8" or a list of such texts
  size,      // bytes with a unit; `range` as for integers
  duration,  // time with a unit
  rate,      // bits or packets per second; `range` "1Mbps..1Tbps" requires bits
  choice,    // one of `range`, "a|b|c"
  flag,      // true or false
  pairs,     // a mapping, read as "key=value" in its order; a list as a value is read as "[a,b]". `range`: words that
             // may stand for a mapping, "a|b"
  entries,   // a list of mappings, each with the parameters of the table `entries`
};

/// "text", "path", …
[[nodiscard]] std::string_view name(ParameterType type) noexcept;

struct Parameter;
using ParameterTable = std::span<const Parameter>;

struct Parameter {
  std::string_view name;
  ParameterType type;
  std::string_view default_text;  // "": no default
  std::string_view range;         // see ParameterType; "": all values
  std::string_view help;          // one line
  bool required = false;
  const ParameterTable* entries = nullptr;  // of ParameterType::entries
};

/// A value as the user wrote it, not yet checked against a table.
struct RawParameter {
  std::string name;
  Place name_place;
  Place place;                     // of the value
  std::vector<std::string> items;  // one for a scalar; "key=value" for each entry of a mapping
  // entries: a list of mappings, in `entries`. wrong: a mistake in the value has been reported already, and only its
  // name counts.
  enum class Shape : std::uint8_t { scalar, list, mapping, entries, wrong } shape = Shape::scalar;
  std::string base_directory;        // relative paths start here
  std::vector<Place> item_places{};  // of the items of a list or mapping; if empty, all are at `place`
  std::vector<std::vector<RawParameter>> entries{};
};

/// Checked values, by their names in one table. Owns its strings.
class Parameters {
 public:
  /// Checks `given` against `table`, and reports all mistakes: unknown names (with a suggestion), duplicates, wrong
  /// types, values out of range, and missing parameters. Missing parameters are reported at `owner`. A parameter with
  /// `Shape::wrong` only counts as present: the caller has reported its mistake already.
  static Result<Parameters> read(ParameterTable table, const std::vector<RawParameter>& given, const Place& owner);

  /// Whether the parameter has a value, from the user or by default.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Where the value was given, for errors that are found later (for example in the file that a path names).
  [[nodiscard]] const Place& place(std::string_view name) const;
  /// Where an item of a list or mapping was given; `item` is its index in `texts`.
  [[nodiscard]] const Place& place(std::string_view name, std::size_t item) const;

  [[nodiscard]] const std::string& text(std::string_view name) const;  // text, choice, path (resolved), integers, cpus
  [[nodiscard]] const std::vector<std::string>& texts(std::string_view name) const;
  [[nodiscard]] std::uint64_t integer(std::string_view name) const;  // integer, size
  [[nodiscard]] const std::vector<std::uint64_t>& integers(std::string_view name) const;
  [[nodiscard]] const CpuList& cpus(std::string_view name) const;  // in the user's order
  [[nodiscard]] std::chrono::nanoseconds duration(std::string_view name) const;
  [[nodiscard]] Rate rate(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;
  /// Of a path, paths or output: whether the value is the word that stands for no file.
  [[nodiscard]] bool is_word(std::string_view name) const;
  /// One for each mapping of a list, at `place(name, i)`.
  [[nodiscard]] const std::vector<Parameters>& entries(std::string_view name) const;
  /// The value in a normal form, for comparisons: texts with the same meaning, such as 1ms and 1000us, have the same
  /// form.
  [[nodiscard]] std::string normal_form(const Parameter& parameter) const;
  /// The value as the user wrote it, for messages: a list or mapping on one line, and paths resolved.
  [[nodiscard]] std::string shown(std::string_view name) const;

  /// A file that a value names, to be read or written.
  struct File {
    std::string path;
    Place place;
    bool written = false;
  };
  [[nodiscard]] const std::vector<File>& files() const noexcept { return files_; }
  /// Adjusts the places of errors in these files. An error about a whole file (for example, it cannot be opened) is
  /// reported at the value that names the file; other errors keep their places.
  [[nodiscard]] Errors placed(Errors errors) const;

 private:
  struct Value {
    Place place;
    std::vector<std::string> texts;
    std::uint64_t integer = 0;
    Rate rate;
    std::vector<Place> item_places{};
    std::vector<std::uint64_t> integers{};
    CpuList cpus{};
    std::vector<Parameters> entries{};
    bool is_word = false;
  };
  static Result<Value> convert(const Parameter& parameter, const RawParameter& raw);
  static Result<Value> convert_entries(const Parameter& parameter, const RawParameter& raw);
  [[nodiscard]] const Value& at(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
  std::vector<File> files_;
};

/// See `Parameters::placed`.
[[nodiscard]] Errors placed(Errors errors, std::span<const Parameters::File> files);

/// The name in `known` that is nearest to an unknown name, for "did you mean"; "" if none is near.
[[nodiscard]] std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);
/// For an error's `expected`: the nearest name in `known`, or else all of them: "one of lan, wan".
[[nodiscard]] std::string expected_name(std::string_view name, std::span<const std::string_view> known);

/// The table as help text: one line for each parameter, with type, range, default and help.
[[nodiscard]] std::string describe(ParameterTable table);

}  // namespace penstock
