// Ctrl-C and SIGTERM end a measurement early instead of the program: what was measured is shown.
#pragma once

namespace mrc::os {

// From construction to destruction signals only raise a flag. A second one ends the program. One
// object at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool raised();
  // The flag has been seen: from here on it is down, and the next signal ends the program.
  static void clear();
};

}  // namespace mrc::os
