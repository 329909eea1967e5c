// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "nf/filter/code/decision_graph.h"
#include "nf/filter/code/direct_text.h"
#include "nf/filter/code/group_text.h"
#include "nf/filter/code/node_text.h"
#include "nf/filter/code/prelude.h"
#include "nf/filter/code/program_groups.h"

namespace penstock::filter {
namespace {

/// Smaller groups become straight-line code.
constexpr std::size_t kLeastLooped = 8;
/// Functions of words in one part of the bitmap: some 100 KiB of machine code.
constexpr std::size_t kWordsPerPart = 8;
/// The compiler takes so many times as long for code with branches.
constexpr std::size_t kEffortOfDirect = 4;
/// Roots of undecided() in one function.
constexpr std::size_t kRootsPerFunction = 32;

constexpr std::string_view kOpening = R"(
#ifdef __CUDACC__
#define PENSTOCK_FUNCTION static __device__ __noinline__
#define PENSTOCK_INLINE static __device__ __forceinline__
#define PENSTOCK_TABLE __device__ const
#define PENSTOCK_UNROLL _Pragma("unroll")
#define PENSTOCK_UNROLL_SOME _Pragma("unroll 16")
#else
#define PENSTOCK_FUNCTION static
#define PENSTOCK_INLINE static inline
#define PENSTOCK_TABLE static const
#define PENSTOCK_UNROLL
#define PENSTOCK_UNROLL_SOME
#endif
namespace penstock::filter {
using u32 = std::uint32_t;
)";

/// 0 is for the block size, 1 for the number of parts.
constexpr std::string_view kClosing = R"(
}}  // namespace penstock::filter
using namespace penstock::filter;
#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__({0}) match_packets(const MatchBatch batch) {{
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch.packets.count || !is_alive(batch.packets, i)) return;
  const PacketWindow packet = window_of(batch.packets, i);
  match_part(packet, batch.words + std::uint64_t{{i}} * batch.row_words, blockIdx.y);
  if (batch.undecided != nullptr && blockIdx.y == 0) batch.undecided[i] = packet.available < packet.length && any_undecided(packet);
}}
#else
extern "C" void penstock_match(const std::uint8_t* data, u32 available, u32 length, u32 wire_length, u32* words) {{
  for (u32 part = 0; part < {1}; ++part) match_part(window_at(data, available, length, wire_length), words, part);
}}
extern "C" int penstock_undecided(const std::uint8_t* data, u32 available, u32 length, u32 wire_length) {{
  return available < length && any_undecided(window_at(data, available, length, wire_length));
}}
#endif
)";

constexpr std::string_view kReturnsClosing = R"(
#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__({0}) return_values(const MatchBatch batch) {{
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch.packets.count || !is_alive(batch.packets, i)) return;
  const bool undecided = return_all(window_of(batch.packets, i), batch.words + std::uint64_t{{i}} * batch.row_words);
  if (batch.undecided != nullptr) batch.undecided[i] = undecided;
}}
#else
extern "C" void penstock_returns(const std::uint8_t* data, u32 available, u32 length, u32 wire_length, u32* returns) {{
  return_all(window_at(data, available, length, wire_length), returns);
}}
#endif
)";

std::string name_of_direct(std::size_t program) { return fmt::format("program_{}", program); }

class Generator {
 public:
  Generator(std::span<const Program> programs, const GenerateOptions& options)
      : programs_(programs), options_(options), words_(words_for(programs.size())), straight_(programs.size()) {}

  GeneratedCode code() {
    add_programs();
    find_groups();
    code_.text = std::string(prelude());
    code_.text += kOpening;
    write_direct();
    find_whole_words();
    write_words();
    write_parts();
    write_undecided();
    if (options_.returns) write_return_all();
    code_.text += fmt::format(kClosing, kGeneratedBlock, code_.parts);
    if (options_.returns) code_.text += fmt::format(kReturnsClosing, kGeneratedBlock);
    code_.effort += code_.text.size();
    return std::move(code_);
  }

 private:
  void add_programs() {
    for (const Program& program : programs_) roots_.push_back(graph_.add(program));
  }

  void find_groups() {
    std::vector<NodeId> roots;
    std::vector<std::uint32_t> positions;
    for (std::uint32_t i = 0; i < programs_.size(); ++i) {
      if (!roots_[i]) {
        ++code_.direct;
        continue;
      }
      roots.push_back(*roots_[i]);
      positions.push_back(i);
    }
    for (ProgramGroup& group : group_programs(graph_, roots, positions)) {
      if (group.members.size() >= kLeastLooped && !group.columns.empty()) {
        code_.looped += group.members.size();
        ++code_.loops;
        groups_.push_back(std::move(group));
      } else {
        code_.straight += group.members.size();
        for (const std::uint32_t member : group.members) straight_[member] = true;
      }
    }
  }

