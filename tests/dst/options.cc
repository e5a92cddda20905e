#include "dst/options.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace mrc::dst {

const char kUsage[] =
    "Usage: dst --seeds N [--first S | --derive TEXT] [--theme NAME] [--jobs J] [--hash]\n"
    "           [--strikes N] [--must-fail] [--results FILE]\n"
    "       dst --seed N [--log] [--mutant NAME]\n"
    "       dst --seed-file FILE... [--jobs J] [--results FILE]\n"
    "       dst --mutants [--seed-file FILE...] [--mutant NAME] [--except NAME...]\n"
    "           [--seeds-per-mutant N] [--jobs J] [--results FILE]\n"
    "\n"
    "Runs the protocol engine on a virtual network in virtual time and tries to break it.\n"
    "One seed decides everything that happens in a run.\n"
    "\n"
    "  --seeds N             run N seeds, from --first (default 1) on\n"
    "  --derive TEXT         start from a number that TEXT decides, such as a commit\n"
    "  --theme NAME          what all seeds are about: one-path, some-paths, last-port, idle,\n"
    "                        many-qps, stalls, windows, software-nic, bottleneck, dialects,\n"
    "                        controller, narrow, forger,\n"
    "                        insider; mixed: every second seed has one of those before\n"
    "                        dialects; default any: none has\n"
    "  --seed N              run one seed; with --log print all that happens\n"
    "  --seed-file FILE      run the seeds listed in a file, one number a line; behind --mutants\n"
    "                        these too, after the others\n"
    "  --jobs J              processes, default one per core\n"
    "  --failures N          stop after N failed seeds, default 16\n"
    "  --hash                print one hash of all traces, to compare builds\n"
    "  --strikes N           fail when an attack of the forger was made less than N times\n"
    "  --must-fail           fail unless every seed does\n"
    "  --mutants             switch on each planted bug in turn; every one must be caught\n"
    "  --mutant NAME         only this planted bug; with --seed in that one run\n"
    "  --except NAME         not this one; may be given again\n"
    "  --seeds-per-mutant N  give up after N seeds, default 1000\n"
    "  --results FILE        write what was measured as JSON\n"
    "\n"
    "Exit status: 0 all good, 1 a check failed, 2 wrong usage.\n";

namespace {

constexpr std::uint64_t kFirstDerived = std::uint64_t{1} << 40;

class Arguments {
 public:
  Arguments(int argc, char** argv) : arguments_(argv + 1, argv + argc) {}

  bool done() const { return at_ == arguments_.size(); }
  std::string_view next() { return arguments_[at_++]; }
  std::optional<std::string_view> value() {
    if (done()) return std::nullopt;
    return next();
  }
  std::optional<std::uint64_t> number() {
    const auto text = value();
    if (!text) return std::nullopt;
    std::uint64_t parsed = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), parsed);
    if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
    return parsed;
  }

 private:
  std::vector<std::string_view> arguments_;
  std::size_t at_ = 0;
};

template <typename T>
bool take_number(Arguments& arguments, T& target) {
  const auto number = arguments.number();
  if (number) target = static_cast<T>(*number);
  return number.has_value();
}

bool take_text(Arguments& arguments, std::string& target) {
  const auto text = arguments.value();
  if (text) target = *text;
  return text.has_value();
}

// FNV-1a, reduced to numbers that nobody has run before by counting from 1 on.
bool take_derived(Arguments& arguments, std::uint64_t& first) {
  const auto text = arguments.value();
  if (!text || text->empty()) return false;
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (const char c : *text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01B3;
  first = kFirstDerived + hash % kFirstDerived;
  return true;
}

bool take_theme(Arguments& arguments, std::optional<Theme>& theme) {
  const auto name = arguments.value();
  if (!name) return false;
  theme = theme_of_name(*name);
  return theme.has_value() || *name == "mixed";
}

bool take_mode(Options& options, Mode mode) {
  const bool first = options.mode == Mode::kHelp || options.mode == mode;
  options.mode = mode;
  return first;
}

// False when the option is unknown or its value is missing or wrong.
bool take_option(Arguments& arguments, std::string_view name, Options& options) {
  if (name == "--seeds") {
    return take_mode(options, Mode::kManySeeds) && take_number(arguments, options.seeds);
  }
  if (name == "--seed") {
    return take_mode(options, Mode::kOneSeed) && take_number(arguments, options.seed);
  }
  if (name == "--seed-file") {
    options.seed_files.emplace_back();
    const bool mode_fits = options.mode == Mode::kMutants || take_mode(options, Mode::kSeedFiles);
    return mode_fits && take_text(arguments, options.seed_files.back());
  }
  if (name == "--mutants") return take_mode(options, Mode::kMutants);
  if (name == "--mutant") return take_text(arguments, options.mutant);
  if (name == "--except") return take_text(arguments, options.not_hunted.emplace_back());
  if (name == "--seeds-per-mutant") return take_number(arguments, options.seeds_per_mutant);
  if (name == "--first") return take_number(arguments, options.first);
  if (name == "--derive") return take_derived(arguments, options.first);
  if (name == "--theme") return take_theme(arguments, options.theme);
  if (name == "--jobs") return take_number(arguments, options.jobs) && options.jobs != 0;
  if (name == "--failures") return take_number(arguments, options.failures);
  if (name == "--results") return take_text(arguments, options.results);
  if (name == "--log") return options.log = true;
  if (name == "--hash") return options.hash = true;
  if (name == "--must-fail") return options.must_fail = true;
  if (name == "--strikes") return take_number(arguments, options.strikes);
  return false;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  options.jobs = static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN));
  Arguments arguments(argc, argv);
  while (!arguments.done()) {
    const std::string_view name = arguments.next();
    if (name == "--help" || name == "-h") return Options{};
    if (take_option(arguments, name, options)) continue;
    std::fprintf(stderr, "dst: what is meant by '%.*s' here?\n", static_cast<int>(name.size()),
                 name.data());
    return std::nullopt;
  }
  if (options.mode == Mode::kHelp) return std::nullopt;
  return options;
}

}  // namespace mrc::dst
