#include "train/ops_common.h"

#include "train/ops_fused.h"
#include "train/precision.h"

namespace octet::train {

at::Tensor along_axis(const at::Tensor& vector, int64_t axis, int64_t rank) {
  if (vector.numel() == 1) return vector.reshape({});
  std::vector<int64_t> shape(rank, 1);
  shape.at(axis) = vector.numel();
  return vector.reshape(shape);
}

bool keeps_statistics(const ir::Node& node) {
  const auto fixed = [&](size_t i) { return node.input(i)->is_constant() && !node.input(i)->trainable; };
  return fixed(1) && fixed(2);
}

at::Tensor Run::plain(int slot) {
  if (slot < 0) return {};
  Slot& s = slots[slot];
  OCTET_CHECK(s.value.defined(), "slot ", slot, " is read before it is written");
  if (s.form == Slot::Form::kCodes)
    return (s.value.to(master) * along_axis(s.scale, s.axis, s.value.dim())).to(compute);
  if (s.form == Slot::Form::kPending) s = Slot{.value = finish_pending(*this, s)};
  return s.value;
}

at::Tensor Run::precise(int slot) {
  if (slot < 0) return {};
  const Slot& s = slots[slot];
  if (s.is_codes()) return s.value.to(master) * along_axis(s.scale, s.axis, s.value.dim());
  const at::Tensor t = plain(slot);
  return at::isFloatingType(t.scalar_type()) && t.scalar_type() != at::kDouble ? t.to(master) : t;
}

at::Tensor Run::low(int slot) {
  if (slot < 0) return {};
  Slot& s = slots[slot];
  if (s.form == Slot::Form::kNumber && s.value.scalar_type() != compute) s.value = s.value.to(compute);
  return plain(slot);
}

at::Tensor Run::step_scale(int slot) {
  const at::Tensor scale = plain(slot);
  return scale.requires_grad() ? scale : scale.clone();
}

at::Tensor Run::flow(const at::Tensor& t) const {
  return t.scalar_type() == at::kFloat && is_low(compute) ? t.to(compute) : t;
}

std::string node_text(const ir::Node& node) {
  return str("node '", node.name, "' (", node.info().name, ")");
}

std::vector<int64_t> constant_ints(const ir::Node& node, size_t i, const std::string& name) {
  if (!name.empty() && node.has(name)) return node.get_ints(name);
  if (!node.has_input(i)) return {};
  require(node.input(i)->is_constant(), node_text(node), ": input ", i, " ('", node.input(i)->name,
          "') must be a constant to be executed here; fold the graph's constants first");
  return node.input(i)->constant->to_ints();
}

std::vector<float> constant_floats(const ir::Node& node, size_t i) {
  if (!node.has_input(i)) return {};
  require(node.input(i)->is_constant(), node_text(node), ": input ", i, " ('", node.input(i)->name,
          "') must be a constant to be executed here; fold the graph's constants first");
  return node.input(i)->constant->to_floats();
}

}  // namespace octet::train
