// mrc_script: runs packet scripts against the protocol engine. See README.md.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/planted_bug.h"
#include "script/script_parser.h"
#include "script/script_runner.h"
#include "support/results.h"

namespace {

namespace fs = std::filesystem;

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct Options {
  bool verbose = false;
  bool must_fail = false;
  std::string results_file;
  std::vector<fs::path> scripts;
};

struct Totals {
  unsigned scripts = 0;
  std::size_t statements = 0;
  unsigned failed = 0;
};

int usage() {
  std::fputs(
      "usage: mrc_script [options] FILE|FOLDER...\n"
      "  --verbose        print the packets of every script\n"
      "  --results FILE   write the totals as JSON\n"
      "  --must-fail      every script must fail as its second line says: `# fails: LINE: TEXT`\n"
      "  --bug NAME       activate a planted bug (mutants build only)\n",
      stderr);
  return kExitUsage;
}

void add_scripts(const fs::path& path, std::vector<fs::path>& out) {
  if (!fs::is_directory(path)) {
    out.push_back(path);
    return;
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.path().extension() == ".script") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  out.insert(out.end(), found.begin(), found.end());
}

bool activate_bug([[maybe_unused]] const char* name) {
#ifdef MRC_PLANTED_BUGS
  for (std::size_t i = 0; i < std::size(mrc::kPlantedBugs); ++i) {
    if (std::strcmp(mrc::kPlantedBugs[i].name, name) == 0) {
      mrc::active_planted_bug = static_cast<mrc::PlantedBug>(i);
      return true;
    }
  }
#endif
  std::fprintf(stderr, "mrc_script: no such planted bug in this build: %s\n", name);
  return false;
}

bool parse_options(int argc, char** argv, Options& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const bool more = i + 1 < argc;
    if (option == "--verbose") {
      out.verbose = true;
    } else if (option == "--must-fail") {
      out.must_fail = true;
    } else if (option == "--results" && more) {
      out.results_file = argv[++i];
    } else if (option == "--bug" && more) {
      if (!activate_bug(argv[++i])) return false;
    } else if (option.starts_with("--")) {
      return false;
    } else {
      add_scripts(option, out.scripts);
    }
  }
  return !out.scripts.empty();
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

mrc::script::RunResult run_text(const std::string& text, Totals& totals) {
  try {
    const mrc::script::Script script = mrc::script::parse_script(text);
    totals.statements += script.statements.size();
    return mrc::script::run_script(script);
  } catch (const mrc::script::ScriptError& error) {
    return {.passed = false, .line = error.line(), .message = error.what(), .log = ""};
  }
}

// Compares a failure with what the script's second line announces; returns what is wrong.
std::string check_failure(const std::string& text, const mrc::script::RunResult& result) {
  static constexpr char kMarker[] = "\n# fails: ";
  const std::size_t marker = text.find(kMarker);
  if (marker == std::string::npos) return "no `# fails: LINE: TEXT` in the script";
  const std::size_t start = marker + std::strlen(kMarker);
  const std::string announced = text.substr(start, text.find('\n', start) - start);
  const std::size_t colon = announced.find(": ");
  if (result.passed) return "it passed";
  if (announced.substr(0, colon) != std::to_string(result.line)) {
    return "it failed in line " + std::to_string(result.line) + ": " + result.message;
  }
  if (result.message.find(announced.substr(colon + 2)) == std::string::npos) {
    return "it failed with: " + result.message;
  }
  return "";
}

void run_one(const fs::path& path, const Options& options, Totals& totals) {
  const std::string text = read_file(path);
  const mrc::script::RunResult result = run_text(text, totals);
  ++totals.scripts;
  const char* name = path.c_str();
  if (options.must_fail) {
    const std::string wrong = check_failure(text, result);
    if (!wrong.empty()) {
      ++totals.failed;
      std::printf("%s: should fail, but: %s\n", name, wrong.c_str());
    }
    return;
  }
  if (result.passed) {
    if (options.verbose) std::printf("%s: passed\n%s", name, result.log.c_str());
    return;
  }
  ++totals.failed;
  std::istringstream lines(text);
  std::string line;
  for (unsigned i = 0; i < result.line; ++i)
    std::getline(lines, line);
  std::printf("%s:%u: FAILED\n  %s\n%s\nlog:\n%s\n", name, result.line, line.c_str(),
              result.message.c_str(), result.log.c_str());
}

bool write_results(const Options& options, const Totals& totals) {
  if (options.results_file.empty()) return true;
  return mrc::test::write_results(
      options.results_file, "scripts",
      {{"scripts", totals.scripts}, {"statements", totals.statements}, {"failed", totals.failed}});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return usage();
  Totals totals;
  for (const fs::path& path : options.scripts)
    run_one(path, options, totals);
  std::printf("%u scripts, %zu statements, %u failed\n", totals.scripts, totals.statements,
              totals.failed);
  if (!write_results(options, totals)) {
    std::fprintf(stderr, "mrc_script: cannot write %s\n", options.results_file.c_str());
    return kExitFailed;
  }
  return totals.failed == 0 ? 0 : kExitFailed;
}
