// mrc run: a program that was written for RDMA cards, on our devices.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "os/environment.h"

#include "command.h"
#include "commands/run/sysfs_tree.h"

namespace mrc::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPreload = "libmrc-verbs-preload.so";
constexpr const char* kSysfs = "mrc/libmrc-sysfs.so";
constexpr const char* kVerbs = "mrc/verbs/libibverbs.so.1";

class RunCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  void put(const char* name, const std::string& value);
  void put_first(const char* name, const std::string& first);
  void put_default(const char* name, const fs::path& value);
  bool put_sysfs(const fs::path& folder);
  void set_up(const fs::path& folder);

  CLI::App* app_ = nullptr;
  bool preload_ = true;
  bool shadow_ = true;
  bool sysfs_ = true;
  bool print_ = false;
};

CLI::App* RunCommand::declare(CLI::App& program) {
  app_ = program.add_subcommand("run", "Run a program of RDMA cards on our devices");
  app_->prefix_command();
  app_->add_flag("--preload,!--no-preload", preload_,
                 "Put our verbs functions before all others (LD_PRELOAD)");
  app_->add_flag("--shadow,!--no-shadow", shadow_,
                 "Put our libibverbs before the real one (LD_LIBRARY_PATH), for programs that look "
                 "its functions up themselves, such as NCCL");
  app_->add_flag("--sysfs,!--no-sysfs", sysfs_,
                 "Show our devices below /sys/class/infiniband, to this program only");
  app_->add_flag("--print", print_, "Print the settings as shell commands; run nothing");
  app_->footer(
      "Devices of real cards are shown too, after ours. Set-user-ID programs ignore the settings.\n"
      "Examples:\n"
      "  mrc run ibv_devinfo\n"
      "  mrc run ib_write_bw -d mrc0 -F\n"
      "  eval \"$(mrc run --print)\"");
  return app_;
}

// Where the libraries lie beside this program: in a build tree or where they were installed.
fs::path library_folder() {
  if (const char* named = os::environment("MRC_LIBRARY_DIR")) return named;
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* folder : {MRC_LIBRARY_FOLDER, "../../lib", "../lib"}) {
    fs::path candidate = (here / folder).lexically_normal();
    if (fs::exists(candidate / kPreload, error)) return candidate;
  }
  return {};
}

void RunCommand::put(const char* name, const std::string& value) {
  if (print_) {
    fmt::print("export {}='{}'\n", name, value);
  } else {
    setenv(name, value.c_str(), 1);
  }
}

// What was set before stays, behind ours.
void RunCommand::put_first(const char* name, const std::string& first) {
  const char* before = os::environment(name);
  put(name, before == nullptr || *before == '\0' ? first : first + ":" + before);
}

// For programs that open libraries by names in variables of their own; what the user says counts.
void RunCommand::put_default(const char* name, const fs::path& value) {
  if (os::environment(name) == nullptr) put(name, value.string());
}

bool RunCommand::put_sysfs(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / kSysfs, error)) return false;
  std::string why;
  const std::string tree = make_sysfs_tree(why);
  if (tree.empty()) {
    fmt::print(stderr, "mrc run: /sys/class/infiniband stays as it is: {}\n", why);
    return false;
  }
  put("MRC_SYSFS_DIR", tree);
  return true;
}

void RunCommand::set_up(const fs::path& folder) {
  std::string preload = preload_ ? (folder / kPreload).string() : "";
  if (sysfs_ && put_sysfs(folder))
    preload += (preload.empty() ? "" : ":") + (folder / kSysfs).string();
  if (!preload.empty()) put_first("LD_PRELOAD", preload);
  if (!shadow_) return;
  put_first("LD_LIBRARY_PATH", (folder / "mrc" / "verbs").string());
  put_default("NCCL_IBVERBS_LIB", folder / kVerbs);
  put_default("VMRC_LIBIBVERBS_SO", folder / kVerbs);
  put_default("VMRC_LIBMRC_SO", folder / "libmrc.so");
}

ExitCode RunCommand::run() {
  std::vector<std::string> words = app_->remaining();
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty() && !print_) {
    fmt::print(stderr, "mrc run: which program? (try: mrc run --help)\n");
    return ExitCode::kUsage;
  }
  const fs::path folder = library_folder();
  if (folder.empty()) {
    fmt::print(stderr, "mrc run: {} is not beside this program; set MRC_LIBRARY_DIR\n", kPreload);
    return ExitCode::kFailed;
  }
  set_up(folder);
  if (print_) return ExitCode::kOk;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  fmt::print(stderr, "mrc run: cannot run {}: {}\n", words.front(), std::strerror(errno));
  return ExitCode::kFailed;
}

}  // namespace

std::unique_ptr<Command> make_run_command() { return std::make_unique<RunCommand>(); }

}  // namespace mrc::tool
