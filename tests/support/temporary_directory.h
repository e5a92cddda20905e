// A directory that goes with the test, also when its process is told to end or gives up.
#pragma once

#include <string>
#include <string_view>

namespace mrc::test {

class TemporaryDirectory {
 public:
  // Ends the process where none can be made.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace mrc::test
