// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/ip_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "nf/router/route_words.h"

namespace penstock::router {

namespace {

using Json = nlohmann::ordered_json;

struct Key {
  std::string_view json;
  std::string_view word;  // empty: the key and its value are ignored
};

// From iproute2's print_route and print_rta_multipath. Keys that are not listed keep their names.
constexpr auto kRouteKeys = std::to_array<Key>({
    {"gateway", "via"},
    {"protocol", "proto"},
    {"prefsrc", "src"},
    {"metrics", ""},  // TCP metrics do not affect forwarding
    {"nh_info", ""},  // what we need of it is also in other members
    {"ttl-propogate", ""},
    {"ttl-propagate", ""},
});
// From print_neigh, with the statistics of `ip -s`.
constexpr auto kNeighbourKeys = std::to_array<Key>({
    {"protocol", "proto"},
    {"refcnt", ""},
    {"used", ""},
    {"confirmed", ""},
    {"updated", ""},
    {"probes", ""},
});

/// Appends the text form of an entry's members. False if a value is neither a word nor what its key expects.
class WordWriter {
 public:
  WordWriter(std::span<const Key> keys, std::deque<std::string>& texts, std::vector<Word>& words, std::uint32_t column)
      : keys_(keys), texts_(texts), words_(words), column_(column) {}

  void add(std::string text) { words_.push_back({texts_.emplace_back(std::move(text)), column_}); }

