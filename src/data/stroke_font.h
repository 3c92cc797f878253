// Letters as strokes of a pen, for labels on pictures.
#pragma once
#include <vector>

namespace octet::data {

// Right of the left end of the glyph and below the base line (above it where negative). Capitals are 21 high.
struct StrokePoint {
  int x = 0, y = 0;
};
inline constexpr int kCapitalHeight = 21, kDescent = 7;

struct Glyph {
  int advance = 0;  // to the left end of the next one
  std::vector<std::vector<StrokePoint>> strokes;
};
// Of printable ASCII; of anything else that of '?'.
Glyph glyph_of(char character);

}  // namespace octet::data
