#include "controller/setup_keeper.h"

#include <utility>

#include "fabric/toml_file.h"

namespace mrc::controller {

Applied SetupKeeper::apply(const std::string& file) {
  // Read once: one that is being rewritten must not be set in one form and noted in another.
  const std::string text = fabric::load_text(file);
  Setup wanted = parse_setup(text, file);
  // Before the journal calls it ours.
  refuse_taken(*session_, current_, wanted);
  journal_.begin(text);
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
