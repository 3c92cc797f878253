#include "app/training/written_model.h"

#include "base/error.h"
#include "base/log.h"
#include "passes/pipelines.h"
#include "report/format.h"
#include "train/executor.h"

namespace octet::app {

double measure_written(const ir::Graph& trained, const tasks::Task& task, const train::Validation& validation,
                       const std::string& device) {
  ir::Graph deployed = trained.clone();
  passes::run_pipeline(deployed, passes::deployment_passes());
  train::Executor executor(task.executed_graph(deployed), {.device = device, .integer_sums = device == "cpu"});
  return validation.evaluate(executor).at(validation.metric);
}

void tell_of_written(const train::Validation& validation, double trained, double written) {
  constexpr double kPoint = 1;
  const std::string both = str("the written model has ", validation.metric, " ", report::fixed(written, 2),
                               ", the network had ", report::fixed(trained, 2), " while it trained");
  if ((validation.larger_is_better ? trained - written : written - trained) > kPoint) {
    log_warning(both, "; octet verify, and octet diagnose without --quick, show where they part");
  } else {
    log_info(both);
  }
}

}  // namespace octet::app
