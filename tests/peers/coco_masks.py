#!/usr/bin/env python3
"""Compares masks with COCO's own API: pixels of polygons, run-length texts, area, bounding box, IoU, union.

    coco_masks.py PROGRAM    PROGRAM: peers_coco_masks, which is fed cases and prints what Octet makes of them
The cases are random and the same in every run: polygons within and beyond the image, in quarters of a pixel and in
any place, convex, star-shaped and crossing themselves, with corners twice; and random pixels.
"""
import subprocess
import sys

import numpy as np
from pycocotools import mask as coco

CASES = 4000


def random_polygon(rng, height, width):
    corners = int(rng.integers(3, 12))
    kind = rng.integers(0, 4)
    if kind == 0:  # any, crossing itself
        xy = np.stack([rng.uniform(-0.3 * width, 1.3 * width, corners), rng.uniform(-0.3 * height, 1.3 * height, corners)], 1)
    elif kind == 1:  # within the image, on its border too
        xy = np.stack([rng.uniform(0, width, corners), rng.uniform(0, height, corners)], 1)
        xy = np.where(rng.random(xy.shape) < 0.1, np.round(xy / [width, height]) * [width, height], xy)
    else:  # around a center
        angles = np.sort(rng.uniform(0, 2 * np.pi, corners))
        radius = rng.uniform(0.2, 0.7, corners) * min(height, width)
        center = [rng.uniform(0, width), rng.uniform(0, height)]
        xy = np.stack([center[0] + radius * np.cos(angles), center[1] + radius * np.sin(angles)], 1)
    step = rng.choice([0, 0.01, 0.25, 0.5, 1])  # of the coordinates; files often have two digits
    if step:
        xy = np.round(xy / step) * step
    if rng.random() < 0.2:
        xy = np.repeat(xy, 2, axis=0)
    return xy.reshape(-1).tolist()


def main():
    rng = np.random.default_rng(17)
    lines, expected = [], []
    for case in range(CASES):
        height, width = (int(v) for v in rng.integers(1, 60, 2))
        if case % 50 == 0:
            height, width = height * 12, width * 12
        polygons = [random_polygon(rng, height, width) for _ in range(int(rng.integers(1, 4)))]
        a = coco.merge(coco.frPyObjects(polygons, height, width))
        b = coco.encode(np.asfortranarray(rng.random((height, width)) < rng.random(), dtype=np.uint8))
        parts = [" ".join([str(len(p)), *(repr(v) for v in p)]) for p in polygons]
        lines.append(" ".join([str(height), str(width), b["counts"].decode(), str(len(polygons)), *parts]))
        box = coco.toBbox(a)
        numbers = [coco.area(a), coco.area(b), *box[:2], *(box[:2] + box[2:]), *(coco.iou([a], [b], [c])[0][0] for c in (0, 1))]
        expected.append([a["counts"].decode(), coco.merge([a, b])["counts"].decode(), *(float(v) for v in numbers)])
    run = subprocess.run([sys.argv[1]], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    found = [line.split() for line in run.stdout.splitlines()]
    if len(found) != CASES:
        sys.exit(f"{len(found)} answers to {CASES} cases")
    bad = 0
    for line, have, want in zip(lines, found, expected):
        same = have[:2] == want[:2] and np.allclose([float(v) for v in have[2:]], want[2:], rtol=0, atol=1e-12)
        bad += not same
        if not same and bad <= 3:
            print(f"case  {line}\nfound {' '.join(have)}\ncoco  {' '.join(map(str, want))}")
    print(f"coco_masks: {CASES - bad} of {CASES} cases as pycocotools has them")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
