// What an experiment says of distillation: a network that is trained also learns from another one, its teacher.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schema/enum_names.h"

namespace octet::train {

// How far the student's tensor s is from the teacher's t: the mean of |s - t| or of (s - t)^2 over all elements; or
// temperature^2 KL(softmax(t / temperature) || softmax(s / temperature)) over axis 1, the classes, the mean over all
// others (Hinton et al. 2015); or, for maps, the same divergence over the places of each channel, the mean over images
// and channels (Shu et al. 2021, arXiv 2011.13256): where a channel looks, whatever it is scaled by. Auto: kl of
// matrices, which are logits of classes, else l2. The squared difference of logits is steep where a softmax over them
// is flat: rates that suit the cross-entropy diverge with it.
enum class DistillCriterion { kAuto, kL1, kL2, kKl, kChannel };
std::span<const schema::EnumName<DistillCriterion>> enum_names(DistillCriterion);

// A tensor of the student and one of the teacher of the same shape.
struct DistillBinding {
  std::string student, teacher;  // names of values in the graphs; an empty teacher: as the student's
  DistillCriterion criterion = DistillCriterion::kL2;
  double weight = 1;
};
void describe(schema::Section& s, DistillBinding& binding);

struct DistillOptions {
  std::string teacher;  // ONNX file; empty: no distillation
  double weight = 1;    // of all bindings together, beside the task's loss
  double temperature = 1;
  std::vector<DistillBinding> bindings;  // empty: every output, by `criterion`
  DistillCriterion criterion = DistillCriterion::kAuto;
};
void describe(schema::Section& s, DistillOptions& distill);

}  // namespace octet::train
