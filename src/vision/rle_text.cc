#include "vision/rle_text.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace octet::vision {
namespace {

constexpr char kFirst = '0';
constexpr int kBits = 5;               // of a number in a character
constexpr int64_t kMore = 1 << kBits;  // another character of the number follows
constexpr int64_t kSign = kMore >> 1;
constexpr int kMostCharacters = 6;  // of a number: differences of runs of up to Mask::kMaxPixels take 29 bits
static_assert(Mask::kMaxPixels < int64_t{1} << (kBits * kMostCharacters - 2));

}  // namespace

Mask parse_rle(std::string_view text, int height, int width) {
  std::vector<uint32_t> counts;
  size_t at = 0;
  while (at < text.size()) {
    const size_t first = at;
    int64_t number = 0, digit = kMore;
    for (int i = 0; digit & kMore; ++i) {
      require(at < text.size(), "run-length text: ends inside a number, at character ", at + 1);
      digit = text[at] - kFirst;
      require(digit >= 0 && digit < 2 * kMore, "run-length text: character ", at + 1,
              " is no digit of it ('0' to 'o')");
      require(i < kMostCharacters, "run-length text: the number at character ", first + 1, " is too long");
      number += (digit & (kMore - 1)) * (int64_t{1} << (kBits * i));
      if (digit < kMore && digit & kSign) number -= int64_t{1} << (kBits * (i + 1));
      ++at;
    }
    if (counts.size() > 2) number += counts[counts.size() - 2];
    require(number >= 0 && number <= Mask::kMaxPixels, "run-length text: the run at character ", first + 1, " has ",
            number, " pixels, expected 0 to ", Mask::kMaxPixels);
    counts.push_back(static_cast<uint32_t>(number));
  }
  return {height, width, counts};
}

std::string rle_text(const Mask& mask) {
  std::string text;
  for (size_t i = 0; i < mask.counts().size(); ++i) {
    int64_t number = mask.counts()[i];
    if (i > 2) number -= mask.counts()[i - 2];
    for (bool more = true; more;) {
      const int64_t digit = number & (kMore - 1);
      number >>= kBits;
      more = number != (digit & kSign ? -1 : 0);
      text += static_cast<char>(kFirst + digit + (more ? kMore : 0));
    }
  }
  return text;
}

}  // namespace octet::vision
