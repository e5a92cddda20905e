// Key files of a test, gone with it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "node/config.h"
#include "seal/key_file.h"
#include "support/temporary_directory.h"

namespace mrc::nic::test {

class KeyFolder {
 public:
  std::string add(const char* name, unsigned id = 1) const {
    std::string path = folder_.path() + "/" + name;
    const auto key = seal::draw_cluster_key(seal::KeyId{static_cast<std::uint8_t>(id)});
    EXPECT_EQ(seal::create_key_file(path, {key}), "");
    return path;
  }

 private:
  mrc::test::TemporaryDirectory folder_;
};

inline node::DeviceConfig sealed(node::DeviceConfig config, const std::string& key) {
  config.security = key.empty() ? node::SecurityMode::kOff : node::SecurityMode::kSealed;
  config.key_file = key;
  return config;
}

}  // namespace mrc::nic::test
