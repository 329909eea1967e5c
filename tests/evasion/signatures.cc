// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/signatures.h"

#include <array>

namespace penstock::evasion {

std::string_view rules_text() {
  return R"(drop tcp any any -> any any (msg:"any"; content:"EVILSIGNATURE"; sid:1;)
drop tcp any any -> any any (msg:"established"; flow:established,to_server; content:"TOSERVERATTACK"; sid:2;)
drop tcp any any -> any any (msg:"two parts"; content:"FIRSTOFTWO"; content:"SECONDOFTWO"; distance:0; within:80; sid:3;)
drop tcp any any -> any any (msg:"pcre"; content:"EXPRESSION"; pcre:"/EXPRESSION-[a-f0-9]{8}-END/"; sid:4;)
drop tcp any any -> any any (msg:"to client"; flow:established,to_client; content:"TOCLIENTATTACK"; sid:5;)
drop udp any any -> any any (msg:"udp"; content:"DATAGRAMATTACK"; sid:6;)
drop tcp any any -> any any (msg:"from host"; flow:established,to_client; content:"FROMHOSTATTACK"; sid:7;)
)";
}

std::string_view name_of(SignatureKind kind) {
  constexpr std::array<std::string_view, kSignatureKinds> kNames = {"any",       "established", "two_parts", "pcre",
                                                                    "to_client", "udp",         "from_host"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string signature_text(SignatureKind kind, Random& random) {
  switch (kind) {
    case SignatureKind::any: return "EVILSIGNATURE";
    case SignatureKind::established: return "TOSERVERATTACK";
    case SignatureKind::two_parts: return "FIRSTOFTWO" + std::string(random.below(60), '-') + "SECONDOFTWO";
    case SignatureKind::pcre: {
      std::string text = "EXPRESSION-";
      for (int i = 0; i < 8; ++i) text.push_back("0123456789abcdef"[random.below(16)]);
      return text + "-END";
    }
    case SignatureKind::to_client: return "TOCLIENTATTACK";
    case SignatureKind::udp: return "DATAGRAMATTACK";
    case SignatureKind::from_host: return "FROMHOSTATTACK";
  }
  return {};
}

}  // namespace penstock::evasion
