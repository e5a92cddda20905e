#include "os/environment.h"

#include <cstdlib>

namespace mrc::os {

const char* environment(const char* name) { return ::secure_getenv(name); }

}  // namespace mrc::os
