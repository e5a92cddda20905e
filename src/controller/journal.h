// What the controller has set on a device, kept beside the device's state so that the next start
// knows it: the file as it was applied, and those that were being applied when a process died.
#pragma once

#include <string>
#include <vector>

#include "controller/setup_file.h"

namespace mrc::controller {

// Files are put in place by renaming, and old ones removed only when the device has nothing of
// theirs any more: a process killed at any moment forgets nothing.
class Journal {
 public:
  // In the device's directory.
  explicit Journal(const std::string& directory);

  // What is to be taken for set: the file that was applied last and whatever those begun since then
  // may have created. Where they say different things of one id, it is there twice.
  Setup known() const;

  // Around a change to the setup of `text`. Throws std::runtime_error when nothing can be written.
  void begin(const std::string& text);
  // The device has all of it, and nothing of those that were begun before.
  void commit();
  // The device has nothing of it. Where that is not certain neither of them is called: it stays
  // known, as after a kill.
  void abandon();

 private:
  // The numbers of "controller.begun.<n>.toml" in order. A killed process leaves one, and one that
  // is started again and again with the same file leaves no second one.
  std::vector<unsigned> begun() const;

  std::string directory_;
  unsigned current_ = 0;    // the number of the one we are at; 0: none
  bool inherited_ = false;  // a process before us began it, and may have created what it names
};

}  // namespace mrc::controller
