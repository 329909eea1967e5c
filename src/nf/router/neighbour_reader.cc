// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/neighbour_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error_list.h"
#include "base/text_file.h"
#include "base/units.h"
#include "nf/router/ip_json.h"
#include "nf/router/next_hop.h"
#include "nf/router/read_files.h"

namespace penstock::router {

namespace {

enum class NeighbourWord { dev, lladdr, no_mac, no_arp, flag, value };
struct NeighbourWordEntry {
  std::string_view name;
  NeighbourWord word;
};

// From iproute2's print_neigh.
constexpr auto kWords = std::to_array<NeighbourWordEntry>({
    {"dev", NeighbourWord::dev},           {"lladdr", NeighbourWord::lladdr},     {"REACHABLE", NeighbourWord::flag},
    {"STALE", NeighbourWord::flag},        {"PERMANENT", NeighbourWord::flag},    {"DELAY", NeighbourWord::flag},
    {"PROBE", NeighbourWord::flag},        {"NOARP", NeighbourWord::no_arp},      {"FAILED", NeighbourWord::no_mac},
    {"INCOMPLETE", NeighbourWord::no_mac}, {"NONE", NeighbourWord::no_mac},       {"proxy", NeighbourWord::no_mac},
    {"router", NeighbourWord::flag},       {"extern_learn", NeighbourWord::flag}, {"offload", NeighbourWord::flag},
    {"managed", NeighbourWord::flag},      {"extern_valid", NeighbourWord::flag}, {"proto", NeighbourWord::value},
    {"used", NeighbourWord::value},        {"probes", NeighbourWord::value},      {"ref", NeighbourWord::value},
    {"nud", NeighbourWord::value},
});

class NeighbourReader {
 public:
  NeighbourReader(Devices& devices, std::size_t most) : devices_(&devices), most_(most) {}

  void read(std::string_view text, const std::string& file) {
    file_ = file;
    if (is_ip_json(text)) return read_json(text);
    for (LineReader lines(text); read_ <= most_ && lines.next(line_);) {
      split_words(line_.text, words_);
      if (!words_.empty() && words_[0].text.front() != '#') read_entry();
    }
  }

  Result<Read<Neighbours>> finish() && {
    if (!errors_.empty()) return failure(std::move(errors_).take());
    return Read<Neighbours>{std::move(neighbours_), std::move(unsupported_).take()};
  }

 private:
  void read_json(std::string_view text) {
    IpJsonEntries entries(text);
    IpJsonWords entry_words;
    IpJsonEntry entry;
    std::string why;
    const auto wrong = [&](std::string_view message) {
      errors_.add(Error{{file_, entry.line, entry.column},
                        std::string(message),
                        in_quotes(entry.text),
                        "a neighbour of `ip -j neigh`"});
    };
    while (read_ <= most_ && entries.next(entry)) {
      line_ = {entry.line, {}};
      entry_words.read_neighbour(entry, words_, why) ? read_entry() : wrong(why);
    }
    if (!entries.wrong().empty()) wrong(entries.wrong());
  }

  void read_entry() {
    if (++read_ <= most_) return read_words();
    const std::string most = format_count(most_);
    errors_.add(Error{{file_, line_.number, 0},
                      "too many neighbours",
                      "more than " + most,
                      "at most " + most + " (most_routes raises it)"});
  }

