// What a layer's header needs in order to declare that its options are described: names of enumerations, and Section by
// name. schema.h has the rest, for the sources.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"

namespace octet::schema {

class Section;

// The names of an enumeration's values, in the order of the help. Declared in the namespace of the enumeration by
//   std::span<const schema::EnumName<Precision>> enum_names(Precision);
// and defined by
//   OCTET_ENUM_NAMES(Precision, {Precision::kFloat32, "fp32"}, {Precision::kBFloat16, "bf16"})
template <typename E>
struct EnumName {
  E value;
  const char* name;
};

#define OCTET_ENUM_NAMES(Type, ...)                                           \
  std::span<const ::octet::schema::EnumName<Type>> enum_names(Type) {         \
    static constexpr ::octet::schema::EnumName<Type> names[] = {__VA_ARGS__}; \
    return names;                                                             \
  }

template <typename E>
const char* enum_name(E value) {
  for (const EnumName<E>& entry : enum_names(E{}))
    if (entry.value == value) return entry.name;
  OCTET_CHECK(false, "an enumeration value without a name");
  return "";
}

// "a, b or c"
std::string alternatives(const std::vector<std::string>& names);

// The value called `name`; `what` is the enumeration's in the message. UserError (exit 2) with the names and the
// nearest.
template <typename E>
E parse_enum(const std::string& what, const std::string& name) {
  std::vector<std::string> names;
  for (const EnumName<E>& entry : enum_names(E{})) {
    if (name == entry.name) return entry.value;
    names.push_back(entry.name);
  }
  fail_usage("unknown ", what, " '", name, "'; use ", alternatives(names), did_you_mean(name, names));
}

}  // namespace octet::schema
