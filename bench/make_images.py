#!/usr/bin/env python3
"""Writes N pictures of smooth random colors, 224x224 PPM, for calibration where only the shape matters.

    make_images.py FOLDER N [FIRST]      FIRST: seed of the first picture (default 0); the next one has the next seed
"""
import pathlib
import random
import sys

SIZE, CELLS = 224, 7


def picture(seed):
    values = random.Random(seed)
    grid = [[[values.randrange(256) for _ in range(3)] for _ in range(CELLS + 1)] for _ in range(CELLS + 1)]
    step = SIZE // CELLS
    out = bytearray()
    for y in range(SIZE):
        row, fy = y // step, y % step / step
        for x in range(SIZE):
            column, fx = x // step, x % step / step
            for c in range(3):
                top = grid[row][column][c] * (1 - fx) + grid[row][column + 1][c] * fx
                bottom = grid[row + 1][column][c] * (1 - fx) + grid[row + 1][column + 1][c] * fx
                out.append(int(top * (1 - fy) + bottom * fy))
    return b"P6 %d %d 255\n" % (SIZE, SIZE) + bytes(out)


def main():
    folder = pathlib.Path(sys.argv[1])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    for i in range(first, first + int(sys.argv[2])):
        path = folder / f"{i:03}.ppm"
        if not path.exists():
            path.write_bytes(picture(i))


if __name__ == "__main__":
    main()
