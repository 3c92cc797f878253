// The schema in words: docs/spec.md and the terminal.
#include <functional>

#include "base/error.h"
#include "base/nearest.h"
#include "spec/experiment_schema.h"

namespace octet::spec {
namespace {

std::string dotted(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::string help_of(const Field& field) {
  std::string out = field.help_text();
  if (!field.same_keys().empty()) out += str(" Same keys as `", field.same_keys(), "`.");
  if (!field.starting_text().empty()) out += str(" A key that is absent is taken from ", field.starting_text(), ".");
  return out;
}

struct Documented {
  std::string path;  // empty: the file
  std::string help;
  Section section;
};

void collect(const Section& section, const std::string& path, const std::string& help, std::vector<Documented>& out) {
  out.push_back({path, help, section});
  for (const Field& inner : section.fields()) {
    if (!inner.same_keys().empty()) continue;
    const std::string inner_path = dotted(path, inner.name());
    if (const auto* plain = std::get_if<SectionSlot>(&inner.slot()))
      collect(*plain->section, inner_path, help_of(inner), out);
    if (const auto* optional = std::get_if<OptionalSectionSlot>(&inner.slot()))
      collect(optional->prototype(), inner_path, help_of(inner), out);
    if (const auto* list = std::get_if<SectionListSlot>(&inner.slot()))
      collect(list->prototype(), inner_path, help_of(inner), out);
  }
}

template <typename T, typename Text>
std::string list_text(const std::vector<T>& values, Text text) {
  std::vector<std::string> parts;
  for (const T& value : values) parts.push_back(text(value));
  return "[" + join(parts, ", ") + "]";
}

std::string default_text(const Field& field) {
  if (field.is_required()) return "required";
  if (std::holds_alternative<OptionalSectionSlot>(field.slot())) return "absent";
  if (field.is_section()) return "";
  struct Writer {
    std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
    std::string operator()(const int64_t* v) const { return std::to_string(*v); }
    std::string operator()(const double* v) const { return number_text(*v); }
    std::string operator()(const std::string* v) const { return v->empty() ? "empty" : *v; }
    std::string operator()(const std::vector<int64_t>* v) const {
      return list_text(*v, [](int64_t x) { return std::to_string(x); });
    }
    std::string operator()(const std::vector<double>* v) const { return list_text(*v, number_text); }
    std::string operator()(const std::vector<std::string>* v) const {
      return list_text(*v, [](const std::string& x) { return x; });
    }
    std::string operator()(const EnumSlot& s) const { return s.names[s.get()]; }
    std::string operator()(const EnumListSlot& s) const {
      return list_text(s.get(), [&](size_t i) { return s.names[i]; });
    }
    std::string operator()(const SectionSlot&) const { return ""; }
    std::string operator()(const OptionalSectionSlot&) const { return ""; }
    std::string operator()(const SectionListSlot&) const { return "[]"; }
  };
  return std::visit(Writer{}, field.slot());
}

std::string range_and_unit(const Field& field) {
  if (field.range_text().empty()) return field.unit_text();
  return field.range_text() + (field.unit_text().empty() ? "" : ", " + field.unit_text());
}

std::vector<Documented> all_sections(ExperimentSpec& spec) {
  Section root;
  describe(root, spec);
  std::vector<Documented> out;
  collect(root, "", "", out);
  return out;
}

std::string table(const Section& section) {
  std::string out = "| key | type | default | range, unit | what |\n|---|---|---|---|---|\n";
  for (const Field& field : section.fields()) {
    const std::string value = default_text(field);
    const bool code = !value.empty() && value != "required" && value != "absent" && value != "empty";
    out += str("| `", field.name(), "` | ", field.type_text(), " | ", code ? "`" + value + "`" : value, " | ",
               range_and_unit(field), " | ", help_of(field), " |\n");
  }
  return out;
}

constexpr const char* kIntroduction =
    R"(# The experiment file

<!-- Generated from the schema in src/spec/experiment_schema.cc by `octet spec --markdown`; a test compares the two. -->

One YAML file describes an experiment from the first training to the engine. Every key has a default, so the file says
only what is special about the experiment:

```yaml
model: {arch: resnet20, num_classes: 10, input: [1, 28, 28]}
data:
  train: {format: idx, path: /usr/share/datasets/fashion-mnist, split: train}
  val:   {format: idx, path: /usr/share/datasets/fashion-mnist, split: test}
  augment: {crop_padding: 2, flip: true}
train: {epochs: 8, batch_size_per_gpu: 128}
finetune: {epochs: 2, optimizer: {lr: 0.005}}
```

The same file drives all stages:

| stage | command | uses |
|---|---|---|
| float | `octet train --stage float` | `train` |
| calibration | `octet calibrate` | `quant`, `data.calibration` |
| qat | `octet train --stage qat -m CALIBRATED` | `finetune`, `quant` |
| control | `octet train --stage control -m FLOAT` | `finetune`, without quantisation: what QAT is to be compared with |

An unknown key, a wrong type, a value out of range or a missing file is an error with line and column before any work
starts. `--set KEY=VALUE` on the command line changes a key for one run, as in `--set train.optimizer.lr=0.05`; it takes
part in the defaults of `finetune`. Relative paths are relative to the working directory. `octet spec -e FILE` checks a
file and prints it with every key resolved.
)";

}  // namespace

std::string reference_markdown() {
  ExperimentSpec spec;
  std::string out = kIntroduction;
  for (const Documented& part : all_sections(spec)) {
    out += part.path.empty() ? "\n## Top level\n\n" : "\n## `" + part.path + "`\n\n";
    if (!part.help.empty()) out += part.help + "\n\n";
    out += table(part.section);
  }
  return out;
}

std::string section_help(const std::string& path) {
  ExperimentSpec spec;
  std::vector<std::string> paths;
  std::string out;
  for (const Documented& part : all_sections(spec)) {
    paths.push_back(part.path);
    const bool wanted = path.empty() || part.path == path;
    if (!wanted) continue;
    out += part.path.empty() ? "top level\n" : str(part.path, "  -  ", part.help, "\n");
    for (const Field& field : part.section.fields()) {
      const std::string value = default_text(field);
      const std::string range = range_and_unit(field);
      out += str("  ", field.name(), ": ", field.type_text(), value.empty() ? "" : "; default " + value,
                 range.empty() ? "" : "; " + range, "\n      ", help_of(field), "\n");
    }
  }
  if (out.empty()) fail_usage("the experiment file has no section '", path, "'", did_you_mean(path, paths));
  return out;
}

}  // namespace octet::spec
