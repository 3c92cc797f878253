// What is wrong with the files of a data set: counted by kind while it is opened, with the first examples of each, and
// said before any work starts. One image or box less is no reason to stop, thousands that vanish without a word are
// how a training comes to learn nothing.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace octet::data {

enum class Finding {
  kUnreadableAnnotation,  // of an image, which is left out
  kNoAnnotation,          // an image that is left out
  kNoImage,               // an annotation without its image, left out
  kUnreadableImage,       // of an image file whose first bytes tell no size, left out
  kNotFinite,             // a box, left out
  kInsideOut,             // a box of no area, x0 >= x1 or y0 >= y1, left out
  kOutside,               // a box of which nothing is in the image, left out
  kBeyond,                // a box that reaches more than a pixel beyond the image, and is cut
};
inline constexpr size_t kFindingKinds = 8;

class Findings {
 public:
  // `where`: file, line, what stands there; kept of the first three of a kind.
  void add(Finding kind, const std::string& where);
  // A whole sentence of its own.
  void remark(std::string sentence) { remarks_.push_back(std::move(sentence)); }
  // Those of another part of the data, after the own.
  void add(const Findings& other);

  int64_t count(Finding kind) const { return counts_[static_cast<size_t>(kind)]; }
  // A line for each kind that occurs, then the remarks: "12 boxes have x0 >= x1 or y0 >= y1 and are left out:
  // labels/3.txt, line 2 (car: 5, 5, 5, 9), ...".
  std::vector<std::string> sentences() const;
  // All of them in one, each after "; ", to end an error message; empty where there is nothing to say.
  std::string as_reasons() const;

 private:
  std::array<int64_t, kFindingKinds> counts_ = {};
  std::array<std::vector<std::string>, kFindingKinds> examples_;
  std::vector<std::string> remarks_;
};

}  // namespace octet::data
