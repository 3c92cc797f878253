#include "app/training/preview_text.h"

#include "base/error.h"
#include "report/format.h"
#include "report/text_table.h"

namespace octet::app {

using report::human_count;
using report::significant;

std::string preview_text(const train::Preview& preview, const train::TrainOptions& options) {
  report::TextTable nodes({"node", "operator", "output", "parameters"});
  for (const train::Executor::NodeTypes& types : preview.nodes)
    nodes.add_row({types.name, types.op, types.output, types.parameters});
  report::TextTable groups({"learning rate", "weight decay", "tensors", "elements", "as"});
  for (const train::Preview::Group& group : preview.groups)
    groups.add_row({significant(group.lr, 3), significant(group.weight_decay, 3), str(group.tensors),
                    human_count(static_cast<double>(group.elements)), group.first});
  report::TextTable rates({"step", "learning rate"});
  for (const auto& [step, rate] : preview.rates) rates.add_row({str(step), significant(rate, 3)});
  return str("precision: ", preview.precision, "\n\n", nodes.text(),
             "\noptimizer: ", schema::enum_name(options.optimizer.type),
             preview.masters ? ", over float32 masters" : "", "\n\n", groups.text(),
             "\nschedule: ", schema::enum_name(options.schedule.type), ", ", preview.steps, " steps in ",
             options.epochs, " epochs\n\n", rates.text(), "\n");
}

}  // namespace octet::app
