// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: reads Prometheus's text format strictly, without our code. It refuses what Prometheus, or a linter of
// metrics, would object to.

#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace penstock::report {

class ReadMetrics {
 public:
  using Labels = std::map<std::string, std::string>;
  struct Family {
    std::string type, help;
    std::map<std::pair<std::string, Labels>, double> samples;  // by suffix ("", "_bucket", …) and labels
  };

  explicit ReadMetrics(const std::string& text) {
    if (text.empty() || text.back() != '\n') complain("the text does not end with a line end");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) read(line);
    for (const auto& [name, family] : families) check(name, family);
  }

  std::map<std::string, Family> families;
  std::string complaints;  // "": none

  [[nodiscard]] std::optional<double> value(const std::string& family, const Labels& labels = {},
                                            const std::string& suffix = "") const {
    const auto found = families.find(family);
    if (found == families.end()) return std::nullopt;
    const auto sample = found->second.samples.find({suffix, labels});
    if (sample == found->second.samples.end()) return std::nullopt;
    return sample->second;
  }
  /// The sum over all samples.
  [[nodiscard]] double sum(const std::string& family) const {
    double sum = 0;
    if (const auto found = families.find(family); found != families.end()) {
      for (const auto& [key, value] : found->second.samples) sum += value;
    }
    return sum;
  }

 private:
  void complain(const std::string& what) { complaints += what + "\n"; }

  void read(const std::string& line) {
    static const std::regex help("# HELP ([a-z][a-z0-9_]*) (\\S.*)"), type("# TYPE ([a-z][a-z0-9_]*) ([a-z]+)"),
        sample("([a-z][a-z0-9_]*)(\\{(.*)\\})? (\\S+)");
    std::smatch parts;
    if (std::regex_match(line, parts, help)) {
      if (families.contains(parts[1])) return complain("the family comes twice: " + line);
      current_ = parts[1];
      families[current_].help = parts[2];
    } else if (std::regex_match(line, parts, type)) {
      if (current_ != parts[1] || !families[current_].type.empty()) return complain("unexpected: " + line);
      families[current_].type = parts[2];
    } else if (std::regex_match(line, parts, sample)) {
      const std::string name = parts[1];
      if (current_.empty() || !name.starts_with(current_)) return complain("in no family: " + line);
      const std::string suffix = name.substr(current_.size());
      const auto labels = labels_of(parts[3]);
      const std::string number = parts[4];
      char* end = nullptr;
      const double value = std::strtod(number.c_str(), &end);
      if (!labels || *end != '\0' || !std::isfinite(value)) return complain("not a sample: " + line);
      if (!families[current_].samples.emplace(std::pair(suffix, *labels), value).second)
        complain("the sample comes twice: " + line);
    } else {
      complain("not a line of the format: " + line);
    }
  }

  static std::optional<Labels> labels_of(const std::string& text) {
    static const std::regex one("([a-z_]+)=\"((?:[^\"\\\\]|\\\\[\\\\\"n])*)\"(,|$)");
    Labels labels;
    for (std::string rest = text; !rest.empty();) {
      std::smatch parts;
      if (!std::regex_search(rest, parts, one, std::regex_constants::match_continuous)) return std::nullopt;
      if (!labels.emplace(parts[1], parts[2]).second) return std::nullopt;
      rest = parts.suffix();
    }
    return labels;
  }

  void check(const std::string& name, const Family& family) {
    if (family.samples.empty()) complain(name + " has no samples");
    if ((family.type == "counter") != name.ends_with("_total")) complain(name + " is a " + family.type);
    static const std::set<std::string> types{"counter", "gauge", "histogram", "summary"};
    if (!types.contains(family.type)) complain(name + ": unknown type " + family.type);
    std::set<std::string> label_names;
    for (const auto& [key, value] : family.samples) {
      const auto& [suffix, labels] = key;
      if (family.type != "gauge" && value < 0) complain(name + " is negative");
      if ((family.type == "counter" || family.type == "gauge") && !suffix.empty()) complain(name + suffix);
      std::string names;
      for (const auto& [label, text] : labels) names += label == "le" ? "" : label + " ";
      label_names.insert(names);
    }
    if (label_names.size() > 1) complain(name + ": samples with different labels");
    if (family.type == "histogram") check_histogram(name, family);
  }

  void check_histogram(const std::string& name, const Family& family) {
    std::map<double, double> buckets;
    for (const auto& [key, value] : family.samples) {
      if (key.first != "_bucket") continue;
      const std::string le = key.second.contains("le") ? key.second.at("le") : "nan";
      buckets[le == "+Inf" ? HUGE_VAL : std::strtod(le.c_str(), nullptr)] = value;
    }
    double last = 0;
    for (const auto& [limit, count] : buckets) {
      if (count < last) complain(name + ": a bucket has less than the one before");
      last = count;
    }
    const auto count = family.samples.find({"_count", {}});
    if (!buckets.contains(HUGE_VAL) || count == family.samples.end() || count->second != last)
      complain(name + ": the count is not that of the last bucket");
    if (!family.samples.contains({"_sum", {}})) complain(name + " has no sum");
  }

  std::string current_;
};

}  // namespace penstock::report
