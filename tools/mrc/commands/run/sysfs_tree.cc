#include "commands/run/sysfs_tree.h"

#include <endian.h>
#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "node/config.h"
#include "node/node_state_files.h"
#include "os/interfaces.h"

namespace mrc::tool {
namespace {

namespace fs = std::filesystem;

// As many as a port of our devices has (gid_tbl_len), which only an open device would say.
constexpr int kGids = 4;
constexpr const char* kClass = "/sys/class/infiniband";

struct Entry {
  std::string path;  // from the folder on
  std::string text;  // contents of a file, target of a link; a folder has none
  enum class Kind : std::uint8_t { kFile, kLink, kFolder } kind = Kind::kFile;
};

// As the kernel writes 64 or 128 bits: groups of four digits.
std::string groups(const std::uint8_t* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", bytes[i], bytes[i + 1]);
  }
  return text + "\n";
}

std::string gid_text(const wire::IpAddress& address) {
  if (!address.is_v4) return groups(address.bytes.data(), address.bytes.size());
  std::array<std::uint8_t, 16> mapped{};
  mapped[10] = mapped[11] = 0xff;
  std::memcpy(mapped.data() + 12, address.bytes.data(), 4);
  return groups(mapped.data(), mapped.size());
}

std::map<std::string, std::uint64_t> guids() {
  std::map<std::string, std::uint64_t> found;
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i)
    found.emplace(ibv_get_device_name(list[i]), ibv_get_device_guid(list[i]));
  if (list != nullptr) ibv_free_device_list(list);
  return found;
}

std::string interface_of(const node::PlaneConfig& plane) {
  const os::InterfaceList list = os::list_interfaces();
  const os::InterfaceAddress* const found =
      os::find_interface(list, plane.interface, plane.address);
  return found != nullptr ? found->name : plane.interface;
}

// Virtual interfaces have no device behind them and stand for themselves.
std::string device_of(const std::string& interface) {
  if (interface.empty()) return {};
  std::error_code error;
  const fs::path folder = fs::path("/sys/class/net") / interface;
  fs::path found = fs::canonical(folder / "device", error);
  if (error) found = fs::canonical(folder, error);
  return error ? std::string() : found.string();
}

void add_device(const node::DeviceConfig& config, std::uint64_t guid, std::vector<Entry>& entries) {
  using enum Entry::Kind;
  const std::string base = "class/infiniband/" + config.name + "/";
  const std::string port = base + "ports/1/";
  const std::string interface = interface_of(config.planes.front());
  const std::string device = device_of(interface);
  entries.push_back({base + "device", device, device.empty() ? kFolder : kLink});
  std::array<std::uint8_t, 8> bytes{};
  std::memcpy(bytes.data(), &guid, bytes.size());
  entries.push_back({base + "node_guid", groups(bytes.data(), bytes.size())});
  entries.push_back({base + "node_type", "1: CA\n"});
  entries.push_back({port + "link_layer", "Ethernet\n"});
  for (int index = 0; index < kGids; ++index) {
    entries.push_back(
        {fmt::format("{}gids/{}", port, index), gid_text(config.planes.front().address)});
    entries.push_back({fmt::format("{}gid_attrs/types/{}", port, index), "RoCE v2\n"});
    if (!interface.empty())
      entries.push_back({fmt::format("{}gid_attrs/ndevs/{}", port, index), interface + "\n"});
  }
}

// So that a program which lists the folder finds them beside ours.
void add_real_devices(std::vector<Entry>& entries) {
  std::error_code error;
  for (fs::directory_iterator at(kClass, error), end; !error && at != end; at.increment(error)) {
    const fs::path target = fs::canonical(at->path(), error);
    if (error) return;
    entries.push_back({"class/infiniband/" + at->path().filename().string(), target.string(),
                       Entry::Kind::kLink});
  }
}

std::string name_of(const std::vector<Entry>& entries) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  const auto mix = [&hash](const std::string& text) {
    for (const char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
    hash = (hash ^ 0xff) * 0x100'0000'01b3;  // in no text of ours
  };
  for (const Entry& entry : entries) {
    mix(entry.path);
    mix(entry.text);
  }
  return fmt::format("sysfs-{:016x}", hash);
}

void write(const fs::path& folder, const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    const fs::path path = folder / entry.path;
    fs::create_directories(entry.kind == Entry::Kind::kFolder ? path : path.parent_path());
    if (entry.kind == Entry::Kind::kLink) fs::create_symlink(entry.text, path);
    if (entry.kind != Entry::Kind::kFile) continue;
    std::ofstream file(path, std::ios::binary);
    file << entry.text;
    file.close();
    if (!file)
      throw fs::filesystem_error("cannot write", path, std::make_error_code(std::errc::io_error));
  }
}

// The library that reads the tree takes our word and root's.
bool is_strangers(const fs::path& tree) {
  struct stat info {};
  return stat(tree.c_str(), &info) == 0 && info.st_uid != 0 && info.st_uid != geteuid();
}

// Another process may do the same at the same time: whoever comes first wins, with equal contents.
std::string store(const fs::path& parent, const std::vector<Entry>& entries) {
  fs::path wanted = parent / name_of(entries);
  if (is_strangers(wanted)) wanted += "-" + std::to_string(geteuid());
  if (fs::exists(wanted)) return wanted.string();
  const fs::path fresh = wanted.string() + "." + std::to_string(getpid());
  std::error_code error;
  try {
    fs::remove_all(fresh);
    write(fresh, entries);
    fs::rename(fresh, wanted, error);
  } catch (const fs::filesystem_error&) {
    fs::remove_all(fresh, error);
    throw;
  }
  if (error) {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    if (!fs::exists(wanted)) throw fs::filesystem_error("cannot rename", wanted, error);
  }
  return wanted.string();
}

}  // namespace

std::string make_sysfs_tree(std::string& why) {
  const node::ConfigResult config = node::load_config();
  if (config.devices.empty()) {
    why = config.error;
    return {};
  }
  const std::map<std::string, std::uint64_t> numbers = guids();
  std::vector<Entry> entries;
  add_real_devices(entries);
  for (const node::DeviceConfig& device : config.devices) {
    const auto guid = numbers.find(device.name);
    add_device(device, guid == numbers.end() ? 0 : guid->second, entries);
  }
  const std::string& directory = config.devices.front().directory;
  try {
    if (const int error = node::node_files::make_directories(directory); error != 0) {
      why = directory + ": " + std::strerror(error);
      return {};
    }
    why = node::node_files::distrust(directory);
    if (!why.empty()) return {};
    return store(directory, entries);
  } catch (const fs::filesystem_error& error) {
    why = error.what();
    return {};
  }
}

}  // namespace mrc::tool
