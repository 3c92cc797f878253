#include "cli/train_flags.h"

#include <CLI/App.hpp>
#include <memory>
#include <utility>

#include "base/error.h"

namespace octet::cli {
namespace {

void add_worker_flags(CLI::App& app, WorkerFlags& flags) {
  add_number_flag(app, "--workers,--num_processes", flags.workers, 1, 1024,
                  "Train with this many processes on CPUs; each has a batch of its own (docs/distributed.md)");
  add_number_flag(app, "--nnodes", flags.nodes, 1, 1 << 20,
                  "Machines on which this command is started, each with --node_rank");
  add_number_flag(app, "--node_rank", flags.node, 0, 1 << 20, "Which of them this one is");
  app.add_option("--master_addr", flags.master, "Machine of node 0")->type_name("HOST");
  add_number_flag(app, "--master_port", flags.port, 1, 65535, "A free port there");
  add_number_flag(app, "--max-restarts,--max_restarts", flags.max_restarts, 0, 1'000'000,
                  "Start the workers again from the last checkpoint, so many times, when one was lost");
  add_number_flag(app, "--timeout", flags.timeout, 1, 1'000'000,
                  "Seconds that a worker waits for another before it takes it for lost");
}

}  // namespace

void require_something_to_train(const TrainOptions& options) {
  if (options.spec.path.empty() && options.spec.folder.empty())
    fail_usage("train: give an experiment (-e SPEC), or a folder of images to train with (--data FOLDER)");
}

Command train_command_with(std::function<ExitCode(TrainOptions&)> run) {
  return {
      .name = "train",
      .summary = "Train a network, or fine-tune it quantization-aware",
      .details =
          "Stage float trains the spec's network with `train`; stage qat fine-tunes a calibrated model with "
          "`finetune`, fake quantization in, and calibrates a float model first; stage control is the same "
          "fine-tune without quantization. Two stages train nothing: calibration does what octet calibrate does, "
          "int_infer makes the INT8 engine and measures it. A training writes "
          "NAME.onnx, checkpoints, history.json, status.jsonl and TensorBoard events to the results folder, and the "
          "experiment with every key resolved as spec.yaml, which -e takes again. With --data it looks at a folder "
          "of images and finds an experiment for it (octet spec --data prints it, to be changed). "
          "A run that was interrupted goes on when the same command is given again, one that is finished goes on "
          "to more epochs. With --gpus or --workers several processes train together. Another spec, stage, model "
          "or data set in the same folder is refused.",
      .examples = {"octet train --data photos/ --arch resnet18 -r results/photos",
                   "octet train --data photos/ -m mine.onnx --stage qat -r results/mine",
                   "octet train classification -e examples/fashion_mnist_resnet20.yaml -r results/float",
                   "octet train -e SPEC.yaml -r results/qat --stage qat -m results/calibrated.onnx",
                   "octet train -e SPEC.yaml -r results/float --workers 2 --max-restarts 3"},
      .define = [run = std::move(run)](CLI::App& app) -> Run {
        auto options = std::make_shared<TrainOptions>();
        add_spec_flags(app, options->spec, Need::kOptional, /*training=*/true);
        add_input_shape_flag(app, options->spec);
        add_folder_flags(app, options->spec);
        add_number_flag(app, "--epochs", options->epochs, 1, 1'000'000, "Of stage float (train.epochs)");
        add_worker_flags(app, options->workers);
        add_results_flag(app, options->results);
        add_model_flag(app, options->model, "ONNX file to start from, of any network, also a pruned one",
                       Need::kOptional);
        add_name_flag(app, options->name);
        add_key_flag(app);
        limit_to(
            app.add_option("--stage", options->stage, "What is done (default: float; qat with quant.enable_qat: true)"),
            "float|calibration|qat|int_infer|control");
        app.add_flag("--explain", options->explain,
                     "Print processes, types of all nodes, groups of parameters and schedule before it starts");
        app.add_flag("--force", options->force, "Start anew where results are there already");
        return [options, run] { return run(*options); };
      },
      .single_dash = {{"-np", "--num_processes"}}};
}

}  // namespace octet::cli
