// One declaration of every key. A layer describes its own struct of options by a free function in the struct's
// namespace,
//
//   void describe(schema::Section& s, EmaOptions& ema) {
//     s.field("enable", ema.enable).help("Keep a moving average of the weights and evaluate that.");
//     s.field("decay", ema.decay).range(0, 1).unit("per step").help("Share of the old average that stays.");
//   }
//
// which binds keys to the members of a live object. From that one description come reading with validation (read.cc),
// writing (write.cc) and the reference (reference.cc). The default of a key is the value that the member has in a
// default-constructed object. Sections nest; lists may hold sections; optional sections may be absent; in maps the user
// chooses the keys.
#pragma once
#include <concepts>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "schema/enum_names.h"

namespace octet::schema {

// A map whose keys are names of the user's, in the order of the file.
template <typename S>
using NamedList = std::vector<std::pair<std::string, S>>;

// How a field reaches its member, by kind. The pointers live as long as the object that describe() was given.
struct EnumSlot {
  std::vector<std::string> names;
  std::function<size_t()> get;  // index into names
  std::function<void(size_t)> set;
};
struct EnumListSlot {
  std::vector<std::string> names;
  std::function<std::vector<size_t>()> get;
  std::function<void(const std::vector<size_t>&)> set;
};
struct SectionSlot {
  std::shared_ptr<Section> section;
};
struct OptionalSectionSlot {
  std::function<bool()> present;
  std::function<void()> create;
  std::function<Section()> bind;       // to the object that is present
  std::function<Section()> prototype;  // to an object of its own
};
struct SectionListSlot {
  std::function<size_t()> size;
  std::function<void(size_t)> resize;
  std::function<Section(size_t)> bind;
  std::function<Section()> prototype;
};
struct SectionMapSlot {
  std::function<std::vector<std::string>()> names;
  std::function<void()> clear;
  std::function<Section(const std::string& name)> add;  // behind those there are
  std::function<Section(size_t)> bind;
  std::function<Section()> prototype;
};
using Slot = std::variant<bool*, int64_t*, double*, std::string*, std::filesystem::path*, std::vector<int64_t>*,
                          std::span<int64_t>, std::vector<double>*, std::vector<std::string>*, NamedList<std::string>*,
                          EnumSlot, EnumListSlot, SectionSlot, OptionalSectionSlot, SectionListSlot, SectionMapSlot>;

enum class PathKind { kNone, kInput, kInputPattern, kOutput };

// A key and everything that is known about it. The setters return the field, to be chained.
class Field {
 public:
  Field(std::string name, Slot slot) : name_(std::move(name)), slot_(std::move(slot)) {}

  Field& help(std::string one_line) { return help_ = std::move(one_line), *this; }
  Field& unit(std::string unit) { return unit_ = std::move(unit), *this; }
  // Numbers, and the elements of lists of numbers: low <= x <= high.
  Field& range(double low, double high = std::numeric_limits<double>::infinity()) {
    return low_ = low, high_ = high, *this;
  }
  // low < x <= high.
  Field& above(double low, double high = std::numeric_limits<double>::infinity()) {
    return range(low, high), open_low_ = true, *this;
  }
  Field& one_of(std::vector<int64_t> values) { return choices_ = std::move(values), *this; }
  // Lists: number of elements.
  Field& length(size_t least, size_t most) { return least_ = least, most_ = most, *this; }
  Field& required() { return required_ = true, *this; }
  // Text that names a file or folder which must exist (where it is not empty), or which will be written.
  Field& input_path() { return path_ = PathKind::kInput, *this; }
  // The same, or a pattern with * and ? in its last part, of which the folder must exist.
  Field& input_pattern() { return path_ = PathKind::kInputPattern, *this; }
  Field& output_path() { return path_ = PathKind::kOutput, *this; }
  // What other tools call this key; only for "did you mean".
  Field& known_elsewhere_as(std::vector<std::string> names) { return synonyms_ = std::move(names), *this; }
  // Text: throws nothing, returns what is wrong with the value, or an empty string.
  Field& check(std::string allowed, std::function<bool(const std::string&)> accepts) {
    return allowed_ = std::move(allowed), accepts_ = std::move(accepts), *this;
  }
  // Sections: `prepare` runs before the keys are read, after all keys above this one: a default that depends on them.
  Field& starting_from(std::string description, std::function<void()> prepare) {
    return starting_from_ = std::move(description), prepare_ = std::move(prepare), *this;
  }
  // Sections: the reference names the section that has the same keys instead of repeating them.
  Field& same_keys_as(std::string section) { return same_keys_as_ = std::move(section), *this; }
  // Lists of sections: a section alone stands for a list of it, and is what a list of one is written as. An empty list
  // is an absent section.
  Field& or_section() { return or_section_ = true, *this; }
  // Left out when written unless `condition` holds: for a key that comes to a section whose hash is to stay where it
  // has its default.
  Field& written_when(std::function<bool()> condition) { return written_when_ = std::move(condition), *this; }
  // The word `auto` in place of the value: `automatic` is set, the member stays as it is, and who has the options finds
  // the value from elsewhere.
  Field& or_auto(bool& automatic) { return automatic_ = &automatic, *this; }
  // Lists of sections: an item that is plain text is this key of the section.
  Field& shorthand(std::string key) { return shorthand_ = std::move(key), *this; }

