// Python's pickles as data. Nothing that a pickle names is imported or called: what is no plain value becomes an inert
// record of its name and arguments. Protocols 2 to 4, as far as they are what PyTorch and its users write.
// https://docs.python.org/3/library/pickletools.html
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octet::weights {

// Objects name each other by number, so that shared and circular ones need no care.
class Pickle {
 public:
  using Id = uint32_t;
  enum class Kind {
    kNone,
    kBool,
    kInt,
    kFloat,
    kText,   // also bytes, and integers that do not fit 64 bits
    kTuple,  // of items, as the following two
    kList,
    kSet,
    kDict,        // items: key, value, key, value ...
    kGlobal,      // text: "module name"
    kRecord,      // a call that is not made. items: what would be called, its arguments as a tuple, then states
    kPersistent,  // items: the id, which says where a storage is
  };
  struct Object {
    Kind kind = Kind::kNone;
    int64_t number = 0;  // of kBool and kInt
    double real = 0;
    std::string text;
    std::vector<Id> items;
  };

  // One pickle at the start of `bytes`. UserError that says what is wrong and names no file, also for more than a
  // million objects. Any bytes are safe.
  explicit Pickle(std::string_view bytes);

  size_t bytes_read() const { return read_; }
  Id root() const { return root_; }
  size_t count() const { return objects_.size(); }
  const Object& operator[](Id id) const { return objects_.at(id); }

  bool is_text(Id id, std::string_view text) const { return at(id).kind == Kind::kText && at(id).text == text; }
  bool is_global(Id id, std::string_view name) const { return at(id).kind == Kind::kGlobal && at(id).text == name; }
  // The value of a text key of a dictionary, or nullptr.
  const Id* find(Id dict, std::string_view key) const;

 private:
  friend class PickleMachine;
  const Object& at(Id id) const { return objects_.at(id); }
  std::vector<Object> objects_;
  Id root_ = 0;
  size_t read_ = 0;
};

}  // namespace octet::weights
