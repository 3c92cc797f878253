// Movements of the plane that keep lines straight and parallel: the 3x3 matrix
//   xx xy x0
//   yx yy y0
//   0  0  1
// applied to the column (x, y, 1). Coordinates are those of vision/box.h: borders of pixels.
#pragma once
#include <cmath>

namespace octet::data {

struct Point {
  double x = 0, y = 0;
};

struct Affine {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;

  static Affine translation(double x, double y) { return {.x0 = x, .y0 = y}; }
  static Affine scaling(double x, double y) { return {.xx = x, .yy = y}; }
  // By `radians` about (x, y), from the x axis towards the y axis, which points down.
  static Affine rotation(double radians, double x, double y) {
    const double c = std::cos(radians), s = std::sin(radians);
    return {c, -s, x - c * x + s * y, s, c, y - s * x - c * y};
  }

  Point operator()(double x, double y) const { return {xx * x + xy * y + x0, yx * x + yy * y + y0}; }
  // First `other`, then this.
  Affine operator*(const Affine& o) const {
    return {xx * o.xx + xy * o.yx, xx * o.xy + xy * o.yy, xx * o.x0 + xy * o.y0 + x0,
            yx * o.xx + yy * o.yx, yx * o.xy + yy * o.yy, yx * o.x0 + yy * o.y0 + y0};
  }
  double determinant() const { return xx * yy - xy * yx; }
  // Of one whose determinant is not 0.
  Affine inverse() const {
    const double d = determinant();
    const Affine linear{yy / d, -xy / d, 0, -yx / d, xx / d, 0};
    const Point origin = linear(x0, y0);
    return {linear.xx, linear.xy, -origin.x, linear.yx, linear.yy, -origin.y};
  }
  bool operator==(const Affine&) const = default;
};

}  // namespace octet::data
