// The environment of the process, read in one place.
//
// It may belong to somebody else: variables name files to read and libraries to load, so a program
// that runs with more rights than its caller (set-uid, set-gid, file capabilities) sees none of
// them.
#pragma once

namespace mrc::os {

const char* environment(const char* name);  // nullptr: not set, or not to be trusted

}  // namespace mrc::os
