#include "engine/steps_product.h"

#include <algorithm>
#include <cmath>

#include "engine/step_reader.h"

namespace octet::engine {
namespace {

using kernels::KernelTable;
using kernels::Range;

const Buffer& rows_of_codes(const StepReader& r, const Buffer& b) {
  r.check(b.layout == Layout::kCodeRows || b.layout == Layout::kCodeColumns, "buffer '", b.name, "' has the layout ",
          layout_name(b.layout), ", expected code_rows or code_columns");
  return b;
}

struct Matrices {
  int64_t count, rows, columns;
};
Matrices matrices(const Buffer& b) {
  const Buffer::Rows r = b.code_rows();
  const bool swapped = b.layout == Layout::kCodeColumns;
  return {r.n * r.h, swapped ? r.c : r.w, swapped ? r.w : r.c};
}

kernels::CodeMatrix matrix(const kernels::QTensor& t) {
  return {.data = t.data, .pitch = t.c_pitch, .zero_point = t.zero_point};
}

}  // namespace

PreparedStep prepare_quantize_rows(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.float_in(0), &out = rows_of_codes(r, r.out_buffer());
  r.check(in.layout == Layout::kFloatDense, "'", in.name, "' is not dense");
  r.check(out.code_min <= out.zero_point && out.zero_point <= out.code_max, "the zero point is outside the codes");
  const Buffer::Rows shape = out.code_rows();
  const auto strides = r.list("in_strides", 4, -kMaxExtent, kMaxExtent);
  const int64_t offset = r.integer_or("in_offset", 0, 0, kMaxExtent);
  r.check_walk("the source", {shape.n, shape.h, shape.w, shape.c}, strides, offset, in.elements());
  const kernels::QuantizeArgs base{
      .in_strides = {.n = strides[0], .h = strides[1], .w = strides[2], .c = strides[3]},
      .params = {.scale = out.scale, .zero_point = out.zero_point, .qmin = out.code_min, .qmax = out.code_max}};
  const int x = r.in(0), y = r.out();
  // Threads share the rows of codes: there are as few images and heads as two.
  const int64_t rows = shape.n * shape.h * shape.w;
  return {[=, kernel = table.quantize](const Memory& m, int part, int parts) {
            const Range share = share_of(rows, part, parts);
            for (int64_t row = share.begin; row < share.end;) {
              const int64_t image = row / shape.w, first = row % shape.w;
              const int64_t count = std::min(shape.w - first, share.end - row);
              kernels::QuantizeArgs args = base;
              args.in =
                  m.f(x) + offset + image / shape.h * strides[0] + image % shape.h * strides[1] + first * strides[2];
              args.out = m.q(y);
              args.out.data += row * args.out.c_pitch;
              args.out.n = args.out.h = 1, args.out.w = count;
              kernel(args, Range{0, 1});
              row += count;
            }
          },
          table.quantize.isa};
}

PreparedStep prepare_int8_matmul(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(2, 1);
  const Buffer &a = rows_of_codes(r, r.in_buffer(0)), &b = rows_of_codes(r, r.in_buffer(1)), &out = r.float_out();
  r.check(a.layout == Layout::kCodeRows, "the first factor has no rows");
  r.check(out.layout == Layout::kFloatDense, "'", out.name, "' is not dense");
  const Matrices left = matrices(a), right = matrices(b);
  r.check(left.count == right.count && left.columns == right.rows, "the factors '", a.name, "' and '", b.name,
          "' do not fit");
  r.check(left.columns <= kernels::kMaxMatMulDepth, "sums of ", left.columns, " products may overflow");
  r.check(static_cast<__int128>(left.count) * left.rows * right.columns == out.elements(),
          "the product does not fit its buffer");
  kernels::Int8MatMulArgs base{.b_transposed = b.layout == Layout::kCodeColumns,
                               .scale = a.scale * b.scale,
                               .m = left.rows,
                               .n = right.columns,
                               .k = left.columns};
  r.check(std::isfinite(base.scale) && base.scale > 0, "the product of the scales is not a positive number");
  const int64_t rows = left.count * left.rows;
  const int x = r.in(0), w = r.in(1), y = r.out();
  return {.run =
              [=, kernel = table.int8_matmul](const Memory& m, int part, int parts) {
                kernels::Int8MatMulArgs args = base;
                args.a = matrix(m.q(x)), args.b = matrix(m.q(w)), args.out = m.f(y);
                args.scratch = m.scratch_of(part);
                kernel(args, share_of(rows, part, parts));
              },
          .isa = table.int8_matmul.isa,
          .scratch_bytes = kernels::int8_matmul_scratch(base.n, base.k)};
}

}  // namespace octet::engine