  [[nodiscard]] bool add_members(const Json& object, std::string& why) {
    for (const auto& [key, value] : object.items()) {
      if (key == "dst" || key == "type" || key == "nexthops") continue;  // the caller handles these
      if (!add_member(key, value)) {
        why = "wrong value of \"" + key + "\"";
        return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] bool add_member(const std::string& key, const Json& value) {
    const auto known = std::ranges::find(keys_, std::string_view(key), &Key::json);
    if (known != keys_.end() && known->word.empty()) return true;
    if (key == "flags" || key == "state") return add_list(value);
    add(known == keys_.end() ? key : std::string(known->word));
    if (key == "via") return add_gateway(value);
    if (value.is_null() || value.is_boolean()) return true;             // a word without value: "router": null
    if (value.is_structured()) return !route_word(words_.back().text);  // an unknown word, which the reader reports
    add(value.is_string() ? value.get<std::string>() : value.dump());
    return true;
  }

  [[nodiscard]] bool add_list(const Json& value) {
    if (!value.is_array()) return false;
    for (const Json& word : value) {
      if (!word.is_string()) return false;
      add(word.get<std::string>());
    }
    return true;
  }
  /// {"family": "inet6", "host": "fe80::1"}
  [[nodiscard]] bool add_gateway(const Json& value) {
    if (!value.is_object() || !value.contains("family") || !value.contains("host")) return false;
    for (const char* const part : {"family", "host"}) {
      if (!value[part].is_string()) return false;
      add(value[part].get<std::string>());
    }
    return true;
  }

  std::span<const Key> keys_;
  std::deque<std::string>& texts_;
  std::vector<Word>& words_;
  std::uint32_t column_;
};

/// In the text form, # begins a comment.
bool is_first_word(const Json& value) {
  return value.is_string() && !value.get_ref<const std::string&>().empty() &&
         value.get_ref<const std::string&>().front() != '#';
}

/// Parses an entry. `twice` is the first key that occurs twice in one of its objects, if any: JSON parsers differ in
/// which value they use.
Json parse_entry(std::string_view text, std::string& twice) {
  std::vector<std::set<std::string>> keys;  // of the currently open objects
  const auto note = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second && twice.empty())
      twice = parsed.get<std::string>();
    return true;
  };
  return Json::parse(text, note, false);
}

/// Parses an entry, which must have a destination.
std::optional<Json> parsed(const IpJsonEntry& entry, std::string& why) {
  if (entry.text.size() > kMostLineBytes) {  // its parsed form would take many times as much memory
    why = "an entry of more than 1 MiB";
    return std::nullopt;
  }
  std::string twice;
  Json json = parse_entry(entry.text, twice);
  if (json.is_discarded()) {
    why = "not JSON";
  } else if (!json.is_object()) {
    why = "not an object";
  } else if (!twice.empty() && !json.contains("encap")) {  // `ip` prints the "dst" of an encapsulation beside the
                                                           // route's
    why = "\"" + printable(twice) + "\" is given twice";
  } else if (!json.contains("dst")) {
    why = "an entry without \"dst\"";
  } else if (!is_first_word(json["dst"]) || (json.contains("type") && !is_first_word(json["type"]))) {
    why = is_first_word(json["dst"]) ? "wrong value of \"type\"" : "wrong value of \"dst\"";
  } else {
    return json;
  }
  return std::nullopt;
}

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

bool is_ip_json(std::string_view text) noexcept {
  const auto first = std::ranges::find_if_not(text, is_space);
  return first != text.end() && *first == '[';
}

void IpJsonEntries::step() noexcept {
  ++column_;
  if (text_[at_++] != '\n') return;
  ++line_;
  column_ = 1;
}

void IpJsonEntries::skip_spaces() noexcept {
  while (!at_end() && is_space(text_[at_])) step();
}

bool IpJsonEntries::stop(IpJsonEntry& entry, std::string_view wrong) noexcept {
  entry = {text_.substr(at_, 20), line_, column_};
  wrong_ = wrong;
  at_ = text_.size();
  return false;
}

bool IpJsonEntries::next(IpJsonEntry& entry) noexcept {
  for (;;) {
    skip_spaces();
    if (at_end()) return in_array_ ? stop(entry, "unterminated array") : false;
    const char c = text_[at_];
    if (!in_array_) {
      if (c != '[') return stop(entry, "not the start of an `ip -j` array");
      in_array_ = true;
      needs_comma_ = false;
    } else if (c == ']') {
      in_array_ = false;
    } else if (needs_comma_ && c == ',') {
      needs_comma_ = false;
    } else if (needs_comma_ || c != '{') {
      return stop(entry, "not the start of an `ip -j` entry");
    } else {
      break;
    }
    step();
  }
  entry = {{}, line_, column_};
  const std::size_t begin = at_;
  bool in_string = false;
  std::size_t depth = 0;
  do {
    const char c = text_[at_];
    if (in_string && c == '\\' && at_ + 1 < text_.size()) {
      step();
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      ++depth;
    } else if (!in_string && (c == '}' || c == ']')) {
      --depth;
    }
    step();
  } while (depth > 0 && !at_end());
  entry.text = text_.substr(begin, at_ - begin);
  needs_comma_ = true;
  if (depth == 0) return true;
  wrong_ = "unterminated entry";
  return false;
}

bool IpJsonWords::read_route(const IpJsonEntry& entry, std::vector<Word>& words, std::string& why) {
  texts_.clear();
  words.clear();
  const auto json = parsed(entry, why);
  if (!json) return false;
  WordWriter writer(kRouteKeys, texts_, words, entry.column);
  if (json->contains("encap")) {  // such routes are left out, because the encapsulation's "dst" hides the route's
    writer.add("default");
    writer.add("encap");
    return true;
  }
  if (json->contains("type")) writer.add((*json)["type"].get<std::string>());
  writer.add((*json)["dst"].get<std::string>());
  if (!writer.add_members(*json, why)) return false;
  if (!json->contains("nexthops")) return true;
  const Json& hops = (*json)["nexthops"];
  for (const Json& hop : hops) {
    if (!hops.is_array() || !hop.is_object()) {
      why = "wrong value of \"nexthops\"";
      return false;
    }
    writer.add("nexthop");
    if (!writer.add_members(hop, why)) return false;
  }
  return true;
}

bool IpJsonWords::read_neighbour(const IpJsonEntry& entry, std::vector<Word>& words, std::string& why) {
  texts_.clear();
  words.clear();
  const auto json = parsed(entry, why);
  if (!json) return false;
  WordWriter writer(kNeighbourKeys, texts_, words, entry.column);
  writer.add((*json)["dst"].get<std::string>());
  return writer.add_members(*json, why);
}

}  // namespace penstock::router
