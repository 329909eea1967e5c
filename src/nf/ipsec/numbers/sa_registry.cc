// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/sa_registry.h"

#include <fmt/format.h>

#include <utility>

#include "base/text_file.h"
#include "nf/ipsec/numbers/kept_numbers.h"
#include "nf/ipsec/sa/addresses.h"

namespace penstock::ipsec {

namespace {

bool counts(Cipher cipher) { return cipher == Cipher::aes_ctr || cipher == Cipher::aes_gcm; }

std::string text_of(const Place& place) {
  return place.line == 0 ? place.file : fmt::format("{}:{}", place.file, place.line);
}

/// What two files contradict each other in, as far as the SA's state depends on it; empty if nothing.
std::string difference(const SecurityAssociation& a, const SecurityAssociation& b, bool same_keys, SaEnd end) {
  if (!same_keys) return "keys or algorithms";
  if (a.esn != b.esn) return "flag esn";
  if (end == SaEnd::sender && a.sequence_may_wrap != b.sequence_may_wrap) return "flag oseq-may-wrap";
  if (end == SaEnd::receiver && a.replay_window != b.replay_window) return "the replay window";
  if (a.lifetimes.soft != b.lifetimes.soft || a.lifetimes.hard != b.lifetimes.hard) return "the lifetimes";
  return "";
}

}  // namespace

SaRegistry& SaRegistry::process() {
  static SaRegistry registry;
  return registry;
}

Result<std::shared_ptr<SaState>> SaRegistry::state_of(const SecurityAssociation& sa, SaEnd end, const std::string& file,
                                                      const NumberSource& numbers) {
  const std::lock_guard lock(mutex_);
  const Ipv6Address destination = table_address(sa.destination);
  const Name name{end, is_ipv6(sa.destination), destination.high, destination.low, sa.spi};
  const Place place{file, sa.line, 0};
  const Digest fingerprint = fingerprint_of(sa);
  if (const auto known = states_.find(name); known != states_.end()) {
    if (auto state = known->second.state.lock()) {
      const Known& other = known->second;
      const std::string where = text_of(state->origin().place);
      const std::string differs = difference(sa, other.sa, fingerprint == other.fingerprint, end);
      if (!differs.empty()) {
        return failure(Error{place, fmt::format("SA {} was loaded from {}, with different values", describe(sa), where),
                             differs, "the same values, since its state continues, or a new SPI for new keys"});
      }
      if (other.folder != numbers.folder()) {
        const auto text = [](const std::string& folder) { return folder.empty() ? "none" : folder; };
        return failure(Error{place,
                             fmt::format("SA {} was loaded from {}, with a different state_dir", describe(sa), where),
                             fmt::format("{} here, {} there", text(numbers.folder()), text(other.folder)),
                             "one state_dir, since the SA has one state"});
      }
      // While it carries packets, no file knows more about it than its state does.
      if (!state->is_used()) state->advance(sa);
      return state;
    }
  }
  SaIdentity identity = identity_of(sa, end);
  const bool unique_key = end == SaEnd::sender && counts(sa.cipher);
  if (unique_key) {
    if (const auto other = counting_keys_[identity.owner].lock()) {
      return failure(Error{place, "two outbound SAs have the same key and salt, with a counter-mode cipher",
                           fmt::format("SA {} at {}", other->origin().name, text_of(other->origin().place)),
                           "a separate key for each SA; with a shared key, traffic can be decrypted"});
    }
  }
  const Digest owner = identity.owner;
  auto state = std::make_shared<SaState>(sa, SaOrigin{identity, describe(sa), place}, locked_counting());
  Known& known = states_[name] = Known{state, sa, fingerprint, numbers.folder()};
  known.sa.cipher_key.clear();
  known.sa.salt.clear();
  known.sa.integrity_key.clear();
  if (unique_key) counting_keys_[owner] = state;
  return state;
}

std::shared_ptr<NumberSource> SaRegistry::kept_in(const std::string& folder, MakeParents parents) {
  const std::lock_guard lock(mutex_);
  forget_the_dead();
  std::string path = resolved_path(folder);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::weak_ptr<NumberSource>& known = kept_[path];
  auto source = known.lock();
  if (source == nullptr) known = source = kept_numbers(folder, parents);
  return source;
}

std::shared_ptr<NumberSource> SaRegistry::random() {
  const std::lock_guard lock(mutex_);
  forget_the_dead();
  auto source = random_.lock();
  if (source == nullptr) random_ = source = random_numbers();
  return source;
}

void SaRegistry::forget_the_dead() {
  std::erase_if(states_, [](const auto& known) { return known.second.state.expired(); });
  std::erase_if(counting_keys_, [](const auto& state) { return state.second.expired(); });
  std::erase_if(kept_, [](const auto& source) { return source.second.expired(); });
}

std::shared_ptr<DeviceCounting> SaRegistry::counting() {
  const std::lock_guard lock(mutex_);
  return locked_counting();
}

std::shared_ptr<DeviceCounting> SaRegistry::locked_counting() {
  auto there = counting_.lock();
  if (there == nullptr) counting_ = there = std::make_shared<DeviceCounting>();
  return there;
}

std::string describe(const SecurityAssociation& sa) {
  return fmt::format("0x{:08x} from {} to {}", sa.spi, to_string(sa.source), to_string(sa.destination));
}

}  // namespace penstock::ipsec
