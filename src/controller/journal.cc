#include "controller/journal.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "fabric/input_error.h"
#include "node/node_state_files.h"

namespace mrc::controller {
namespace {

constexpr std::string_view kApplied = "controller.toml";
constexpr std::string_view kBegunPrefix = "controller.begun.";
constexpr std::string_view kSuffix = ".toml";

// A file that does not read well was no setup of ours and counts as none.
Setup read_or_nothing(const std::string& path) {
  try {
    if (std::filesystem::exists(path)) return read_setup(path);
  } catch (const fabric::InputError&) {
    return {};
  }
  return {};
}

template <typename Spec>
void add(std::vector<Spec>& to, const std::vector<Spec>& more) {
  for (const Spec& spec : more) {
    const auto equal = [&](const Spec& known) { return same(known, spec); };
    if (std::none_of(to.begin(), to.end(), equal)) to.push_back(spec);
  }
}

// One that cannot be read holds nothing, here as for known().
bool holds(const std::string& path, const std::string& text) {
  std::ifstream file(path, std::ios::binary);
  return file && std::equal(std::istreambuf_iterator<char>(file), {}, text.begin(), text.end());
}

void check(const std::string& path, const std::error_code& error) {
  if (error) throw std::runtime_error(path + ": " + error.message());
}

std::string begun_name(unsigned number) {
  return std::string(kBegunPrefix) + std::to_string(number) + std::string(kSuffix);
}

// 0 for any name that we do not write, other spellings of a number among them.
unsigned number_of(const std::string& name) {
  if (!name.starts_with(kBegunPrefix)) return 0;
  unsigned number = 0;
  std::from_chars(name.data() + kBegunPrefix.size(), name.data() + name.size(), number);
  return name == begun_name(number) ? number : 0;
}

// Any that is not taken will do, since what was begun counts alike whatever its number.
unsigned first_free(const std::vector<unsigned>& taken) {
  unsigned number = 1;
  for (const unsigned next : taken)
    if (next == number) ++number;
  return number;
}

}  // namespace

Journal::Journal(const std::string& directory) : directory_(directory + "/") {}

std::vector<unsigned> Journal::begun() const {
  std::vector<unsigned> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error))
    if (const unsigned number = number_of(entry.path().filename().string()); number != 0)
      numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Setup Journal::known() const {
  Setup setup = read_or_nothing(directory_ + std::string(kApplied));
  for (const unsigned number : begun()) {
    const Setup more = read_or_nothing(directory_ + begun_name(number));
    add(setup.formats, more.formats);
    add(setup.ev_profiles, more.ev_profiles);
    add(setup.cc_profiles, more.cc_profiles);
    setup.denies.insert(setup.denies.end(), more.denies.begin(), more.denies.end());
    setup.disabled_ports.insert(setup.disabled_ports.end(), more.disabled_ports.begin(),
                                more.disabled_ports.end());
  }
  return setup;
}

void Journal::begin(const std::string& text) {
  const std::vector<unsigned> before = begun();
  const auto same_text = std::find_if(before.begin(), before.end(), [&](unsigned number) {
    return holds(directory_ + begun_name(number), text);
  });
  inherited_ = same_text != before.end();
  current_ = inherited_ ? *same_text : first_free(before);
  if (inherited_) return;
  const std::string name = begun_name(current_);
  const int error =
      node::node_files::replace_file(directory_, name, std::as_bytes(std::span(text)));
  check(directory_ + name, {error, std::generic_category()});
}

void Journal::commit() {
  const std::string from = directory_ + begun_name(current_);
  const std::string to = directory_ + std::string(kApplied);
  std::error_code error;
  // Of the others nothing is left on the device. They go first: were they to outlive the rename,
  // what somebody else may create under their ids would be taken for ours.
  for (const unsigned number : begun())
    if (number != current_) {
      std::filesystem::remove(directory_ + begun_name(number), error);
      check(directory_ + begun_name(number), error);
    }
  std::filesystem::rename(from, to, error);
  check(to, error);
  current_ = 0;
}

void Journal::abandon() {
  std::error_code error;
  if (!inherited_) std::filesystem::remove(directory_ + begun_name(current_), error);
  current_ = 0;
}

}  // namespace mrc::controller
