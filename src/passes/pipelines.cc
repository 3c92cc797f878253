#include "passes/pipelines.h"

#include "base/log.h"
#include "passes/equalize_channels.h"
#include "passes/place_fake_quant.h"
#include "passes/remove_identity.h"
#include "passes/set_scales.h"

namespace octet::passes {
namespace {

// A pass of the table with options.
Pass with(const std::string& name, std::function<int(ir::Graph&)> run) {
  Pass pass = find_pass(name);
  pass.run = std::move(run);
  return pass;
}

}  // namespace

std::vector<Pass> preparation_passes(bool keep_dropout) {
  // Layout first, so that the others see convolutions next to what they are fused with; constants before and after
  // batch norms, because importers write normalization as arithmetic too.
  return {with("remove_identity", [=](ir::Graph& g) { return remove_identity(g, {.keep_dropout = keep_dropout}); }),
          find_pass("fold_constants"),
          find_pass("cancel_transposes"),
          find_pass("sink_squeezes"),
          find_pass("fuse_pad"),
          find_pass("canonicalize_activations"),
          find_pass("silence_constant_channels"),
          find_pass("fold_batch_norm"),
          find_pass("fold_constants")};
}

std::vector<Pass> placement_passes(const quant::QuantOptions& options, const std::map<std::string, float>& peaks,
                                   PlacementRecord* record) {
  // Dropout stays: stage qat goes on from here.
  std::vector<Pass> passes = preparation_passes(/*keep_dropout=*/true);
  if (options.qat_mode == quant::QatMode::kWithBn)
    std::erase_if(passes, [](const Pass& pass) {
      return pass.name == "fold_batch_norm" || pass.name == "silence_constant_channels";
    });
  if (options.equalize != quant::Equalization::kNo) {
    const EqualizeOptions equalize{.relax_clips = options.equalize == quant::Equalization::kRelaxed, .peaks = peaks};
    passes.push_back(with("equalize_channels", [equalize, record](ir::Graph& g) {
      Equalized equalized = equalize_channels(g, equalize);
      log_info(equalized.text());
      if (record) record->divided = std::move(equalized.divided);
      return equalized.pairs;
    }));
  }
  passes.push_back(with("place_fake_quant", [placement = options.placement, record](ir::Graph& g) {
    const std::vector<quant::PlacedQuantizer> plan = quant::plan_placement(g, placement);
    if (record) record->layers = quant::layer_calibration(g, placement, plan);
    return place_fake_quant(g, placement, plan);
  }));
  return passes;
}

std::vector<Pass> scale_passes(const std::map<std::string, quant::Range>& ranges,
                               const quant::WeightCalibrationOptions& weights) {
  return {{"set_scales", "give quantizers the scales of observed ranges and of their weights",
           [ranges, weights](ir::Graph& g) { return set_scales(g, ranges, weights); }},
          find_pass("snap_biases")};
}

std::vector<Pass> training_passes() {
  return {find_pass("cancel_transposes"), find_pass("sink_squeezes"), find_pass("mark_trainable")};
}

std::vector<Pass> deployment_passes() {
  return {find_pass("silence_constant_channels"), find_pass("fold_batch_norm"), find_pass("snap_biases")};
}

std::vector<Pass> checkpoint_passes() {
  // As octet compile does it: what is compared is in the same order.
  return {find_pass("cancel_transposes"), find_pass("sink_squeezes"), find_pass("fold_batch_norm"),
          find_pass("snap_biases")};
}

std::vector<Pass> export_passes() {
  return {find_pass("fold_batch_norm")};
}

std::vector<Stage> stages() {
  std::vector<Pass> calibration = placement_passes({});
  for (Pass& pass : scale_passes({}, {})) calibration.push_back(std::move(pass));
  return {{"train", "a network that comes from elsewhere, before its training", training_passes()},
          {"calibrate, quantize", "before and behind the images", calibration},
          {"train, stage qat", "at the end", deployment_passes()},
          {"verify", "a checkpoint", checkpoint_passes()},
          {"export", "for every target", export_passes()}};
}

}  // namespace octet::passes
