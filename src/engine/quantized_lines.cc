#include "engine/quantized_lines.h"

#include <algorithm>
#include <utility>

namespace octet::engine {
namespace {

constexpr int64_t kAtOnce = 8;

}  // namespace

PreparedStep quantized_lines(const StepReader& r, const kernels::KernelTable& table, Isa isa, int64_t lines,
                             int64_t length, LinesOfFloats make) {
  const Buffer& out = r.out_buffer();
  const bool features = out.layout == Layout::kCodes && out.shape.size() == 2;
  r.check(features || out.layout == Layout::kCodeRows, "'", out.name, "' has no rows of codes");
  const Buffer::Rows rows = out.code_rows();
  r.check(rows.c == length && rows.n * rows.h * rows.w == lines, "'", out.name, "' has other rows than the input");
  r.check(out.code_min <= out.zero_point && out.zero_point <= out.code_max, "the zero point is outside the codes");
  const numerics::QuantParams params{
      .scale = out.scale, .zero_point = out.zero_point, .qmin = out.code_min, .qmax = out.code_max};
  const int y = r.out();
  return {.run =
              [=, make = std::move(make), kernel = table.quantize](const Memory& m, int part, int parts) {
                const kernels::Range share = share_of(lines, part, parts);
                auto* const floats = reinterpret_cast<float*>(m.scratch_of(part));
                const kernels::QTensor& codes = m.q(y);
                const int64_t pitch = features ? codes.image_stride : codes.c_pitch;
                for (int64_t first = share.begin; first < share.end; first += kAtOnce) {
                  const int64_t count = std::min(kAtOnce, share.end - first);
                  make(m, {first, first + count}, floats);
                  kernels::QuantizeArgs args{
                      .in = floats, .in_strides = {.w = length, .c = 1}, .out = codes, .params = params};
                  args.out.data += first * pitch;
                  args.out.n = args.out.h = 1, args.out.w = count, args.out.c = length, args.out.c_pitch = pitch;
                  kernel(args, kernels::Range{0, 1});
                }
              },
          .isa = isa,
          .scratch_bytes = kAtOnce * length * static_cast<int64_t>(sizeof(float))};
}

}  // namespace octet::engine
