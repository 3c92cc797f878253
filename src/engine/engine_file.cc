#include "engine/engine_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <vector>

#include "base/cpu_limits.h"
#include "base/error.h"
#include "base/files.h"
#include "base/input_file.h"
#include "base/parallel.h"
#include "dense/program.h"
#include "engine/file_constants.h"
#include "engine/plan_json.h"
#include "engine/profiles.h"

namespace octet::engine {
namespace {

constexpr unsigned char kMagic[8] = {'O', 'C', 'T', 'E', 'T', 0, 0, 1};

struct Header {
  unsigned char magic[8];
  uint32_t version;
  uint32_t reserved;  // 0
  uint64_t plan_bytes, constant_bytes;
  uint64_t plan_hash, constant_hash;
  uint64_t reserved_too;  // 0
  uint64_t header_hash;   // of everything above
};
static_assert(sizeof(Header) == 64);

uint64_t header_hash(const Header& header) {
  return hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_hash)));
}

// The hash of the hashes of pieces, so that cores share the reading of a large file; one of them does `meanwhile`,
// which must not throw, first.
uint64_t constant_hash(
    std::span<const std::byte> bytes, const std::function<void()>& meanwhile = [] {}) {
  constexpr size_t kPiece = 1 << 20;
  constexpr int kMaxThreads = 4;  // memory is no faster with more
  std::vector<uint64_t> hashes((bytes.size() + kPiece - 1) / kPiece);
  const auto work = [&](int64_t i) {
    if (i == 0) return meanwhile();
    const size_t at = static_cast<size_t>(i - 1) * kPiece;
    hashes[i - 1] = hash64(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
  };
  const bool large = hashes.size() >= 4;  // fewer are read before another thread has started
  parallel_for(static_cast<int64_t>(hashes.size()) + 1, large ? std::min(available_cpus(), kMaxThreads) : 1, work);
  return hash64(std::as_bytes(std::span<const uint64_t>(hashes)), bytes.size());
}

// Runs `work`; its UserErrors name the file.
template <typename Work>
void in_file(const std::string& name, Work work) {
  try {
    work();
  } catch (const UserError& e) {
    fail(name, ": ", e.what());
  }
}

struct Sections {
  Plan plan;  // without constants, not validated
  std::span<const std::byte> constants;
};

Sections split(std::span<const std::byte> bytes, const std::string& name) {
  Header header;
  require(bytes.size() >= sizeof(kMagic) && std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) == 0, name,
          ": not an Octet engine file; make one with 'octet compile'");
  require(bytes.size() >= sizeof(header), name, ": truncated (", bytes.size(), " bytes, shorter than the header)");
  std::memcpy(&header, bytes.data(), sizeof(header));
  require(header.version <= kEngineFormatVersion, name, ": made by a newer Octet (engine format ", header.version,
          "; this one reads ", kEngineFormatVersion, "); compile the model again with this one, or use the newer one");
  require(header.version >= kPlainFormatVersion, name, ": made by an older Octet (engine format ", header.version,
          "; this one reads ", kEngineFormatVersion, "); compile the model again");
  require(header_hash(header) == header.header_hash && header.reserved == 0 && header.reserved_too == 0, name,
          ": damaged (the checksum of the header does not match); compile or copy it again");
  const uint64_t rest = bytes.size() - sizeof(header);
  require(header.plan_bytes <= rest && header.constant_bytes <= rest - header.plan_bytes, name, ": truncated (",
          bytes.size(), " bytes; the header promises ", header.plan_bytes, " of plan and ", header.constant_bytes,
          " of constants); copy it again");
  require(header.plan_bytes + header.constant_bytes == rest, name, ": damaged (",
          rest - header.plan_bytes - header.constant_bytes, " bytes too many); copy it again");
  require(header.plan_bytes % 64 == 0, name, ": damaged (the plan section has ", header.plan_bytes, " bytes)");
  const auto body = bytes.subspan(sizeof(header));
  const auto plan = body.first(header.plan_bytes), constants = body.subspan(header.plan_bytes);
  require(hash64(plan) == header.plan_hash, name,
          ": damaged (the checksum of the plan does not match); compile or copy it again");
  Sections sections{.constants = constants};
  std::exception_ptr error;
  const auto parse = [&] {
    try {
      sections.plan = plan_from_json({reinterpret_cast<const char*>(plan.data()), plan.size()});
    } catch (...) {
      error = std::current_exception();
    }
  };
  require(constant_hash(constants, parse) == header.constant_hash, name,
          ": damaged (the checksum of the weights does not match); compile or copy it again");
  if (error) in_file(name, [&] { std::rethrow_exception(error); });
  return sections;
}

