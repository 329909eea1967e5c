// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/digest.h"

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nf/firewall/nftables/document.h"
#include "packet/flow_hash.h"

namespace penstock::firewall::nftables {

namespace {

struct Table {
  std::size_t objects = 0;  // a digest of them, in their order
  bool sees_forwarded = false;
};

std::string text_at(const Json& object, const char* member) {
  const auto found = object.is_object() ? object.find(member) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::size_t combine(std::size_t before, std::size_t next) {
  return static_cast<std::size_t>(mix64(before ^ mix64(next)));
}

}  // namespace

std::size_t digest_of(std::string_view rules) {
  // All other objects belong to a table, within which chains jump. The order of tables is that of base chains with the
  // same priority.
  std::vector<Table> tables;
  std::map<std::pair<std::string, std::string>, std::size_t> by_name;
  const auto visited = visit_objects(
      rules, "", std::numeric_limits<std::size_t>::max(), [&](std::size_t, const std::string& kind, const Json& value) {
        if (kind == "metainfo") return true;
        std::string name = text_at(value, kind == "table" ? "name" : "table");
        const bool has_table = !name.empty();
        const auto [at, is_new] = by_name.try_emplace({text_at(value, "family"), std::move(name)}, tables.size());
        if (is_new) tables.emplace_back();
        Table& table = tables[at->second];
        table.objects = combine(table.objects, std::hash<std::string>()(kind + value.dump()));
        const std::string hook = text_at(value, "hook");
        table.sees_forwarded |= !has_table || (!hook.empty() && hook != "input" && hook != "output");
        return true;
      });
  if (!visited) return std::hash<std::string_view>()(rules);
  std::size_t digest = 0;
  for (const Table& table : tables) {
    if (table.sees_forwarded) digest = combine(digest, table.objects);
  }
  return digest;
}

}  // namespace penstock::firewall::nftables
