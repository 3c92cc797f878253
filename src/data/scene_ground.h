// What scenes (scenes.h) have behind their objects. Each part draws from `random` in an order of its own.
#pragma once
#include "data/counter_rng.h"
#include "data/image.h"

namespace octet::data {

// A random smooth color field with noise.
Image smooth_ground(int height, int width, CounterRng& random);

// Adds patterns of all kinds: stripes, tiles, rings and clouds, two of them at a time, in scales from a few pixels to
// those of objects.
void add_texture(Image& ground, CounterRng& random);

// Paints so many flat or striped shapes: ellipses, rings, bars, triangles, of `min_side` to `max_side` pixels. They are
// nothing that has a class: what a detector must not find.
void add_clutter(Image& ground, int shapes, int min_side, int max_side, CounterRng& random);

}  // namespace octet::data
