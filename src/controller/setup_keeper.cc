#include "controller/setup_keeper.h"

#include <stdexcept>
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
  } catch (const DeviceChanged&) {
    current_ = journal_.known();
    throw;
  } catch (...) {
    journal_.abandon();
    throw;
  }
  try {
    journal_.commit();
  } catch (const std::runtime_error& error) {
    current_ = journal_.known();
    throw DeviceChanged(file + ": is set, but that could not be noted: " + error.what());
  }
  current_ = std::move(wanted);
  return applied;
}

}  // namespace mrc::controller
