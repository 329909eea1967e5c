// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory of this process, some of which other processes can map too (memfd). The size of shared memory is sealed, so
// that no process that maps it can be ended by another one that truncates it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace penstock {

/// Zeroed memory whose pages are allocated when they are first used. `shared`: other processes can map it. Throws
/// std::bad_alloc.
[[nodiscard]] void* map_memory(std::size_t bytes, bool shared);
/// Of `map_memory`, as a whole.
void unmap_memory(void* memory, std::size_t bytes) noexcept;

/// Owns memory of `map_memory`.
class MappedMemory {
 public:
  MappedMemory() = default;
  MappedMemory(std::size_t bytes, bool shared) : bytes_(static_cast<std::uint8_t*>(map_memory(bytes, shared)), bytes) {}
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory(MappedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedMemory& operator=(MappedMemory other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedMemory() {
    if (!bytes_.empty()) unmap_memory(bytes_.data(), bytes_.size());
  }
  [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::uint8_t> bytes_;
};

/// Where memory lies in a file that other processes can map.
struct SharedPart {
  int file = -1;  // borrowed until the memory is unmapped
  std::size_t file_bytes = 0;
  std::size_t offset = 0;  // bytes from the start of the file
};
/// Empty if not all of `memory` is shared memory of one `map_memory`. Thread-safe; not for the packet path.
[[nodiscard]] std::optional<SharedPart> shared_part_of(std::span<const std::uint8_t> memory) noexcept;

/// A memfd whose size is sealed, or -1 with errno set. The caller closes it.
[[nodiscard]] int make_shared_file(const char* name, std::size_t bytes) noexcept;
/// No further mapping can write; mappings that exist still can. False: the kernel refuses (Linux before 5.1).
[[nodiscard]] bool seal_writes(int file) noexcept;
/// Another descriptor of the file, by which it cannot be written, and from which processes of other users that are not
/// privileged cannot make one that can. -1 with errno set: there is none. The caller closes it.
[[nodiscard]] int read_only_file(int file) noexcept;
/// Whether no process can change the size of the file, and no page of it can fail to be there: a sealed memfd of at
/// least so many bytes, without huge pages.
[[nodiscard]] bool is_sealed(int file, std::size_t bytes) noexcept;

}  // namespace penstock
