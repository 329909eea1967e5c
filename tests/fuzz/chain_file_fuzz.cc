// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary text as a chain file; the lines after a line "--set" are overrides. The chain is read, checked and built,
// but never run. It can name only files of its own folder: texts that could name others are skipped.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/text_file.h"
#include "config/chain_file.h"

using namespace penstock;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
    put("rules",
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i lan -p tcp -j ACCEPT\n-A FORWARD -m mark -j DROP\nCOMMIT\n");
    put("routes", "default via 10.0.0.1 dev wan\n10.0.0.0/8 dev lan\n");
    put("broken", "10.0.0.0/33 via 10.0.0.1\n-A FORWARD -p tpc -j ACCEPT\n");
    put("neighbours", "10.0.0.1 dev wan lladdr 02:00:00:00:00:01 STALE\n");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  void put(std::string_view name, std::string_view text) const { std::ofstream(path_ / name) << text; }
  [[nodiscard]] std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Changes the working directory, to which overrides' file names are relative, and restores it in the destructor.
class InFolder {
 public:
  explicit InFolder(const std::string& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
  ~InFolder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  // A backslash may encode a slash. Building a DIR-24-8 table for each input would be slow.
  if (text.find_first_of("/\\") != std::string_view::npos || text.find("dir24") != std::string_view::npos) return 0;
  const InFolder in_folder(folder / "");

  config::LoadOptions options;
  if (text.find("router") != std::string_view::npos)
    options.overrides.push_back(*config::parse_override("chain.router.ipv4=trie1"));
  constexpr std::string_view kOverrides = "\n--set\n";
  if (const std::size_t at = text.find(kOverrides); at != std::string_view::npos) {
    LineReader lines(text.substr(at + kOverrides.size()));
    for (Line line; lines.next(line);) {
      if (auto parsed = config::parse_override(std::string(line.text))) options.overrides.push_back(std::move(*parsed));
    }
    text = text.substr(0, at);
  }
  folder.put("chain.yaml", text);
  for (const bool strict : {false, true}) {
    options.strict = options.only_plan = strict;
    const auto loaded = config::load_chain(folder / "chain.yaml", options);
    if (loaded) {
      const run::Chain& chain = loaded->chain;
      if (chain.ports.empty() || chain.wiring.size() != chain.ports.size()) std::abort();
      if (strict && !loaded->unsupported.empty()) std::abort();
      static_cast<void>(plan::plan_transfers(chain.traits(), chain.processors()));
    } else {
      if (loaded.error().empty()) std::abort();  // failed without a reason
      static_cast<void>(to_string(loaded.error()));
    }
  }
  return 0;
}
