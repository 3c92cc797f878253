#include "weights/pickle.h"

#include <bit>
#include <cstring>
#include <unordered_map>

#include "base/error.h"

namespace octet::weights {

using Id = Pickle::Id;
using Kind = Pickle::Kind;
using Object = Pickle::Object;

namespace {

constexpr size_t kMostObjects = 1'000'000;  // a network of a thousand layers has some 20,000

}  // namespace

// The machine that pickles are programs of: a stack, marks on it, and a memo.
class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, std::string_view bytes) : out_(pickle), bytes_(bytes) {}

  void run() {
    while (step()) {
    }
    out_.read_ = at_;
  }

 private:
  // False at the end.
  bool step() {
    const auto code = number<uint8_t>();
    switch (code) {
      case 0x80:  // PROTO
        if (const auto protocol = number<uint8_t>(); protocol < 2 || protocol > 5)
          fail("its pickle has protocol ", int{protocol}, "; 2 to 5 are read");
        return true;
      case 0x95:  // FRAME
        number<uint64_t>();
        return true;
      case '.':  // STOP
        out_.root_ = pop();
        return false;
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return true;
      case '0':  // POP
        pop();
        return true;
      case '2':  // DUP
        push(top());
        return true;
      default:
        if (!value(code) && !container(code) && !memo(code) && !call(code))
          fail("its pickle has the instruction ", int{code}, " at byte ", at_ - 1, ", which no tensor needs");
        return true;
    }
  }

  bool value(uint8_t code) {
    switch (code) {
      case 'N':
        return add({});
      case 0x88:  // NEWTRUE
        return add({.kind = Kind::kBool, .number = 1});
      case 0x89:
        return add({.kind = Kind::kBool});
      case 'J':  // BININT
        return add({.kind = Kind::kInt, .number = number<int32_t>()});
      case 'K':
        return add({.kind = Kind::kInt, .number = number<uint8_t>()});
      case 'M':
        return add({.kind = Kind::kInt, .number = number<uint16_t>()});
      case 0x8a:  // LONG1
        return add_long(text(number<uint8_t>()));
      case 'G':  // BINFLOAT, the only number that is big-endian
        return add({.kind = Kind::kFloat, .real = std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()))});
      case 'X':  // BINUNICODE
      case 'B':  // BINBYTES
      case 'T':  // BINSTRING
        return add({.kind = Kind::kText, .text = text(number<uint32_t>())});
      case 'U':   // SHORT_BINSTRING
      case 'C':   // SHORT_BINBYTES
      case 0x8c:  // SHORT_BINUNICODE
        return add({.kind = Kind::kText, .text = text(number<uint8_t>())});
      default:
        return false;
    }
  }

  bool add_long(const std::string& bytes) {
    if (bytes.size() > 8) return add({.kind = Kind::kText, .text = bytes});
    uint64_t value = !bytes.empty() && (bytes.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return add({.kind = Kind::kInt, .number = static_cast<int64_t>(value)});
  }

  bool container(uint8_t code) {
    switch (code) {
      case ')':
        return add({.kind = Kind::kTuple});
      case ']':
        return add({.kind = Kind::kList});
      case '}':
        return add({.kind = Kind::kDict});
      case 0x8f:  // EMPTY_SET
        return add({.kind = Kind::kSet});
      case 't':
        return add({.kind = Kind::kTuple, .items = pop_mark()});
      case 0x85:  // TUPLE1 to TUPLE3
      case 0x86:
      case 0x87: {
        std::vector<Id> items(code - 0x84u);
        for (size_t i = items.size(); i-- > 0;) items[i] = pop();
        return add({.kind = Kind::kTuple, .items = std::move(items)});
      }
      case 'a':  // APPEND
        return extend({pop()});
      case 'e':   // APPENDS
      case 'u':   // SETITEMS
      case 0x90:  // ADDITEMS
        return extend(pop_mark());
      case 's': {  // SETITEM
        const Id item = pop(), key = pop();
        return extend({key, item});
      }
      default:
        return false;
    }
  }

  bool memo(uint8_t code) {
    switch (code) {
      case 'q':  // BINPUT
        memo_[number<uint8_t>()] = top();
        return true;
      case 'r':
        memo_[number<uint32_t>()] = top();
        return true;
      case 0x94:  // MEMOIZE
        memo_[static_cast<uint32_t>(memo_.size())] = top();
        return true;
      case 'h':  // BINGET
        return recall(number<uint8_t>());
      case 'j':
        return recall(number<uint32_t>());
      default:
        return false;
    }
  }

  bool call(uint8_t code) {
    switch (code) {
      case 'c': {  // GLOBAL
        const std::string module = line();
        return add({.kind = Kind::kGlobal, .text = module + " " + line()});
      }
      case 0x93: {  // STACK_GLOBAL
        const Object name = object(pop()), module = object(pop());
        if (name.kind != Kind::kText || module.kind != Kind::kText) fail("its pickle names something by no text");
        return add({.kind = Kind::kGlobal, .text = module.text + " " + name.text});
      }
      case 'R':     // REDUCE
      case 0x81: {  // NEWOBJ
        const Id arguments = pop(), called = pop();
        if (object(called).kind == Kind::kGlobal && object(called).text == "collections OrderedDict")
          return add({.kind = Kind::kDict});
        return add({.kind = Kind::kRecord, .items = {called, arguments}});
      }
      case 'b': {  // BUILD; dictionaries have attributes that say nothing of what is in them
        const Id state = pop();
        if (object(top()).kind == Kind::kRecord) out_.objects_.at(top()).items.push_back(state);
        return true;
      }
      case 'Q':  // BINPERSID
        return add({.kind = Kind::kPersistent, .items = {pop()}});
      default:
        return false;
    }
  }

  template <typename T>
  T number() {
    T value;
    if (bytes_.size() - at_ < sizeof value) fail("its pickle ends too soon");
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text(size_t size) {
    if (bytes_.size() - at_ < size) fail("its pickle ends too soon");
    at_ += size;
    return std::string(bytes_.substr(at_ - size, size));
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("its pickle ends too soon");
    const std::string out(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }

  const Object& object(Id id) const { return out_.objects_.at(id); }
  bool push(Id id) {
    if (stack_.size() >= kMostObjects) fail("its pickle is too deep");
    stack_.push_back(id);
    return true;
  }
  bool add(Object object) {
    if (out_.objects_.size() >= kMostObjects) fail("its pickle has more than ", kMostObjects, " objects");
    out_.objects_.push_back(std::move(object));
    return push(static_cast<Id>(out_.objects_.size() - 1));
  }
  Id top() const {
    if (stack_.size() <= floor()) fail("its pickle takes from an empty stack");
    return stack_.back();
  }
  Id pop() {
    const Id id = top();
    stack_.pop_back();
    return id;
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<Id> pop_mark() {
    if (marks_.empty()) fail("its pickle takes up to a mark that is not there");
    const std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  // What lists and dictionaries get; records, as of classes derived from them, do not keep it.
  bool extend(const std::vector<Id>& items) {
    Object& target = out_.objects_.at(top());
    const bool holds = target.kind == Kind::kList || target.kind == Kind::kDict || target.kind == Kind::kSet;
    if (target.kind == Kind::kDict && items.size() % 2 != 0)
      fail("its pickle gives a dictionary a key without a value");
    if (holds) target.items.insert(target.items.end(), items.begin(), items.end());
    return true;
  }
  bool recall(uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail("its pickle recalls an object that it never noted");
    return push(found->second);
  }

  Pickle& out_;
  std::string_view bytes_;
  size_t at_ = 0;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, Id> memo_;
};

Pickle::Pickle(std::string_view bytes) {
  PickleMachine(*this, bytes).run();
}

const Id* Pickle::find(Id dict, std::string_view key) const {
  const Object& object = at(dict);
  if (object.kind != Kind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < object.items.size(); i += 2)
    if (is_text(object.items[i], key)) return &object.items[i + 1];
  return nullptr;
}

}  // namespace octet::weights
