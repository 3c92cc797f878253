#include "base/cpu_features.h"

#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"

namespace octet {
namespace {

constexpr Isa kAll[] = {Isa::kScalar, Isa::kGeneric, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512Vnni, Isa::kAmxInt8};

#if defined(__x86_64__)
uint64_t read_xcr0() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Linux grants the tile registers only on request, once per process.
bool amx_permitted() {
  constexpr int kArchReqXcompPerm = 0x1023, kXtileData = 18;
  return ::syscall(SYS_arch_prctl, kArchReqXcompPerm, kXtileData) == 0;
}

CpuFeatures detect() {
  CpuFeatures f;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return f;
  const bool osxsave = c >> 27 & 1;
  f.fma = c >> 12 & 1;
  if (!osxsave) return CpuFeatures{};
  const uint64_t xcr0 = read_xcr0();
  const bool ymm = (xcr0 & 0x6) == 0x6, zmm = (xcr0 & 0xe6) == 0xe6, tiles = (xcr0 & 0x60000) == 0x60000;
  f.fma = f.fma && ymm;
  unsigned b7 = 0, c7 = 0, d7 = 0, a71 = 0;
  if (__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) {
    const unsigned subleaves = a;
    if (subleaves >= 1) __get_cpuid_count(7, 1, &a71, &b, &c, &d);
  }
  f.avx2 = ymm && (b7 >> 5 & 1);
  f.avx_vnni = f.avx2 && (a71 >> 4 & 1);
  f.avx512 = zmm && (b7 >> 16 & 1) && (b7 >> 17 & 1) && (b7 >> 30 & 1) && (b7 >> 31 & 1);
  f.avx512_vnni = f.avx512 && (c7 >> 11 & 1);
  f.avx512_bf16 = f.avx512 && (a71 >> 5 & 1);
  const bool amx = tiles && (d7 >> 24 & 1) && amx_permitted();
  f.amx_int8 = amx && f.avx512_vnni && (d7 >> 25 & 1);
  f.amx_bf16 = amx && (d7 >> 22 & 1);
  return f;
}
#else
CpuFeatures detect() {
  return {};
}
#endif

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kGeneric:
      return "generic";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avx_vnni";
    case Isa::kAvx512Vnni:
      return "avx512_vnni";
    case Isa::kAmxInt8:
      return "amx_int8";
  }
  return "unknown";
}

Isa parse_isa(const std::string& name) {
  for (Isa isa : kAll)
    if (name == isa_name(isa)) return isa;
  fail_usage("unknown instruction set '", name, "'; one of scalar, generic, avx2, avx_vnni, avx512_vnni, amx_int8");
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

bool isa_supported(Isa isa) {
  const CpuFeatures& f = cpu_features();
  switch (isa) {
    case Isa::kScalar:
    case Isa::kGeneric:
      return true;
    case Isa::kAvx2:
      return f.avx2 && f.fma;
    case Isa::kAvxVnni:
      return f.avx_vnni && f.fma;
    case Isa::kAvx512Vnni:
      return f.avx512_vnni;
    case Isa::kAmxInt8:
      return f.amx_int8;
  }
  return false;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> out;
  for (Isa isa : kAll)
    if (isa_supported(isa)) out.push_back(isa);
  return out;
}

Isa default_isa() {
  if (const char* forced = std::getenv("OCTET_ISA"); forced && *forced) {
    const Isa isa = parse_isa(forced);
    if (!isa_supported(isa)) fail_usage("OCTET_ISA=", forced, ": this CPU (", cpu_model_name(), ") does not have it");
    return isa;
  }
  return supported_isas().back();
}

bool has_fast_bf16() {
  return cpu_features().avx512_bf16 || cpu_features().amx_bf16;
}

std::string cpu_model_name() {
  std::ifstream in("/proc/cpuinfo");
  return cpu_model_name(in);
}

std::string cpu_model_name(std::istream& cpuinfo) {
  std::string name, family, model;
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {  // an empty line ends the first CPU
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_first_of("\t:")), value = line.substr(colon + 2);
    if (key == "model name") name = value;
    if (key == "cpu family") family = value;
    if (key == "model") model = value;
  }
  if (name.empty()) return "unknown CPU";
  if (name.find_first_of("0123456789") != std::string::npos || family.empty() || model.empty()) return name;
  return name + " (family " + family + ", model " + model + ")";
}

Isa chosen_isa(const std::string& name) {
  if (name.empty() || name == "auto") return default_isa();
  const Isa isa = parse_isa(name);
  if (!isa_supported(isa)) {
    std::string supported;
    for (const Isa each : supported_isas()) supported += (supported.empty() ? "" : ", ") + std::string(isa_name(each));
    fail_usage("this CPU has no ", name, "; it has ", supported);
  }
  return isa;
}

}  // namespace octet
