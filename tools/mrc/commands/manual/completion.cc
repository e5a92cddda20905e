#include "commands/manual/completion.h"

#include <functional>
#include <sstream>

namespace mrc::tool::manual {
namespace {

// In single quotes, for either shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      out += "'\\''";
    } else {
      out += letter;
    }
  }
  return out + "'";
}

void for_each_command(const CommandText& command,
                      const std::function<void(const CommandText&)>& act) {
  act(command);
  for (const CommandText& below : command.commands)
    for_each_command(below, act);
}

std::vector<std::string> command_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const CommandText& below : command.commands)
    names.push_back(below.path.back());
  return names;
}

std::vector<std::string> option_names(const CommandText& command, bool with_value_only) {
  std::vector<std::string> names;
  for (const OptionText& option : all_options(command))
    if (!with_value_only || !option.value.empty())
      names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// What the command `$1` has, in variables of the caller; for both shells.
void write_tables(std::ostream& out, const CommandText& program) {
  out << "# Of the command $1: the commands below it, its options, and those that take a value.\n"
         "_mrc_of() {\n"
         "  below= names= valued= runs_programs=\n"
         "  case $1 in\n";
  for_each_command(program, [&](const CommandText& command) {
    out << "    " << quoted(joined(command.path)) << ")\n"
        << "      below=" << quoted(joined(command_names(command))) << '\n'
        << "      names=" << quoted(joined(option_names(command, false))) << '\n'
        << "      valued=" << quoted(joined(option_names(command, true))) << '\n';
    if (command.runs_programs) out << "      runs_programs=yes\n";
    out << "      ;;\n";
  });
  out << "  esac\n}\n\n"
         "# All that the option $2 of the command $1 may be; nothing where that is not known.\n"
         "_mrc_values() {\n"
         "  values=\n"
         "  case \"$1 $2\" in\n";
  for_each_command(program, [&](const CommandText& command) {
    for (const OptionText& option : all_options(command)) {
      if (option.choices.empty()) continue;
      std::string patterns;
      for (const std::string& name : option.names)
        patterns += (patterns.empty() ? "" : "|") + quoted(joined(command.path) + " " + name);
      out << "    " << patterns << ") values=" << quoted(joined(option.choices)) << " ;;\n";
    }
  });
  out << "  esac\n}\n\n";
}

// Both shells give the words of the line, the last one that which is completed, to this function.
constexpr const char* kWalk =
    R"(# Follows the words $2... of a line from the command $1. Says in variables of the caller
# which command they lead to, which option waits for its value, and how many other words there are.
_mrc_walk() {
  local below names valued runs_programs word
  place=$1 waiting= others=0
  shift
  _mrc_of "$place"
  for word in "$@"; do
    if [[ -n $waiting ]]; then
      waiting=
    elif [[ $others != 0 && -n $runs_programs ]]; then
      others=$((others + 1))
    elif [[ $word == -* ]]; then
      case " $valued " in *" $word "*) waiting=$word ;; esac
    else
      case " $below " in
        *" $word "*)
          place="$place $word"
          _mrc_of "$place"
          ;;
        *) others=$((others + 1)) ;;
      esac
    fi
  done
}

)";

constexpr const char* kBash = R"(_mrc() {
  local place waiting others below names valued runs_programs values
  local current=${COMP_WORDS[COMP_CWORD]} words=() index
  # bash takes "--option=value" apart: the "=" goes, and the value is a word of its own.
  for ((index = 1; index < COMP_CWORD; index++)); do
    [[ ${COMP_WORDS[index]} == = ]] || words+=("${COMP_WORDS[index]}")
  done
  [[ $current == = ]] && current=
  _mrc_walk mrc "${words[@]}"
  _mrc_of "$place"
  COMPREPLY=()
  if [[ -n $waiting ]]; then
    _mrc_values "$place" "$waiting"
    [[ -z $values ]] || COMPREPLY=($(compgen -W "$values" -- "$current"))
  elif [[ -n $runs_programs && $others != 0 ]]; then
    COMPREPLY=($(compgen -c -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$names" -- "$current"))
  elif [[ -n $runs_programs ]]; then
    COMPREPLY=($(compgen -c -- "$current"))
  elif [[ $others == 0 && -n $below ]]; then
    COMPREPLY=($(compgen -W "$below" -- "$current"))
  fi
}
complete -o default -F _mrc mrc
)";

constexpr const char* kZsh = R"(_mrc() {
  local place waiting others below names valued runs_programs values helps
  local current=$words[CURRENT]
  _mrc_walk mrc "${(@)words[2,CURRENT-1]}"
  _mrc_of "$place"
  if [[ $current == --*=* ]]; then
    waiting=${current%%=*}
    compset -P '*='
  fi
  if [[ -n $waiting ]]; then
    _mrc_values "$place" "$waiting"
    if [[ -n $values ]]; then compadd -- ${=values}; else _files; fi
  elif [[ -n $runs_programs && $others != 0 ]]; then
    _command_names -e || _files
  elif [[ $current == -* ]]; then
    _mrc_helps "$place"
    _describe -o option helps
  elif [[ -n $runs_programs ]]; then
    _command_names -e
  elif [[ $others == 0 && -n $below ]]; then
    _mrc_helps "$place commands"
    _describe command helps || _files
  else
    _files
  fi
}

# Loaded by the first completion, or by hand before it.
if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then _mrc "$@"; else compdef _mrc mrc; fi
)";

std::string with_help(const std::string& name, const std::string& help) {
  std::string first = help.substr(0, help.find('\n'));
  std::string out = name + ":";
  for (const char letter : first) {
    if (letter == ':' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

// zsh shows beside each word what it is.
void write_helps(std::ostream& out, const CommandText& program) {
  out << "# The options of a command, or with \" commands\" behind it the commands below it.\n"
         "_mrc_helps() {\n"
         "  case $1 in\n";
  for_each_command(program, [&](const CommandText& command) {
    out << "    " << quoted(joined(command.path)) << ") helps=(\n";
    for (const OptionText& option : all_options(command))
      for (const std::string& name : option.names)
        out << "      " << quoted(with_help(name, option.help)) << '\n';
    out << "    ) ;;\n";
    if (command.commands.empty()) return;
    out << "    " << quoted(joined(command.path) + " commands") << ") helps=(\n";
    for (const CommandText& below : command.commands)
      out << "      " << quoted(with_help(below.path.back(), below.summary)) << '\n';
    out << "    ) ;;\n";
  });
  out << "  esac\n}\n\n";
}

constexpr const char* kMadeBy = "# Made by `mrc manual`; changes belong into its sources.\n";

}  // namespace

std::string bash_completion(const CommandText& program) {
  std::ostringstream out;
  out << "# bash completion for mrc\n" << kMadeBy << '\n';
  write_tables(out, program);
  out << kWalk << kBash;
  return out.str();
}

std::string zsh_completion(const CommandText& program) {
  std::ostringstream out;
  out << "#compdef mrc\n" << kMadeBy << '\n';
  write_tables(out, program);
  write_helps(out, program);
  out << kWalk << kZsh;
  return out.str();
}

}  // namespace mrc::tool::manual
