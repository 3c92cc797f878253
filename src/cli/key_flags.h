// Commands whose options are the keys of a small specification: a YAML file, flags for the keys that are given most
// often, and --set for all of them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schema/schema.h"

namespace CLI {
class App;
}

namespace octet::cli {

// A flag that is a key. `type` lists the words with | between them where only some are taken.
struct KeyFlag {
  const char *flag, *key, *type, *help;
};

struct KeyFlags {
  std::string spec;                    // the YAML file; empty: there is none
  std::vector<std::string> overrides;  // of the flags that are keys
  std::vector<std::string> sets;       // of --set, which come last

  // Fills what `section` is bound to. UserError (exit 2).
  void read(const schema::Section& section) const;
  template <typename Options>
  Options load() const {
    Options options;
    schema::Section section;
    describe(section, options);
    read(section);
    return options;
  }
};
// `names`: of the flag that names the YAML file.
void add_key_flags(CLI::App& app, KeyFlags& flags, const std::string& names, std::span<const KeyFlag> keys);

}  // namespace octet::cli
