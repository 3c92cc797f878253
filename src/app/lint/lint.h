// What each runtime makes of a quantized network: whether it takes the file, which layers it computes in INT8 and why
// not the others, and where it has to rescale codes or turn them into floats and back.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::app {

enum class LintKind {
  kRefused,   // the runtime does not take the file, or computes something else than it says
  kFloat,     // a layer that it computes in floating point
  kRescale,   // codes are computed anew for another scale, or a kernel is split in two
  kReformat,  // between codes and floats
  kNote,      // works, and could be better
};
const char* lint_kind_name(LintKind kind);  // "refused", "float", "rescale", "reformat", "note"

struct LintFinding {
  LintKind kind;
  std::string node;     // that it is about; may be empty
  std::string message;  // one sentence
};

struct LintVerdict {
  std::string target, title;  // "tensorrt:10.3", "TensorRT 10.3"
  int integer = 0, all = 0;   // convolutions and products in INT8, and all
  std::vector<LintFinding> findings;

  int count(LintKind kind) const;
  bool is_taken() const { return count(LintKind::kRefused) == 0; }
};

// What --target takes, in the order of the table: engine, tensorrt:8.6 ... A version of TensorRT other than these is
// fine, too, and `tensorrt` alone is the latest.
const std::vector<std::string>& lint_targets();

// `graph`: as the file has it, types inferred, float or quantized. UserError (exit 2) for a target that is none.
LintVerdict lint(const ir::Graph& graph, const std::string& target);

// One row a target.
std::string lint_table(const std::vector<LintVerdict>& verdicts);
// Everything about one.
std::string lint_text(const LintVerdict& verdict);
nlohmann::ordered_json lint_json(const std::vector<LintVerdict>& verdicts);

}  // namespace octet::app
