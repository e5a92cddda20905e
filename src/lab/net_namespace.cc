#include "lab/net_namespace.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <system_error>
#include <utility>

#include "base/assert.h"

namespace mrc::lab {
namespace {

constexpr const char* kFolder = "/run/netns/";
constexpr int kPatienceS = 5;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void set_namespace(int descriptor, const std::string& name) {
  if (::setns(descriptor, CLONE_NEWNET) != 0) fail("network namespace " + name);
}

// Does something in a namespace and comes back.
void inside(const std::string& name, const std::function<void()>& work) {
  const os::Descriptor here(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!here.valid()) fail("/proc/thread-self/ns/net");
  enter_namespace(name);
  work();
  const bool back = ::setns(here.get(), CLONE_NEWNET) == 0;
  MRC_ASSERT(back);
}

ifreq request_for(const std::string& interface) {
  ifreq request{};
  std::memcpy(request.ifr_name, interface.data(),
              std::min(interface.size(), sizeof(request.ifr_name) - 1));
  return request;
}

template <typename T>
bool read_value(std::span<const std::byte> from, T& value) {
  if (from.size() < sizeof(value)) return false;
  std::memcpy(&value, from.data(), sizeof(value));
  return true;
}

// The attributes of one interface, as the kernel lists them.
void read_link(std::span<const std::byte> attributes,
               std::map<std::string, InterfaceCounters>& result) {
  std::string name;
  InterfaceCounters counters;
  rtattr head{};
  while (read_value(attributes, head) && head.rta_len >= sizeof(head) &&
         head.rta_len <= attributes.size()) {
    const auto value = attributes.subspan(sizeof(head), head.rta_len - sizeof(head));
    rtnl_link_stats64 stats{};
    if (head.rta_type == IFLA_IFNAME && !value.empty()) {
      const void* const text = value.data();
      name.assign(static_cast<const char*>(text), value.size() - 1);
    } else if (head.rta_type == IFLA_STATS64 && read_value(value, stats)) {
      counters = {stats.tx_packets, stats.tx_bytes, stats.tx_dropped};
    }
    attributes =
        attributes.subspan(std::min<std::size_t>(RTA_ALIGN(head.rta_len), attributes.size()));
  }
  if (!name.empty()) result[name] = counters;
}

// One message of an answer. False at the end of the list.
bool read_messages(std::span<const std::byte> bytes,
                   std::map<std::string, InterfaceCounters>& result) {
  nlmsghdr head{};
  while (read_value(bytes, head) && head.nlmsg_len >= sizeof(head) &&
         head.nlmsg_len <= bytes.size()) {
    if (head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR) return false;
    constexpr std::size_t kAttributesAt = NLMSG_LENGTH(sizeof(ifinfomsg));
    if (head.nlmsg_type == RTM_NEWLINK && head.nlmsg_len >= kAttributesAt)
      read_link(bytes.subspan(kAttributesAt, head.nlmsg_len - kAttributesAt), result);
    bytes = bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(head.nlmsg_len), bytes.size()));
  }
  return true;
}

}  // namespace

void enter_namespace(const std::string& name) {
  const os::Descriptor there(::open((kFolder + name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!there.valid()) fail("network namespace " + name);
  set_namespace(there.get(), name);
}

NetNamespace::NetNamespace(std::string name) : name_(std::move(name)) {
  inside(name_, [this] {
    interfaces_ = os::Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    netlink_ = os::Descriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  });
  if (!interfaces_.valid() || !netlink_.valid()) fail("network namespace " + name_);
  const timeval patience{.tv_sec = kPatienceS, .tv_usec = 0};
  ::setsockopt(netlink_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

void NetNamespace::set_up(const std::string& interface, bool up) const {
  ifreq request = request_for(interface);
  if (::ioctl(interfaces_.get(), SIOCGIFFLAGS, &request) != 0) fail(name_ + " " + interface);
  const int flags = up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP;
  request.ifr_flags = static_cast<short>(flags);
  if (::ioctl(interfaces_.get(), SIOCSIFFLAGS, &request) != 0) fail(name_ + " " + interface);
}

bool NetNamespace::has_carrier(const std::string& interface) const {
  ifreq request = request_for(interface);
  constexpr int kUsable = IFF_UP | IFF_RUNNING;
  return ::ioctl(interfaces_.get(), SIOCGIFFLAGS, &request) == 0 &&
         (request.ifr_flags & kUsable) == kUsable;
}

std::map<std::string, InterfaceCounters> NetNamespace::counters() const {
  std::map<std::string, InterfaceCounters> result;
  struct Request {
    nlmsghdr head;
    ifinfomsg body;
  } request{};
  request.head.nlmsg_len = sizeof(request);
  request.head.nlmsg_type = RTM_GETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  if (::send(netlink_.get(), &request, sizeof(request), 0) < 0) return result;
  std::array<std::byte, 32'768> answer;
  ssize_t got = 0;
  do {
    got = ::recv(netlink_.get(), answer.data(), answer.size(), 0);
  } while (got > 0 &&
           read_messages(std::span(answer).first(static_cast<std::size_t>(got)), result));
  return result;
}

os::Descriptor NetNamespace::packet_socket(const std::string& interface, int protocol) const {
  os::Descriptor socket;
  inside(name_, [&] {
    socket = os::Descriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(static_cast<std::uint16_t>(protocol));
    address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    const void* const untyped = &address;
    if (::bind(socket.get(), static_cast<const sockaddr*>(untyped), sizeof(address)) != 0)
      socket.close();
  });
  if (!socket.valid()) fail(name_ + " " + interface);
  return socket;
}

std::vector<std::string> list_namespaces(const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool remove_namespaces(const std::string& prefix) {
  bool all = true;
  for (const std::string& name : list_namespaces(prefix)) {
    const std::string path = kFolder + name;
    ::umount2(path.c_str(), MNT_DETACH);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) all = false;
  }
  return all;
}

}  // namespace mrc::lab
