#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <string>

#include "commands/doctor/check.h"

namespace mrc::tool::doctor {
namespace {

// In a process of its own: a library that does not load may take its process along.
std::string load_error(const std::string& path) {
  std::array<int, 2> channel = {-1, -1};
  if (pipe2(channel.data(), O_CLOEXEC) != 0) return std::strerror(errno);
  const pid_t child = fork();
  if (child == 0) {
    const bool loads = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
    const char* const why = loads ? "" : dlerror();
    if (write(channel[1], why, std::strlen(why)) < 0) _exit(2);
    _exit(loads ? 0 : 1);
  }
  close(channel[1]);
  std::string text(1'024, '\0');
  const ssize_t got = read(channel[0], text.data(), text.size());
  close(channel[0]);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return text.empty() ? "it does not load" : text;
}

std::string own_directory() {
  std::array<char, PATH_MAX> path = {};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string text(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return text.substr(0, text.find_last_of('/'));
}

// Beside the program: as installed, or in a build tree.
std::string find_library(const std::string& name) {
  const std::string here = own_directory();
  for (const char* folder : {MRC_LIBRARY_FOLDER, "../../lib", "../lib"}) {
    std::string path = fmt::format("{}/{}/{}", here, folder, name);
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

Finding library_finding(const std::string& name, const char* use) {
  const std::string path = find_library(name);
  // Not beside us: perhaps the loader knows where it is.
  const std::string error = load_error(path.empty() ? name : path);
  if (error.empty())
    return {Verdict::kOk, name, "loads" + (path.empty() ? "" : " from " + path), {}};
  if (path.empty())
    return {Verdict::kSlow, name, std::string("is not installed; ") + use,
            "make install, or set LD_LIBRARY_PATH to the folder that has it"};
  return {Verdict::kBroken, name, error, "build OpenMRC for this system, or install what it lacks"};
}

}  // namespace

void check_libraries(Findings& findings) {
  findings.push_back(library_finding("lib_mrc.so", "programs that link it do not start"));
  findings.push_back(library_finding("libmrc-verbs-preload.so", "mrc run cannot preload it"));
  findings.push_back(library_finding("mrc/verbs/libibverbs.so.1", "mrc run --shadow cannot work"));
}

void check_real_devices(Findings& findings) {
  std::string names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/sys/class/infiniband"), &closedir);
  while (folder) {
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names += (names.empty() ? "" : ", ") + std::string(entry->d_name);
  }
  const bool library = load_error("libibverbs.so.1").empty();
  Finding finding = {Verdict::kOk, "other RDMA devices", names.empty() ? "none" : names, {}};
  if (!names.empty() && !library) {
    finding.verdict = Verdict::kBroken;
    finding.found += ", but the real libibverbs does not load";
    finding.fix = "install libibverbs1, or set MRC_LIBIBVERBS to where it is";
  }
  findings.push_back(finding);
}

}  // namespace mrc::tool::doctor