  void write_direct() {
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      if (!roots_[i] || options_.returns) {
        const std::string text = direct_text(programs_[i].instructions(), name_of_direct(i));
        code_.effort += (kEffortOfDirect - 1) * text.size();
        code_.text += text;
      }
    }
  }

  void find_whole_words() {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const GroupText& text = group_texts_.emplace_back(graph_, groups_[i], i, programs_.size());
      for (const std::uint32_t word : text.whole_words()) whole_.insert(word);
    }
  }

  /// A function for each word of the bitmap that has programs outside of groups.
  void write_words() {
    for (std::uint32_t word = 0; word < words_; ++word) {
      std::string text;
      NodeText nodes(graph_);
      bool any = false;
      bool bits_set = false;
      // From the highest bit down, each shifted in. Of ORs of many bits at their positions, ptxas 13.0 makes P2R.B1
      // instructions, some of which also put bits of the lowest byte into the next one.
      std::size_t shift = 0;
      for (std::size_t i = std::min<std::size_t>(32 * (word + 1), programs_.size()); i-- > 32 * word; ++shift) {
        std::string bit;
        if (!roots_[i]) {
          text += fmt::format("bool u{0} = false;\n", i);
          bit = fmt::format("({}(packet, u{}) != 0u)", name_of_direct(i), i);
        } else if (straight_[i]) {
          bit = nodes.define(*roots_[i], text);
        } else {
          continue;
        }
        any = true;
        if (bit == "false") continue;
        text += fmt::format("bits = bits << {} | u32({});\n", bits_set ? shift : 0, bit);
        bits_set = true;
        shift = 0;
      }
      if (shift > 1) text += fmt::format("bits <<= {};\n", shift - 1);
      if (!any) continue;
      with_code_.insert(word);
      code_.text += fmt::format("{} u32 word_{}(const PacketWindow packet) {{\nu32 bits = 0;\n{}return bits;\n}}\n",
                                words_ + groups_.size() > 2 ? "PENSTOCK_FUNCTION" : "PENSTOCK_INLINE", word, text);
    }
  }

  /// The groups' functions for each part of the bitmap, and match_part(), which calls them and those of words.
  void write_parts() {
    for (const GroupText& group : group_texts_) code_.text += group.tables();
    std::string match_part =
        "PENSTOCK_INLINE void match_part(const PacketWindow packet, u32* const words, const u32 part) {\n";
    code_.parts = 0;
    std::uint32_t word = 0;
    do {
      const std::uint32_t first = word;
      std::string text;
      std::size_t functions = 0;
      for (; word < words_; ++word) {
        if (with_code_.contains(word)) {
          if (functions++ == kWordsPerPart) break;
          text += fmt::format("words[{0}] = word_{0}(packet);\n", word);
        } else if (!whole_.contains(word)) {
          text += fmt::format("words[{}] = 0;\n", word);
        }
      }
      for (const GroupText& group : group_texts_) {
        const std::string function = group.function(code_.parts, first, word);
        if (function.empty()) continue;
        code_.text += function;
        text += group.call(code_.parts);
      }
      match_part += fmt::format("if (part == {}u) {{\n{}}}\n", code_.parts, text);
      ++code_.parts;
    } while (word < words_);
    code_.text += match_part + "}\n";
  }

  void write_undecided() {
    std::vector<std::string> parts;
    std::set<NodeId> roots;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      if (options_.available >= reach(programs_[i].instructions())) continue;
      if (roots_[i]) {
        const NodeId root = graph_.undecided(*roots_[i], options_.available);
        if (root != kNoMatch) roots.insert(root);
      } else {
        parts.push_back(
            fmt::format("bool u{0} = false;\n{1}(packet, u{0});\nif (u{0}) return true;\n", i, name_of_direct(i)));
      }
    }
    std::string text;
    std::size_t functions = 0;
    for (auto root = roots.begin(); root != roots.end();) {
      NodeText nodes(graph_);
      std::string body = "bool any = false;\n";
      for (std::size_t i = 0; i < kRootsPerFunction && root != roots.end(); ++i, ++root) {
        const std::string name = nodes.define(*root, body);
        body += fmt::format("any |= {};\n", name);
      }
      text += fmt::format("PENSTOCK_FUNCTION bool undecided_{}(const PacketWindow packet) {{\n{}return any;\n}}\n",
                          functions, body);
      parts.push_back(fmt::format("if (undecided_{}(packet)) return true;\n", functions));
      ++functions;
    }
    code_.may_be_undecided = !parts.empty();
    code_.text += text + "PENSTOCK_INLINE bool any_undecided(const PacketWindow packet) {\n";
    for (const std::string& part : parts) code_.text += part;
    code_.text += "return false;\n}\n";
  }

  void write_return_all() {
    code_.text += "PENSTOCK_INLINE bool return_all(const PacketWindow packet, u32* const returns) {\n";
    code_.text += "bool undecided = false;\n";
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      code_.text +=
          fmt::format("{{ bool u = false; returns[{}] = {}(packet, u); undecided |= u; }}\n", i, name_of_direct(i));
    }
    code_.text += "return undecided;\n}\n";
  }

  std::span<const Program> programs_;
  GenerateOptions options_;
  std::uint32_t words_;
  DecisionGraph graph_;
  std::vector<std::optional<NodeId>> roots_;  // by program
  std::vector<bool> straight_;                // by program: straight-line code
  std::vector<ProgramGroup> groups_;
  std::vector<GroupText> group_texts_;
  std::set<std::uint32_t> whole_;      // words that groups write as a whole
  std::set<std::uint32_t> with_code_;  // words that have a function
  GeneratedCode code_;
};

}  // namespace

GeneratedCode generate(std::span<const Program> programs, const GenerateOptions& options) {
  return Generator(programs, options).code();
}

}  // namespace penstock::filter
