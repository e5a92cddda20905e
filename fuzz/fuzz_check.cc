// What `mrc check --hosts` reads: lists of hosts, and what programs on other hosts print.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "commands/check/host_list.h"
#include "commands/check/remote_answer.h"
#include "fabric/input_error.h"
#include "fuzz/fuzz_support.h"

using mrc::fuzz::require;
namespace check = mrc::tool::check;

namespace {

bool is_shown_well(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c != 0x7F; });
}

// A name must never be taken for an option, nor for words of a shell.
void read_list(const std::string& text) {
  std::istringstream lines(text);
  std::vector<check::Host> hosts;
  try {
    hosts = check::parse_hosts(lines, "list");
  } catch (const mrc::fabric::InputError& error) {
    require(is_shown_well(error.what()));
  }
  for (const check::Host& host : hosts)
    require(check::is_plain_word(host.name) && check::is_plain_word(host.address));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_list(text);
  if (const auto answer = check::read_answer(text)) {
    require(is_shown_well(answer->version));
    for (const auto& finding : answer->findings)
      require(is_shown_well(finding.what) && is_shown_well(finding.found) &&
              is_shown_well(finding.fix));
  }
  if (const auto port = check::read_port(text)) require(*port != 0);
  require(is_shown_well(check::shown(text)) && is_shown_well(check::last_shown(text)));
  return 0;
}
