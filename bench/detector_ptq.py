#!/usr/bin/env python3
"""Does post-training quantization of a detector collapse, and what decides it? docs/studies/detector_ptq.md has the question.

    bench/detector_ptq.py [--seeds 1 2 3] [--check]     needs results/detector/seed-N of bench/detector.sh

Every float model is calibrated with each method x granularity of weights x precision of the heads x number of images, and its
fake-quantized graph is measured on the same test scenes. The controls are the float model and the quantization-aware one.
Prints the tables of the study and writes results/detector/ptq.json. Goes on where it was interrupted. About ten minutes a seed on
two idle cores.
"""
import argparse
import itertools
import json
import pathlib
import statistics
import sys

import parts

METHODS = ("max", "mse", "percentile", "entropy")
GRANULARITIES = ("channel", "tensor")
HEADS = ("int8", "float")
IMAGES = (16, 160, 1000)


def arguments():
    parser = argparse.ArgumentParser(description="Calibrators, granularity and heads of a detector's post-training quantization.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--spec", type=pathlib.Path, default=parts.ROOT / "examples/scenes_detectnet_v2.yaml")
    parser.add_argument("--models", type=pathlib.Path, default=parts.ROOT / "results/detector", help="of bench/detector.sh")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--check", action="store_true", help="fail where PTQ with the default calibrator is more than 2 points below float")
    return parser.parse_args()


class Study:
    def __init__(self, options):
        self.options = options
        self.program = options.build / "bin/octet"
        self.file = options.models / "ptq.json"
        self.points = json.loads(self.file.read_text()) if self.file.exists() else {}

    def octet(self, command, seed, *words):
        scenes = self.options.models / "scenes"
        return parts.run_octet(self.program, command, "-e", self.options.spec, "--set", f"data.train.path={scenes}", "--set",
                               f"data.test.path={scenes}", "--set", f"data.seed={seed}", *words)

    def measure(self, seed, model):
        report = self.options.models / "point.json"
        self.octet("evaluate", seed, "-m", model, "--json", report)
        return json.loads(report.read_text())["map"]

    def point(self, seed, method, granularity, heads, images):
        key = f"{seed} {method} {granularity} {heads} {images}"
        if key not in self.points:
            folder = self.options.models / f"seed-{seed}"
            model = folder / "point.onnx"
            chosen = ["--set", f"quant.heads={heads}"]
            self.octet("calibrate", seed, "-m", folder / "float/model.onnx", "-o", model, "--force", "--set",
                       f"quant.calibration.method={method}", "--set", f"quant.calibration.images={images}", "--set",
                       f"quant.weights.granularity={granularity}", *chosen)
            self.points[key] = self.measure(seed, model)
            self.file.write_text(json.dumps(self.points, indent=1))
            print(f"  seed {key}: mAP {self.points[key]:.2f}", file=sys.stderr)
        return self.points[key]

    def control(self, seed, name, model):
        key = f"{seed} {name}"
        if key not in self.points:
            self.points[key] = self.measure(seed, self.options.models / f"seed-{seed}" / model)
            self.file.write_text(json.dumps(self.points, indent=1))
        return self.points[key]


def row(words, values):
    return f"| {' | '.join(map(str, words))} | {' | '.join(f'{v:.2f}' for v in values)} | {statistics.mean(values):.2f} |"


def main():
    options = arguments()
    study = Study(options)
    floats = {seed: study.control(seed, "float", "float/model.onnx") for seed in options.seeds}
    quantized = {seed: study.control(seed, "qat", "qat/model.onnx") for seed in options.seeds}
    seeds = " | ".join(f"seed {seed}" for seed in options.seeds)
    print(f"| control | {seeds} | mean |\n|---|{'---|' * (len(options.seeds) + 1)}")
    print(row(["float"], floats.values()))
    print(row(["QAT"], quantized.values()))
    print(f"\nPoints of mAP below (-) or above float:\n\n| method | weights | heads | images | {seeds} | mean |\n"
          f"|---|---|---|---|{'---|' * (len(options.seeds) + 1)}")
    worst_default = 0.0
    for method, granularity, heads, images in itertools.product(METHODS, GRANULARITIES, HEADS, IMAGES):
        differences = [study.point(seed, method, granularity, heads, images) - floats[seed] for seed in options.seeds]
        print(row([method, granularity, heads, images], differences))
        if (method, granularity, heads) == ("mse", "channel", "int8") and images >= 160:
            worst_default = min(worst_default, *differences)
    if options.check and worst_default < -2:
        sys.exit(f"PTQ with the default calibrator loses {-worst_default:.2f} points")


if __name__ == "__main__":
    main()
