// The results folder of `octet train`: what a command may go on from, and what --force removes. Files, no LibTorch.
#pragma once
#include <filesystem>
#include <string>

#include "app/training_record.h"

namespace octet::app {

// In it, the start of a quantization-aware training of a float model.
inline constexpr const char* kCalibrated = "calibrated.onnx";

bool holds_checkpoints(const std::filesystem::path& results);

// Everything that a training left there, with the models "NAME.onnx" and "NAME.best.onnx".
void remove_training(const std::filesystem::path& results, const std::string& name);
// UserError (exit 2) where remove_training would remove the file; an empty name is none.
void require_outside_training(const std::filesystem::path& results, const std::string& model);

// Whether the folder's training can go on as `wanted`: UserError (exit 2) that names what differs where it cannot. Then
// `wanted` has the outputs of it, and a thread count that nobody chose is what it was: the bytes depend on it.
void take_up_training(TrainingRecord& wanted, const std::filesystem::path& results);

}  // namespace octet::app
