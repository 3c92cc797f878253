// Any bytes as an experiment file: refused with a UserError, or read into options that survive a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "spec/experiment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  spec::ExperimentSpec experiment;
  try {
    experiment = spec::parse_experiment(text, "fuzz.yaml", {.check_files = false});
  } catch (const UserError&) {
    return 0;
  }
  // What was accepted is valid as written out, too; an exception here is a finding.
  const std::string yaml = spec::to_yaml(experiment);
  if (spec::to_yaml(spec::parse_experiment(yaml, "written.yaml", {.check_files = false})) != yaml) std::abort();
  return 0;
}
