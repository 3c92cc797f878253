#include "tao/message.h"

#include <algorithm>

namespace octet::tao {

Field& Message::choice(std::string name, Names names) {
  Field& field = add(std::move(name), Type::kChoice, Count::kOne);
  field.choices_ = std::move(names);
  return field;
}

Field& Message::message(std::string name, Message inner, Count count) {
  Field& field = add(std::move(name), Type::kMessage, count);
  field.inner_ = std::make_shared<const Message>(std::move(inner));
  return field;
}

const Field* Message::find(std::string_view name) const {
  const auto it = std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.name() == name; });
  return it == fields_.end() ? nullptr : &*it;
}

std::vector<std::string> Message::field_names() const {
  std::vector<std::string> names;
  for (const Field& field : fields_) names.push_back(field.name());
  return names;
}

}  // namespace octet::tao
