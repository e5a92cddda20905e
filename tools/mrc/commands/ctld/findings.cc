#include "commands/ctld/findings.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "fabric/drain.h"
#include "fabric/input_error.h"
#include "os/interrupt.h"

namespace mrc::tool::ctld {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxLine = 16U << 20;
constexpr int kLookForSignalsMs = 200;

std::string part_in(const Json& json, const fabric::Topology& topology) {
  return fabric::parse_drain_target(json.get<std::string>(), topology).name;
}

controller::Look look_in(const Json& json, const fabric::Topology& topology) {
  if (json.at("schema") != "mrc.map/1")
    throw fabric::InputError("not a line of `mrc map --watch --json`");
  controller::Look look;
  for (const Json& finding : json.at("findings")) {
    const Json& others = finding.at("or");
    look.faults.push_back({.part = part_in(finding.at("part"), topology),
                           .loss = finding.at("loss").get<double>(),
                           .certain = others.empty()});
    for (const Json& other : others)
      look.in_doubt.insert(part_in(other, topology));
  }
  for (const Json& part : json.at("unseen"))
    look.in_doubt.insert(part_in(part, topology));
  return look;
}

}  // namespace

controller::Look read_findings(const std::string& line, const fabric::Topology& topology) {
  try {
    return look_in(Json::parse(line), topology);
  } catch (const Json::exception&) {
    throw fabric::InputError("not a line of `mrc map --watch --json`");
  }
}

FindingsSource::FindingsSource(const std::string& path) {
  if (path == "-") return;
  file_ = os::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_.valid()) throw fabric::InputError(path + ": " + std::strerror(errno));
}

int FindingsSource::descriptor() const { return file_.valid() ? file_.get() : STDIN_FILENO; }

std::optional<std::string> FindingsSource::next() {
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (os::Interrupt::raised()) return std::nullopt;
    pollfd input{descriptor(), POLLIN, 0};
    if (::poll(&input, 1, kLookForSignalsMs) <= 0) continue;
    std::array<char, 65'536> bytes;
    const ssize_t got = ::read(descriptor(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    buffer_.append(bytes.data(), static_cast<std::size_t>(got));
    if (buffer_.size() > kMaxLine) throw fabric::InputError("a line of the findings has no end");
  }
}

}  // namespace mrc::tool::ctld
