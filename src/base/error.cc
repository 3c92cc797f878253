#include "base/error.h"

#include <cstring>

namespace octet::internal {

void internal_failure(const char* file, int line, const char* condition, const std::string& message) {
  const char* source = std::strstr(file, "src/");
  throw InternalError(str("internal error at ", source ? source : file, ":", line, ": ", condition, " does not hold",
                          message.empty() ? "" : ": ", message));
}

}  // namespace octet::internal