  void read_words() {
    Neighbour neighbour;
    if (const auto v4 = parse_ipv4(words_[0].text)) {
      neighbour.address = mapped(*v4);
    } else if (const auto v6 = parse_ipv6(words_[0].text)) {
      neighbour.address = *v6;
    } else {
      return error(words_[0], "not a neighbour", "an IP address");
    }
    bool has_device = false;
    bool has_mac = false;
    bool usable = true;
    bool expects_unicast = true;  // the MAC comes from an ARP or ND answer, or from a user
    Word mac_word;
    for (std::size_t at = 1; at < words_.size(); ++at) {
      const Word& name = words_[at];
      // `ip -s neigh` prints no space between two of its numbers: "used 0/60/0probes 0".
      const auto entry = std::ranges::find(kWords, name.text, &NeighbourWordEntry::name);
      if (entry == kWords.end()) return unsupported(name, "neighbour line with an unknown word");
      if (entry->word == NeighbourWord::flag) continue;
      if (entry->word == NeighbourWord::no_mac) {
        usable = false;
        continue;
      }
      if (entry->word == NeighbourWord::no_arp) {
        expects_unicast = false;
        continue;
      }
      if (at + 1 == words_.size()) {
        const auto end = name.column + static_cast<std::uint32_t>(name.text.size());
        return error({{}, end}, "the line ends after " + in_quotes(name.text), "a value");
      }
      const Word& value = words_[++at];
      if (entry->word == NeighbourWord::dev) {
        const auto device = devices_->find(value.text);
        if (!device) return unsupported(value, "neighbour on a device that is not a port");
        neighbour.device = *device;
        has_device = true;
      } else if (entry->word == NeighbourWord::lladdr) {
        const auto mac = parse_mac(value.text);
        if (!mac) return error(value, "not a MAC address", "six bytes such as 02:00:00:00:00:01");
        neighbour.mac = *mac;
        mac_word = value;
        has_mac = true;
      } else if (name.text == "used" && value.text.ends_with("probes")) {
        ++at;  // the number of probes
      }
    }
    const auto end = words_.back().column + static_cast<std::uint32_t>(words_.back().text.size());
    if (!has_device) return error({{}, end}, "neighbour without a device", "dev DEVICE");
    if (!has_mac || !usable || neighbour.device == kNoPort) return;
    if (is_group_address(neighbour.mac) || neighbour.mac == MacAddress{}) {
      if (expects_unicast) error(mac_word, "not a unicast MAC address", "a unicast address such as 02:00:00:00:00:01");
      return;
    }
    add(neighbour, mac_word);
  }

  void add(const Neighbour& neighbour, const Word& mac_word) {
    const auto [place, added] = first_.try_emplace({neighbour.address, neighbour.device}, First{neighbour.mac, {}});
    First& first = place->second;
    if (added) {
      first.where = {file_, line_.number, 0};
      neighbours_.push_back(neighbour);
    } else if (first.mac != neighbour.mac) {
      error(mac_word, "second MAC address for the same neighbour",
            fmt::format("{}, as in {}:{}", to_string(first.mac), first.where.file, first.where.line));
    }
  }

  void error(const Word& word, std::string_view message, std::string_view expected) {
    errors_.add([&] {
      return Error{{file_, line_.number, word.column},
                   std::string(message),
                   word.text.empty() ? "" : in_quotes(word.text),
                   std::string(expected)};
    });
  }
  void unsupported(const Word& word, std::string_view message) {
    unsupported_.add([&] {
      return Error{{file_, line_.number, word.column}, std::string(message) + " is left out", in_quotes(word.text), ""};
    });
  }

  /// The first MAC for an address and device, and where it was found.
  struct First {
    MacAddress mac;
    Place where;
  };

  Devices* devices_;
  std::size_t most_;
  std::size_t read_ = 0;
  Neighbours neighbours_;
  std::map<std::pair<Ipv6Address, PortIndex>, First> first_;
  ErrorList errors_;
  ErrorList unsupported_{ErrorList::kMostLeftOut};
  std::string file_;
  Line line_;
  std::vector<Word> words_;
};

}  // namespace

Result<Read<Neighbours>> read_neighbours(std::span<const std::string> paths, Devices& devices, std::size_t most) {
  return read_files(paths, NeighbourReader(devices, most));
}

Result<Read<Neighbours>> parse_neighbours(std::string_view text, const std::string& file, Devices& devices,
                                          std::size_t most) {
  NeighbourReader reader(devices, most);
  reader.read(text, file);
  return std::move(reader).finish();
}

}  // namespace penstock::router
