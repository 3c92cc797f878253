// Calibration in the program with LibTorch: on several ranks, for networks that the engine lacks something for, and
// with what comes behind the ranges, bias correction and adaptive rounding.
#pragma once
#include <filesystem>

#include "app/calibration.h"
#include "train/communicator.h"

namespace octet::app {

// The engine's observations, so that every program gives the same scales; those of LibTorch where the engine cannot run
// the network, or where they are asked for. Several ranks, whose loaders share the images, all get what one would.
Observe observe_on(train::Communicator& communicator = train::single_process(), bool by_libtorch = false);

// calibrate() with observe_on(...), then quant.adaround or quant.gptq and quant.bias_correction where `options` ask for
// them.
quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes,
                                train::Communicator& communicator = train::single_process(), bool by_libtorch = false);

// The same in one process, without adaptive rounding: weights that `rounded`, another quantized form of the same
// network, has on the same scales are taken from there, and only those of other layers go to the nearest code.
void calibrate_as(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options, const ir::Graph& rounded);

}  // namespace octet::app
