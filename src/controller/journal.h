// What the controller has set on a device, kept beside the device's state so that the next start
// knows it: the file as it was applied, and one that was being applied when the process died.
#pragma once

#include <string>

#include "controller/setup_file.h"

namespace mrc::controller {

class Journal {
 public:
  // In the device's directory.
  explicit Journal(const std::string& directory);

  // What is to be taken for set: the file that was applied last and, if one was begun after that
  // and never finished, whatever it may have created.
  Setup known() const;

  // Around a change. Throws std::runtime_error when nothing can be written.
  void begin(const std::string& file) const;
  void commit() const;
  void abandon() const;

 private:
  std::string applied_;
  std::string begun_;
};

}  // namespace mrc::controller
