// Experiments in the words of NVIDIA TAO's specifications (tao/message.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "schema/tree.h"
#include "spec/experiment.h"
#include "tao/read.h"

namespace octet::spec {

// An experiment file as a tree of Octet's keys, which have the lines and columns of that file.
struct SourceTree {
  schema::Node tree;
  bool is_tao = false;                   // protobuf text; else YAML
  std::vector<tao::UnusedField> unused;  // TAO's fields that Octet has no use for
};
// `task`: of the command line, or empty. UserError (exit 2) for syntax, and in protobuf text for all that
// tao::read_specification() refuses.
SourceTree read_source(std::string_view text, const std::string& name, const std::string& task);

// The experiment as TAO's specification of its task. A specification is of one training: kFloat is that of section
// `train`, kQat that of `finetune`, with enable_qat. UserError (exit 2) for a task of which TAO has none, and for an
// experiment that does not name its classes.
std::string to_tao(const ExperimentSpec& spec, Stage stage);

// The keys that `specification`, the to_tao() of this, gives another value when it is read again.
std::vector<KeyDifference> lost_in_tao(const ExperimentSpec& spec, Stage stage, const std::string& specification);

// docs/tao.md.
std::string tao_reference_markdown();

}  // namespace octet::spec
