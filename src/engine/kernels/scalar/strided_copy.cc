#include "engine/kernels/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/kernels/scalar/scalar_kernels.h"

namespace octet::kernels {
namespace {

struct Dimension {
  int64_t size, in, out;  // strides
};

// A square of both tensors lies in the first cache.
constexpr int64_t kTile = 16;
// Longer rows are cut where there are few of them: threads share rows.
constexpr int64_t kFewRows = 64, kLongRow = 4096;

// Where a row begins, and of which dimensions it is; counted up from row to row.
class Walk {
 public:
  Walk(const StridedCopyArgs& a, int64_t row) : a_(a) {
    for (int d = a.rank - 2; d >= 0; --d) {
      index_[d] = row % a.dims[d];
      row /= a.dims[d];
      from += index_[d] * a.in_strides[d];
      to += index_[d] * a.out_strides[d];
    }
  }
  // Rows up to the end of the dimension around them.
  int64_t left() const { return a_.rank < 2 ? 1 : a_.dims[a_.rank - 2] - index_[a_.rank - 2]; }
  // At most left() rows.
  void advance(int64_t rows) {
    for (int d = a_.rank - 2; d >= 0; --d, rows = 1) {
      index_[d] += rows;
      from += rows * a_.in_strides[d];
      to += rows * a_.out_strides[d];
      if (index_[d] < a_.dims[d]) return;
      index_[d] = 0;
      from -= a_.dims[d] * a_.in_strides[d];
      to -= a_.dims[d] * a_.out_strides[d];
    }
  }
  int64_t from = 0, to = 0;

 private:
  const StridedCopyArgs& a_;
  std::array<int64_t, kMaxRank> index_{};
};

// out[r * out_step + i] = in[i * in_step + r]
template <typename T>
void transpose(const T* in, int64_t in_step, T* out, int64_t out_step, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < columns; i += kTile) {
    const int64_t end = std::min(i + kTile, columns);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = i; k < end; ++k) out[r * out_step + k] = in[k * in_step + r];
  }
}

template <typename T>
void copy_rows(const StridedCopyArgs& a, Range rows) {
  const int last = a.rank - 1;
  const int64_t inner = a.dims[last], in_step = a.in_strides[last], out_step = a.out_strides[last];
  const bool turned = last > 0 && out_step == 1 && in_step != 1 && a.in_strides[last - 1] == 1;
  Walk walk(a, rows.begin);
  for (int64_t r = rows.begin; r < rows.end;) {
    const T* in = static_cast<const T*>(a.in) + walk.from;
    T* out = static_cast<T*>(a.out) + walk.to;
    const int64_t count = turned ? std::min({kTile, walk.left(), rows.end - r}) : 1;
    if (turned)
      transpose(in, in_step, out, a.out_strides[last - 1], count, inner);
    else if (in_step == 1 && out_step == 1)
      std::memcpy(out, in, static_cast<size_t>(inner) * sizeof(T));
    else
      for (int64_t i = 0; i < inner; ++i) out[i * out_step] = in[i * in_step];
    walk.advance(count);
    r += count;
  }
}

void strided_copy(const StridedCopyArgs& a, Range rows) {
  switch (a.element_bytes) {
    case 1:
      return copy_rows<uint8_t>(a, rows);
    case 8:
      return copy_rows<uint64_t>(a, rows);
    default:
      return copy_rows<uint32_t>(a, rows);
  }
}

// From the outermost of the target to the innermost, as few as will do.
std::vector<Dimension> joined(const StridedCopyArgs& args) {
  std::vector<Dimension> dims;
  for (int d = 0; d < args.rank; ++d)
    if (args.dims[d] > 1) dims.push_back({args.dims[d], args.in_strides[d], args.out_strides[d]});
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dimension& a, const Dimension& b) { return std::abs(a.out) > std::abs(b.out); });
  std::vector<Dimension> out;
  for (const Dimension& d : dims) {
    if (!out.empty() && out.back().in == d.in * d.size && out.back().out == d.out * d.size)
      out.back() = {out.back().size * d.size, d.in, d.out};
    else
      out.push_back(d);
  }
  if (out.empty()) out.push_back({1, 1, 1});
  return out;
}

// Moves the first that fits to the place `from_end` before the end.
template <typename Fits>
bool move_back(std::vector<Dimension>& dims, size_t from_end, Fits fits) {
  const auto end = dims.end() - static_cast<std::ptrdiff_t>(from_end);
  const auto found = std::find_if(dims.begin(), end, fits);
  if (found == end) return false;
  std::rotate(found, found + 1, end);
  return true;
}

}  // namespace

StridedCopyArgs simplified(const StridedCopyArgs& args) {
  std::vector<Dimension> dims = joined(args);
  if (!move_back(dims, 0, [](const Dimension& d) { return d.in == 1 && d.out == 1; }) &&
      move_back(dims, 0, [](const Dimension& d) { return d.out == 1; }))
    move_back(dims, 1, [](const Dimension& d) { return d.in == 1; });
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i].size;
  const Dimension last = dims.back();
  if (rows < kFewRows && last.in == 1 && last.size > kLongRow && dims.size() < kMaxRank) {
    int64_t length = kLongRow;
    while (last.size % length != 0) --length;
    if (length > kTile) {
      dims.back() = {last.size / length, last.in * length, last.out * length};
      dims.push_back({length, last.in, last.out});
    }
  }
  StridedCopyArgs out = args;
  out.rank = static_cast<int>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    out.dims[i] = dims[i].size, out.in_strides[i] = dims[i].in, out.out_strides[i] = dims[i].out;
  return out;
}

int64_t row_count(const StridedCopyArgs& args) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < args.rank; ++d) rows *= args.dims[d];
  return rows;
}

void add_scalar_strided_copy(KernelTable& table) {
  table.strided_copy = {strided_copy};
}

}  // namespace octet::kernels
