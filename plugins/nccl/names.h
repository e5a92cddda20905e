// What the plug-in is called, and that it once was called otherwise.
//
// Before this release the file was libnccl-net-mrc.so and the network "MRC", names that another
// company's plug-in has too. Loaded by that name it still answers to NCCL_NET=MRC, and says that
// this ends.
#pragma once

namespace mrc::nccl {

inline constexpr const char* kName = "OpenMRC";
inline constexpr const char* kOldName = "MRC";

// Whether NCCL found the library by its old file name.
bool loaded_by_old_name();

// A warning if it did; only the first call does anything.
void warn_of_old_name_once();

}  // namespace mrc::nccl
