#include "engine/plan.h"

#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "dense/program.h"
#include "engine/step_kinds.h"

namespace octet::engine {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;

class OwnedBlob : public ConstantBlob {
 public:
  explicit OwnedBlob(std::span<const std::byte> bytes) : size_(bytes.size()) {
    // Kernels may load a whole vector at the last constant.
    data_ = static_cast<std::byte*>(::operator new (size_ + 64, std::align_val_t{64}));
    if (size_ > 0) std::memcpy(data_, bytes.data(), size_);
    std::memset(data_ + size_, 0, 64);
  }
  ~OwnedBlob() override { ::operator delete (data_, std::align_val_t{64}); }
  std::span<const std::byte> bytes() const override { return {data_, size_}; }

 private:
  size_t size_;
  std::byte* data_;
};

void check_codes(const Buffer& b) {
  if (b.layout == Layout::kCodes)
    require(b.shape.size() == 4 || b.shape.size() == 2, "buffer '", b.name, "': codes have rank ", b.shape.size(),
            ", expected 2 or 4");
  else
    require(b.shape.size() >= 2 && b.alias_of < 0 && b.halo.top + b.halo.bottom + b.halo.left + b.halo.right == 0,
            "buffer '", b.name, "': rows of codes have rank 2 or more, a memory of their own and no halo");
  require(std::isfinite(b.scale) && b.scale > 0, "buffer '", b.name, "': scale ", b.scale, " is not positive");
  require(b.zero_point >= 0 && b.zero_point <= 255, "buffer '", b.name, "': zero point ", b.zero_point,
          " is outside 0..255");
  require(b.code_offset == 0 || b.code_offset == 128, "buffer '", b.name, "': code offset ", b.code_offset,
          " is neither 0 nor 128");
  require(0 <= b.code_min && b.code_min <= b.code_max && b.code_max <= 255, "buffer '", b.name, "': code range ",
          b.code_min, "..", b.code_max, " is not within 0..255");
  for (int64_t pixels : {b.halo.top, b.halo.bottom, b.halo.left, b.halo.right})
    require(pixels >= 0 && pixels <= 4096, "buffer '", b.name, "': halo of ", pixels, " pixels is outside 0..4096");
}

// Kernels read whole blocks of channels, so at most kChannelBlock - 1 bytes beyond the last pixel of the root.
bool is_channel_range(const Buffer& b, const Buffer& root) {
  return b.channel_offset >= 0 && b.channel_offset <= root.c() - b.c() &&
         (b.c() == root.c() || kernels::channel_pitch(root.c()) >= kernels::kChannelBlock);
}

// Steps write whole blocks of channels, so a range begins with a block and ends with one or with the root.
bool is_writable(const Buffer& b, const Buffer& root) {
  return b.layout != Layout::kCodes || (b.channel_offset % kernels::kChannelBlock == 0 &&
                                        (b.c() % kernels::kChannelBlock == 0 || b.channel_offset + b.c() == root.c()));
}

// Pixels first, first + step ... of `size`.
bool is_lattice(const Buffer::Every& e, int64_t count, int64_t size) {
  return e.step >= 1 && e.step <= size && e.first >= 0 && e.first < size && count <= (size - 1 - e.first) / e.step + 1;
}

bool is_part(const Buffer& b, const Buffer& root) {
  const kernels::Halo& h = b.halo;
  return b.n() == root.n() && h.top + h.bottom + h.left + h.right == 0 && is_channel_range(b, root) &&
         is_lattice(b.rows, b.h(), root.h()) && is_lattice(b.columns, b.w(), root.w()) &&
         b.zero_point == root.zero_point;
}

void check_buffer(const Plan& plan, size_t index) {
  const Buffer& b = plan.buffers[index];
  require(b.shape.size() <= 8, "buffer '", b.name, "': rank ", b.shape.size(), " is above 8");
  require(b.layout != Layout::kFloatNhwc || b.shape.size() == 4, "buffer '", b.name, "': NHWC needs rank 4");
  int64_t count = 1;
  for (int64_t d : b.shape) {
    require(d >= 1 && d <= kMaxElements, "buffer '", b.name, "': dimension ", d, " is impossible");
    require(count <= kMaxElements / d, "buffer '", b.name, "' is too large");
    count *= d;
  }
  if (holds_codes(b.layout)) check_codes(b);
  if (b.layout == Layout::kCodeRows || b.layout == Layout::kCodeColumns) {
    const Buffer::Rows r = b.code_rows();
    require(r.n * r.h <= kMaxElements / r.w && r.n * r.h * r.w <= kMaxElements / kernels::channel_pitch(r.c),
            "buffer '", b.name, "' is too large");
  }
  if (b.layout == Layout::kCodes) {
    const int64_t rows = b.h() + b.halo.top + b.halo.bottom, columns = b.w() + b.halo.left + b.halo.right;
    const int64_t pitch = kernels::channel_pitch(b.c());
    require(b.n() <= kMaxElements / rows && b.n() * rows <= kMaxElements / columns &&
                b.n() * rows * columns <= kMaxElements / pitch,
            "buffer '", b.name, "' is too large");
  }
  const bool whole =
      b.channel_offset == 0 && b.rows.first == 0 && b.rows.step == 1 && b.columns.first == 0 && b.columns.step == 1;
  require(whole || (b.alias_of >= 0 && b.layout == Layout::kCodes), "buffer '", b.name,
          "' is a part of no other buffer");
  if (b.alias_of >= 0) {
    require(static_cast<size_t>(b.alias_of) < index, "buffer '", b.name, "' is an alias of a later buffer");
    const Buffer& root = plan.buffers[b.alias_of];
    require(root.alias_of < 0, "buffer '", b.name, "' is an alias of an alias");
    require(holds_codes(root.layout) == (root.layout == Layout::kCodes), "buffer '", b.name,
            "' is an alias of rows of codes");
    const bool codes = b.layout == Layout::kCodes;
    require(codes == (root.layout == Layout::kCodes) && b.offset == root.offset &&
                (codes ? is_part(b, root) : b.bytes() <= root.bytes()),
            "buffer '", b.name, "' does not fit the memory of '", root.name, "'");
  }
  if (b.offset < 0) return;  // checked by the caller: only inputs and outputs
  require(b.offset % 64 == 0 && b.offset <= plan.arena_bytes && b.bytes() <= plan.arena_bytes - b.offset, "buffer '",
          b.name, "' lies outside the arena of ", plan.arena_bytes, " bytes");
}

bool overlap(const Plan& plan, int a, int b) {
  if (plan.root(a) == plan.root(b)) return true;
  const Buffer &x = plan.buffers[plan.root(a)], &y = plan.buffers[plan.root(b)];
  if (x.offset < 0 || y.offset < 0) return false;  // tensors of the caller do not overlap
  return x.offset < y.offset + y.bytes() && y.offset < x.offset + x.bytes();
}

}  // namespace

