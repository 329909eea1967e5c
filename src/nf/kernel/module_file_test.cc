// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/kernel/module_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "nf/kernel/cubin_for_test.h"

namespace penstock::kernel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<char> chars(std::string_view text) { return {text.begin(), text.end()}; }

std::string refused(std::vector<char> content, std::string_view entry = "drop_port") {
  const auto module = check_module(std::move(content), "drop.cubin", entry);
  return module ? "" : to_string(module.error());
}

TestCubin cubin() { return TestCubin().function("helper", 0).function("drop_port").function("count").placed(); }

TEST(ModuleFile, IsACubinWithTheKernel) {
  const auto module = check_module(cubin().bytes(), "drop.cubin", "drop_port");
  ASSERT_TRUE(module) << to_string(module.error());
  EXPECT_EQ(module->format, ModuleFile::Format::cubin);
  EXPECT_EQ(module->code, cubin().bytes());
}

TEST(ModuleFile, NamesTheKernelsThatACubinHas) {
  EXPECT_THAT(refused(cubin().bytes(), "drop"), AllOf(HasSubstr("drop.cubin: no such kernel: entry"),
                                                      HasSubstr("found 'drop'"), HasSubstr("one of drop_port, count")));
  EXPECT_THAT(refused(cubin().bytes(), "helper"), HasSubstr("no such kernel")) << "a function of the device only";
  EXPECT_THAT(refused(TestCubin().placed().bytes()), HasSubstr("expected a file with a kernel"));
}

TEST(ModuleFile, MayBeTruncatedAnywhere) {
  const std::vector<char> whole = cubin().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  }
}

TEST(ModuleFile, MayHaveAnyHeaders) {
  TestCubin other = cubin();
  other.header.e_machine = EM_X86_64;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("machine code of another machine: found ELF machine 62"));
  other = cubin();
  other.header.e_type = ET_REL;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("not linked"));
  other = cubin();
  other.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("another kind"));
  other = cubin();
  other.header.e_shoff = UINT64_MAX - 10;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("section headers are not in the file"));
  other = cubin();
  other.header.e_shnum = 0;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("section headers"));
  other = cubin();
  other.symbols.sh_size = UINT64_MAX;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("section 1 is not in the file"));
  other = cubin();
  other.symbols.sh_link = 77;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("symbols have no names"));
  other = cubin();
  other.symbol[2].st_name = 1U << 30;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("no such kernel"));
  other = cubin();
  other.names = other.symbols;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("symbols have no names"));
  other = cubin();
  other.header.e_shnum = 4;  // the last one is at the end of the file, and of the first one's kind
  std::vector<char> twice = other.bytes();
  const auto* const symbols = reinterpret_cast<const char*>(&other.symbols);
  twice.insert(twice.end(), symbols, symbols + sizeof other.symbols);
  EXPECT_THAT(refused(twice), HasSubstr("several tables of symbols"));
  EXPECT_THAT(refused(cubin().function(std::string(5000, 'x')).placed().bytes(), "xxx"),
              HasSubstr("one of drop_port, count"))
      << "too long for a name";
  other = cubin();
  other.names.sh_size -= 1;  // the last name has no end
  EXPECT_THAT(refused(other.bytes(), "count"), HasSubstr("no such kernel"));
}

TEST(ModuleFile, MayHaveAnyBytes) {
  std::mt19937 random(7);
  const std::vector<char> whole = cubin().bytes();
  for (unsigned i = 0; i < 20'000; ++i) {
    std::vector<char> changed = whole;
    for (unsigned n = random() % 4; n <= 4; ++n) changed[random() % changed.size()] = static_cast<char>(random());
    static_cast<void>(refused(std::move(changed)));  // the sanitizers watch
  }
}

TEST(ModuleFile, IsAWholeFatbin) {
  const auto fatbin = [](std::uint16_t header, std::uint64_t bytes) {
    std::vector<char> content(80);
    const std::uint32_t magic = 0xba55ed50;
    std::memcpy(content.data(), &magic, sizeof magic);
    std::memcpy(content.data() + 6, &header, sizeof header);
    std::memcpy(content.data() + 8, &bytes, sizeof bytes);
    return content;
  };
  EXPECT_EQ(refused(fatbin(16, 64)), "");
  EXPECT_THAT(refused(fatbin(16, 65)), HasSubstr("the fatbin is not complete"));
  EXPECT_THAT(refused(fatbin(8, 64)), HasSubstr("the fatbin is not complete"));
  EXPECT_THAT(refused(fatbin(16, UINT64_MAX)), HasSubstr("the fatbin is not complete"));
  EXPECT_THAT(refused({'\x50', '\xed', '\x55', '\xba'}), HasSubstr("the fatbin is not complete"));
}

TEST(ModuleFile, IsPtxWithTheKernel) {
  const std::string ptx = "// nvcc\n.version 9.0\n.target sm_80\n.visible .entry drop_port_2(\n)\n.entry\tdrop_port\n(";
  const auto module = check_module(chars(ptx), "drop.ptx", "drop_port");
  ASSERT_TRUE(module) << to_string(module.error());
  EXPECT_EQ(module->format, ModuleFile::Format::ptx);
  EXPECT_EQ(module->code.back(), '\0') << "as the driver wants it";
  EXPECT_THAT(refused(chars(ptx), "drop"), HasSubstr("no such kernel"));
  EXPECT_THAT(refused(chars(".version 9.0\n.entry"), ""), HasSubstr("")) << "ends after the directive";
}

TEST(ModuleFile, IsNothingElse) {
  EXPECT_THAT(refused({}), HasSubstr("not a module of a GPU: found an empty file"));
  EXPECT_THAT(refused(chars("__global__ void drop_port() {}")), HasSubstr("expected a cubin, a fatbin or PTX"));
}

class BinaryFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("penstock-module-{}", ::getpid());
};

TEST_F(BinaryFile, IsReadUpToALimit) {
  const std::string path = folder_ / "file";
  std::ofstream(path) << "abc";
  EXPECT_EQ(read_binary_file(path, 3).value(), chars("abc"));
  const auto longer = read_binary_file(path, 2);
  ASSERT_FALSE(longer);
  EXPECT_THAT(to_string(longer.error()), HasSubstr("the file is too large: found 3 B, expected 2 B or less"));
}

TEST_F(BinaryFile, IsARegularFile) {
  EXPECT_THAT(to_string(read_binary_file(folder_, 10).error()), HasSubstr("not a regular file"));
  EXPECT_THAT(to_string(read_binary_file("/dev/zero", 10).error()), HasSubstr("not a regular file"));
  EXPECT_THAT(to_string(read_binary_file(folder_ / "none", 10).error()), HasSubstr("No such file"));
}

#ifndef PENSTOCK_SANITIZED
TEST(KernelAbi, IsCAndCxx) {
  const std::string compile = PENSTOCK_GXX " -Wall -Wextra -pedantic -Werror -fsyntax-only ";
  for (const char* const language : {"-x c -std=c11", "-x c++ -std=c++14", "-x c++ -std=c++20"}) {
    const std::string command = compile + language + " " PENSTOCK_SOURCE_DIR "/src/function/kernel_abi.h";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}
#endif

}  // namespace
}  // namespace penstock::kernel
