// What NVIDIA TAO's specifications say: messages with their fields, each with its TAO meaning and with the key of an
// experiment that it stands for, or the reason why Octet has no use for it. One description serves reading (read.h),
// writing (write.h) and the reference (reference.h).
//
//   Message cost_scaling() {
//     Message m;
//     m.flag("enabled").key(".enabled").means("Scale the loss ...");
//     m.number("increment").range(0, 100).key(".increment").means("Added to the exponent after a good step.");
//     return m;
//   }
//   training.message("cost_scaling", cost_scaling()).key("train.cost_scaling").means("...");
//
// A key that begins with a point goes on behind the key of the message around it. That of a map or of a list of
// messages ends in "*" (the entry's name stands there: "data.target_class_mapping.*") or "[]" ("data.train[]").
// "train.optimizer.betas[1]" is an item of a list.
#pragma once
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schema/tree.h"

namespace octet::tao {

class Message;
class Tree;

enum class Type { kFlag, kInteger, kNumber, kText, kChoice, kMessage };
// How often a field may stand in its message: once, as often as one likes, or as the entries { key: "a" value: ... } of
// a map.
enum class Count { kOne, kList, kMap };

// TAO's name of an enumeration's value and what stands for it in an experiment.
using Names = std::vector<std::pair<std::string, std::string>>;

class Field {
 public:
  Field(std::string name, Type type, Count count) : name_(std::move(name)), type_(type), count_(count) {}

  // What the field is for, in one line, to someone who knows TAO.
  Field& means(std::string one_line) { return meaning_ = std::move(one_line), *this; }
  Field& key(std::string path) { return key_ = std::move(path), *this; }
  // A second key that gets the same value.
  Field& also(std::string path) { return also_ = std::move(path), *this; }
  // A number is multiplied by this on its way to the key.
  Field& times(double factor) { return factor_ = factor, *this; }
  // Low <= x <= high, in TAO's unit.
  Field& range(double low, double high = std::numeric_limits<double>::infinity()) {
    return low_ = low, high_ = high, *this;
  }
  // Which of the fields of the same group there is, is a choice.
  Field& one_of(std::string group) { return group_ = std::move(group), *this; }
  Field& required() { return required_ = true, *this; }
  // What TAO takes where the message is there and the field is not, as it would be written, if Octet's default differs.
  Field& otherwise(std::string text) { return otherwise_ = std::move(text), *this; }
  // Messages: that this one is there means that `path` has the value.
  Field& sets(std::string path, std::string value) {
    return set_path_ = std::move(path), set_value_ = std::move(value), *this;
  }
  // Lists of messages: the entry's name for "*" is in this field of it, and reads as in `names` where that is not
  // empty.
  Field& named_by(std::string field, Names names = {}) {
    return named_by_ = std::move(field), entry_names_ = std::move(names), *this;
  }
  // Maps of messages: the entry of this name stands for no name of its own but for `path`, which holds for the others.
  Field& default_entry(std::string name, std::string path) {
    return default_name_ = std::move(name), default_path_ = std::move(path), *this;
  }
  // Maps of scalars: the value is this key of the entry's section.
  Field& behind(std::string key) { return behind_ = std::move(key), *this; }
  // Has no key, for this reason, which the user is told. The value `same` needs no word: Octet does the same.
  Field& unused(std::string reason, std::string same = "") {
    return reason_ = std::move(reason), same_ = std::move(same), *this;
  }
  // Texts: TAO's words and what stands for them; others are refused.
  Field& spelled(Names names) { return choices_ = std::move(names), *this; }
  // Read and written by the Hook of its message.
  Field& hooked() { return hooked_ = true, *this; }

  const std::string& name() const { return name_; }
  Type type() const { return type_; }
  Count count() const { return count_; }
  const std::string& meaning() const { return meaning_; }
  const std::string& key() const { return key_; }
  const std::string& also() const { return also_; }
  double factor() const { return factor_; }
  double low() const { return low_; }
  double high() const { return high_; }
  const std::string& group() const { return group_; }
  bool is_required() const { return required_; }
  const std::string& otherwise() const { return otherwise_; }
  const std::string& set_path() const { return set_path_; }
  const std::string& set_value() const { return set_value_; }
  const std::string& naming_field() const { return named_by_; }
  const Names& entry_names() const { return entry_names_; }
  const std::string& entry_key() const { return behind_; }
  const std::string& default_name() const { return default_name_; }
  const std::string& default_path() const { return default_path_; }
  const std::string& reason() const { return reason_; }
  const std::string& same() const { return same_; }
  bool is_hooked() const { return hooked_; }
  const Names& choices() const { return choices_; }
  // Of kMessage: its fields.
  const Message& inner() const { return *inner_; }

 private:
  friend class Message;
  std::string name_;
  Type type_;
  Count count_;
  std::string meaning_, key_, also_, group_, otherwise_, set_path_, set_value_, named_by_, behind_, reason_, same_;
  std::string default_name_, default_path_;
  double factor_ = 1, low_ = -std::numeric_limits<double>::infinity(), high_ = std::numeric_limits<double>::infinity();
  bool required_ = false, hooked_ = false;
  Names choices_, entry_names_;
  std::shared_ptr<const Message> inner_;
};

// A field that is in the file and that Octet has no use for.
struct UnusedField {
  std::string location, field, reason;  // field: "training_config.visualizer.wandb_config"
};

// What of a message goes no field-by-field way.
struct Hook {
  // `message` as it stands in the file, checked, after its fields are read: keys of `experiment` are set or taken out.
  // UserError (exit 2).
  std::function<void(const schema::Node& message, Tree& experiment, std::vector<UnusedField>& unused)> read;
  // The fields that stand for what `experiment` says, as name and value; may be empty.
  std::function<std::vector<std::pair<std::string, schema::Node>>(const Tree& experiment)> write = nullptr;
};

class Message {
 public:
  Field& flag(std::string name) { return add(std::move(name), Type::kFlag, Count::kOne); }
  Field& integer(std::string name, Count count = Count::kOne) { return add(std::move(name), Type::kInteger, count); }
  Field& number(std::string name, Count count = Count::kOne) { return add(std::move(name), Type::kNumber, count); }
  Field& text(std::string name, Count count = Count::kOne) { return add(std::move(name), Type::kText, count); }
  // The values in the order of their numbers, which begin at 0.
  Field& choice(std::string name, Names names);
  Field& message(std::string name, Message inner, Count count = Count::kOne);
  void hook(Hook hook) { hooks_.push_back(std::move(hook)); }

  const std::deque<Field>& fields() const { return fields_; }
  const std::vector<Hook>& hooks() const { return hooks_; }
  const Field* find(std::string_view name) const;
  std::vector<std::string> field_names() const;

 private:
  Field& add(std::string name, Type type, Count count) { return fields_.emplace_back(std::move(name), type, count); }
  std::deque<Field> fields_;  // a deque: add() hands out references
  std::vector<Hook> hooks_;
};

}  // namespace octet::tao
