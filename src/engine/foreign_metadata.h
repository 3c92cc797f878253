// What other programs write into the metadata of ONNX files, in the terms of Octet's keys (model_info.h):
//   Ultralytics   names, task, imgsz, stride: classes; of classifiers the input, of detectors the input but for the way
//                 of resizing, which Octet does not have (the image is padded), and the form of the output
//   ONNX          Image.BitmapPixelFormat and Image.NominalPixelRange (docs/MetadataProps.md of ONNX): order of the
//                 channels and range of their values
// Entries of another form are passed over: they may be any program's.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::engine {

// What `metadata` says under foreign keys.
std::map<std::string, std::string> translated_metadata(const std::map<std::string, std::string>& metadata);

// A list of texts, or a map from 0, 1, ... to texts, each key once, as Python's repr() and as JSON write it:
// ['cat', "dog's"], {0: 'cat', 1: 'dog'}, {"1": "dog", "0": "cat"}. nullopt: it is something else.
std::optional<std::vector<std::string>> parse_name_list(std::string_view text);

}  // namespace octet::engine
