#include "commands/map/agents.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "launch/child_process.h"
#include "os/interrupt.h"

namespace mrc::tool::map {

Agents::~Agents() {
  for (const Agent& agent : agents_) {
    ::kill(agent.process, SIGKILL);
    ::waitpid(agent.process, nullptr, 0);
  }
}

void Agents::start(unsigned host, const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
  os::Descriptor output(ends[0]);
  const os::Descriptor input(ends[1]);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(words, {.output = input.get(), .errors = input.get()}, self);
  if (child < 0) throw std::runtime_error(std::string("no process: ") + std::strerror(errno));
  Agent agent;
  agent.host = host;
  agent.process = child;
  agent.output = std::move(output);
  agents_.push_back(std::move(agent));
}

std::optional<std::vector<fabric::HostResults>> Agents::next() {
  std::vector<fabric::HostResults> all;
  for (Agent& agent : agents_) {
    std::optional<fabric::HostResults> results;
    while (!(results = take_line(agent))) {
      const bool ended = !read_more(agent);
      if (os::Interrupt::raised()) return std::nullopt;
      if (ended) ended_early(agent);
    }
    all.push_back(std::move(*results));
  }
  return all;
}

std::optional<fabric::HostResults> Agents::take_line(Agent& agent) {
  for (;;) {
    const std::size_t end = agent.buffer.find('\n');
    if (end == std::string::npos) return std::nullopt;
    const std::string line = agent.buffer.substr(0, end);
    agent.buffer.erase(0, end + 1);
    if (line.starts_with('{')) return from_line(line);
    // It is a command of the same name, and says so.
    constexpr std::string_view kOwnName = "mrc map: ";
    if (agent.complaint.empty())
      agent.complaint = line.starts_with(kOwnName) ? line.substr(kOwnName.size()) : line;
  }
}

bool Agents::read_more(Agent& agent) {
  std::array<char, 65'536> bytes;
  const ssize_t got = ::read(agent.output.get(), bytes.data(), bytes.size());
  if (got <= 0) return false;
  agent.buffer.append(bytes.data(), static_cast<std::size_t>(got));
  return true;
}

void Agents::ended_early(const Agent& agent) {
  throw std::runtime_error(
      "host " + std::to_string(agent.host) + ": " +
      (agent.complaint.empty() ? "its probes ended without a word" : agent.complaint));
}

}  // namespace mrc::tool::map
