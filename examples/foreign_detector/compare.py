#!/usr/bin/env python3
"""Whether two decoders find the same: compare.py ONE.json OTHER.json [--threshold 0.05] (results in COCO's format)

Every detection of the one is looked for among those of the other, image by image and class by class. Prints how far boxes and
scores are apart at most; exit status 1 where one of them found something alone, or beyond --pixels and --scores. What is next
to the threshold comes and goes with the last bit, and is not asked for.
"""
import argparse
import collections
import json
import sys

NEAR_THRESHOLD = 1e-4


def corners(result):
    x, y, width, height = result["bbox"]
    return x, y, x + width, y + height


def apart(a, b):
    return max(abs(p - q) for p, q in zip(corners(a), corners(b)))


def compare(one, other, threshold, pixels, scores):
    """(largest difference of coordinates, of scores, what one of them found alone)"""
    left = collections.defaultdict(list)
    for each in other:
        left[each["image_id"], each["category_id"]].append(each)
    worst, alone = [0.0, 0.0], []
    for each in one:
        candidates = left[each["image_id"], each["category_id"]]
        same = [c for c in candidates if apart(c, each) <= pixels and abs(c["score"] - each["score"]) <= scores]
        if same:
            found = min(same, key=lambda c: abs(c["score"] - each["score"]))
            candidates.remove(found)
            worst = [max(worst[0], apart(found, each)), max(worst[1], abs(found["score"] - each["score"]))]
        else:
            alone.append(each)
    alone += [each for candidates in left.values() for each in candidates]
    return (*worst, [each for each in alone if each["score"] > threshold + NEAR_THRESHOLD])


def main():
    parser = argparse.ArgumentParser(description="Whether two decoders find the same.")
    parser.add_argument("files", nargs=2, metavar="RESULTS.json")
    parser.add_argument("--threshold", type=float, default=0.05, help="least score of what the decoders find")
    parser.add_argument("--pixels", type=float, default=0.05, help="how far boxes may be apart")
    parser.add_argument("--scores", type=float, default=0.001, help="how far scores may be apart")
    options = parser.parse_args()
    one, other = (json.load(open(path)) for path in options.files)
    boxes, scores, alone = compare(one, other, options.threshold, options.pixels, options.scores)
    print(f"{len(one)} and {len(other)} detections: {len(alone)} found by one alone, boxes of the others differ by at most "
          f"{boxes:.1e} pixels, scores by {scores:.1e}")
    for each in alone[:5]:
        print(f"  alone: {each}")
    sys.exit(bool(alone) or not one)


if __name__ == "__main__":
    main()