// The programs behind a plan and its profiles, of which equal ones are there once.
void read_programs(Plan& plan) {
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const dense::Program>> known;
  const auto read = [&](Plan& one) {
    const ConstantRef& ref = one.program_bytes;
    if (ref.bytes == 0) return;
    auto& program = known[{ref.offset, ref.bytes}];
    if (!program) program = std::make_shared<const dense::Program>(dense::parse_program(one.constant_bytes(ref, 1)));
    one.program = program;
  };
  read(plan);
  for (Plan& profile : plan.profiles) read(profile);
}

Plan checked_plan(Sections sections, std::shared_ptr<const ConstantBlob> constants, const std::string& name,
                  const PlanLimits& limits) {
  Plan& plan = sections.plan;
  for (Plan& profile : plan.profiles) profile.constants = constants;
  plan.constants = std::move(constants);
  in_file(name, [&] {
    read_programs(plan);
    validate(plan, limits);
    validate_profiles(plan, limits);
  });
  return std::move(plan);
}

std::span<const std::byte> constants_of(const Plan& plan) {
  return plan.constants ? plan.constants->bytes() : std::span<const std::byte>();
}

std::string_view characters(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Header and plan: what comes before the constants.
std::string front_bytes(std::string plan_text, std::span<const std::byte> constants, uint32_t version) {
  plan_text.resize((plan_text.size() + 63) / 64 * 64, ' ');
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = version;
  header.plan_bytes = plan_text.size(), header.constant_bytes = constants.size();
  header.plan_hash = hash64(plan_text), header.constant_hash = constant_hash(constants);
  header.header_hash = header_hash(header);
  return std::string(characters(std::as_bytes(std::span(&header, 1)))) + plan_text;
}

// A function on lines is among the numbers of its step.
bool has_lines(const Step& step) {
  return std::any_of(step.ints.begin(), step.ints.end(),
                     [](const auto& number) { return number.first.ends_with("function_line_shift"); });
}

uint32_t format_of(const Plan& plan) {
  const bool newer = plan.program || std::any_of(plan.steps.begin(), plan.steps.end(), has_lines);
  return newer ? kEngineFormatVersion : kPlainFormatVersion;
}

}  // namespace

std::string engine_file_bytes(const Plan& plan) {
  return engine_file_bytes(plan_to_json(plan), constants_of(plan), format_of(plan));
}

std::string engine_file_bytes(std::string plan_text, std::span<const std::byte> constants, uint32_t version) {
  const std::string front = front_bytes(std::move(plan_text), constants, version);
  std::string out;
  out.reserve(front.size() + constants.size());
  out += front;
  out += characters(constants);
  return out;
}

void save_engine(const Plan& plan, const std::filesystem::path& path) {
  const std::string front = front_bytes(plan_to_json(plan), constants_of(plan), format_of(plan));
  write_file_atomically(path, std::array<std::string_view, 2>{front, characters(constants_of(plan))});
}

std::shared_ptr<const Plan> load_engine(const std::filesystem::path& path, const PlanLimits& limits) {
  auto file = std::make_unique<InputFile>(path);
  auto whole = std::make_unique<MappedFile>(path, *file);
  Sections sections = split(whole->bytes(), path.string());
  const auto offset = static_cast<size_t>(sections.constants.data() - whole->bytes().data());
  auto blob = make_file_constants(std::move(file), std::move(whole), offset, sections.plan, path.string());
  return std::make_shared<const Plan>(checked_plan(std::move(sections), std::move(blob), path.string(), limits));
}

std::shared_ptr<const Plan> parse_engine(std::span<const std::byte> bytes, const std::string& name,
                                         const PlanLimits& limits) {
  Sections sections = split(bytes, name);
  auto blob = make_constant_blob(sections.constants);
  return std::make_shared<const Plan>(checked_plan(std::move(sections), std::move(blob), name, limits));
}

void repair_checksum(std::span<std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const uint64_t rest = bytes.size() - sizeof(header);
  header.plan_bytes = std::min(header.plan_bytes, rest) / 64 * 64;
  header.constant_bytes = rest - header.plan_bytes;
  const auto body = std::span<const std::byte>(bytes).subspan(sizeof(header));
  header.plan_hash = hash64(body.first(header.plan_bytes));
  header.constant_hash = constant_hash(body.subspan(header.plan_bytes));
  header.header_hash = header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

}  // namespace octet::engine
