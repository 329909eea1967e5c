// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What functions of one chain share, by name: the first one that asks makes it. Used while a chain is built, by one
// thread; the objects live as long as a function has them.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>

namespace penstock::function {

class SharedObjects {
 public:
  /// `make()` returns a std::shared_ptr<Object>.
  template <typename Object, typename Make>
  [[nodiscard]] std::shared_ptr<Object> get(std::string_view name, Make&& make) {
    std::shared_ptr<void>& known = objects_[{std::type_index(typeid(Object)), std::string(name)}];
    if (known == nullptr) known = make();
    return std::static_pointer_cast<Object>(known);
  }

 private:
  std::map<std::pair<std::type_index, std::string>, std::shared_ptr<void>> objects_;
};

}  // namespace penstock::function