  const std::string& name() const { return name_; }
  const std::string& help_text() const { return help_; }
  const std::string& unit_text() const { return unit_; }
  const Slot& slot() const { return slot_; }
  bool is_required() const { return required_; }
  PathKind path_kind() const { return path_; }
  const std::vector<std::string>& synonyms() const { return synonyms_; }
  const std::vector<int64_t>& choices() const { return choices_; }
  size_t least() const { return least_; }
  size_t most() const { return most_; }
  const std::string& allowed_text() const { return allowed_; }
  const std::string& starting_text() const { return starting_from_; }
  const std::string& same_keys() const { return same_keys_as_; }
  const std::string& shorthand_key() const { return shorthand_; }
  bool may_be_section() const { return or_section_; }
  bool* automatic() const { return automatic_; }  // null: the field has no `auto`
  bool is_written() const;
  void prepare() const {
    if (prepare_) prepare_();
  }

  bool is_section() const;                      // plain or optional
  bool in_range(double value) const;            // NaN is not
  bool accepts(const std::string& text) const;  // what check() asked for
  std::string range_text() const;               // "1 to 100", "> 0", "13, 19", or empty
  std::string type_text() const;                // "integer", "list of numbers", "fp32, bf16 or auto", ...

 private:
  std::string name_, help_, unit_, allowed_, starting_from_, same_keys_as_, shorthand_;
  Slot slot_;
  double low_ = -std::numeric_limits<double>::infinity(), high_ = std::numeric_limits<double>::infinity();
  bool open_low_ = false, required_ = false, or_section_ = false;
  bool* automatic_ = nullptr;
  size_t least_ = 0, most_ = 10'000;
  PathKind path_ = PathKind::kNone;
  std::vector<int64_t> choices_;
  std::vector<std::string> synonyms_;
  std::function<bool(const std::string&)> accepts_;
  std::function<void()> prepare_;
  std::function<bool()> written_when_;
};

// What no key can say alone: what is wrong with `key`, which may lie in a section inside ("schedule.min_lr"), or
// nothing.
struct Rule {
  std::string key;
  std::function<std::string()> complaint;
};

// The keys of one options struct, bound to one object.
class Section {
 public:
  Section() = default;
  // Keeps the object that its keys will be bound to.
  explicit Section(std::shared_ptr<void> object) : owned_(std::move(object)) {}

  template <typename T>
  Field& field(std::string name, T& member) {
    return fields_.emplace_back(std::move(name), slot_for(member));
  }

