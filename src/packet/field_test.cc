// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/field.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock {
namespace {

TEST(Field, EachHasAName) {
  std::set<std::string_view> names;
  for (unsigned f = 0; f < kFieldCount; ++f) names.insert(name(static_cast<Field>(f)));
  EXPECT_EQ(names.size(), kFieldCount);
  EXPECT_EQ(name(Field::flow_hash), "flow_hash");
  EXPECT_EQ(name(Field::payload), "payload");
}

TEST(FieldSet, NamesACompleteGroupOnce) {
  EXPECT_EQ(to_string(FieldSet{}), "-");
  EXPECT_EQ(to_string(FieldSet{Field::ipv4_dst, Field::ipv4_ttl}), "ipv4_ttl ipv4_dst");
  EXPECT_EQ(to_string(kIpv4HeaderFields | FieldSet{Field::payload}), "ipv4 payload");
}

TEST(FieldSet, IsASet) {
  const FieldSet a{Field::payload, Field::mark};
  EXPECT_TRUE((a - FieldSet{Field::mark}) == FieldSet{Field::payload});
  EXPECT_TRUE((a & FieldSet{Field::mark, Field::verdict}) == FieldSet{Field::mark});
  EXPECT_TRUE(FieldSet::all().has(Field::flow_hash));
  EXPECT_TRUE((a - FieldSet::all()).empty());
}

}  // namespace
}  // namespace penstock
