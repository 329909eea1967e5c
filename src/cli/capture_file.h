// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the events of `penstock ctl capture` as a pcapng file (draft-ietf-opsawg-pcapng): one interface for each port
// and link type, and the drop reason as a comment of each packet. Each packet is in the file when `add` returns, so
// that the file is complete whenever the command is interrupted.

#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace penstock::cli {

/// The bytes of a text in base64 (RFC 4648 §4); empty if it is not valid.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> bytes_of_base64(std::string_view text);

class CaptureFile {
 public:
  /// Whether `create` would write to this file: not over one that is no capture, or that another process is writing.
  [[nodiscard]] static Result<void> check(const std::string& path);
  /// "-": standard output.
  [[nodiscard]] static Result<CaptureFile> create(const std::string& path);

  /// Throws a JSON exception if the event is not one of a capture.
  [[nodiscard]] Result<void> add(const nlohmann::ordered_json& event);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept {
      if (file != stdout) static_cast<void>(std::fclose(file));
    }
  };
  CaptureFile(std::string path, std::unique_ptr<std::FILE, Close> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  [[nodiscard]] Result<void> write(const std::string& blocks);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::map<std::pair<std::string, std::uint16_t>, std::uint32_t> interfaces_;  // by port and link type
};

}  // namespace penstock::cli
