#include "controller/journal.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "fabric/input_error.h"

namespace mrc::controller {
namespace {

// A file that does not read well was no setup of ours and counts as none.
Setup read_or_nothing(const std::string& path) {
  try {
    if (std::filesystem::exists(path)) return read_setup(path);
  } catch (const fabric::InputError&) {
    return {};
  }
  return {};
}

// Specs of `more` take the place of those with the same id: the device may have either, and both
// are removed alike.
template <typename Spec>
void add(std::vector<Spec>& to, const std::vector<Spec>& more) {
  for (const Spec& spec : more) {
    const auto found =
        std::find_if(to.begin(), to.end(), [&](const Spec& known) { return known.id == spec.id; });
    if (found == to.end()) to.push_back(spec);
  }
}

[[noreturn]] void fail(const std::string& path, const std::error_code& error) {
  throw std::runtime_error(path + ": " + error.message());
}

}  // namespace

Journal::Journal(const std::string& directory)
    : applied_(directory + "/controller.toml"), begun_(directory + "/controller.begun.toml") {}

Setup Journal::known() const {
  Setup setup = read_or_nothing(applied_);
  const Setup begun = read_or_nothing(begun_);
  add(setup.formats, begun.formats);
  add(setup.ev_profiles, begun.ev_profiles);
  add(setup.cc_profiles, begun.cc_profiles);
  setup.disabled_ports.insert(setup.disabled_ports.end(), begun.disabled_ports.begin(),
                              begun.disabled_ports.end());
  return setup;
}

void Journal::begin(const std::string& file) const {
  std::error_code error;
  std::filesystem::copy_file(file, begun_, std::filesystem::copy_options::overwrite_existing,
                             error);
  if (error) fail(begun_, error);
}

void Journal::commit() const {
  std::error_code error;
  std::filesystem::rename(begun_, applied_, error);
  if (error) fail(applied_, error);
}

void Journal::abandon() const {
  std::error_code error;
  std::filesystem::remove(begun_, error);
}

}  // namespace mrc::controller
