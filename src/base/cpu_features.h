// What this processor can execute, and what of it Octet is allowed to use.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "base/cpu_limits.h"

namespace octet {

// Instruction sets that the engine has kernels for, weakest first. kGeneric: 128-bit vectors
// that the compiler translates, on any CPU.
enum class Isa { kScalar, kGeneric, kAvx2, kAvxVnni, kAvx512Vnni, kAmxInt8 };

const char* isa_name(Isa isa);           // "scalar", "generic", "avx2", "avx_vnni", "avx512_vnni", "amx_int8"
Isa parse_isa(const std::string& name);  // UserError (exit 2) with the list of names

struct CpuFeatures {
  bool avx2 = false, fma = false, avx_vnni = false, avx512 = false;                   // avx512: F, BW, DQ, VL
  bool avx512_vnni = false, avx512_bf16 = false, amx_int8 = false, amx_bf16 = false;  // amx: also permitted by the OS
};
const CpuFeatures& cpu_features();

bool isa_supported(Isa isa);
std::vector<Isa> supported_isas();
// The best supported one, or what the environment variable OCTET_ISA names (UserError if this CPU lacks it).
Isa default_isa();
// What a person asks for by name: empty or "auto" is default_isa(). UserError (exit 2) if this CPU lacks it.
Isa chosen_isa(const std::string& name);
// BF16 convolutions run at speed (AVX512-BF16 or AMX-BF16).
bool has_fast_bf16();

// As Linux calls it. Many virtual machines keep the number to themselves ("AMD EPYC"): then with the family and model,
// which tell one generation from the next. The second form reads a text like /proc/cpuinfo.
std::string cpu_model_name();
std::string cpu_model_name(std::istream& cpuinfo);

}  // namespace octet
