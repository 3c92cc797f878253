#include "train/forward_hooks.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace octet::train {

int ForwardHooks::slot_of(const std::string& name) const {
  const ir::Value* value = graph_.find_value(name);
  require(value && !value->is_constant(), "graph '", graph_.name, "' has no value '", name, "' that is computed");
  return slots_.of(value);
}

void ForwardHooks::set_tap(Executor::Tap tap, const std::vector<std::string>& names) {
  std::set<int> tapped;
  for (const std::string& name : names) tapped.insert(slot_of(name));
  if (names.empty())
    for (const ir::Value* value : slots_.values())
      if (!value->is_constant()) tapped.insert(slots_.of(value));
  tap_ = std::move(tap);
  tapped_ = std::move(tapped);
}

void ForwardHooks::set_override(const std::string& name, Executor::Override replace) {
  const int slot = slot_of(name);
  if (replace)
    overrides_[slot] = std::move(replace);
  else
    overrides_.erase(slot);
}

std::set<const ir::Value*> ForwardHooks::values() const {
  std::set<const ir::Value*> out;
  for (const auto& [slot, replace] : overrides_) out.insert(slots_.values()[slot]);
  if (tap_)
    for (const int slot : tapped_) out.insert(slots_.values()[slot]);
  return out;
}

void ForwardHooks::visit(Run& run, int slot) const {
  if (const auto found = overrides_.find(slot); found != overrides_.end()) {
    const at::ScalarType flowing = run.plain(slot).scalar_type();
    const at::Tensor replacement = found->second(run.precise(slot));
    OCTET_CHECK(replacement.defined(), "override of '", slots_.values()[slot]->name, "' gives no tensor");
    run.set(slot, replacement.to(run.device, flowing));
  }
  if (!tap_ || !tapped_.contains(slot)) return;
  const at::Tensor t = run.precise(slot);
  if (at::isFloatingType(t.scalar_type())) tap_(*slots_.values()[slot], t.to(at::kFloat));
}

}  // namespace octet::train
