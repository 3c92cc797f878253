#include "weights/torch_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "base/error.h"
#include "ir/half.h"
#include "weights/pickle.h"
#include "weights/stored_zip.h"

namespace octet::weights {
namespace {

using Id = Pickle::Id;
using Kind = Pickle::Kind;

constexpr std::string_view kStreamMagic{"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14};
constexpr size_t kLargestPickle = size_t{64} << 20;

enum class Item { kFloat, kDouble, kHalf, kBFloat16, kOther };
struct Storage {
  const char* name;
  Item item;
  size_t bytes;  // of one
};
constexpr Storage kStorages[] = {
    {"torch FloatStorage", Item::kFloat, 4}, {"torch DoubleStorage", Item::kDouble, 8},
    {"torch HalfStorage", Item::kHalf, 2},   {"torch BFloat16Storage", Item::kBFloat16, 2},
    {"torch LongStorage", Item::kOther, 8},  {"torch IntStorage", Item::kOther, 4},
    {"torch ShortStorage", Item::kOther, 2}, {"torch CharStorage", Item::kOther, 1},
    {"torch ByteStorage", Item::kOther, 1},  {"torch BoolStorage", Item::kOther, 1},
};

float item_at(const Storage& storage, const char* at) {
  const auto read = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (storage.item) {
    case Item::kFloat:
      return read(float{});
    case Item::kDouble:
      return static_cast<float>(read(double{}));
    case Item::kHalf:
      return ir::half_to_float(read(uint16_t{}));
    case Item::kBFloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(read(uint16_t{})) << 16);
    case Item::kOther:
      break;
  }
  OCTET_CHECK(false, "a storage of integers has no floats");
}

// A tensor as the pickle has it, in items of its storage.
struct View {
  const Storage* storage;
  std::string key;
  int64_t offset;
  ir::Shape shape;
  std::vector<int64_t> strides;
};

std::vector<int64_t> integers(const Pickle& pickle, Id id) {
  std::vector<int64_t> out;
  for (const Id item : pickle[id].items) {
    if (pickle[item].kind != Kind::kInt || pickle[item].number < 0)
      fail("a tensor of its has a size that is no number");
    out.push_back(pickle[item].number);
  }
  return out;
}

// ('storage', class, key, location, items)
std::pair<const Storage*, std::string> storage_of(const Pickle& pickle, Id id) {
  const Pickle::Object& persistent = pickle[id];
  if (persistent.kind != Kind::kPersistent) fail("a tensor of its has no storage");
  const std::vector<Id>& parts = pickle[persistent.items.at(0)].items;
  if (parts.size() < 3 || !pickle.is_text(parts[0], "storage") || pickle[parts[2]].kind != Kind::kText)
    fail("a tensor of its has a storage without a place");
  for (const Storage& known : kStorages)
    if (pickle.is_global(parts[1], known.name)) return {&known, pickle[parts[2]].text};
  return {nullptr, ""};  // complex and quantized numbers
}

// The tensor that the object is, through the wrappers of parameters; nothing for everything else.
std::optional<View> view_of(const Pickle& pickle, Id id) {
  for (int wrappers = 0; wrappers < 4; ++wrappers) {
    const Pickle::Object& record = pickle[id];
    if (record.kind != Kind::kRecord) return std::nullopt;
    const std::vector<Id>& arguments = pickle[record.items.at(1)].items;
    const std::string& called = pickle[record.items.at(0)].text;
    if ((called == "torch._utils _rebuild_parameter" || called == "torch._utils _rebuild_parameter_with_state") &&
        !arguments.empty()) {
      id = arguments[0];
      continue;
    }
    if (called != "torch._utils _rebuild_tensor_v2" || arguments.size() < 4) return std::nullopt;
    const auto [storage, key] = storage_of(pickle, arguments[0]);
    if (storage == nullptr || storage->item == Item::kOther) return std::nullopt;
    if (pickle[arguments[1]].kind != Kind::kInt || pickle[arguments[1]].number < 0)
      fail("a tensor of its begins at no number");
    View view{storage, key, pickle[arguments[1]].number, integers(pickle, arguments[2]),
              integers(pickle, arguments[3])};
    if (view.shape.size() != view.strides.size()) fail("a tensor of its has another number of strides than of sizes");
    for (size_t d = 0; d < view.shape.size(); ++d)
      if (view.shape[d] <= 1) view.strides[d] = 0;  // nobody steps along it, whatever the file says
    return view;
  }
  return std::nullopt;
}

// `budget`: floats that all tensors together may still have.
ir::Tensor tensor_of(const View& view, std::string_view data, size_t& budget) {
  size_t count = 1;
  __int128 last = view.offset;  // the item farthest back
  for (size_t d = 0; d < view.shape.size(); ++d) {
    const auto size = static_cast<size_t>(view.shape[d]);
    if (size > 0 && count > budget / size) fail("its tensors are larger than the file");
    count *= size;
    last += static_cast<__int128>(std::max<int64_t>(view.shape[d] - 1, 0)) * view.strides[d];
  }
  if (count > budget) fail("its tensors are larger than the file");
  budget -= count;
  std::vector<float> values;
  if (count > 0) {
    if (last >= static_cast<__int128>(data.size() / view.storage->bytes))
      fail("a tensor of its leaves its storage ", view.key);
    values.reserve(count);
    std::vector<int64_t> index(view.shape.size(), 0);
    int64_t at = view.offset;
    while (values.size() < count) {
      values.push_back(item_at(*view.storage, data.data() + static_cast<size_t>(at) * view.storage->bytes));
      for (size_t d = index.size(); d-- > 0;) {
        at += view.strides[d];
        if (++index[d] < view.shape[d]) break;
        at -= view.strides[d] * view.shape[d];
        index[d] = 0;
      }
    }
  }
  return ir::Tensor::of<float>(view.shape, values);
}

bool has_tensors(const Pickle& pickle, Id id) {
  const Pickle::Object& object = pickle[id];
  if (object.kind != Kind::kDict) return false;
  for (size_t i = 0; i + 1 < object.items.size(); i += 2)
    if (pickle[object.items[i]].kind == Kind::kText && view_of(pickle, object.items[i + 1])) return true;
  return false;
}

Id state_dictionary(const Pickle& pickle) {
  const Id root = pickle.root();
  if (pickle.find(root, "state_dict_encrypted") != nullptr)
    fail("is encrypted; only the program that wrote it can open it");
  if (has_tensors(pickle, root)) return root;
  for (const char* const key : {"state_dict", "model_state_dict", "model", "module", "net"})
    if (const Id* inner = pickle.find(root, key)) {
      if (has_tensors(pickle, *inner)) return *inner;
      if (pickle[*inner].kind == Kind::kRecord)
        fail(
            "holds a model as Python objects, which only its own program can read; save its weights alone: "
            "torch.save(model.state_dict(), \"NAME.pth\")");
    }
  if (pickle[root].kind == Kind::kRecord)
    fail(
        "holds a model as Python objects, which only its own program can read; save its weights alone: "
        "torch.save(model.state_dict(), \"NAME.pth\")");
  fail("holds no state dictionary with tensors");
}

void take_off_prefix(checkpoint::NamedTensors& tensors, const std::string& prefix) {
  if (tensors.empty()) return;
  for (const auto& [name, tensor] : tensors)
    if (!name.starts_with(prefix)) return;
  checkpoint::NamedTensors out;
  for (auto& [name, tensor] : tensors) out.emplace(name.substr(prefix.size()), std::move(tensor));
  tensors = std::move(out);
}

// `data_of`: the bytes of a storage by its key.
checkpoint::NamedTensors tensors_of(const Pickle& pickle, size_t file_bytes,
                                    const std::function<std::string_view(const std::string& key)>& data_of) {
  checkpoint::NamedTensors out;
  std::map<std::string, std::string_view> read;
  size_t budget = std::max<size_t>(file_bytes, 1024);
  const Pickle::Object& dictionary = pickle[state_dictionary(pickle)];
  for (size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    if (pickle[dictionary.items[i]].kind != Kind::kText) continue;
    const std::optional<View> view = view_of(pickle, dictionary.items[i + 1]);
    if (!view) continue;
    const auto [at, is_new] = read.emplace(view->key, std::string_view());
    if (is_new) at->second = data_of(view->key);
    out.insert_or_assign(pickle[dictionary.items[i]].text, tensor_of(*view, at->second, budget));
  }
  take_off_prefix(out, "module.");
  take_off_prefix(out, "model.");
  return out;
}

checkpoint::NamedTensors read_archive(std::string_view bytes) {
  const StoredZip archive(bytes);
  std::string folder;
  for (const std::string& name : archive.names())
    if (const size_t slash = name.find('/'); slash != std::string::npos && name.substr(slash) == "/data.pkl")
      folder = name.substr(0, slash);
  if (folder.empty())
    fail("is an archive, but none of PyTorch's; of Keras 3, save the model as HDF5 (model.save(\"NAME.h5\"))");
  if (archive.has(folder + "/byteorder") && archive.read(folder + "/byteorder") != "little")
    fail("was written on a machine with the other order of bytes");
  const std::string_view pickled = archive.read(folder + "/data.pkl");
  if (pickled.size() > kLargestPickle) fail("its pickle has ", pickled.size(), " bytes; at most 64 MiB are read");
  return tensors_of(Pickle(pickled), bytes.size(),
                    [&](const std::string& key) { return archive.read(folder + "/data/" + key); });
}

// The magic number, a version, facts of the machine, the object, the keys of its storages in order, and each of those
// as an int64 with its number of items and the items.
checkpoint::NamedTensors read_stream(std::string_view bytes) {
  size_t at = 0;
  const auto next = [&] {
    Pickle pickle(bytes.substr(at, kLargestPickle));
    at += pickle.bytes_read();
    return pickle;
  };
  for (int i = 0; i < 3; ++i) next();
  const Pickle object = next(), keys = next();
  std::map<std::string, size_t> item_bytes;  // of all storages that the object names
  for (Id id = 0; id < object.count(); ++id)
    if (object[id].kind == Kind::kPersistent)
      if (const auto [storage, key] = storage_of(object, id); storage != nullptr) item_bytes[key] = storage->bytes;
  std::map<std::string, std::string_view> storages;
  for (const Id id : keys[keys.root()].items) {
    const std::string& key = keys[id].text;
    int64_t items = 0;
    if (at + sizeof items > bytes.size()) fail("it ends too soon");
    std::memcpy(&items, bytes.data() + at, sizeof items);
    at += sizeof items;
    const auto size = item_bytes.find(key);
    if (size == item_bytes.end()) fail("it has a storage ", key, " of an unknown type");
    if (items < 0 || static_cast<uint64_t>(items) > (bytes.size() - at) / size->second) fail("it ends too soon");
    storages[key] = bytes.substr(at, static_cast<size_t>(items) * size->second);
    at += storages[key].size();
  }
  return tensors_of(object, bytes.size(), [&](const std::string& key) {
    const auto found = storages.find(key);
    if (found == storages.end()) fail("it has no storage ", key);
    return found->second;
  });
}

}  // namespace

bool is_torch_file(std::string_view bytes) {
  return is_zip(bytes) || bytes.starts_with(kStreamMagic);
}

checkpoint::NamedTensors read_torch_weights(std::string_view bytes, const std::string& origin) {
  try {
    return is_zip(bytes) ? read_archive(bytes) : read_stream(bytes);
  } catch (const UserError& e) {
    fail(origin, ": ", e.what());
  }
}

}  // namespace octet::weights
