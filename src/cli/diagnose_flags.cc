#include "cli/diagnose_flags.h"

#include <CLI/App.hpp>
#include <memory>
#include <utility>

namespace octet::cli {

Command diagnose_command_with(std::function<ExitCode(const DiagnoseOptions&)> run) {
  return {
      .name = "diagnose",
      .summary = "Rank the quantizers of a model by what each costs, and say what may help",
      .details =
          "Runs images through the float network, through the quantized one, and through the float one with a single "
          "quantizer at a time. For each quantized tensor: the ratio of signal to noise that is left of the outputs "
          "where it alone is quantized (the table is in this order), of the tensor and its codes, and of the tensor "
          "with all quantizers before it; 6 dB are one bit. \"By Fisher\" is the first as squared gradients foretell "
          "it. The model is one with quantizers, of octet calibrate or "
          "octet train --stage qat; the images are the experiment's calibration images, or those of --images.",
      .examples = {"octet diagnose -e SPEC.yaml -m results/calibrated.onnx --json results/diagnosis.json",
                   "octet diagnose -m model.qdq.onnx --images photos/ --count 32"},
      .define = [run = std::move(run)](CLI::App& app) -> Run {
        auto options = std::make_shared<DiagnoseOptions>();
        add_input_shape_flag(app, options->spec);
        add_model_flag(app, options->model, "ONNX model with quantizers");
        app.add_option("-e,--experiment_spec", options->spec.path, "Experiment file");
        app.add_option("--set", options->spec.overrides, "Change a key of the experiment (repeatable)")
            ->allow_extra_args(false)
            ->type_name("KEY=VALUE");
        app.add_option("--images", options->images, "Image files or folders, instead of the experiment's");
        add_number_flag(app, "--count", options->count, 1, 1'000'000, "Images at most");
        add_batch_size_flag(app, options->batch_size)->description("Images at a time, whose activations are kept");
        add_number_flag(app, "--rows", options->rows, 1, 1'000'000, "Quantizers in the table");
        app.add_flag("--quick", options->quick,
                     "Rank by the Fisher information alone, without a pass for each quantizer by itself");
        add_json_flag(app, options->json);
        return [options, run] { return run(*options); };
      }};
}

}  // namespace octet::cli
