// A file that a command writes: one that cannot be is a failure, and the line says why.
#pragma once

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace mrc::tool {

// One that is written bit by bit. Both throw std::runtime_error with the system's reason.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {
    errno = 0;  // of the call that failed: a stream that is broken makes no further ones
    file_.open(path_, std::ios::binary);
    check();
  }
  std::ostream& stream() { return file_; }
  void close() {
    file_.close();
    check();
  }

 private:
  void check() const {
    if (file_) return;
    throw std::runtime_error(path_ + ": cannot be written" +
                             (errno == 0 ? "" : std::string(": ") + std::strerror(errno)));
  }

  std::string path_;
  std::ofstream file_;
};

// Lets `write` fill it.
template <typename Write>
void write_file(const std::string& path, const Write& write) {
  OutputFile file(path);
  write(file.stream());
  file.close();
}

}  // namespace mrc::tool
