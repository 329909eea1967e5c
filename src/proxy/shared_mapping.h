// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace penstock::proxy {

/// In a tenant: a file that the proxy has made.
class SharedMapping {
 public:
  SharedMapping() = default;
  /// Throws gpu::CudaError.
  SharedMapping(int file, std::size_t bytes, bool writes);
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(SharedMapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMapping();

  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  [[nodiscard]] std::uint8_t* at(std::size_t offset) const noexcept { return bytes_.data() + offset; }

 private:
  std::span<std::uint8_t> bytes_;
};

}  // namespace penstock::proxy
