// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules and the tables of an engine in host memory, as they are copied to a device: a view of a rule set and its
// engine's tables, or of a recipe that another process made of them. Borrows everything.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/error.h"
#include "classify/bitvector_build.h"
#include "classify/bitvector_layout.h"
#include "classify/classifier.h"
#include "classify/linear_core.h"
#include "classify/rules_view.h"
#include "function/recipe_tables.h"

namespace penstock::classify {

using Numbers = std::span<const std::uint32_t>;

struct LinearSpans {
  std::span<const Condition> conditions;
  std::span<const PortRange> port_ranges;
  std::span<const Ipv6Range> ranges6;
};

struct Ipv4Spans {
  Numbers top, middle, records;
};
struct Ipv6Spans {
  Numbers first;
  std::span<const Ipv6Address> starts;
  Numbers records;
};
struct SmallSpans {
  Numbers pages, records;
  SmallView::Use use = SmallView::Use::none;
};
struct BitVectorSpans {
  Ipv4Spans source4, destination4;
  Ipv6Spans source6, destination6;
  SmallSpans kind, destination_port, source_port, place, connection;
  Numbers combined;
  std::uint32_t port_count = 0;
  std::uint32_t summary_words = 0;
  std::span<const std::uint64_t> words;
  std::span<const std::uint64_t> block_words;  // kWordsPerBlock for each VectorBlock
};

struct TableSpans {
  std::span<const Entry> entries;
  RulesView rules;  // without the entries
  std::variant<LinearSpans, BitVectorSpans> engine;
};

/// Empty for engines whose tables have another form.
[[nodiscard]] std::optional<TableSpans> spans_of(const Ruleset& rules, const Classifier& classifier);

/// Calls `use` for each array of the tables, in the order of a recipe.
template <typename Tables, typename Use>
void each_array(Tables& tables, Use&& use) {
  use(tables.entries);
  if (auto* const linear = std::get_if<LinearSpans>(&tables.engine)) {
    use(linear->conditions);
    use(linear->port_ranges);
    use(linear->ranges6);
    return;
  }
  auto& vectors = std::get<BitVectorSpans>(tables.engine);
  for (auto* const table : {&vectors.source4, &vectors.destination4}) {
    use(table->top);
    use(table->middle);
    use(table->records);
  }
  for (auto* const table : {&vectors.source6, &vectors.destination6}) {
    use(table->first);
    use(table->starts);
    use(table->records);
  }
  for (auto* const table :
       {&vectors.kind, &vectors.destination_port, &vectors.source_port, &vectors.place, &vectors.connection}) {
    use(table->pages);
    use(table->records);
  }
  use(vectors.combined);
  use(vectors.words);
  use(vectors.block_words);
}

// Parts of the recipe of a function that stands on these tables.

/// What a recipe has besides arrays.
struct TableArguments {
  std::uint32_t rule_count, port_count, summary_words;
  std::uint8_t has_vectors;
  Action ipv4_policy, ipv6_policy;
  SmallView::Use uses[5];  // kind, destination port, source port, place, connection
};

[[nodiscard]] TableArguments arguments_of(const TableSpans& tables);
/// Takes the arrays from the reader, which knows at its end whether they were there.
[[nodiscard]] TableSpans read_tables(const TableArguments& arguments, function::TableReader& read_table);
/// Whether no search leaves these tables or takes long, for any packet.
[[nodiscard]] Result<void> check_tables(const function::StageRecipe& recipe, const TableSpans& tables);

}  // namespace penstock::classify
