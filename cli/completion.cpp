#include <cstdio>

#include "cli/app.h"
#include "cli/commands.h"

namespace aimle::cli {
namespace {

/// `_aimle_words[aimle synth]="samples lambda ... --help"`, for a command and all below it.
std::string words_of(const CLI::App& app, const std::string& path) {
  std::string words, below;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words += command->get_name() + " ";
    below += words_of(*command, path + " " + command->get_name());
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  return "_aimle_words['" + path + "']='" + words + "'\n" + below;
}

constexpr const char* kBefore =
    R"(# source <(aimle completion)
declare -A _aimle_words
)";

// The longest path of commands so far says what may follow; file names where nothing fits.
constexpr const char* kAfter = R"(_aimle() {
  local path=aimle i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [ -n "${_aimle_words["$path ${COMP_WORDS[i]}"]}" ] && path="$path ${COMP_WORDS[i]}"
  done
  COMPREPLY=($(compgen -W "${_aimle_words["$path"]}" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _aimle aimle
)";

}  // namespace

void add_completion(CLI::App& app) {
  app.add_subcommand("completion", "Prints what bash needs to complete commands and options")
      ->callback(
          [&app] { std::printf("%s%s%s", kBefore, words_of(app, "aimle").c_str(), kAfter); });
}

}  // namespace aimle::cli
