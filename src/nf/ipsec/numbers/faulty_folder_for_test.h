// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A disk that fails and forgets. Synced writes are durable. Of the writes since then, a crash keeps an arbitrary part:
// some writes and not others, in any order, and any sectors of each.
//
//     write a ── write b ── sync ── write c ── write d ── crash
//     └──── last for ever ────┘     └─ any sectors of ─┘

#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nf/ipsec/numbers/state_folder.h"

namespace penstock::ipsec::testing {

class FaultyDisk {
 public:
  explicit FaultyDisk(std::uint64_t seed) : random_(seed) {}

  // Injected faults.
  std::uint64_t power_fails_at = 0;  // this operation and all later ones fail; 0: none
  int fails_with = 0;                // error of write operations in the range below
  std::uint64_t error_from = 0, error_to = ~std::uint64_t{0};
  bool locks_are_gone = false;

  std::uint64_t operations = 0;

  /// Restarts the machine: processes and locks are gone, and so is part of what was not synced.
  void crash() {
    for (auto& [name, file] : files_) {
      std::string after = file.synced;
      for (const Write& write : file.pending) apply_some(after, write);
      file.synced = file.now = after;
      file.pending.clear();
    }
    std::map<std::string, unsigned> names = synced_names_;
    for (const auto& [name, file] : names_) {
      if (random_() % 2 == 0) names[name] = file;
    }
    for (const auto& [name, file] : synced_names_) {
      if (!names_.contains(name) && random_() % 2 == 0) names.erase(name);
    }
    names_ = synced_names_ = names;
    kill();
    power_fails_at = 0;
  }
  /// Ends the process while the machine keeps running: all writes are kept.
  void kill() {
    locks_.clear();
    power_fails_at = 0;
  }

  // Changes to the files from outside.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, file] : names_) all.push_back(name);
    return all;
  }
  std::string& content(const std::string& name) { return files_.at(names_.at(name)).now; }
  /// Flips a bit in one of the two halves.
  void damage(const std::string& name, bool second, std::size_t half) {
    std::string& text = content(name);
    const std::size_t at = (second ? half : 0) + random_() % 40;
    if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << random_() % 8);
    files_.at(names_.at(name)).synced = text;
  }
  void remove(const std::string& name) { names_.erase(name); }
  /// Restores a backup: a new file with the old content.
  void restore(const std::string& name, const std::string& old) {
    names_[name] = ++last_file_;
    files_[last_file_].now = old;
  }

  /// The folder as one process sees it.
  class Folder;
  [[nodiscard]] std::unique_ptr<StateFolder> open();

 private:
  struct Write {
    std::uint64_t offset;
    std::string bytes;
  };
  struct File {
    std::string synced, now;
    std::vector<Write> pending;
  };

  static void apply(std::string& to, std::uint64_t offset, std::string_view bytes) {
    if (to.size() < offset + bytes.size()) to.resize(offset + bytes.size());
    to.replace(offset, bytes.size(), bytes);
  }
  void apply_some(std::string& to, const Write& write) {
    constexpr std::size_t kSector = 512;
    const auto kept = random_() % 3;  // none, all, or some sectors
    for (std::size_t at = 0; at < write.bytes.size(); at += kSector) {
      if (kept == 0 || (kept == 2 && random_() % 2 == 0)) continue;
      apply(to, write.offset + at, std::string_view(write.bytes).substr(at, kSector));
    }
  }
  /// 0, or the error that the operation fails with.
  [[nodiscard]] int operate(bool writes) {
    ++operations;
    if (power_fails_at != 0 && operations >= power_fails_at) return EIO;
    return writes && operations >= error_from && operations <= error_to ? fails_with : 0;
  }

  std::mt19937_64 random_;
  std::map<unsigned, File> files_;  // by inode
  std::map<std::string, unsigned> names_, synced_names_;
  unsigned last_file_ = 100;
  std::map<std::uint64_t, const StateFolder*> locks_;
  std::string path_ = "/state";
};

class FaultyDisk::Folder final : public StateFolder {
 public:
  explicit Folder(FaultyDisk& disk) : disk_(disk) {}
  ~Folder() override {
    std::erase_if(disk_.locks_, [&](const auto& lock) { return lock.second == this; });
  }
  const std::string& path() const noexcept override { return disk_.path_; }

  int lock(std::uint64_t place) override {
    const auto [held, is_new] = disk_.locks_.try_emplace(place, this);
    return is_new || held->second == this ? 0 : EAGAIN;
  }
  void unlock(std::uint64_t place) noexcept override { disk_.locks_.erase(place); }
  bool holds_locks() override { return !disk_.locks_are_gone; }

  tl::expected<FileIdentity, int> make(const std::string& name) override {
    if (const int error = disk_.operate(true); error != 0) return tl::unexpected(error);
    disk_.names_[name] = ++disk_.last_file_;
    disk_.files_[disk_.last_file_] = {};
    return FileIdentity{disk_.last_file_, 0};
  }
  tl::expected<FileIdentity, int> identify(const std::string& name) override {
    const auto found = disk_.names_.find(name);
    if (found == disk_.names_.end()) return tl::unexpected(ENOENT);
    return FileIdentity{found->second, 0};
  }
  tl::expected<std::string, int> read(const std::string& name, std::uint64_t offset, std::size_t bytes) override {
    if (const int error = disk_.operate(false); error != 0) return tl::unexpected(error);
    if (!disk_.names_.contains(name)) return tl::unexpected(ENOENT);
    const std::string& now = disk_.content(name);
    return offset >= now.size() ? "" : now.substr(offset, bytes);
  }
  int write(const std::string& name, std::uint64_t offset, std::string_view bytes) override {
    const int error = disk_.operate(true);
    if (!disk_.names_.contains(name)) return ENOENT;
    File& file = disk_.files_.at(disk_.names_.at(name));
    file.pending.push_back({offset, std::string(bytes)});
    if (error == 0) {
      apply(file.now, offset, bytes);
    } else {
      disk_.apply_some(file.now, file.pending.back());
    }
    return error;
  }
  int sync(std::span<const std::string> names) override {
    for (const std::string& name : names) {
      const int error = disk_.operate(true);
      if (!disk_.names_.contains(name)) return ENOENT;
      File& file = disk_.files_.at(disk_.names_.at(name));
      if (error != 0) return error;
      file.synced = file.now;
      file.pending.clear();
    }
    return 0;
  }
  int rename(const std::string& from, const std::string& to) override {
    if (const int error = disk_.operate(true); error != 0) return error;
    if (!disk_.names_.contains(from)) return ENOENT;
    disk_.names_[to] = disk_.names_.at(from);
    disk_.names_.erase(from);
    return 0;
  }
  int sync_names() override {
    if (const int error = disk_.operate(true); error != 0) return error;
    disk_.synced_names_ = disk_.names_;
    return 0;
  }

 private:
  FaultyDisk& disk_;
};

inline std::unique_ptr<StateFolder> FaultyDisk::open() { return std::make_unique<Folder>(*this); }

}  // namespace penstock::ipsec::testing
