// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/kernel/module_file.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "port/live/file_descriptor.h"

namespace penstock::kernel {

namespace {

constexpr Elf64_Half kCudaMachine = 190;  // EM_CUDA
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;

/// The header of each fatbin, which `fatbinary` and `nvcc -fatbin` write.
struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // that follow
};

std::string reason_of(int error) { return std::system_category().message(error); }

template <typename T>
std::optional<T> read_at(std::span<const char> bytes, std::uint64_t offset) noexcept {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Empty: not within the file.
std::optional<std::span<const char>> part(std::span<const char> bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

/// The string that begins there; "" if it has no end, or is longer than names of kernels are.
std::string_view text_at(std::span<const char> strings, std::uint64_t offset) noexcept {
  constexpr std::size_t kLongest = 4096;  // many names may share one long string
  if (offset >= strings.size()) return {};
  const std::span<const char> rest = strings.subspan(offset, std::min(strings.size() - offset, kLongest + 1));
  const void* const end = std::memchr(rest.data(), '\0', rest.size());
  return end == nullptr
             ? std::string_view()
             : std::string_view(rest.data(), static_cast<std::size_t>(static_cast<const char*>(end) - rest.data()));
}

/// An ELF file of the CUDA compiler.
class Cubin {
 public:
  Cubin(std::span<const char> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  [[nodiscard]] Result<void> check(std::string_view entry) {
    const auto header = read_at<Elf64_Ehdr>(bytes_, 0);
    if (!header)
      return wrong("its ELF header is incomplete", fmt::format("{} bytes", bytes_.size()), "64 bytes or more");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
      return wrong("an ELF file of another kind",
                   fmt::format("class {}, byte order {}", header->e_ident[EI_CLASS], header->e_ident[EI_DATA]),
                   "64 bits, little-endian");
    if (header->e_machine != kCudaMachine)
      return wrong("machine code of another machine", fmt::format("ELF machine {}", header->e_machine),
                   fmt::format("{} (CUDA), as nvcc -cubin writes it", kCudaMachine));
    if (header->e_type != ET_EXEC)
      return wrong("machine code that is not linked", fmt::format("ELF type {}", header->e_type),
                   "an executable, as nvcc -cubin writes it without -rdc=true");
    if (header->e_shentsize != sizeof(Elf64_Shdr))
      return wrong("its ELF header is wrong", fmt::format("section headers of {} bytes", header->e_shentsize),
                   std::to_string(sizeof(Elf64_Shdr)));
    const auto table = part(bytes_, header->e_shoff, std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr));
    if (!table || table->empty()) return wrong("its section headers are not in the file", size_text(), "a whole file");
    for (unsigned s = 0; s < header->e_shnum; ++s) {
      const auto section = *read_at<Elf64_Shdr>(*table, s * sizeof(Elf64_Shdr));
      if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
          !part(bytes_, section.sh_offset, section.sh_size))
        return wrong(fmt::format("section {} is not in the file", s), size_text(), "a whole file");
      if (section.sh_type == SHT_SYMTAB) {
        // Many could lie in the same place, and take for ever.
        if (std::exchange(has_symbols_, true)) return wrong("it has several tables of symbols", "", "one");
        if (auto read = read_symbols(section, *table, header->e_shnum); !read) return read;
      }
    }
    if (std::ranges::find(kernels_, entry) == kernels_.end())
      return wrong("no such kernel: entry", in_quotes(entry), kernels_text());
    return {};
  }

 private:
  /// Collects the names of its kernels.
  Result<void> read_symbols(const Elf64_Shdr& symbols, std::span<const char> table, unsigned sections) {
    std::optional<std::span<const char>> strings;
    if (symbols.sh_link < sections) {
      const auto names = *read_at<Elf64_Shdr>(table, symbols.sh_link * sizeof(Elf64_Shdr));
      if (names.sh_type == SHT_STRTAB) strings = part(bytes_, names.sh_offset, names.sh_size);
    }
    if (!strings) return wrong("its symbols have no names", "", "the output of nvcc -cubin");
    constexpr unsigned kEntry = 0x10;  // STO_CUDA_ENTRY, in st_other
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = *read_at<Elf64_Sym>(bytes_, symbols.sh_offset + at);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & kEntry) == 0) continue;
      if (const std::string_view name = text_at(*strings, symbol.st_name); !name.empty()) kernels_.push_back(name);
    }
    return {};
  }
  [[nodiscard]] std::string kernels_text() const {
    if (kernels_.empty()) return "a file with a kernel: extern \"C\" __global__ void NAME(struct penstock_batch)";
    constexpr std::size_t kMost = 8;
    std::string text;
    for (const std::string_view kernel : std::span(kernels_).first(std::min(kernels_.size(), kMost)))
      text += (text.empty() ? "" : ", ") + printable(kernel.substr(0, 100));
    return (kernels_.size() > 1 ? "one of " : "") + text + (kernels_.size() > kMost ? " …" : "");
  }
  [[nodiscard]] std::string size_text() const { return format_size(bytes_.size()); }
  [[nodiscard]] tl::unexpected<Errors> wrong(std::string message, std::string found, std::string expected) const {
    return failure(Error{{path_, 0, 0}, std::move(message), std::move(found), std::move(expected)});
  }

  const std::span<const char> bytes_;
  const std::string& path_;
  std::vector<std::string_view> kernels_;
  bool has_symbols_ = false;
};

