#include "controller/setup_keeper.h"

#include <utility>

namespace mrc::controller {

Applied SetupKeeper::apply(const std::string& file) {
  Setup wanted = read_setup(file);
  // Before the journal calls it ours.
  refuse_taken(*session_, current_, wanted);
  journal_.begin(file);
  Applied applied;
  try {
    applied = apply_setup(*session_, current_, wanted);
  } catch (...) {
    journal_.abandon();
    throw;
  }
  journal_.commit();
  current_ = std::move(wanted);
  return applied;
}

}  // namespace mrc::controller
