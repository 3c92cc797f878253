// Any bytes as a specification of NVIDIA TAO: refused with a UserError, or read; what was read, written as a
// specification again, says the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "spec/tao.h"
#include "tao/text_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const spec::LoadOptions options{.check_files = false, .quiet = true};
  spec::ExperimentSpec experiment;
  try {
    tao::parse_text_format(text, "fuzz.txt");
    if (!spec::read_source(text, "fuzz.txt", "").is_tao) return 0;
    experiment = spec::parse_experiment(text, "fuzz.txt", options);
  } catch (const UserError&) {
    return 0;
  }
  // An exception from here on is a finding.
  const spec::Stage stage = experiment.quant.enable_qat == true ? spec::Stage::kQat : spec::Stage::kFloat;
  const std::string written = spec::to_tao(experiment, stage);
  if (written.empty()) return 0;
  const spec::ExperimentSpec again = spec::parse_experiment(written, "written.txt", options);
  if (spec::to_tao(again, stage) != written) std::abort();
  return 0;
}
