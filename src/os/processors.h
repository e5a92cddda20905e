// How many processors this process may use, and with how many others of its kind it shares them.
#pragma once

#include <string_view>

namespace mrc::os {

// By affinity and by the quota of its control group (version 2) and those above it; at least 1. A
// quota of 250 % counts as 2.
unsigned usable_processors();

// How many processes of its job run on this host, as the launcher told it: torchrun, Open MPI,
// MPICH, Slurm. 0: nobody said.
unsigned ranks_on_host();

// "200000 100000" is 2, "max 100000" 0 for no limit, as is what cannot be read.
unsigned quota_of(std::string_view cpu_max);
// "8" and Slurm's "8(x2)" are 8; 0 for what is no number, or no sane one.
unsigned ranks_in(std::string_view text);

}  // namespace mrc::os
