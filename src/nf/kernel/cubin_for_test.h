// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A file with the headers of a cubin and no code, for tests without a GPU.

#pragma once

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace penstock::kernel {

/// As nvcc -cubin writes it: null, the symbols, and their names.
struct TestCubin {
  Elf64_Ehdr header{};
  Elf64_Shdr symbols{}, names{};
  std::vector<Elf64_Sym> symbol{1};
  std::string text = std::string(1, '\0');

  TestCubin() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_EXEC;
    header.e_machine = 190;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    symbols.sh_type = SHT_SYMTAB;
    symbols.sh_link = 2;
    names.sh_type = SHT_STRTAB;
  }
  /// `other`: 0x10 for a kernel.
  TestCubin& function(const std::string& name, unsigned char other = 0x10) {
    Elf64_Sym added{};
    added.st_name = static_cast<Elf64_Word>(text.size());
    added.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    added.st_other = other;
    symbol.push_back(added);
    text += name + '\0';
    return *this;
  }
  /// With the places of its parts.
  TestCubin& placed() {
    symbols.sh_offset = sizeof header;
    symbols.sh_size = symbol.size() * sizeof(Elf64_Sym);
    names.sh_offset = symbols.sh_offset + symbols.sh_size;
    names.sh_size = text.size();
    header.e_shoff = names.sh_offset + names.sh_size;
    return *this;
  }
  [[nodiscard]] std::vector<char> bytes() const {
    std::vector<char> all;
    const auto add = [&](const void* from, std::size_t size) {
      const char* const first = static_cast<const char*>(from);
      all.insert(all.end(), first, first + size);
    };
    const Elf64_Shdr null{};
    add(&header, sizeof header);
    add(symbol.data(), symbol.size() * sizeof(Elf64_Sym));
    add(text.data(), text.size());
    add(&null, sizeof null);
    add(&symbols, sizeof symbols);
    add(&names, sizeof names);
    return all;
  }
};

}  // namespace penstock::kernel
