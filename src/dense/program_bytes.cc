// A program as bytes, little endian: numbers of 8 bytes, texts and lists with their length before them.
#include <bit>
#include <cmath>
#include <cstring>

#include "dense/program.h"

namespace octet::dense {
namespace {

static_assert(std::endian::native == std::endian::little);
// 2: blocks have inputs. Programs without a Loop are written as before there were any.
constexpr uint64_t kVersion = 2, kWithoutLoops = 1;

bool has_loop(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    if (operation.op == "Loop") return true;
    for (const Block& block : operation.branches)
      if (has_loop(block.operations)) return true;
  }
  return false;
}

class Writer {
 public:
  explicit Writer(uint64_t version) : version_(version) { number(version); }

  void number(uint64_t v) { out_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void integer(int64_t v) { number(static_cast<uint64_t>(v)); }
  void real(float v) { number(std::bit_cast<uint32_t>(v)); }
  void text(const std::string& v) {
    number(v.size());
    out_ += v;
  }
  template <typename List, typename Each>
  void list(const List& values, Each each) {
    number(values.size());
    for (const auto& v : values) each(v);
  }
  void integers(const std::vector<int64_t>& values) {
    list(values, [&](int64_t v) { integer(v); });
  }
  void ids(const std::vector<int>& values) {
    list(values, [&](int v) { integer(v); });
  }
  void tensor(const Tensor& t) {
    number(static_cast<uint64_t>(t.type()));
    integers(t.shape());
    out_.append(reinterpret_cast<const char*>(t.bytes().data()), t.bytes().size());
  }
  void attribute(const Attribute& a) {
    number(a.index());
    if (const auto* i = std::get_if<int64_t>(&a)) integer(*i);
    if (const auto* f = std::get_if<float>(&a)) real(*f);
    if (const auto* s = std::get_if<std::string>(&a)) text(*s);
    if (const auto* is = std::get_if<std::vector<int64_t>>(&a)) integers(*is);
    if (const auto* fs = std::get_if<std::vector<float>>(&a)) list(*fs, [&](float v) { real(v); });
    if (const auto* texts = std::get_if<std::vector<std::string>>(&a)) list(*texts, [&](const auto& v) { text(v); });
  }
  void operation(const Operation& o) {
    text(o.op), text(o.name);
    ids(o.inputs), ids(o.outputs);
    list(o.attributes, [&](const auto& entry) { text(entry.first), attribute(entry.second); });
    list(o.branches, [&](const Block& b) {
      if (version_ > kWithoutLoops) ids(b.inputs);
      list(b.operations, [&](const Operation& inner) { operation(inner); });
      ids(b.outputs);
    });
  }
  std::string take() { return std::move(out_); }

 private:
  uint64_t version_;
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes)
      : rest_(bytes), memory_(static_cast<int64_t>(bytes.size()) * 2 + 4096), version_(number()) {
    require(version_ >= kWithoutLoops && version_ <= kVersion, "the program behind the plan is of the format ",
            version_, ", expected ", kWithoutLoops, " to ", kVersion);
  }

  uint64_t number() {
    uint64_t v = 0;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  int64_t integer() { return static_cast<int64_t>(number()); }
  float real() {
    const uint64_t bits = number();
    require(bits <= 0xffffffffu, "a number of the program behind the plan is damaged");
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  }
  std::string text() {
    const auto bytes = take(number());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Each entry takes 8 bytes or more.
  template <typename Each>
  void list(Each each) {
    const uint64_t count = number();
    require(count <= rest_.size() / 8, "the program behind the plan ends too early");
    for (uint64_t i = 0; i < count; ++i) each();
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> out;
    list([&] { out.push_back(integer()); });
    return out;
  }
  int id() {
    const int64_t v = integer();
    require(v >= -1 && v < (int64_t{1} << 30), "a value of the program behind the plan has the number ", v);
    return static_cast<int>(v);
  }
  std::vector<int> ids() {
    std::vector<int> out;
    list([&] { out.push_back(id()); });
    return out;
  }
  Type type() {
    const uint64_t v = number();
    require(v >= 1 && v <= 6, "a tensor of the program behind the plan has the type ", v);
    return static_cast<Type>(v);
  }
  Tensor tensor() {
    const Type of = type();
    const Shape shape = integers();
    require(static_cast<uint64_t>(element_count(shape)) * type_size(of) <= rest_.size(),
            "a tensor of the program behind the plan ends too early");
    Tensor out = memory_.make(of, shape);
    const auto bytes = take(static_cast<uint64_t>(out.size()) * type_size(of));
    if (of == Type::kBool)
      for (const std::byte b : bytes) require(b == std::byte{0} || b == std::byte{1}, "a bool is neither 0 nor 1");
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  Attribute attribute() {
    switch (number()) {
      case 0:
        return integer();
      case 1:
        return real();
      case 2:
        return text();
      case 3:
        return integers();
      case 4: {
        std::vector<float> out;
        list([&] { out.push_back(real()); });
        return out;
      }
      case 5: {
        std::vector<std::string> out;
        list([&] { out.push_back(text()); });
        return out;
      }
      default:
        fail("an attribute of the program behind the plan is of an unknown kind");
    }
  }
  Operation operation(int depth) {
    require(depth <= kDeepest, "branches of the program behind the plan lie too deep");
    Operation o;
    o.op = text(), o.name = text();
    o.inputs = ids(), o.outputs = ids();
    list([&] {
      std::string key = text();
      o.attributes[std::move(key)] = attribute();
    });
    list([&] {
      Block block;
      if (version_ > kWithoutLoops) block.inputs = ids();
      list([&] { block.operations.push_back(operation(depth + 1)); });
      block.outputs = ids();
      o.branches.push_back(std::move(block));
    });
    return o;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> take(uint64_t count) {
    require(count <= rest_.size(), "the program behind the plan ends too early");
    const auto out = rest_.first(static_cast<size_t>(count));
    rest_ = rest_.subspan(static_cast<size_t>(count));
    return out;
  }

  std::span<const std::byte> rest_;
  Memory memory_;
  uint64_t version_;
};

}  // namespace

std::string program_bytes(const Program& program) {
  Writer out(has_loop(program.operations) ? kVersion : kWithoutLoops);
  out.list(program.values, [&](const std::string& name) { out.text(name); });
  out.list(program.inputs,
           [&](const Input& input) { out.integer(input.value), out.number(static_cast<uint64_t>(input.type)); });
  out.list(program.constants, [&](const auto& c) { out.integer(c.first), out.tensor(c.second); });
  out.list(program.operations, [&](const Operation& o) { out.operation(o); });
  out.list(program.outputs, [&](const Output& o) {
    out.integer(o.value), out.number(static_cast<uint64_t>(o.type));
    out.number(o.has_shape ? 1 : 0), out.integers(o.shape);
  });
  return out.take();
}

Program parse_program(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Program program;
  in.list([&] { program.values.push_back(in.text()); });
  in.list([&] {
    const int value = in.id();
    program.inputs.push_back({value, in.type()});
  });
  in.list([&] {
    const int value = in.id();
    program.constants.emplace_back(value, in.tensor());
  });
  in.list([&] { program.operations.push_back(in.operation(0)); });
  in.list([&] {
    Output output{in.id(), in.type()};
    output.has_shape = in.number() != 0;
    output.shape = in.integers();
    for (const int64_t d : output.shape) require(d >= -1, "an output of the program behind the plan has the size ", d);
    program.outputs.push_back(std::move(output));
  });
  require(in.at_end(), "bytes follow the program behind the plan");
  return program;
}

}  // namespace octet::dense
