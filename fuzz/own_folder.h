// A folder for what a target must have on disk; it goes when the program ends in order. Signals are
// left alone: a fault is the fuzzer's to report.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "fuzz/fuzz_support.h"

namespace mrc::fuzz {

class OwnFolder {
 public:
  OwnFolder() { require(::mkdtemp(path_.data()) != nullptr); }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = "/tmp/mrc-fuzz-XXXXXX";
};

}  // namespace mrc::fuzz
