// Every field of TAO's specifications is explained, and what stands for it exists.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/files.h"
#include "spec/experiment_schema.h"
#include "spec/tao.h"
#include "tao/reference.h"
#include "tao/tree.h"

namespace octet::spec {
namespace {

// Section by section, `path` as in a description of TAO's fields.
const schema::Field* find_key(const schema::Section& root, const std::string& path) {
  static std::deque<schema::Section> owned;  // what is returned lies in one of them
  const schema::Section* section = &root;
  const schema::Field* field = nullptr;
  bool named = false;
  for (const std::string& step : tao::parse_path(path)) {
    if (step.front() == '[') continue;
    const bool in_map = field && std::holds_alternative<schema::SectionMapSlot>(field->slot()) && !named;
    const bool of_texts = field && std::holds_alternative<schema::NamedList<std::string>*>(field->slot());
    if (step == "*" && (in_map || of_texts)) {  // the user's name
      named = true;
      continue;
    }
    named = false;
    if (!section) return nullptr;
    // One of several sections that have the same keys.
    const auto inner = [](const schema::Field& f) { return f.is_section(); };
    const auto& fields = section->fields();
    const auto any = std::find_if(fields.begin(), fields.end(), inner);
    field = step != "*" ? section->find(step) : any != fields.end() ? &*any : nullptr;
    if (!field) return nullptr;
    section = nullptr;
    if (const auto* plain = std::get_if<schema::SectionSlot>(&field->slot())) section = plain->section.get();
    const auto keep = [&](schema::Section prototype) { section = &owned.emplace_back(std::move(prototype)); };
    if (const auto* optional = std::get_if<schema::OptionalSectionSlot>(&field->slot())) keep(optional->prototype());
    if (const auto* list = std::get_if<schema::SectionListSlot>(&field->slot())) keep(list->prototype());
    if (const auto* map = std::get_if<schema::SectionMapSlot>(&field->slot())) keep(map->prototype());
  }
  return field;
}

std::vector<std::pair<std::string, const tao::Message*>> specifications() {
  std::vector<std::pair<std::string, const tao::Message*>> out;
  for (const tasks::TaskInfo& info : tasks::all_tasks()) {
    const auto task = info.make();
    for (const tao::Message* message : {task->tao_specification(), task->tao_inference_specification()})
      if (message) out.emplace_back(info.name, message);
  }
  return out;
}

TEST(TaoFields, EveryKeyThatAFieldStandsForIsOneOfTheExperiment) {
  ExperimentSpec spec;
  schema::Section root;
  describe(root, spec);
  int keys = 0;
  for (const auto& [task, message] : specifications())
    for (const std::string& key : tao::keys_of(*message)) {
      // What a field sets ends in the key alone.
      EXPECT_TRUE(find_key(root, key)) << task << ": " << key;
      ++keys;
    }
  EXPECT_GT(keys, 20);
}

// Fields without meaning, and those that have neither a key nor a reason why.
void check_fields(const tao::Message& message, const std::string& path, bool excused) {
  for (const tao::Field& field : message.fields()) {
    const std::string name = path + "." + field.name();
    EXPECT_FALSE(field.meaning().empty()) << name;
    const bool explained = excused || !field.reason().empty();
    if (field.type() == tao::Type::kMessage)
      check_fields(field.inner(), name, explained);
    else
      EXPECT_TRUE(explained || !field.key().empty() || field.is_hooked()) << name << " does nothing";
    EXPECT_TRUE(field.key().empty() || field.reason().empty()) << name << " has a key and a reason for none";
  }
}

TEST(TaoFields, EveryFieldHasAMeaningAndAKeyOrAReason) {
  for (const auto& [task, message] : specifications()) check_fields(*message, task, false);
}

TEST(TaoFields, ReferenceIsUpToDate) {
  EXPECT_EQ(read_file(OCTET_SOURCE_DIR "/docs/tao.md"), tao_reference_markdown())
      << "run: octet spec --tao > docs/tao.md";
}

}  // namespace
}  // namespace octet::spec
