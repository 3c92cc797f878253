#!/usr/bin/env python3
"""Compares COCO's average precision and recall with COCO's own API, for boxes and for masks.

    coco_precision.py PROGRAM    PROGRAM: peers_coco_precision, which is fed result sets and prints twelve figures each
The sets are random and the same in every run: several classes, some without objects; objects of all sizes, on the
borders of the ranges too; crowds; images without objects or without detections; equal scores; more detections of a
class in an image than the 100 that count. Sides are integers, so that overlaps on a threshold are exact, and scores are
multiples of 1/64.
"""
import contextlib
import io
import subprocess
import sys

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

SETS = 50


def random_box(rng, height, width):
    side = rng.choice([4, 8, 16, 32, 64, 96, 128])  # 32 and 96 are borders of the ranges
    w, h = (side, side) if rng.random() < 0.3 else rng.integers(1, 2 * side, 2)
    w, h = min(int(w), width), min(int(h), height)
    x, y = int(rng.integers(0, width - w + 1)), int(rng.integers(0, height - h + 1))
    return [x, y, w, h]


def near(rng, box, height, width):
    """A detection of the box: moved and stretched by some pixels, often not at all."""
    x, y, w, h = box
    if rng.random() < 0.3:
        return box
    step = max(1, min(w, h) // 5)
    x, y = (int(np.clip(v + rng.integers(-step, step + 1), 0, top - 1)) for v, top in ((x, width), (y, height)))
    w, h = (int(np.clip(v + rng.integers(-step, step + 1), 1, top)) for v, top in ((w, width - x), (h, height - y)))
    return [x, y, w, h]


def random_mask(rng, box, height, width):
    """An ellipse or the whole of the box, with holes at times."""
    x, y, w, h = box
    pixels = np.zeros((height, width), dtype=np.uint8, order="F")
    yy, xx = np.mgrid[0:h, 0:w]
    inside = ((xx + 0.5) / w * 2 - 1) ** 2 + ((yy + 0.5) / h * 2 - 1) ** 2 <= 1 if rng.random() < 0.7 else np.ones((h, w), bool)
    if rng.random() < 0.3:
        inside &= rng.random((h, w)) < 0.8
    pixels[y : y + h, x : x + w] = inside
    return coco_mask.encode(pixels)


def random_set(rng, number):
    classes, images = int(rng.integers(1, 5)), int(rng.integers(1, 12))
    truth, found, shapes = [], [], []
    for image in range(images):
        height, width = (int(v) for v in rng.integers(100, 300, 2))
        shapes.append((height, width))
        objects = []
        for _ in range(0 if rng.random() < 0.15 else int(rng.integers(1, 10))):
            box = random_box(rng, height, width)
            objects.append({"id": len(truth) + len(objects) + 1, "image_id": image, "bbox": box, "iscrowd": int(rng.random() < 0.1),
                            "category_id": int(rng.integers(0, max(1, classes - (number % 3 == 0)))),
                            "segmentation": random_mask(rng, box, height, width)})
        truth += objects
        for _ in range(0 if rng.random() < 0.1 else 150 if rng.random() < 0.05 else int(rng.integers(0, 14))):
            like = objects[rng.integers(len(objects))] if objects and rng.random() < 0.75 else None
            box = near(rng, like["bbox"], height, width) if like else random_box(rng, height, width)
            label = like["category_id"] if like and rng.random() < 0.9 else int(rng.integers(0, classes))
            mask = like["segmentation"] if like and box == like["bbox"] and rng.random() < 0.5 else random_mask(rng, box, height, width)
            found.append({"image_id": image, "category_id": label, "bbox": box, "score": int(rng.integers(0, 65)) / 64,
                          "segmentation": mask})
    if not found:  # COCO's API takes no empty result
        found.append({"image_id": 0, "category_id": 0, "bbox": [0, 0, 9, 9], "score": 0.5,
                      "segmentation": random_mask(rng, [0, 0, 9, 9], *shapes[0])})
    return classes, shapes, truth, found


def text_of(classes, shapes, truth, found):
    def line(entry, second):
        x, y, w, h = entry["bbox"]
        return f"{entry['category_id']} {second} {x} {y} {x + w} {y + h} {entry['segmentation']['counts'].decode()}"

    lines = [f"set {classes} {len(shapes)}"]
    for image, (height, width) in enumerate(shapes):
        objects = [line(t, t["iscrowd"]) for t in truth if t["image_id"] == image]
        detections = [line(d, d["score"]) for d in found if d["image_id"] == image]
        lines += [f"{len(objects)} {len(detections)} {height} {width}", *objects, *detections]
    return lines


def figures(classes, shapes, truth, found, kind):
    api = COCO()
    # COCO's file has the area of the mask; boxes without one have their own.
    area = (lambda t: float(coco_mask.area(t["segmentation"]))) if kind == "segm" else (lambda t: t["bbox"][2] * t["bbox"][3])
    api.dataset = {"images": [{"id": i, "height": h, "width": w} for i, (h, w) in enumerate(shapes)],
                   "categories": [{"id": c} for c in range(classes)],
                   "annotations": [dict(t, area=area(t)) for t in truth]}
    keep = ("image_id", "category_id", "score", "bbox" if kind == "bbox" else "segmentation")
    with contextlib.redirect_stdout(io.StringIO()):
        api.createIndex()
        judge = COCOeval(api, api.loadRes([{k: d[k] for k in keep} for d in found]), kind)
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return judge.stats


def main():
    rng = np.random.default_rng(23)
    sets = [random_set(rng, number) for number in range(SETS)]
    lines = [line for each in sets for line in text_of(*each)]
    run = subprocess.run([sys.argv[1]], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers = [[float(v) for v in line.split()] for line in run.stdout.splitlines()]
    if len(answers) != SETS:
        sys.exit(f"{len(answers)} answers to {SETS} sets")
    bad, worst = 0, 0.0
    for number, (each, have) in enumerate(zip(sets, answers)):
        want = np.concatenate([figures(*each, "bbox"), figures(*each, "segm")])
        want = np.where(want < 0, np.nan, want)  # what there is nothing of
        have = np.array(have)
        same = len(have) == len(want) and np.array_equal(np.isnan(have), np.isnan(want))
        apart = np.nanmax(np.abs(have - want)) if same else np.inf
        worst = max(worst, apart)
        bad += not apart <= 1e-6
        if not apart <= 1e-6 and bad <= 3:
            print(f"set {number}\nfound {have}\ncoco  {want}")
    print(f"coco_precision: {SETS - bad} of {SETS} result sets as pycocotools has them, largest difference {worst:.1e}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