/// Whether PTX has `.entry NAME`.
bool has_entry(std::string_view ptx, std::string_view entry) noexcept {
  constexpr std::string_view kDirective = ".entry";
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  const auto is_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
  };
  for (std::size_t at = ptx.find(kDirective); at != std::string_view::npos; at = ptx.find(kDirective, at + 1)) {
    std::size_t begin = at + kDirective.size();
    while (begin < ptx.size() && is_space(ptx[begin])) ++begin;
    std::size_t end = begin;
    while (end < ptx.size() && is_name(ptx[end])) ++end;
    if (ptx.substr(begin, end - begin) == entry) return true;
  }
  return false;
}

}  // namespace

std::string_view name(ModuleFile::Format format) noexcept {
  switch (format) {
    case ModuleFile::Format::cubin: return "cubin";
    case ModuleFile::Format::fatbin: return "fatbin";
    case ModuleFile::Format::ptx: return "PTX";
  }
  return "";
}

Result<std::vector<char>> read_binary_file(const std::string& path, std::size_t most_bytes) {
  // Non-blocking: a named pipe is refused and not waited for.
  const port::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return failure(system_error(path, "cannot read", reason_of(errno)));
  if (!S_ISREG(status.st_mode))
    return failure(Error{{path, 0, 0}, "cannot read", "not a regular file", "a regular file"});
  std::vector<char> content(std::min<std::size_t>(static_cast<std::size_t>(status.st_size), most_bytes + 1));
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + size, content.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure(system_error(path, "cannot read", reason_of(errno)));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  content.resize(size);
  if (size > most_bytes)
    return failure(Error{{path, 0, 0},
                         "the file is too large",
                         format_size(static_cast<std::uint64_t>(status.st_size)),
                         fmt::format("{} or less", format_size(most_bytes))});
  return content;
}

Result<ModuleFile> check_module(std::vector<char> content, const std::string& path, std::string_view entry) {
  const std::span<const char> bytes = content;
  const std::string_view text(content.data(), content.size());
  const auto wrong = [&](std::string message, std::string found, std::string expected) {
    return failure(Error{{path, 0, 0}, std::move(message), std::move(found), std::move(expected)});
  };
  if (text.starts_with(std::string_view(ELFMAG, SELFMAG))) {
    if (auto checked = Cubin(bytes, path).check(entry); !checked) return failure(std::move(checked.error()));
    return ModuleFile{ModuleFile::Format::cubin, std::move(content)};
  }
  if (const auto magic = read_at<std::uint32_t>(bytes, 0); magic == kFatbinMagic) {
    const auto header = read_at<FatbinHeader>(bytes, 0);
    if (!header || header->header_bytes < sizeof(FatbinHeader) || header->header_bytes > bytes.size() ||
        header->bytes > bytes.size() - header->header_bytes)
      return wrong("the fatbin is not complete", format_size(bytes.size()), "a whole file");
    return ModuleFile{ModuleFile::Format::fatbin, std::move(content)};
  }
  if (text.find('\0') == std::string_view::npos && text.find(".version") != std::string_view::npos) {
    if (!has_entry(text, entry))
      return wrong("no such kernel: entry", in_quotes(entry), "the name of an .entry of the PTX");
    content.push_back('\0');
    return ModuleFile{ModuleFile::Format::ptx, std::move(content)};
  }
  return wrong("not a module of a GPU", content.empty() ? "an empty file" : in_quotes(text.substr(0, 16)),
               "a cubin, a fatbin or PTX");
}

Result<ModuleFile> read_module(const std::string& path, std::string_view entry) {
  auto content = read_binary_file(path, kMostModuleBytes);
  if (!content) return failure(std::move(content.error()));
  return check_module(std::move(*content), path, entry);
}

}  // namespace penstock::kernel
