// What a model file says of its images and classes: entries of the metadata that ONNX files and engine files have
// alike. docs/metadata.md describes each for readers outside of Octet. Whatever a file says is checked here, where it
// is read.
#pragma once
#include <octet/engine.h>

#include <map>
#include <string>
#include <string_view>

namespace octet::engine {

using Metadata = std::map<std::string, std::string>;

// The keys. The value of kTask, kColorOrder and kLayout is plain text, that of the others JSON.
namespace key {
inline constexpr const char* kTask = "octet.task";                               // of tasks.def
inline constexpr const char* kClasses = "octet.classes";                         // ["cat", "dog"]
inline constexpr const char* kMean = "octet.input.mean";                         // [0.485, 0.456, 0.406]
inline constexpr const char* kStd = "octet.input.std";                           // [0.229, 0.224, 0.225]
inline constexpr const char* kColorOrder = "octet.input.color_order";            // rgb, bgr, gray
inline constexpr const char* kLayout = "octet.input.layout";                     // NCHW, NHWC
inline constexpr const char* kResize = "octet.input.resize";                     // {"mode": "stretch", ...}
inline constexpr const char* kExifOrientation = "octet.input.exif_orientation";  // true, false
inline constexpr const char* kDecoder = "octet.decoder";         // {...}: the task's options of decoding
inline constexpr const char* kOldClasses = "octet.class_names";  // one a line; read, no longer written
}  // namespace key

// Those of `metadata` that have these keys, and, where one is missing, what it would be by an entry of another program
// (foreign_metadata.h). Nothing is checked.
Metadata standard_metadata(const Metadata& metadata);

// All of them, foreign ones included. UserError naming the entry that is none of its form. A mode of resizing, an
// interpolation, a task and a key of the decoder that this version does not know are handed on.
ModelInfo read_model_info(const Metadata& metadata);

// The names of the classes alone.
std::vector<std::string> read_class_names(const Metadata& metadata);
// As kClasses has them; bytes that are not UTF-8 become U+FFFD.
std::string class_names_text(const std::vector<std::string>& names);

// The input of `channels` channels from pixels in the order of red, green and blue. UserError where `info` has no mean
// and deviation, or those of another number of channels.
octet::ImageFormat image_format(const ModelInfo& info, int64_t channels);

}  // namespace octet::engine
