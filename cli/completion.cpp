#include <cstdio>
#include <memory>

#include "cli/app.h"
#include "cli/commands.h"

namespace aimle::cli {
namespace {

/// How a shell writes the table from a path of commands to the words that may follow.
struct Shell {
  const char* before;
  const char* line_start;
  const char* line_middle;
  const char* after;
};

/// `_aimle_words['aimle synth']='samples lambda ... --help '`, for a command and all subcommands.
std::string words_of(const CLI::App& app, const std::string& path, const Shell& shell) {
  std::string words, below;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words += command->get_name() + " ";
    below += words_of(*command, path + " " + command->get_name(), shell);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  return shell.line_start + path + shell.line_middle + words + "'\n" + below;
}

// Both: the longest path of commands so far determines the completions; otherwise file names.

constexpr Shell kBash = {.before = R"(# source <(aimle completion bash)
declare -A _aimle_words
)",
                         .line_start = "_aimle_words['",
                         .line_middle = "']='",
                         .after = R"(_aimle() {
  local path=aimle i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [ -n "${_aimle_words["$path ${COMP_WORDS[i]}"]}" ] && path="$path ${COMP_WORDS[i]}"
  done
  COMPREPLY=($(compgen -W "${_aimle_words["$path"]}" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _aimle aimle
)"};

constexpr Shell kZsh = {.before = R"(#compdef aimle
# source <(aimle completion zsh), after compinit; or as the file _aimle in a folder of $fpath
typeset -gA _aimle_words
_aimle_words=(
)",
                        .line_start = "  '",
                        .line_middle = "' '",
                        .after = R"()
_aimle() {
  local at=aimle word
  for word in "${(@)words[2,CURRENT-1]}"; do
    (( ${+_aimle_words[$at $word]} )) && at="$at $word"
  done
  compadd -- ${=_aimle_words[$at]} || _files
}
if [[ $funcstack[1] == _aimle ]]; then _aimle; else compdef _aimle aimle; fi
)"};

void print(const CLI::App& app, const Shell& shell) {
  const std::string words = words_of(app, "aimle", shell);
  std::printf("%s%s%s", shell.before, words.c_str(), shell.after);
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "Prints the completion script for bash or zsh");
  const auto shell = std::make_shared<std::string>("bash");
  command->add_option("shell", *shell, "The shell")
      ->check(one_of("shell", {"bash", "zsh"}))
      ->capture_default_str();
  command->callback([&app, shell] { print(app, *shell == "zsh" ? kZsh : kBash); });
}

}  // namespace aimle::cli
