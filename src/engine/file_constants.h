// The constants of an engine file in memory, safe from what happens to the file later. Writing over a mapped file
// changes what a running engine computes, and cutting it off ends the process (SIGBUS), so what kernels read in every
// run is copied. Only the large weights that each instruction set copies or reorders anyhow (kMovedWeightBytes) are
// mapped, so that a process holds them once: they are read while the first context is made and given back then.
#pragma once
#include <memory>
#include <string>

#include "base/files.h"
#include "base/input_file.h"
#include "engine/plan.h"

namespace octet::engine {

// INT8 convolutions read weights of this size and more from a copy on huge pages, or in an order of their own: 4 KiB
// pages of a file cost one address translation after the other (in a virtual machine, two). The copy is 2 to 3 %
// faster.
constexpr int64_t kMovedWeightBytes = 64 << 10;

// `whole` is the file; its constants begin at `offset` and are those of `plan`, which need not be valid yet.
std::shared_ptr<const ConstantBlob> make_file_constants(std::unique_ptr<InputFile> file,
                                                        std::unique_ptr<MappedFile> whole, size_t offset,
                                                        const Plan& plan, const std::string& name);

}  // namespace octet::engine
