#include "app/training/preview_text.h"

#include "base/error.h"
#include "report/format.h"
#include "report/text_table.h"

namespace octet::app {

using report::human_count;
using report::significant;

namespace {

std::string world_text(const World& world, const train::TrainOptions& options) {
  const int64_t images = world.size * options.accumulate * options.batch_size_per_gpu;
  std::string out = world.size == 1
                        ? "world: one process"
                        : str("world: ", world.size, " processes, started by ", world.started_by, ", ",
                              world.local_size, " on this machine, rank 0 at ", world.master, ":", world.port);
  out += str("; batches of ", options.batch_size_per_gpu,
             options.accumulate > 1 ? str(", ", options.accumulate, " a step and process") : "", ": ", images,
             " images a step\n");
  if (world.size > 1)
    out +=
        str("batch norm: ", options.sync_batch_norm ? "over the images of all processes" : "of each process's images",
            "; gradients: in buckets of ", significant(options.reduction.bucket_mb, 3), " MiB, compression ",
            schema::enum_name(options.reduction.compression), "\n");
  return out;
}

}  // namespace

std::string preview_text(const train::Preview& preview, const train::TrainOptions& options, const World& world) {
  report::TextTable nodes({"node", "operator", "output", "parameters"});
  for (const train::Executor::NodeTypes& types : preview.nodes)
    nodes.add_row({types.name, types.op, types.output, types.parameters});
  report::TextTable groups({"learning rate", "weight decay", "tensors", "elements", "as"});
  for (const train::Preview::Group& group : preview.groups)
    groups.add_row({significant(group.lr, 3), significant(group.weight_decay, 3), str(group.tensors),
                    human_count(static_cast<double>(group.elements)), group.first});
  report::TextTable rates({"step", "learning rate"});
  for (const auto& [step, rate] : preview.rates) rates.add_row({str(step), significant(rate, 3)});
  return str(world_text(world, options), "precision: ", preview.precision, "\n\n", nodes.text(),
             "\noptimizer: ", schema::enum_name(options.optimizer.type),
             preview.masters ? ", over float32 masters" : "", "\n\n", groups.text(),
             "\nschedule: ", schema::enum_name(options.schedule.type), ", ", preview.steps, " steps in ",
             options.epochs, " epochs\n\n", rates.text(), "\n");
}

}  // namespace octet::app
