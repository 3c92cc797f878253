#include "train/options/distill_options.h"

#include "schema/schema.h"

namespace octet::train {

OCTET_ENUM_NAMES(DistillCriterion, {DistillCriterion::kAuto, "auto"}, {DistillCriterion::kL1, "l1"},
                 {DistillCriterion::kL2, "l2"}, {DistillCriterion::kKl, "kl"}, {DistillCriterion::kChannel, "channel"})

void describe(schema::Section& s, DistillBinding& binding) {
  s.field("student", binding.student)
      .known_elsewhere_as({"student_module_name"})
      .help("Name of a tensor in the network that is trained.");
  s.field("teacher", binding.teacher)
      .known_elsewhere_as({"teacher_module_name"})
      .help("Name of a tensor of the same shape in the teacher; empty: the same name.");
  s.field("criterion", binding.criterion).help("Of their difference, as for all.");
  s.field("weight", binding.weight).range(0, 1e9).help("Factor, beside that of all.");
}

void describe(schema::Section& s, DistillOptions& distill) {
  s.field("teacher", distill.teacher)
      .input_path()
      .known_elsewhere_as({"pretrained_teacher_model_path"})
      .help("ONNX file of a trained float network of the same task, as the unpruned one; empty: no distillation.");
  s.field("weight", distill.weight)
      .range(0, 1e9)
      .known_elsewhere_as({"distillation_loss_coef"})
      .help("Factor of what the teacher adds to the loss of the task.");
  s.field("criterion", distill.criterion)
      .help(
          "Without bindings, how the outputs are compared. l1, l2: mean absolute or squared difference; kl: divergence "
          "of the softmax over axis 1, for logits; channel: of the softmax over the places of each channel, for maps; "
          "auto: kl of outputs [batch, classes], l2 of others.");
  s.field("temperature", distill.temperature)
      .above(0, 1000)
      .help("kl, channel: what logits are divided by; the loss is multiplied by its square.");
  s.list("bindings", distill.bindings)
      .shorthand("student")
      .length(0, 1000)
      .help(
          "Which tensors learn from which, as in [{student: relu4, teacher: relu4, criterion: l2}]; none: the "
          "outputs.");
  s.rule("bindings", [&distill]() -> std::string {
    for (const DistillBinding& binding : distill.bindings)
      if (binding.student.empty()) return "has an item without a student";
    return "";
  });
}

}  // namespace octet::train