const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kCodes:
      return "codes";
    case Layout::kFloatNhwc:
      return "nhwc";
    case Layout::kFloatDense:
      return "dense";
    case Layout::kIndexDense:
      return "index";
    case Layout::kSums:
      return "sums";
    case Layout::kCodeRows:
      return "code_rows";
    case Layout::kCodeColumns:
      return "code_columns";
  }
  return "unknown";
}

int64_t Buffer::elements() const {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

Buffer::Rows Buffer::code_rows() const {
  const size_t rank = shape.size();
  Rows rows{.h = rank > 2 ? shape[rank - 3] : 1, .w = shape[rank - 2], .c = shape[rank - 1]};
  if (layout == Layout::kCodeColumns) std::swap(rows.w, rows.c);
  for (size_t i = 0; i + 3 < rank; ++i) rows.n *= shape[i];
  return rows;
}

int64_t Buffer::bytes() const {
  switch (layout) {
    case Layout::kCodeRows:
    case Layout::kCodeColumns: {
      const Rows r = code_rows();
      return kernels::qtensor_bytes(r.n, r.h, r.w, r.c, {});
    }
    case Layout::kCodes:
      return kernels::qtensor_bytes(n(), h(), w(), c(), halo);
    case Layout::kIndexDense:
      return elements() * 8;
    default:
      return elements() * 4;
  }
}

kernels::QTensor Plan::code_view(int id, uint8_t* start) const {
  const Buffer &b = buffers[id], &whole = buffers[root(id)];
  if (b.layout != Layout::kCodes) {
    const Buffer::Rows r = b.code_rows();
    return kernels::make_qtensor(start, r.n, r.h, r.w, r.c, {}, b.zero_point);
  }
  kernels::QTensor t =
      kernels::make_qtensor(start, whole.n(), whole.h(), whole.w(), whole.c(), whole.halo, b.zero_point);
  t.data += b.channel_offset + b.rows.first * t.row_stride + b.columns.first * t.c_pitch;
  t.h = b.h(), t.w = b.w(), t.c = b.c();
  t.row_stride *= b.rows.step, t.c_pitch *= b.columns.step;
  return t;
}

std::shared_ptr<const ConstantBlob> make_constant_blob(std::span<const std::byte> bytes) {
  return std::make_shared<OwnedBlob>(bytes);
}

std::span<const std::byte> Plan::constant_bytes(const ConstantRef& ref, size_t element_bytes) const {
  const auto all = constants ? constants->bytes() : std::span<const std::byte>();
  const int64_t size = static_cast<int64_t>(all.size());
  require(ref.offset >= 0 && ref.offset % 64 == 0 && ref.bytes >= 0 && ref.offset <= size &&
              ref.bytes <= size - ref.offset && ref.bytes % static_cast<int64_t>(element_bytes) == 0,
          "a constant of ", ref.bytes, " bytes at ", ref.offset, " does not fit the ", size, " bytes of constants");
  return all.subspan(ref.offset, ref.bytes);
}

void validate(const Plan& plan, const PlanLimits& limits) {
  require(plan.arena_bytes >= 0 && plan.arena_bytes <= limits.arena_bytes, "the plan needs ", plan.arena_bytes,
          " bytes of working memory; the limit is ", limits.arena_bytes);
  std::vector<char> external(plan.buffers.size(), 0);
  const int count = static_cast<int>(plan.buffers.size());
  for (const auto* list : {&plan.inputs, &plan.outputs})
    for (int id : *list) {
      require(id >= 0 && id < count, "input or output refers to buffer ", id, " of ", count);
      require(plan.buffers[id].layout == Layout::kFloatDense && plan.buffers[id].alias_of < 0, "buffer '",
              plan.buffers[id].name, "': inputs and outputs of an engine are dense float tensors");
      require(!external[id], "buffer '", plan.buffers[id].name, "' is an input or output twice");
      external[id] = 1;
    }
  for (int i = 0; i < count; ++i) {
    check_buffer(plan, i);
    const Buffer& b = plan.buffers[i];
    const bool outside = external[i] || (b.alias_of >= 0 && external[b.alias_of]);
    require((b.offset < 0) == outside, "buffer '", b.name, "' has no place in memory");
  }
  const kernels::KernelTable& table = kernels::kernels(Isa::kScalar);
  std::vector<char> is_input(plan.buffers.size(), 0);
  for (int id : plan.inputs) is_input[id] = 1;
  for (const Step& step : plan.steps) {
    for (const auto* list : {&step.inputs, &step.outputs})
      for (int id : *list)
        require(id >= 0 && id < count, "step '", step.name, "' refers to buffer ", id, " of ", count);
    for (int id : step.outputs)
      require(is_writable(plan.buffers[id], plan.buffers[plan.root(id)]), "step '", step.name, "' would write beyond '",
              plan.buffers[id].name, "'");
    for (int id : step.outputs)
      require(!is_input[id] && !(plan.buffers[id].alias_of >= 0 && is_input[plan.buffers[id].alias_of]), "step '",
              step.name, "' writes to an input of the engine");
    for (int in : step.inputs)
      for (int out : step.outputs)
        require(!overlap(plan, in, out), "step '", step.name, "' overwrites its own input '", plan.buffers[in].name,
                "'");
    for (const auto& [key, value] : step.floats)
      require(std::isfinite(static_cast<float>(value)), "step '", step.name, "': ", key, " is not finite");
    prepare_step(plan, step, table);
  }
  if (!plan.program) return;
  require(plan.program->inputs.size() == plan.outputs.size(), "the plan has ", plan.outputs.size(),
          " outputs, and the program behind it reads ", plan.program->inputs.size());
  for (const dense::Input& input : plan.program->inputs)
    require(input.type == dense::Type::kFloat || input.type == dense::Type::kInt64,
            "the program behind the plan reads ", dense::type_name(input.type), ", which no plan makes");
  dense::validate(*plan.program);
}

std::vector<LayerInfo> layer_list(const Plan& plan, Isa isa) {
  std::vector<LayerInfo> out;
  const kernels::KernelTable& table = kernels::kernels(isa);
  for (const Step& step : plan.steps) {
    const PreparedStep prepared = prepare_step(plan, step, table);
    out.push_back({.name = step.name,
                   .op = step.op,
                   .precision = step.int8 ? "int8" : "fp32",
                   .kernel = (prepared.kernel.empty() ? step.kind : prepared.kernel) + " " + isa_name(prepared.isa),
                   .reason = step.reason});
  }
  if (!plan.program) return out;
  for (const dense::WeightedOperation& w : dense::weighted_operations(*plan.program))
    out.push_back({.name = w.name,
                   .op = w.op,
                   .precision = w.why_float.empty() ? "int8" : "fp32",
                   .kernel = "program",
                   .reason = w.why_float});
  return out;
}

}  // namespace octet::engine
