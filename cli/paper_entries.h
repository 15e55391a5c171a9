// Every table and figure of the paper, and the commands that compute ours.
//
//   Entry    one table or figure: a section of the report, a folder of results
//   Command  the arguments of `aimle` for it, in the full and in the quick form
//
// The paper's numbers, which the report shows next to ours, are in
// python/aimle/program/report/published.json.
#pragma once

#include <string>
#include <vector>

namespace aimle::cli {

struct Command {
  std::string name;   // its folder within the folder of the entry
  std::string full;   // arguments of `aimle`, separated by spaces
  std::string quick;  // empty: left out of the quick form
};

struct Entry {
  std::string name;
  std::string title;
  std::string paper;       // what the paper shows and claims
  std::string substitute;  // what differs from the paper in both forms
  std::string full;        // what else differs in the full form
  std::string quick;       // and what is reduced in the quick form
  std::vector<Command> commands;

  /// The experiment it belongs to: "synth", "dvae", ...
  std::string experiment() const;
};

const std::vector<Entry>& paper_entries();

}  // namespace aimle::cli
