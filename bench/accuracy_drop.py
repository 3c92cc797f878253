#!/usr/bin/env python3
"""Whether `octet calibrate --accuracy-drop` keeps its word: MobileNetV2, EfficientNet-B0 and a detector, made hard to quantize.

    bench/accuracy_drop.py [--points 0.5] [--results FOLDER] [--check]      needs build/release

Trains each briefly (Fashion-MNIST; scenes of its clothes), then calibrates it with few bits and one scale a
tensor for weights, which costs much, and once more with the bar: the search adds what gives accuracy back and leaves the most sensitive
layers in float until validation loses at most so many points. Prints the metric of the float network, of plain calibration and of
what the bar gives, on the images that the search judges by and on test images, which it never sees, and the layers left in float.
Goes on where it was interrupted. With --check, exit 1 where the bar does not hold on the validation images.
"""
import argparse
import json
import pathlib
import sys

import parts

PICTURES = "/usr/share/datasets/fashion-mnist"
CLASSIFIER, DETECTOR = parts.ROOT / "examples/fashion_mnist_resnet20.yaml", parts.ROOT / "tests/e2e/detector.yaml"
EPOCHS = {"mobilenet_v2": 1, "efficientnet_b0": 1, "detectnet_v2": None}  # None: those of its experiment
HARD = {"mobilenet_v2": 4, "efficientnet_b0": 6, "detectnet_v2": 4}  # bits


class Network:
    def __init__(self, name, options):
        self.name, self.octet, self.folder = name, options.octet, options.results / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.metric = "map" if name == "detectnet_v2" else "top1"
        settings = ["quant.weights.granularity=tensor", f"quant.weights.bits={HARD[name]}"]
        if name == "detectnet_v2":
            for seed, scenes in enumerate(("scenes", "validation")):
                self.run(scenes, "scenes", "--pictures", PICTURES, "--train", 600 if seed == 0 else 1, "--test", 250, "--width", 128,
                         "--height", 96, "--names", "clothes,clothes,clothes,clothes,clothes,shoe,clothes,shoe,bag,shoe",
                         "--seed", seed, "-o", self.folder / scenes)
            settings += [f"data.train.path={self.folder / 'scenes'}", f"data.test.path={self.folder / 'scenes'}", "data.val.format=voc",
                         f"data.val.path={self.folder / 'validation'}", "data.val.split=test"]
        else:
            settings += [f"model.arch={name}", f"train.epochs={EPOCHS[name]}"]
        self.spec = ["-e", DETECTOR if name == "detectnet_v2" else CLASSIFIER, *(word for s in settings for word in ("--set", s))]
        self.model = self.run("float/model.onnx", "train", *self.spec, "-r", self.folder / "float")

    def run(self, output, *words):
        output = self.folder / output
        if not output.exists():
            parts.run_octet(self.octet, *words, "--quiet")
        return output

    def on_test(self, model):
        name = f"{model.relative_to(self.folder).parts[0].removesuffix('.onnx')}.test.json"
        report = self.run(name, "evaluate", *self.spec, "-m", model, "--json", self.folder / name)
        return json.loads(report.read_text())[self.metric]

    def calibrated(self, stem, *words):
        return self.run(f"{stem}.onnx", "calibrate", *self.spec, "-m", self.model, "-o", self.folder / f"{stem}.onnx", *words)


def main():
    parser = argparse.ArgumentParser(description="Whether --accuracy-drop keeps its word.")
    parser.add_argument("--points", type=float, default=0.5)
    parser.add_argument("--networks", nargs="+", default=list(EPOCHS), choices=list(EPOCHS))
    parser.add_argument("--results", type=pathlib.Path, default=parts.ROOT / "results/accuracy_drop")
    parser.add_argument("--octet", type=pathlib.Path, default=parts.ROOT / "build/release/bin/octet")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    missed = []
    print("| network | metric | float: validation, test | calibrated: test | with the bar: validation, test | layers in float | steps |\n"
          "|---|---|---|---|---|---|---|")
    for name in options.networks:
        network = Network(name, options)
        plain = network.calibrated("plain")
        barred = network.calibrated("barred", "--accuracy-drop", options.points, "--json", network.folder / "search.json")
        search = json.loads((network.folder / "search.json").read_text())
        cells = [name, network.metric, f"{search['float']:.2f}, {network.on_test(network.model):.2f}", f"{network.on_test(plain):.2f}",
                 f"{search['score']:.2f}, {network.on_test(barred):.2f}", str(len(search["float_layers"])),
                 ", ".join(step["what"] for step in search["steps"] if step["kept"])]
        print(f"| {' | '.join(cells)} |", flush=True)
        if not search["holds"] or search["score"] < search["float"] - options.points:
            missed.append(f"{name} loses more than {options.points} points")
    for line in missed:
        print(line)
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
