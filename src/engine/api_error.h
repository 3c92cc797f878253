// The error of the installed C++ interfaces, of the engine and of the compiler.
#pragma once
#include <octet/engine.h>

#include "base/error.h"

namespace octet {

// The public interface has an error type of its own, so that its header needs nothing else of Octet.
template <typename Work>
auto translated(Work work) {
  try {
    return work();
  } catch (const UserError& e) {
    throw Error(e.what());
  }
}

}  // namespace octet
