// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <new>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace penstock {

namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

/// The shared mappings of this process, by their addresses.
struct SharedMappings {
  struct Mapping {
    std::size_t bytes;
    int file;
  };
  std::mutex mutex;  // guards `by_address`
  std::map<std::uintptr_t, Mapping> by_address;
};

SharedMappings& mappings() {
  static auto* const all = new SharedMappings;  // outlives every static object that owns memory
  return *all;
}

std::uintptr_t address_of(const void* memory) noexcept { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

int make_shared_file(const char* name, std::size_t bytes) noexcept {
  const int file = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0 && ::fcntl(file, F_ADD_SEALS, kSizeSeals) == 0) return file;
  const int error = errno;
  ::close(file);
  errno = error;
  return -1;
}

bool seal_writes(int file) noexcept { return ::fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0; }

int read_only_file(int file) noexcept {
  // Whoever has a descriptor can open the file anew by /proc, with the permissions of the file.
  if (::fchmod(file, S_IRUSR | S_IWUSR) != 0) return -1;
  std::array<char, 32> path{};
  *fmt::format_to_n(path.data(), path.size() - 1, "/proc/self/fd/{}", file).out = '\0';
  return ::open(path.data(), O_RDONLY | O_CLOEXEC);
}

bool is_sealed(int file, std::size_t bytes) noexcept {
  struct stat status {};
  struct statfs system {};
  const int seals = ::fcntl(file, F_GET_SEALS);
  // Pages of hugetlbfs can be missing when they are touched.
  return seals >= 0 && (seals & kSizeSeals) == kSizeSeals && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::size_t>(status.st_size) >= bytes && ::fstatfs(file, &system) == 0 &&
         system.f_type == TMPFS_MAGIC;
}

void* map_memory(std::size_t bytes, bool shared) {
  const int file = shared ? make_shared_file("penstock", bytes) : -1;
  if (shared && file < 0) throw std::bad_alloc();
  const int flags = shared ? MAP_SHARED | MAP_NORESERVE : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory == MAP_FAILED) {
    if (file >= 0) ::close(file);
    throw std::bad_alloc();
  }
  if (shared) {
    const std::lock_guard lock(mappings().mutex);
    mappings().by_address[address_of(memory)] = {bytes, file};
  }
  return memory;
}

void unmap_memory(void* memory, std::size_t bytes) noexcept {
  {
    const std::lock_guard lock(mappings().mutex);
    const auto found = mappings().by_address.find(address_of(memory));
    if (found != mappings().by_address.end()) {
      ::close(found->second.file);
      mappings().by_address.erase(found);
    }
  }
  if (memory != nullptr) ::munmap(memory, bytes);
}

std::optional<SharedPart> shared_part_of(std::span<const std::uint8_t> memory) noexcept {
  const std::uintptr_t first = address_of(memory.data());
  const std::lock_guard lock(mappings().mutex);
  auto after = mappings().by_address.upper_bound(first);
  if (after == mappings().by_address.begin()) return std::nullopt;
  const auto& [address, mapping] = *--after;
  const std::size_t offset = first - address;
  if (offset > mapping.bytes || memory.size() > mapping.bytes - offset) return std::nullopt;
  return SharedPart{mapping.file, mapping.bytes, offset};
}

}  // namespace penstock