  // One of the named values, for a member that is no enumeration: texts from a registry, a flag with two names.
  template <typename T>
  Field& choice(std::string name, T& member, std::vector<std::pair<T, std::string>> values) {
    EnumSlot slot;
    for (const auto& [value, value_name] : values) slot.names.push_back(value_name);
    slot.get = [&member, values] {
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i].first == member) return i;
      OCTET_CHECK(false, "a value without a name");
      return size_t{0};
    };
    slot.set = [&member, values](size_t i) { member = values.at(i).first; };
    return fields_.emplace_back(std::move(name), Slot(std::move(slot)));
  }

  // A section whose keys belong to members of several structs.
  template <std::invocable<Section&> Describe>
  Field& section(std::string name, Describe&& describe_keys) {
    auto inner = std::make_shared<Section>();
    describe_keys(*inner);
    return fields_.emplace_back(std::move(name), Slot(SectionSlot{std::move(inner)}));
  }

  template <typename S>
  Field& section(std::string name, S& member) {
    auto inner = std::make_shared<Section>();
    describe(*inner, member);
    return fields_.emplace_back(std::move(name), Slot(SectionSlot{std::move(inner)}));
  }

  // A section that is there or not by a rule of its own.
  Field& section(std::string name, OptionalSectionSlot slot) {
    return fields_.emplace_back(std::move(name), Slot(std::move(slot)));
  }

  template <typename S>
  Field& section(std::string name, std::optional<S>& member) {
    OptionalSectionSlot slot;
    slot.present = [&member] { return member.has_value(); };
    slot.create = [&member] { member.emplace(); };
    slot.bind = [&member] { return bound_to(*member); };
    slot.prototype = prototype_of<S>;
    return fields_.emplace_back(std::move(name), Slot(std::move(slot)));
  }

  template <typename S>
  Field& list(std::string name, std::vector<S>& member) {
    SectionListSlot slot;
    slot.size = [&member] { return member.size(); };
    slot.resize = [&member](size_t n) { member.assign(n, S{}); };
    slot.bind = [&member](size_t i) { return bound_to(member.at(i)); };
    slot.prototype = prototype_of<S>;
    return fields_.emplace_back(std::move(name), Slot(std::move(slot)));
  }

  // Sections under names that the user chooses; an empty map is not written. Keys that are absent in one keep the value
  // they have in what `start` returns when it is read, after all keys above the map: the options of all, for one.
  template <typename S>
  Field& map(
      std::string name, NamedList<S>& member, std::function<S()> start = [] { return S{}; }) {
    SectionMapSlot slot;
    slot.names = [&member] {
      std::vector<std::string> names;
      for (const auto& [key, value] : member) names.push_back(key);
      return names;
    };
    slot.clear = [&member] { member.clear(); };
    slot.add = [&member, start = std::move(start)](const std::string& key) {
      return bound_to(member.emplace_back(key, start()).second);
    };
    slot.bind = [&member](size_t i) { return bound_to(member.at(i).second); };
    slot.prototype = prototype_of<S>;
    return fields_.emplace_back(std::move(name), Slot(std::move(slot)));
  }

  // Asked after the keys of the section are read.
  void rule(std::string key, std::function<std::string()> complaint) {
    rules_.push_back({std::move(key), std::move(complaint)});
  }

  const std::deque<Field>& fields() const { return fields_; }
  const std::vector<Rule>& rules() const { return rules_; }
  const Field* find(std::string_view name) const;

 private:
  template <typename S>
  static Section bound_to(S& object) {
    Section section;
    describe(section, object);
    return section;
  }
  template <typename S>
  static Section prototype_of() {
    auto object = std::make_shared<S>();
    Section section = bound_to(*object);
    section.owned_ = object;
    return section;
  }
  template <typename E>
  static std::vector<std::string> names_of() {
    std::vector<std::string> names;
    for (const EnumName<E>& entry : enum_names(E{})) names.push_back(entry.name);
    return names;
  }
  template <typename E>
  static size_t index_of(E value) {
    const auto entries = enum_names(E{});
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i].value == value) return i;
    OCTET_CHECK(false, "an enumeration value without a name");
    return 0;
  }

  template <typename T>
  static Slot slot_for(T& member) {
    if constexpr (std::is_convertible_v<T&, std::span<int64_t>> && !std::is_same_v<T, std::vector<int64_t>>) {
      return Slot(std::span<int64_t>(member));  // an array: as many values as it has
    } else if constexpr (std::is_enum_v<T>) {
      return EnumSlot{names_of<T>(), [&member] { return index_of(member); },
                      [&member](size_t i) { member = enum_names(T{})[i].value; }};
    } else {
      return Slot(&member);
    }
  }
  template <typename E>
  requires std::is_enum_v<E>
  static Slot slot_for(std::vector<E>& member) {
    EnumListSlot slot{names_of<E>(), {}, {}};
    slot.get = [&member] {
      std::vector<size_t> out;
      for (const E value : member) out.push_back(index_of(value));
      return out;
    };
    slot.set = [&member](const std::vector<size_t>& indices) {
      member.clear();
      for (const size_t i : indices) member.push_back(enum_names(E{})[i].value);
    };
    return slot;
  }

  std::deque<Field> fields_;  // a deque: field() hands out references
  std::vector<Rule> rules_;
  std::shared_ptr<void> owned_;  // the object of a prototype
};

struct Node;

struct ReadOptions {
  bool check_files = true;
};
// Fills the object that `section` is bound to from `node`; keys that are absent keep their value. `path` names the
// section in messages ("" for the whole file). UserError (exit 2) for the first thing that is wrong.
void read_section(const Section& section, const Node& node, const std::string& path, const ReadOptions& options);

// The object that `section` is bound to, as YAML, every key written.
std::string write_section(const Section& section);

// Shortest text that reads back as the same number.
std::string number_text(double value);
std::string join(const std::vector<std::string>& parts, const std::string& separator);

}  // namespace octet::schema
