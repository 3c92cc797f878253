// Files that PyTorch itself saved (fixtures/make_fixtures.py), and what becomes of them when they are damaged.
#include "weights/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "weights/pickle.h"
#include "weights/stored_zip.h"

namespace octet::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string fixture(const std::string& name) {
  return read_file(OCTET_SOURCE_DIR "/tests/weights/fixtures/" + name);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& e) {
    return e.what();
  }
  return "(accepted)";
}

std::string complaint(std::string_view bytes) {
  return error_of([&] { read_torch_weights(bytes, "w.pth"); });
}

// The number at [i, j, k].
float number(int64_t i, int64_t j, int64_t k) {
  return static_cast<float>(i * 12 + j * 4 + k) / 8 - 1;
}

void expect_state(const checkpoint::NamedTensors& state) {
  std::vector<float> plain, turned, part;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 4; ++k) plain.push_back(number(i, j, k));
  for (int64_t k = 0; k < 4; ++k)
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j) turned.push_back(number(i, j, k));
  for (int64_t j = 0; j < 3; ++j)
    for (int64_t k = 1; k < 3; ++k) part.push_back(number(1, j, k));
  for (const char* const name : {"plain", "parameter", "half", "bfloat16", "double"}) {
    ASSERT_TRUE(state.contains(name)) << name;
    EXPECT_EQ(state.at(name).shape(), (ir::Shape{2, 3, 4})) << name;
    EXPECT_EQ(state.at(name).to_floats(), plain) << name;
  }
  EXPECT_EQ(state.at("turned").shape(), (ir::Shape{4, 2, 3}));
  EXPECT_EQ(state.at("turned").to_floats(), turned);
  EXPECT_EQ(state.at("part").shape(), (ir::Shape{1, 3, 2}));
  EXPECT_EQ(state.at("part").to_floats(), part);
  EXPECT_EQ(state.at("expanded").to_floats(), std::vector<float>(6, 0.5f));
  EXPECT_EQ(state.at("scalar").shape(), ir::Shape{});
  EXPECT_THAT(state.at("scalar").to_floats(), ElementsAre(2.5f));
  EXPECT_EQ(state.at("empty").shape(), (ir::Shape{0, 3}));
  EXPECT_THAT(state.at("shared_one").to_floats(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(state.at("shared_two").to_floats(), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(state.size(), 12u);  // what holds integers is no weight
}

TEST(TorchFile, StateDictionariesOfEveryForm) {
  for (const char* const name : {"state.pth", "stream.pth", "checkpoint.pth"}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(is_torch_file(fixture(name)));
    expect_state(read_torch_weights(fixture(name), name));
  }
}

TEST(TorchFile, AWholeModelIsRefusedWithAdvice) {
  EXPECT_THAT(complaint(fixture("whole_model.pth")),
              HasSubstr("w.pth: holds a model as Python objects, which only its own program can read; save its weights "
                        "alone: torch.save(model.state_dict()"));
}

// Every byte that is cut off or changed is either of no consequence or a sentence that names the file.
TEST(TorchFile, DamagesAreSentences) {
  for (const char* const name : {"state.pth", "stream.pth"}) {
    const std::string whole = fixture(name);
    for (size_t size = 0; size < whole.size(); size += 7) {
      EXPECT_THAT(complaint(std::string_view(whole).substr(0, size)), HasSubstr("w.pth: ")) << name << " " << size;
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
      const std::string said = complaint(damaged);
      if (said != "(accepted)") {
        EXPECT_THAT(said, HasSubstr("w.pth: ")) << name << " " << at;
      }
    }
  }
  // Of an archive no number changes unseen.
  std::string damaged = fixture("state.pth");
  const float first = -1;
  const size_t at = damaged.find(std::string(reinterpret_cast<const char*>(&first), sizeof first));
  ASSERT_NE(at, std::string::npos);
  damaged[at] ^= 1;
  EXPECT_THAT(complaint(damaged), HasSubstr("is damaged: its checksum differs"));
}

TEST(TorchFile, OtherArchivesAreNamedAsSuch) {
  EXPECT_THAT(complaint("PK\x03\x04 and nothing behind it that an archive has"), HasSubstr("it has no directory"));
  const std::string empty = std::string("PK\x05\x06", 4) + std::string(18, '\0');
  EXPECT_THAT(complaint(empty), HasSubstr("save the model as HDF5"));
}

// What os.system would do if anybody called it.
TEST(Pickle, NothingIsCalled) {
  const Pickle pickle{
      std::string_view("\x80\x02"
                       "cos\nsystem\nX\x08\0\0\0touch /x\x85R.",
                       29)};
  const Pickle::Object& record = pickle[pickle.root()];
  EXPECT_EQ(record.kind, Pickle::Kind::kRecord);
  EXPECT_TRUE(pickle.is_global(record.items.at(0), "os system"));
  EXPECT_EQ(pickle.bytes_read(), 29u);
}

TEST(Pickle, ObjectsThatHoldThemselvesEnd) {
  // l = []; l.append(l)
  const Pickle pickle{std::string_view("\x80\x02]q\0h\0a.", 9)};
  const Pickle::Object& list = pickle[pickle.root()];
  EXPECT_THAT(list.items, ElementsAre(pickle.root()));
}

TEST(Pickle, ProgramsWithoutSenseAreRefused) {
  const auto said = [](std::string_view bytes) { return error_of([&] { Pickle pickle(bytes); }); };
  EXPECT_THAT(said(""), HasSubstr("ends too soon"));
  EXPECT_THAT(said("."), HasSubstr("takes from an empty stack"));
  EXPECT_THAT(said("t."), HasSubstr("a mark that is not there"));
  EXPECT_THAT(said("(N)a"), HasSubstr("ends too soon"));
  EXPECT_THAT(said("N(a."), HasSubstr("takes from an empty stack"));
  EXPECT_THAT(said("h\x05."), HasSubstr("recalls an object that it never noted"));
  EXPECT_THAT(said("}(Nu."), HasSubstr("a key without a value"));
  EXPECT_THAT(said("i"), HasSubstr("the instruction 105 at byte 0, which no tensor needs"));
  EXPECT_THAT(said("\x80\x09."), HasSubstr("protocol 9"));
  EXPECT_THAT(said(std::string(1'100'000, 'N')), HasSubstr("more than 1000000 objects"));
  EXPECT_THAT(said("N" + std::string(1'100'000, '2')), HasSubstr("too deep"));
}

}  // namespace
}  // namespace octet::weights
