// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/host_code_for_test.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace penstock::filter::testing {

HostCode::HostCode(std::span<const Program> programs, const GenerateOptions& options)
    : programs_(programs.size()), code_(generate(programs, options)) {
  std::string folder = (std::filesystem::temp_directory_path() / "penstock-code-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  std::ofstream(folder + "/code.cc") << code_.text;
  const std::string compile = std::string(PENSTOCK_GXX) +
                              " -std=c++20 -O0 -Wall -Wextra -Werror -Wno-unused -Wno-type-limits -shared -fPIC -o " +
                              folder + "/code.so " + folder + "/code.cc";
  const int status = std::system(compile.c_str());
  if (status == 0) library_ = dlopen((folder + "/code.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    ADD_FAILURE() << "the generated code does not compile: " << folder << "/code.cc";
    std::abort();
  }
  std::filesystem::remove_all(folder);
  match_ = reinterpret_cast<Match*>(dlsym(library_, "penstock_match"));
  undecided_ = reinterpret_cast<Undecided*>(dlsym(library_, "penstock_undecided"));
  returns_ = reinterpret_cast<Match*>(dlsym(library_, "penstock_returns"));
}

HostCode::~HostCode() { dlclose(library_); }

std::vector<std::uint32_t> HostCode::match(const PacketBytes& packet, std::uint32_t available) const {
  std::vector<std::uint32_t> words(words_for(programs_), 0xa5a5a5a5);
  match_(packet.data, std::min(available, packet.length), packet.length, packet.wire_length, words.data());
  return words;
}

bool HostCode::is_undecided(const PacketBytes& packet, std::uint32_t available) const {
  return undecided_(packet.data, std::min(available, packet.length), packet.length, packet.wire_length) != 0;
}

std::vector<std::uint32_t> HostCode::returns(const PacketBytes& packet, std::uint32_t available) const {
  std::vector<std::uint32_t> values(programs_);
  returns_(packet.data, std::min(available, packet.length), packet.length, packet.wire_length, values.data());
  return values;
}

GuardedPacket::GuardedPacket()
    : pages_(static_cast<std::uint8_t*>(
          mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
  if (pages_ == MAP_FAILED || mprotect(pages_ + kPage, kPage, PROT_NONE) != 0) std::abort();
}

GuardedPacket::~GuardedPacket() { munmap(pages_, 2 * kPage); }

const std::uint8_t* GuardedPacket::put(std::span<const std::uint8_t> bytes, std::uint32_t misalignment,
                                       std::size_t available) {
  available = std::min(available, bytes.size());
  std::uint8_t* const to = pages_ + kPage - (misalignment + available + 3) / 4 * 4 + misalignment;
  std::copy_n(bytes.begin(), available, to);
  return to;
}

}  // namespace penstock::filter::testing
