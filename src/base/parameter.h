// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One table of parameters drives a network function's, a port's or the run section's reading, its `--help` and its
// docs. Values are checked when they are read; what is asked of `Parameters` later cannot fail.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace penstock {

enum class ParameterType : std::uint8_t {
  text,      // one word or line
  path,      // a file; relative to the file that names it. `range`: a word that stands for none
  paths,     // one file or a list of files
  output,    // a file that is written
  integer,   // `range` "least..most"
  integers,  // several, each once: "0,1" or a list; `range` of each
  size,      // bytes with a unit; `range` likewise
  duration,  // time with a unit
  rate,      // bits or packets per second; `range` "1Mbps..1Tbps" wants bits
  choice,    // one of `range`, "a|b|c"
  flag,      // true or false
  pairs,     // a mapping, read as "key=value" in order; a value that is a list reads "[a,b]"
};

/// "text", "path", …
[[nodiscard]] std::string_view name(ParameterType type) noexcept;

struct Parameter {
  std::string_view name;
  ParameterType type;
  std::string_view default_text;  // "" : no default
  std::string_view range;         // see ParameterType; "" : all values
  std::string_view help;          // one line
  bool required = false;
};

using ParameterTable = std::span<const Parameter>;

/// A value as the user wrote it, before its table is known.
struct RawParameter {
  std::string name;
  Place name_place;
  Place place;                     // the value's
  std::vector<std::string> items;  // one for a scalar; a mapping gives "key=value"
  // wrong: a mistake in it was told already, and only its name counts.
  enum class Shape : std::uint8_t { scalar, list, mapping, wrong } shape = Shape::scalar;
  std::string base_directory;        // what a relative path is relative to
  std::vector<Place> item_places{};  // of a list or mapping; none: all are at `place`
};

/// Checked values, by the names of one table. Owns its strings.
class Parameters {
 public:
  /// Checks `given` against `table`: unknown and doubled names (with the nearest known one), wrong types and ranges,
  /// missing required ones. All mistakes are reported. `owner` is the place of the whole, for what is missing. What is
  /// good for nothing but its name (`Shape::wrong`) makes no mistake here: the caller has told of it.
  static Result<Parameters> read(ParameterTable table, const std::vector<RawParameter>& given, const Place& owner);

  /// Whether the user gave it, or it has a default.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Where the value stands, for errors found later (in the file that a path names, say).
  [[nodiscard]] const Place& place(std::string_view name) const;
  /// The same of an item of a list or mapping, in the order of `texts`.
  [[nodiscard]] const Place& place(std::string_view name, std::size_t item) const;

  [[nodiscard]] const std::string& text(std::string_view name) const;  // text, choice, path (resolved), integers
  [[nodiscard]] const std::vector<std::string>& texts(std::string_view name) const;
  [[nodiscard]] std::uint64_t integer(std::string_view name) const;  // integer, size
  [[nodiscard]] const std::vector<std::uint64_t>& integers(std::string_view name) const;
  [[nodiscard]] std::chrono::nanoseconds duration(std::string_view name) const;
  [[nodiscard]] Rate rate(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;

  /// A file that the values name, to be read or to be written.
  struct File {
    std::string path;
    Place place;
    bool written = false;
  };
  [[nodiscard]] const std::vector<File>& files() const noexcept { return files_; }
  /// Mistakes met with these files: one of a whole file (it cannot be opened, say) is told at the value that names it,
  /// others where they are.
  [[nodiscard]] Errors placed(Errors errors) const;

 private:
  struct Value {
    Place place;
    std::vector<std::string> texts;
    std::uint64_t integer = 0;
    Rate rate;
    std::vector<Place> item_places{};
    std::vector<std::uint64_t> integers{};
  };
  static Result<Value> convert(const Parameter& parameter, const RawParameter& raw);
  [[nodiscard]] const Value& at(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
  std::vector<File> files_;
};

/// See `Parameters::placed`.
[[nodiscard]] Errors placed(Errors errors, std::span<const Parameters::File> files);

/// "did you mean" for an unknown name: the nearest of `known`, or "".
[[nodiscard]] std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);
/// The same for an error's `expected`: the nearest of `known`, or all of them, "one of lan, wan".
[[nodiscard]] std::string expected_name(std::string_view name, std::span<const std::string_view> known);

/// The table as help text: a line for each parameter, with type, range, default and help.
[[nodiscard]] std::string describe(ParameterTable table);

}  // namespace penstock
