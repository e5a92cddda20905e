// Programs that we start: what they write, and how they end. Words go to the program as they are;
// no shell reads them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "os/descriptor.h"

namespace mrc::tool {

struct Pipe {
  os::Descriptor read;  // does not block
  os::Descriptor write;
};
// Both ends are closed when another program is started. Throws Failure.
Pipe make_pipe();

// Appends what can be read now, up to `most` bytes in all: what is beyond is read and forgotten.
// False at the end of it.
bool take_bytes(const os::Descriptor& from, std::size_t most, std::string& text);

// What a child of fork() does to become a program that dies with `parent`; a program that cannot be
// started says so in a line on its standard error.
struct Streams {
  int input = -1;  // -1: as it is
  int output = -1;
  int errors = -1;
};
[[noreturn]] void become(std::vector<std::string> words, const Streams& streams, pid_t parent);

class ChildProcess {
 public:
  // Reads nothing. Throws Failure when the system refuses.
  explicit ChildProcess(const std::vector<std::string>& words);
  // Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Takes what it has written so far, and its end.
  void look();
  bool ended() const { return ended_; }
  // Its exit status, 128 and more for a signal.
  int code() const { return code_; }
  void kill();

  const std::string& output() const { return output_.text; }
  const std::string& errors() const { return errors_.text; }
  // What becomes readable when there is something to look at; below 0: nothing will.
  int output_descriptor() const { return output_.from.get(); }
  int errors_descriptor() const { return errors_.from.get(); }

 private:
  struct Stream {
    os::Descriptor from;
    std::string text;
    void take(std::size_t most) {
      if (from.valid() && !take_bytes(from, most, text)) from.close();
    }
  };

  pid_t process_ = -1;
  bool ended_ = false;
  int code_ = 0;
  Stream output_;
  Stream errors_;
};

}  // namespace mrc::tool
