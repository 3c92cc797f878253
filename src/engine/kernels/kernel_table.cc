#include "engine/kernels/kernel_table.h"

#include "engine/kernels/generic/generic_kernels.h"
#include "engine/kernels/isa_kernels.h"
#include "engine/kernels/scalar/scalar_kernels.h"

namespace octet::kernels {
namespace {

KernelTable make_table(Isa isa) {
  KernelTable table;
  add_scalar_int8_conv(table);
  add_scalar_int8_ops(table);
  add_scalar_int8_matmul(table);
  add_scalar_row_sums(table);
  add_scalar_float_conv(table);
  add_scalar_float_functions(table);
  add_scalar_float_ops(table);
  add_scalar_strided_copy(table);
  if (isa >= Isa::kGeneric) {
    add_generic_int8_conv(table);
    add_generic_int8_ops(table);
    add_generic_float_functions(table);
  }
#if defined(__x86_64__)
  if (isa >= Isa::kAvx2) add_avx2_kernels(table);
  // Not below AVX-512: some processors have that without AVX-VNNI.
  if (isa == Isa::kAvxVnni) add_avx_vnni_kernels(table);
  if (isa >= Isa::kAvx512Vnni) add_avx512_vnni_kernels(table);
  if (isa >= Isa::kAmxInt8) add_amx_kernels(table);
#endif
  table.isa = isa;
  return table;
}

// Each when it is asked for: the code of other instruction sets, touched for their tables, would be resident.
template <Isa kIsa>
const KernelTable& table() {
  static const KernelTable made = make_table(kIsa);
  return made;
}

}  // namespace

void set_direct_conv(KernelTable& table, ConvFunction* function, Isa isa, double (*cost)(const ConvArgs&, int)) {
  // The dot products of AVX-512 stay a choice beside the AMX tiles; all others are superseded by stronger ones.
  std::erase_if(table.conv_tactics, [&](const ConvTactic& t) { return t.isa < isa && t.isa != Isa::kAvx512Vnni; });
  table.conv = {function, isa};
  table.conv_tactics.push_back({.isa = isa, .run = function, .cost = cost});
}

const KernelTable& kernels(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return table<Isa::kScalar>();
    case Isa::kGeneric:
      return table<Isa::kGeneric>();
    case Isa::kAvx2:
      return table<Isa::kAvx2>();
    case Isa::kAvxVnni:
      return table<Isa::kAvxVnni>();
    case Isa::kAvx512Vnni:
      return table<Isa::kAvx512Vnni>();
    case Isa::kAmxInt8:
      break;
  }
  return table<Isa::kAmxInt8>();
}

}  // namespace octet::kernels
