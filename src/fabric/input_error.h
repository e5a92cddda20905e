// Bad input from a person: a flag, a file, a fault plan. The message says where and why, in one
// line.
#pragma once

#include <stdexcept>

namespace mrc::fabric {

class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mrc::fabric
