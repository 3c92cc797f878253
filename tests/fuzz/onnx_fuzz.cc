// Any bytes are safe to import: they give a graph or a UserError, nothing else. A graph can be exported and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "engine/model_info.h"
#include "onnx/export.h"
#include "onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  octet::set_log_level(octet::LogLevel::kSilent);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string written;
  try {
    const octet::ir::Graph graph = octet::onnx::import_bytes(bytes, {});
    try {
      octet::engine::read_model_info(graph.metadata);
    } catch (const octet::UserError&) {
    }
    written = octet::onnx::export_bytes(graph, {.opset = 19});
  } catch (const octet::UserError&) {
    return 0;
  }
  octet::onnx::import_bytes(written, {});  // what Octet wrote it must be able to read
  return 0;
}
