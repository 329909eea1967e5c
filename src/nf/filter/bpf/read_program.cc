// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/read_program.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"

namespace penstock::filter {

namespace {

std::optional<std::uint64_t> number_up_to(std::string_view text, std::uint64_t most) {
  const auto number = parse_integer(text);
  if (!number || *number > most) return std::nullopt;
  return number;
}

Result<Instruction> read_instruction(const std::vector<Word>& words, const Place& line) {
  static constexpr std::string_view kNames[] = {"code", "jt", "jf", "k"};
  static constexpr std::uint64_t kMost[] = {0xffff, 0xff, 0xff, 0xffffffff};
  if (words.size() != 4)
    return failure(Error{line, "not an instruction", fmt::format("{} numbers", words.size()), "4: code jt jf k"});
  std::uint64_t numbers[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const auto number = number_up_to(words[i].text, kMost[i]);
    if (!number)
      return failure(Error{{line.file, line.line, words[i].column},
                           fmt::format("bad {} of an instruction", kNames[i]),
                           in_quotes(words[i].text),
                           fmt::format("a number up to {}", kMost[i])});
    numbers[i] = *number;
  }
  return Instruction{static_cast<std::uint16_t>(numbers[0]), static_cast<std::uint8_t>(numbers[1]),
                     static_cast<std::uint8_t>(numbers[2]), static_cast<std::uint32_t>(numbers[3])};
}

}  // namespace

Result<Program> read_program(std::string_view text, const std::string& file, int link_type) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  LineReader lines(text);
  Line line;
  std::vector<Word> words;
  if (lines.next(line)) split_words(line.text, words);
  const auto count = words.size() == 1 ? number_up_to(words[0].text, 0xffffffff) : std::nullopt;
  if (!count)
    return failure(Error{{file, 1, 0},
                         "not a BPF program",
                         in_quotes(line.text),
                         "the number of instructions, as tcpdump -ddd prints it"});
  if (*count > kMostInstructions)
    return failure(Error{{file, 1, 0},
                         "the BPF program is too long",
                         fmt::format("{} instructions", *count),
                         fmt::format("at most {}", kMostInstructions)});
  std::vector<Instruction> instructions;
  while (lines.next(line)) {
    if (instructions.size() == *count)
      return failure(Error{{file, line.number, 0},
                           "more instructions than the first line says",
                           in_quotes(line.text),
                           fmt::format("{} instructions", *count)});
    split_words(line.text, words);
    auto instruction = read_instruction(words, {file, line.number, 0});
    if (!instruction) return tl::unexpected(std::move(instruction.error()));
    instructions.push_back(*instruction);
  }
  if (instructions.size() < *count)
    return failure(Error{{file, 0, 0},
                         "the BPF program is truncated",
                         fmt::format("{} instructions", instructions.size()),
                         fmt::format("{}, as the first line says", *count)});
  return Program::verify(std::move(instructions), {file, 2, 0}, true, link_type);
}

}  // namespace penstock::filter
