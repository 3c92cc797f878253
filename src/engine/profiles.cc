#include "engine/profiles.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"

namespace octet::engine {
namespace {

std::vector<std::vector<int64_t>> input_shapes(const Plan& plan) {
  std::vector<std::vector<int64_t>> out;
  for (int id : plan.inputs) out.push_back(plan.buffers[id].shape);
  return out;
}

std::string shapes_text(const Plan& plan) {
  std::string out;
  for (const auto& shape : input_shapes(plan)) {
    if (!out.empty()) out += " + ";
    for (size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  }
  return out;
}

std::vector<std::string> names(const Plan& plan, const std::vector<int>& ids) {
  std::vector<std::string> out;
  for (int id : ids) out.push_back(plan.buffers[id].name);
  return out;
}

// A blob that grows by what it does not hold yet.
class SharedConstants {
 public:
  ConstantRef add(std::span<const std::byte> bytes) {
    for (const ConstantRef& known : by_hash_[hash64(bytes)])
      if (known.bytes == static_cast<int64_t>(bytes.size()) &&
          std::memcmp(blob_.data() + known.offset, bytes.data(), bytes.size()) == 0)
        return known;
    const ConstantRef made{static_cast<int64_t>(blob_.size()), static_cast<int64_t>(bytes.size())};
    blob_.insert(blob_.end(), bytes.begin(), bytes.end());
    blob_.resize((blob_.size() + 63) / 64 * 64);
    by_hash_[hash64(bytes)].push_back(made);
    return made;
  }
  std::span<const std::byte> bytes() const { return blob_; }

 private:
  std::vector<std::byte> blob_;
  std::unordered_map<uint64_t, std::vector<ConstantRef>> by_hash_;
};

}  // namespace

Plan merge_profiles(std::vector<Plan> plans) {
  require(!plans.empty() && plans.size() <= kMaxProfiles, plans.size(), " profiles; an engine file holds 1 to ",
          kMaxProfiles);
  for (size_t i = 0; i < plans.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      require(input_shapes(plans[i]) != input_shapes(plans[j]), "the profile ", shapes_text(plans[i]),
              " is there twice");
  if (plans.size() == 1) return std::move(plans[0]);
  SharedConstants shared;
  for (Plan& plan : plans) {
    for (Step& step : plan.steps)
      for (auto& [key, ref] : step.constants) ref = shared.add(plan.constant_bytes(ref, 1));
    if (plan.program) plan.program_bytes = shared.add(plan.constant_bytes(plan.program_bytes, 1));
  }
  const auto blob = make_constant_blob(shared.bytes());
  for (Plan& plan : plans) plan.constants = blob;
  Plan first = std::move(plans[0]);
  for (size_t i = 1; i < plans.size(); ++i) plans[i].metadata.clear();  // the first one's are those of all
  first.profiles.assign(std::make_move_iterator(plans.begin() + 1), std::make_move_iterator(plans.end()));
  validate(first);
  validate_profiles(first);
  return first;
}

void validate_profiles(const Plan& plan, const PlanLimits& limits) {
  require(plan.profiles.size() < kMaxProfiles, "the plan has ", plan.profiles.size() + 1, " profiles, at most ",
          kMaxProfiles, " are possible");
  for (const Plan& profile : plan.profiles) {
    require(profile.profiles.empty(), "a profile has profiles of its own");
    validate(profile, limits);
    require(names(profile, profile.inputs) == names(plan, plan.inputs) &&
                names(profile, profile.outputs) == names(plan, plan.outputs),
            "the profile ", shapes_text(profile), " has other inputs or outputs than the first");
  }
}

std::shared_ptr<const Plan> profile_of(const std::shared_ptr<const Plan>& plan, int index) {
  const auto count = static_cast<int>(plan->profiles.size()) + 1;
  require(index >= 0 && index < count, "there is no profile ", index, "; the engine has ", count, ": ",
          profile_list(*plan));
  return index == 0 ? plan : std::shared_ptr<const Plan>(plan, &plan->profiles[static_cast<size_t>(index) - 1]);
}

std::string profile_list(const Plan& plan) {
  std::string out = shapes_text(plan);
  for (const Plan& profile : plan.profiles) out += ", " + shapes_text(profile);
  return out;
}

}  // namespace octet::engine
