#include "node/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"

namespace mrc::node {
namespace {

std::string text_of(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

std::string error_of(const std::string& text) {
  const ConfigResult result = parse_config(text, "f.toml");
  EXPECT_TRUE(result.error.empty() || result.devices.empty()) << "an error and devices";
  EXPECT_EQ(result.error.find('\n'), std::string::npos);
  return result.error;
}

DeviceConfig only_device(const std::string& text) {
  ConfigResult result = parse_config(text, "f.toml");
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.devices.size(), 1U);
  return result.devices.empty() ? DeviceConfig{} : result.devices[0];
}

// Sets variables for one test and restores all MRC_ variables afterwards.
class Variables {
 public:
  Variables() {
    for (const char* const name : kNames) {
      const char* const value = std::getenv(name);
      saved_.emplace_back(name, value == nullptr ? "" : value);
      ::unsetenv(name);
    }
    set("MRC_CONFIG", "/dev/null");
  }
  ~Variables() {
    for (const auto& [name, value] : saved_) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

 private:
  static constexpr const char* kNames[] = {
      "MRC_CONFIG",    "MRC_IFACES",  "MRC_PLANES",        "MRC_MTU",
      "MRC_PORT",      "MRC_EVS",     "MRC_PAYLOAD_CHECK", "MRC_SPRAY_QUANTUM",
      "MRC_STATE_DIR", "MRC_THREADS", "XDG_CONFIG_HOME",   "HOME",
      "MRC_DIALECT"};
  std::vector<std::pair<std::string, std::string>> saved_;
};

TEST(Config, WithoutAnyInputThereIsOneDeviceWithFourLoopbackPlanes) {
  const Variables variables;
  const ConfigResult result = load_config();
  ASSERT_EQ(result.error, "");
  ASSERT_EQ(result.devices.size(), 1U);
  const DeviceConfig& device = result.devices[0];
  EXPECT_EQ(device.name, "mrc0");
  EXPECT_EQ(device.backend, BackendKind::kUdp);
  EXPECT_EQ(device.udp_port, 4791);
  ASSERT_EQ(device.planes.size(), 4U);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(text_of(device.planes[i].address), "127.0." + std::to_string(i) + ".1");
    EXPECT_EQ(device.planes[i].prefix_bits, 24U);
  }
  EXPECT_TRUE(device.directory.starts_with("/"));
  EXPECT_TRUE(device.directory.ends_with("/mrc0"));
  EXPECT_EQ(default_device().planes.size(), 4U);
}

TEST(Config, ReadsEveryKey) {
  const DeviceConfig device = only_device(R"(
[device.fast]
backend = "udp"
udp_port = 5000
path_mtu = 8192
evs_per_port = 16
active_evs_per_port = 4
port_rate = "2.5G"
spray_quantum = 15
threads = 3
payload_check = "headers"
trimming = true
segmentation = false
directory = "/tmp/x"
[[device.fast.plane]]
address = "10.0.0.1/24"
[[device.fast.plane]]
interface = "lo"
address = "10.0.1.1"
prefix = 24
[[device.fast.peer]]
gid = "10.0.0.9"
planes = ["10.0.0.9", "10.9.9.9"]
[device.fast.dscp]
control = 40
trimmed = 1
trimmed_last_hop = 2
trimmable = 3
trimmable_retx = 5
no_trim = 6
[device.fast.retry]
timeout = 10
linear = 3
exponential = 25
)");
  EXPECT_EQ(device.name, "fast");
  EXPECT_EQ(device.udp_port, 5000);
  EXPECT_EQ(device.path_mtu, 8192U);
  EXPECT_EQ(device.evs_per_port, 16U);
  EXPECT_EQ(device.active_evs_per_port, 4U);
  EXPECT_EQ(device.port_bits_per_second, 2'500'000'000U);
  EXPECT_EQ(device.spray_quantum, 15U);
  EXPECT_EQ(device.threads, 3U);
  EXPECT_EQ(device.payload_check, PayloadCheck::kHeaders);
  EXPECT_TRUE(device.trimming);
  EXPECT_FALSE(device.segmentation);
  EXPECT_EQ(device.directory, "/tmp/x");
  ASSERT_EQ(device.planes.size(), 2U);
  EXPECT_EQ(text_of(device.planes[1].address), "10.0.1.1");
  EXPECT_EQ(device.planes[1].interface, "lo");
  EXPECT_FALSE(device.planes[1].follow_interface);
  ASSERT_EQ(device.peers.size(), 1U);
  EXPECT_EQ(text_of(device.peers[0].planes[1]), "10.9.9.9");
  EXPECT_EQ(device.dscp.control, 40);
  EXPECT_EQ(device.dscp.no_trim, 6);
  EXPECT_EQ(device.retry.timeout, 10);
  EXPECT_EQ(device.retry.linear_retries, 3);
  EXPECT_EQ(device.retry.exponential_retries, 25);
}

TEST(Config, AsksTheSystemForTheAddressOfAnInterface) {
  const DeviceConfig device = only_device("[device.mrc0]\ninterfaces = [\"lo\"]\n");
  ASSERT_EQ(device.planes.size(), 1U);
  EXPECT_EQ(text_of(device.planes[0].address), "127.0.0.1");
  EXPECT_EQ(device.planes[0].prefix_bits, 8U);
  EXPECT_TRUE(device.planes[0].follow_interface);
}

TEST(Config, ReadsWirePlanes) {
  const DeviceConfig device = only_device(R"(
[device.lab]
backend = "wire"
plane = [{ address = "fc00::1/64", wire = "/tmp/a" }, { address = "fc00::1/64", wire = "/tmp/b" }]
)");
  EXPECT_EQ(device.backend, BackendKind::kWire);
  ASSERT_EQ(device.planes.size(), 2U);
  EXPECT_EQ(device.planes[1].wire_path, "/tmp/b");
}

TEST(Config, AsManyPathsAsTheRoutesHaveChoicesUpTo32) {
  const auto evs = [](const std::string& usids, const std::string& more) {
    return only_device("[device.lab]\nbackend = \"wire\"\n" + more +
                       "plane = [{ address = \"fd00::1/64\", wire = \"/tmp/a\", "
                       "usid_block = \"5f00:1::/32\" }]\n"
                       "srv6_route = [{ to = \"fd00::2/128\", usids = \"" +
                       usids + "\" }]\n")
        .evs_per_port;
  };
  EXPECT_EQ(evs("1000:8000*4:1001", ""), 8U);
  EXPECT_EQ(evs("1000:8000*20:1001", ""), 20U);
  EXPECT_EQ(evs("1000:8000*64:1001", ""), 32U);
  EXPECT_EQ(evs("1000:8000*20:1004/4:100", ""), 20U) << "one that follows";
  EXPECT_EQ(evs("1000:8000*64:1001", "evs_per_port = 2\n"), 2U) << "asked for";
}

TEST(Config, SaysWhereAndWhatIsWrong) {
  const std::string head = "[device.d]\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"x = 1", "f.toml:1:1: unknown key 'x'; known are device"},
      {"device = 3", "f.toml:1:10: device must be a table of devices, as in [device.mrc0]"},
      {"[device]\nd = 3", "f.toml:2:5: a device must be a table"},
      {"[device.\"a/b\"]",
       "f.toml:1:9: a device's name has 1 to 60 letters, digits, '_', '-' and '.'"},
      {"[device.\"..\"]",
       "f.toml:1:9: a device's name has 1 to 60 letters, digits, '_', '-' and '.'"},
      {head + "udp_port = \"x\"", "f.toml:2:12: udp_port must be a whole number from 1 to 65280"},
      {head + "udp_port = 65281", "f.toml:2:12: udp_port must be a whole number from 1 to 65280"},
      {head + "udp_port = 1.5", "f.toml:2:12: udp_port must be a whole number from 1 to 65280"},
      {head + "path_mtu = 255",
       "f.toml:2:12: path_mtu must be 0 or a multiple of 4 from 256 to 8192"},
      {head + "path_mtu = 1022",
       "f.toml:2:12: path_mtu must be 0 or a multiple of 4 from 256 to 8192"},
      {head + "backend = \"xdp\"", "f.toml:2:11: backend must be \"udp\" or \"wire\""},
      {head + "ip = 4", "f.toml:2:6: ip must be \"ipv4\" or \"ipv6\""},
      {head + "segmentation = 1", "f.toml:2:16: segmentation must be true or false"},
      {head + "directory = \"run\"", "f.toml:2:13: directory must be an absolute path"},
      {head + "directory = \"\"", "f.toml:2:13: directory must be a text in quotes, not empty"},
      {head + "port_rate = \"fast\"",
       R"(f.toml:2:13: port_rate must be bits per second from 1M to 10T, as in "25G" or "25Gb/s")"},
      {head + "port_rate = -1",
       R"(f.toml:2:13: port_rate must be bits per second from 1M to 10T, as in "25G" or "25Gb/s")"},
      {head + "dscp = 1", "f.toml:2:8: dscp must be a table"},
      {head + "dscp = { control = 64 }",
       "f.toml:2:20: control must be a whole number from 0 to 63"},
      {head + "retry = { timeout = 99 }",
       "f.toml:2:21: timeout must be a whole number from 1 to 24"},
      {head + "retry = { tries = 9 }",
       "f.toml:2:11: unknown key 'tries'; known are timeout, linear, exponential"},
      {head + "interfaces = []", "f.toml:2:14: interfaces must be a list with at least one entry"},
      {head + "interfaces = [\"no_such_0\"]", "f.toml:2:15: no interface named no_such_0"},
      {head + "plane = [{ address = \"10.0.0.1\" }]",
       "f.toml:2:10: address needs a prefix length, as in \"10.0.1.5/24\""},
      {head + "plane = [{ address = \"10.0.0.1/33\" }]",
       "f.toml:2:22: address must be an IP address, as in \"10.0.1.5/24\""},
      {head + "plane = [{ address = \"10.0.0.1\", prefix = 33 }]",
       "f.toml:2:10: prefix is longer than the address"},
      {head + "plane = [{ prefix = 3 }]", "f.toml:2:10: prefix without address"},
      {head + "plane = [{}]", "f.toml:2:10: a plane needs an interface or an address"},
      {head + "plane = [{ address = \"10.0.0.1/8\", wire = \"/x\" }]",
       "f.toml:2:10: wire is for backend \"wire\""},
      {head + "backend = \"wire\"", "f.toml:1:1: backend \"wire\" needs planes with cables"},
      {head + "plane = [{ address = \"10.0.0.1/8\" }, { address = \"10.0.0.1/8\" }]",
       "f.toml:2:38: two planes have the address 10.0.0.1"},
      {head + "plane = [{ address = \"10.0.0.1/8\" }, { address = \"fc00::1/64\" }]",
       "f.toml:2:38: planes mix IPv4 and IPv6"},
      {head + "loopback_planes = 17",
       "f.toml:2:19: loopback_planes must be a whole number from 1 to 16"},
      {head + "loopback_planes = 2\ninterfaces = [\"lo\"]",
       "f.toml:2:1: loopback_planes contradicts the planes given elsewhere"},
      {head + "evs_per_port = 500", "f.toml:2:16: evs_per_port times planes is more than 1024"},
      {head + "peer = [{ gid = \"10.0.0.1\", planes = [\"10.0.0.1\"] }]",
       "f.toml:2:1: peer 10.0.0.1 has 1 addresses for 4 planes"},
      {head + "peer = [{ planes = [] }]", "f.toml:2:9: a peer needs its gid"},
      {head + "interfaces = [\"lo\"]\nplane = []",
       "f.toml:1:1: interfaces and plane both say what the planes are"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(error_of(text), expected) << text;
  EXPECT_EQ(error_of("# \u00e9\n\n a\u00e9 = 1"),
            "f.toml:3:3: only comments and quoted texts may hold characters beyond ASCII");
  EXPECT_EQ(error_of("# \u00e9\n[device.d]\ndirectory = \"/\u00e9\"\n"), "");
  EXPECT_TRUE(error_of("[device.d]\nudp_port = \n").starts_with("f.toml:2:"));
  EXPECT_TRUE(error_of("[device.d]\ndscp = { trimmed = 46 }\n").starts_with("f.toml:2:1: "));
  EXPECT_TRUE(error_of("\"a\\nb\" = 1").starts_with("f.toml:1:1: unknown key 'a b'"));
}

TEST(Config, SaysWhatIsWrongWithSrv6Routes) {
  const std::string head = "[device.d]\n";
  const std::string wire_head = head + "backend = \"wire\"\nplane = [{ address = \"fc00::1/64\", ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {head + "plane = [{ address = \"10.0.0.1/8\", next_hop_mac = \"02:00:00:00:00:01\" }]",
       "f.toml:2:10: next_hop_mac is for backend \"wire\""},
      {wire_head + "next_hop_mac = \"02:00:00:00:00:1\" }]",
       "f.toml:3:51: next_hop_mac must be as in \"02:00:5e:10:00:01\""},
      {wire_head + "usid_block = \"fc00:1:2::/32\" }]",
       "f.toml:3:49: usid_block must be as in \"fc00:1::/32\""},
      {wire_head + "wire = \"/b\" }]\nsrv6_route = [{ to = \"fd00::2/128\", usids = \"1000\" }]",
       "f.toml:4:1: srv6_route needs a usid_block in every plane"},
      {wire_head + "wire = \"/b\" }]\nsrv6_route = [{ to = \"fd00::2/128\", usids = \"1*2:3*2\" }]",
       "f.toml:4:45: usids must be up to six in hexadecimal, one of them with *CHOICES, as in "
       "\"1000:8000*4:1001:100\""},
      {wire_head + "wire = \"/b\" }]\nsrv6_route = [{ to = \"fd00::2/128\", usids = \"1*6:3/4\" }]",
       "f.toml:4:45: usids must be up to six in hexadecimal, one of them with *CHOICES, as in "
       "\"1000:8000*4:1001:100\""},
      {wire_head + "wire = \"/b\" }]\nsrv6_route = [{ to = \"fd00::2/128\", usids = \"3/2:1*6\" }]",
       "f.toml:4:45: usids must be up to six in hexadecimal, one of them with *CHOICES, as in "
       "\"1000:8000*4:1001:100\""},
      {wire_head + "wire = \"/b\" }]\nsrv6_route = [{ to = \"fd00::2\", usids = \"1\" }]",
       "f.toml:4:22: to must be an IPv6 prefix, as in \"fd00:1::2/128\""},
      {wire_head + "wire = \"/b\" }]\nsrv6_route = [{ usids = \"1\" }]",
       "f.toml:4:15: an srv6_route needs to and usids"},
      {head + "srv6_route = [{ to = \"fd00::2/128\", usids = \"1\" }]",
       "f.toml:2:1: srv6_route is for backend \"wire\""},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(error_of(text), expected) << text;
}

TEST(Config, VariablesOverrideFiles) {
  const Variables variables;
  const std::string path = "/tmp/mrc_config_test_" + std::to_string(::getpid()) + ".toml";
  std::ofstream(path) << "[device.a]\nudp_port = 5000\nplane = [{ address = \"10.0.0.1/8\" }]\n"
                      << "[device.b]\npath_mtu = 512\n";
  Variables::set("MRC_CONFIG", path);
  Variables::set("MRC_PORT", "6000");
  Variables::set("MRC_PLANES", "2");
  Variables::set("MRC_MTU", "1024");
  Variables::set("MRC_EVS", "3");
  Variables::set("MRC_SPRAY_QUANTUM", "7");
  Variables::set("MRC_THREADS", "2");
  Variables::set("MRC_PAYLOAD_CHECK", "headers");
  Variables::set("MRC_STATE_DIR", "/tmp/state");
  const ConfigResult result = load_config();
  ::unlink(path.c_str());
  ASSERT_EQ(result.error, "");
  ASSERT_EQ(result.devices.size(), 2U);
  EXPECT_EQ(result.devices[0].planes.size(), 2U);
  EXPECT_EQ(result.devices[1].planes.size(), 4U);
  for (const DeviceConfig& device : result.devices) {
    EXPECT_EQ(device.udp_port, 6000);
    EXPECT_EQ(device.path_mtu, 1024U);
    EXPECT_EQ(device.evs_per_port, 3U);
    EXPECT_EQ(device.spray_quantum, 7U);
    EXPECT_EQ(device.threads, 2U);
    EXPECT_EQ(device.payload_check, PayloadCheck::kHeaders);
    EXPECT_EQ(device.directory, "/tmp/state/" + device.name);
  }
  EXPECT_EQ(result.environment.size(), 9U);
  EXPECT_EQ(result.environment[0], "MRC_CONFIG set by environment to " + path);
}

TEST(Config, InterfacesFromTheEnvironmentArePlanes) {
  const Variables variables;
  Variables::set("MRC_IFACES", "lo");
  const ConfigResult result = load_config();
  ASSERT_EQ(result.error, "");
  ASSERT_EQ(result.devices[0].planes.size(), 1U);
  EXPECT_EQ(text_of(result.devices[0].planes[0].address), "127.0.0.1");
}

TEST(Config, ASecondFileChangesWhatItMentionsOnly) {
  const Variables variables;
  const std::string home = "/tmp/mrc_config_home_" + std::to_string(::getpid());
  ::mkdir(home.c_str(), 0700);
  ::mkdir((home + "/mrc").c_str(), 0700);
  std::ofstream(home + "/mrc/mrc.toml") << "[device.mrc0]\nudp_port = 5001\n";
  ::unsetenv("MRC_CONFIG");
  Variables::set("XDG_CONFIG_HOME", home);
  const ConfigResult result = load_config();
  ::unlink((home + "/mrc/mrc.toml").c_str());
  ::rmdir((home + "/mrc").c_str());
  ::rmdir(home.c_str());
  ASSERT_EQ(result.error, "");
  ASSERT_FALSE(result.devices.empty());
  bool found = false;
  for (const DeviceConfig& device : result.devices)
    found |= device.udp_port == 5001;
  EXPECT_TRUE(found);
}

TEST(Config, DialectIsANameAndWhatDiffers) {
  EXPECT_EQ(only_device("[device.mrc0]\n").dialect, wire::kOpenMrc);
  const DeviceConfig card = only_device("[device.mrc0.dialect]\nname = \"card\"\n");
  EXPECT_EQ(card.dialect, wire::kCard);
  EXPECT_EQ(card.retry.mpr, 4);
  // Whatever the order, the fields win over the name.
  const DeviceConfig other = only_device(
      "[device.mrc0.dialect]\nev_order = \"high_in_port\"\nfirst_msn = 1\nwindow = 16\n"
      "name = \"card\"\n");
  EXPECT_EQ(wire::dialect_text(other.dialect).view(),
            "card,first_msn=1,ev_order=high_in_port,window=16");
  EXPECT_EQ(other.retry.mpr, 16);
}

TEST(Config, RefusesADialectThatIsNone) {
  const auto refusal = [](const std::string& line) {
    return error_of("[device.mrc0.dialect]\n" + line + "\n");
  };
  EXPECT_EQ(refusal("name = \"nic\""), "f.toml:2:8: name must be \"openmrc\" or \"card\"");
  EXPECT_EQ(refusal("port_bit = 2"), "f.toml:2:12: port_bit must be a whole number from 0 to 1");
  EXPECT_EQ(refusal("port_bit = \"1\""),
            "f.toml:2:12: port_bit must be a whole number from 0 to 1");
  EXPECT_EQ(refusal("ack_msn = 1"), "f.toml:2:11: ack_msn must be \"last\" or \"next\"");
  EXPECT_EQ(refusal("first_msn = -1"),
            "f.toml:2:13: first_msn must be a whole number from 0 to 65535");
  EXPECT_TRUE(refusal("msn = 1").starts_with("f.toml:2:1: unknown key 'msn'; known are name, "));
  EXPECT_EQ(error_of("[device.mrc0]\ndialect = \"card\"\n"),
            "f.toml:2:11: dialect must be a table");
}

TEST(Config, DialectOfTheEnvironmentReplacesThatOfFiles) {
  const Variables variables;
  const std::string path = "/tmp/mrc_config_dialect_" + std::to_string(::getpid());
  std::ofstream(path) << "[device.mrc0.dialect]\nname = \"card\"\nfirst_msn = 1\n";
  Variables::set("MRC_CONFIG", path);
  EXPECT_EQ(load_config().devices[0].dialect.first_msn, 1);
  Variables::set("MRC_DIALECT", "openmrc,port_bit=1");
  const ConfigResult result = load_config();
  ::unlink(path.c_str());
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(wire::dialect_text(result.devices[0].dialect).view(), "openmrc,port_bit=1");
}

TEST(Config, RefusesBadVariables) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"MRC_PLANES", "0"},
      {"MRC_PLANES", "17"},
      {"MRC_PLANES", "four"},
      {"MRC_MTU", "100"},
      {"MRC_MTU", "9000"},
      {"MRC_MTU", "-4"},
      {"MRC_PORT", "0"},
      {"MRC_PORT", "99999"},
      {"MRC_EVS", "0"},
      {"MRC_EVS", "1025"},
      {"MRC_EVS", "300"},
      {"MRC_IFACES", "lo,"},
      {"MRC_IFACES", "none0"},
      {"MRC_STATE_DIR", "run"},
      {"MRC_SPRAY_QUANTUM", "65"},
      {"MRC_THREADS", "17"},
      {"MRC_PAYLOAD_CHECK", "none"},
      {"MRC_DIALECT", "carp"},
      {"MRC_DIALECT", "card,port_bit=7"},
      {"MRC_DIALECT", "card,,"}};
  for (const auto& [name, value] : cases) {
    const Variables variables;
    Variables::set(name, value);
    const ConfigResult result = load_config();
    EXPECT_TRUE(result.error.starts_with("environment: " + std::string(name))) << result.error;
    EXPECT_TRUE(result.devices.empty());
  }
  const Variables variables;
  Variables::set("MRC_IFACES", "lo");
  Variables::set("MRC_PLANES", "2");
  EXPECT_EQ(load_config().error, "environment: MRC_IFACES contradicts MRC_PLANES: set one of them");
}

TEST(Config, NamesTheFileThatCannotBeRead) {
  const Variables variables;
  Variables::set("MRC_CONFIG", "/tmp");
  EXPECT_EQ(load_config().error, "/tmp: Is a directory");
  Variables::set("MRC_CONFIG", "/no/such/file.toml");
  EXPECT_EQ(load_config().error, "/no/such/file.toml: No such file or directory");
}

TEST(Config, NoBytesWhateverMakeItCrash) {
  const std::vector<std::string> words = {"[device.a]\n",
                                          "[[device.a.plane]]\n",
                                          "address = ",
                                          "\"10.0.0.1/8\"\n",
                                          "interfaces",
                                          " = ",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          "\"lo\"",
                                          ",",
                                          "\n",
                                          "dscp",
                                          "peer",
                                          "= 1",
                                          ".",
                                          "'",
                                          "\"\"\"",
                                          "#",
                                          "path_mtu = 4096\n",
                                          "0x",
                                          "1979-05-27T07:32:00Z",
                                          "inf",
                                          "\\u0000",
                                          "\xFF",
                                          "udp_port"};
  Prng random(7);
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    const std::uint32_t parts = random.below(24);
    for (std::uint32_t i = 0; i < parts; ++i) {
      if (round % 2 == 0) {
        text += words[random.below(static_cast<std::uint32_t>(words.size()))];
      } else {
        text += static_cast<char>(random.below(256));
      }
    }
    const ConfigResult result = parse_config(text, "f.toml");
    EXPECT_NE(result.error.empty(), result.devices.empty()) << text;
    EXPECT_EQ(result.error.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace mrc::node
