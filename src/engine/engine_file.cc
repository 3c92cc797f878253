#include "engine/engine_file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "engine/plan_json.h"

namespace octet::engine {
namespace {

constexpr unsigned char kMagic[8] = {'O', 'C', 'T', 'E', 'T', 0, 0, 1};

struct Header {
  unsigned char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t plan_bytes, constant_bytes;
  uint64_t hash;  // of everything behind the header
  unsigned char padding[24];
};
static_assert(sizeof(Header) == 64);

// Constants that live in a mapped file.
class MappedBlob : public ConstantBlob {
 public:
  MappedBlob(std::shared_ptr<MappedFile> file, std::span<const std::byte> bytes)
      : file_(std::move(file)), bytes_(bytes) {}
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  std::shared_ptr<MappedFile> file_;
  std::span<const std::byte> bytes_;
};

struct Sections {
  std::string_view plan;
  std::span<const std::byte> constants;
};

Sections split(std::span<const std::byte> bytes, const std::string& name) {
  Header header;
  require(bytes.size() >= sizeof(kMagic) && std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) == 0, name,
          ": not an Octet engine file; make one with 'octet compile'");
  require(bytes.size() >= sizeof(header), name, ": truncated (", bytes.size(), " bytes, shorter than the header)");
  std::memcpy(&header, bytes.data(), sizeof(header));
  require(header.version == kEngineFormatVersion, name, ": engine format version ", header.version,
          "; this Octet reads version ", kEngineFormatVersion, ", so compile the model again with it");
  const uint64_t rest = bytes.size() - sizeof(header);
  require(header.plan_bytes <= rest && header.constant_bytes <= rest - header.plan_bytes, name, ": truncated (",
          bytes.size(), " bytes; the header promises ", header.plan_bytes, " of plan and ", header.constant_bytes,
          " of constants)");
  require(header.plan_bytes + header.constant_bytes == rest, name, ": damaged (",
          rest - header.plan_bytes - header.constant_bytes, " bytes too many)");
  require(header.plan_bytes % 64 == 0, name, ": damaged (the plan section has ", header.plan_bytes, " bytes)");
  const bool zero = std::all_of(std::begin(header.padding), std::end(header.padding), [](auto b) { return b == 0; });
  require(header.reserved == 0 && zero, name, ": damaged (the header's unused bytes are not zero)");
  const auto body = bytes.subspan(sizeof(header));
  require(hash64(body) == header.hash, name, ": damaged (the checksum does not match); compile or copy it again");
  return {{reinterpret_cast<const char*>(body.data()), header.plan_bytes}, body.subspan(header.plan_bytes)};
}

Plan checked_plan(const Sections& sections, std::shared_ptr<const ConstantBlob> constants, const std::string& name,
                  const PlanLimits& limits) {
  try {
    Plan plan = plan_from_json(sections.plan);
    plan.constants = std::move(constants);
    validate(plan, limits);
    return plan;
  } catch (const UserError& e) {
    fail(name, ": ", e.what());
  }
}

}  // namespace

std::string engine_file_bytes(const Plan& plan) {
  std::string text = plan_to_json(plan);
  text.resize((text.size() + 63) / 64 * 64, ' ');
  const auto constants = plan.constants ? plan.constants->bytes() : std::span<const std::byte>();
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kEngineFormatVersion;
  header.plan_bytes = text.size(), header.constant_bytes = constants.size();
  std::string out(reinterpret_cast<const char*>(&header), sizeof(header));
  out += text;
  out.append(reinterpret_cast<const char*>(constants.data()), constants.size());
  header.hash = hash64(std::string_view(out).substr(sizeof(header)));
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

void save_engine(const Plan& plan, const std::filesystem::path& path) {
  write_file_atomically(path, engine_file_bytes(plan));
}

std::shared_ptr<const Plan> load_engine(const std::filesystem::path& path, const PlanLimits& limits) {
  const auto file = std::make_shared<MappedFile>(path);
  const Sections sections = split(file->bytes(), path.string());
  // Kernels may load up to one vector beyond the last constant. Behind the end of the file the rest of its last page
  // can be read; where that is too short, the constants are copied.
  const bool room = (file->bytes().size() + 4095) / 4096 * 4096 - file->bytes().size() >= 64;
  const auto blob =
      room ? std::make_shared<MappedBlob>(file, sections.constants) : make_constant_blob(sections.constants);
  return std::make_shared<const Plan>(checked_plan(sections, blob, path.string(), limits));
}

std::shared_ptr<const Plan> parse_engine(std::span<const std::byte> bytes, const std::string& name,
                                         const PlanLimits& limits) {
  const Sections sections = split(bytes, name);
  return std::make_shared<const Plan>(checked_plan(sections, make_constant_blob(sections.constants), name, limits));
}

void repair_checksum(std::span<std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const uint64_t rest = bytes.size() - sizeof(header);
  header.plan_bytes = std::min(header.plan_bytes, rest) / 64 * 64;
  header.constant_bytes = rest - header.plan_bytes;
  header.hash = hash64(std::span<const std::byte>(bytes).subspan(sizeof(header)));
  std::memcpy(bytes.data(), &header, sizeof(header));
}

}  // namespace octet::engine
