// What C interfaces have in common: statuses and sentences in the place of exceptions, structs that carry their size.
#pragma once
#include <octet/octet.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "base/error.h"

namespace octet::c_interface {

// Allocation may be what fails, so even keeping the sentence must not throw.
inline octet_status failed(std::string& last_error, octet_status status, const char* sentence) noexcept {
  try {
    last_error = sentence;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

// What `work` returns, or the status of what it throws, whose sentence `last_error` then holds.
template <typename Work>
octet_status guarded(std::string& last_error, Work work) noexcept {
  try {
    last_error.clear();
    return work();
  } catch (const Error& e) {
    return failed(last_error, OCTET_ERROR, e.what());
  } catch (const std::bad_alloc&) {
    return failed(last_error, OCTET_ERROR, "memory is used up");
  } catch (const std::exception& e) {
    return failed(last_error, OCTET_INTERNAL, e.what());
  } catch (...) {
    return failed(last_error, OCTET_INTERNAL, "unknown failure");
  }
}

inline void need(const void* pointer, const char* what) {
  if (pointer == nullptr) throw Error(str(what, " is a null pointer"));
}

// Of a struct of the caller, in its first member.
inline size_t struct_size(const void* given, const char* name) {
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size < sizeof(size) || size > 4096)
    throw Error(str(name, ": struct_size is ", size, "; start from its ..._INIT macro"));
  return size;
}

// A struct of the caller, whose header may be older (shorter: what it lacks keeps its default) or newer (longer: what
// this library does not know must be zero).
template <typename Struct>
Struct read_struct(const Struct* given, const Struct& defaults, const char* name) {
  if (given == nullptr) return defaults;
  const size_t size = struct_size(given, name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(Struct) &&
      std::any_of(bytes + sizeof(Struct), bytes + size, [](unsigned char b) { return b != 0; }))
    throw Error(str(name, ": uses members that this version of the library does not have"));
  Struct out = defaults;
  std::memcpy(&out, given, std::min(size, sizeof(Struct)));
  return out;
}

// Fills the caller's struct as far as its header knows the members.
template <typename Struct>
void write_struct(Struct value, Struct* to, const char* name) {
  need(to, name);
  const size_t size = struct_size(to, name);
  value.struct_size = size;
  std::memcpy(to, &value, std::min(size, sizeof(Struct)));
}

}  // namespace octet::c_interface
