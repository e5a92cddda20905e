#include <fmt/core.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "base/one_line.h"
#include "commands/doctor/check.h"
#include "commands/info/environment.h"

namespace mrc::tool::doctor {
namespace {

// What the UDP back end asks for; less makes the kernel drop bursts.
constexpr std::uint64_t kReceiveBufferBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kSendBufferBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kMinBufferBytes = std::uint64_t{2} << 20;
constexpr rlim_t kMinFiles = 1'024;

class Socket {
 public:
  Socket(int family, int type, int protocol)
      : descriptor_(::socket(family, type | SOCK_CLOEXEC, protocol)) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string mib(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// What the kernel grants: with CAP_NET_ADMIN the limit of the sysctl does not count.
std::uint64_t granted(int force, int plain, int read, std::uint64_t wanted) {
  const Socket socket(AF_INET, SOCK_DGRAM, 0);
  const int bytes = static_cast<int>(wanted);
  if (setsockopt(socket.get(), SOL_SOCKET, force, &bytes, sizeof(bytes)) != 0)
    setsockopt(socket.get(), SOL_SOCKET, plain, &bytes, sizeof(bytes));
  int got = 0;
  socklen_t length = sizeof(got);
  getsockopt(socket.get(), SOL_SOCKET, read, &got, &length);
  return static_cast<std::uint64_t>(got) / 2;  // the kernel counts its own overhead twofold
}

Finding buffer_finding(const char* what, const char* sysctl, std::uint64_t got,
                       std::uint64_t wanted) {
  Finding finding = {Verdict::kOk, what, mib(got), {}};
  if (got >= wanted) return finding;
  finding.verdict = got >= kMinBufferBytes ? Verdict::kOk : Verdict::kSlow;
  finding.found += fmt::format(" of the {} that a port asks for", mib(wanted));
  finding.fix = fmt::format("sysctl -w net.core.{}={}", sysctl, wanted);
  return finding;
}

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit);
}

// Programs take what they do not know for "warn", and nobody hears of it.
bool is_log_level(std::string_view value) {
  constexpr std::array<std::string_view, 5> kLevels = {"off", "error", "warn", "info", "debug"};
  return std::ranges::find(kLevels, value) != kLevels.end();
}

}  // namespace

std::string read_line(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  std::string text(256, '\0');
  if (!file || std::fgets(text.data(), static_cast<int>(text.size()), file.get()) == nullptr)
    return {};
  text.resize(std::strcspn(text.c_str(), "\n"));
  return text;
}

void check_environment(Findings& findings) {
  std::string set;
  for (const info::Variable& variable : info::environment()) {
    if (!variable.known) {
      findings.push_back({Verdict::kSlow, variable.name, "is set but means nothing",
                          variable.meant.empty() ? "unset it (mrc info --env lists what exists)"
                                                 : "did you mean " + variable.meant + "?"});
    } else {
      if (variable.name == "MRC_LOG_LEVEL" && !is_log_level(variable.value))
        findings.push_back({Verdict::kBroken, variable.name,
                            "'" + one_line(variable.value) + "' is no level of messages",
                            "set it to off, error, warn, info or debug"});
      set += (set.empty() ? "" : ", ") + variable.name + "=" + variable.value;
    }
  }
  findings.push_back(
      {Verdict::kOk, "environment", set.empty() ? "no MRC_* variable set" : set, {}});
}

void check_socket_buffers(Findings& findings) {
  findings.push_back(buffer_finding(
      "receive buffer", "rmem_max",
      granted(SO_RCVBUFFORCE, SO_RCVBUF, SO_RCVBUF, kReceiveBufferBytes), kReceiveBufferBytes));
  findings.push_back(buffer_finding("send buffer", "wmem_max",
                                    granted(SO_SNDBUFFORCE, SO_SNDBUF, SO_SNDBUF, kSendBufferBytes),
                                    kSendBufferBytes));
}

void check_limits(Findings& findings) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  Finding finding = {Verdict::kOk, "open files", limit_text(files.rlim_cur), {}};
  if (files.rlim_cur < kMinFiles) {
    finding.verdict = Verdict::kSlow;
    finding.found += fmt::format(", few for many planes and channels (hard limit {})",
                                 limit_text(files.rlim_max));
    finding.fix = fmt::format("ulimit -n {}", kMinFiles);
  }
  findings.push_back(finding);
  rlimit locked = {};
  getrlimit(RLIMIT_MEMLOCK, &locked);
  findings.push_back({Verdict::kOk,
                      "locked memory",
                      limit_text(locked.rlim_cur) + " (registering memory locks none)",
                      {}});
}

void check_segmentation(Findings& findings) {
  const Socket socket(AF_INET, SOCK_DGRAM, 0);
  const int size = 1'400;
  const int on = 1;
  const bool gso = setsockopt(socket.get(), SOL_UDP, UDP_SEGMENT, &size, sizeof(size)) == 0;
  const bool gro = setsockopt(socket.get(), SOL_UDP, UDP_GRO, &on, sizeof(on)) == 0;
  Finding finding = {Verdict::kOk, "UDP GSO and GRO", "both there", {}};
  if (!gso || !gro) {
    finding.verdict = Verdict::kSlow;
    finding.found = fmt::format("GSO {}, GRO {}: every packet costs a system call's share",
                                gso ? "there" : "missing", gro ? "there" : "missing");
    finding.fix = "use Linux 5.0 or newer (GSO came with 4.18, GRO with 5.0)";
  }
  findings.push_back(finding);
}

void check_netlink(Findings& findings) {
  const Socket socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  const void* const generic = &address;
  Finding finding = {Verdict::kOk, "netlink", "tells about links and addresses", {}};
  if (socket.get() < 0 ||
      bind(socket.get(), static_cast<const sockaddr*>(generic), sizeof(address)) != 0) {
    finding.verdict = Verdict::kSlow;
    finding.found = fmt::format("not to be had ({}): a port that goes down is noticed late",
                                std::strerror(errno));
    finding.fix = "allow AF_NETLINK sockets in this container (seccomp, RestrictAddressFamilies)";
  }
  findings.push_back(finding);
}

void check_processors(Findings& findings) {
  const unsigned count = std::thread::hardware_concurrency();
  Finding finding = {Verdict::kOk, "processors", fmt::format("{}", count), {}};
  if (count < 2) {
    finding.verdict = Verdict::kSlow;
    finding.found += ": the program and the engine thread take turns";
    finding.fix = "give the process two processors or more";
  }
  findings.push_back(finding);
}

}  // namespace mrc::tool::doctor
