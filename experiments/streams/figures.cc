// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/streams/figures.h"

#include <utility>

namespace penstock::experiments {
namespace {

const Axis kSize{"size", "frame size in bytes, with FCS", AxisKind::logarithmic};
const Axis kBits{"gbps", "Gbit/s received"};
const LimitLine kPcieBits{.label = "PCIe limit", .key = "limit_gbps"};

Figure of_algorithm(const char* id, const char* title, const char* algorithm, std::vector<Reference> references) {
  return {.id = id,
          .title = title,
          .where = {{"function", {"ipsec"}}, {"sweep", {"size"}}, {"algorithm", {algorithm}}},
          .x = kSize,
          .y = kBits,
          .series = {"mode"},
          .limit = kPcieBits,
          .references = std::move(references)};
}

Figure of_all(const char* id, const char* title, std::vector<std::string> modes, Axis y) {
  return {.id = id,
          .title = title,
          .where = {{"function", {"ipsec"}}, {"sweep", {"size"}}, {"mode", std::move(modes)}},
          .x = kSize,
          .y = std::move(y),
          .series = {"algorithm", "mode"},
          .limit = std::nullopt,
          .references = {},
          .panels = "algorithm"};
}

}  // namespace

const std::vector<Figure>& streams_figures() {
  static const char* const kSource =
      "Chaurasia §V.A, on a Tesla P100: \"8.32Gbps … (i.e., default CUDA stream is being used) in comparison to "
      "15Gbps\"";
  static const char* const kNidsSource =
      "Chaurasia §V.A, on a Tesla P100: 3.96 Gbit/s by the default stream, \"14.29Gbps with streams (multiple CUDA "
      "streams) usage for 1522B packets\"";
  static const std::vector<Figure> kFigures{
      of_algorithm("ipsec-cbc-sha1", "IPsec, AES-128-CBC and HMAC-SHA1 (Chaurasia, figure 2a)", "cbc_sha1",
                   {{"paper, default stream", 8.32, 1522, kSource}, {"paper, several streams", 15, 1522, kSource}}),
      of_algorithm("ipsec-ctr-sha1", "IPsec, AES-128-CTR and HMAC-SHA1", "ctr_sha1", {}),
      of_algorithm("ipsec-gcm", "IPsec, AES-128-GCM", "gcm", {}),
      of_all("ipsec-rate", "IPsec: packet rate", {"workers", "cpu"},
             {"mpps", "million packets/s", AxisKind::logarithmic}),
      of_all("ipsec-of-limit", "IPsec: rate ÷ PCIe limit", {"default_stream", "streams", "workers"},
             {"of_limit", "rate ÷ PCIe limit"}),
      of_all("ipsec-bytes-up", "IPsec: bytes per packet over PCIe, from the host to the GPU", {"workers"},
             {"bytes_up", "bytes per packet"}),
      of_all("ipsec-bytes-down", "IPsec: bytes per packet over PCIe, from the GPU to the host", {"workers"},
             {"bytes_down", "bytes per packet"}),
      of_all("ipsec-busy-cores", "IPsec: host cores kept busy (CPU time ÷ time)",
             {"default_stream", "streams", "workers", "cpu"}, {"busy_cores", "busy cores"}),
      {.id = "nids",
       .title = "Intrusion detection, 147 rules, each packet on its own (Chaurasia, figure 2a)",
       .where = {{"function", {"nids"}}, {"sweep", {"size"}}},
       .x = kSize,
       .y = kBits,
       .series = {"algorithm", "mode"},
       .limit = kPcieBits,
       .references = {{"paper, default stream", 3.96, 1522, kNidsSource},
                      {"paper, several streams", 14.29, 1522, kNidsSource}},
       .panels = "algorithm"},
      {.id = "nids-streams",
       .title = "Intrusion detection, 147 rules: 1522-byte frames, one worker, by number of streams (Chaurasia §IV, in "
                "words)",
       .where = {{"function", {"nids"}}, {"sweep", {"streams"}}},
       .x = {"streams", "streams, one batch each"},
       .y = kBits,
       .series = {"algorithm"},
       .limit = kPcieBits,
       .references = {}},
      {.id = "ipsec-streams",
       .title = "IPsec, AES-128-CBC and HMAC-SHA1: 1522-byte frames, one worker, by number of streams (Chaurasia §IV, "
                "in words)",
       .where = {{"function", {"ipsec"}}, {"sweep", {"streams"}}},
       .x = {"streams", "streams, one batch each"},
       .y = kBits,
       .series = {"algorithm"},
       .limit = kPcieBits,
       .references = {}},
  };
  return kFigures;
}

}  // namespace penstock::experiments
