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

namespace mrc::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPreload = "libmrc-verbs-preload.so";

class RunCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  void put(const char* name, const std::string& first);

  CLI::App* app_ = nullptr;
  bool preload_ = true;
  bool shadow_ = true;
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

// What was set before stays, behind ours.
void RunCommand::put(const char* name, const std::string& first) {
  const char* before = os::environment(name);
  const std::string value = before == nullptr || *before == '\0' ? first : first + ":" + before;
  if (print_) {
    fmt::print("export {}='{}'\n", name, value);
  } else {
    setenv(name, value.c_str(), 1);
  }
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
  if (preload_) put("LD_PRELOAD", (folder / kPreload).string());
  if (shadow_) put("LD_LIBRARY_PATH", (folder / "mrc" / "verbs").string());
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
