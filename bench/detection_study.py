#!/usr/bin/env python3
"""The whole way of a detector on real photographs: float, calibrated, pruned, quantization-aware, engine; several seeds.

    bench/detection_study.py PHOTOGRAPHS [--seeds 1 2 3 4 5] [--check]     needs build/release

PHOTOGRAPHS has images/NAME-N.jpg and annotations/NAME-N.xml (Pascal VOC) of one class; those whose number N is divisible by 5
validate, the others train. Prints mAP (VOC, IoU 0.5) of each stage for each seed, and the mean with its standard deviation; with
--check, exit 1 where the engine's mean is more than 0.5 points below the mean of the float model trained as long (control) or the
mean after calibration more than 2 below the float one. Goes on where it was interrupted.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys
import time

import parts

SPEC = parts.ROOT / "bench/detection_study.yaml"
STAGES = ("float", "calibrated", "qat", "control", "engine", "pruned", "pruned_engine")
TITLES = ("float", "PTQ", "QAT", "float control", "INT8 engine", "pruned, float", "pruned, INT8 engine")


def arguments():
    parser = argparse.ArgumentParser(description="A detector on real photographs, from float training to the INT8 engine.")
    parser.add_argument("photographs", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--results", type=pathlib.Path, default=parts.ROOT / "results/photographs")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the experiment")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def divide(photographs, folder):
    """A VOC folder over the photographs, which stay where they are."""
    lists = folder / "ImageSets/Main"
    lists.mkdir(parents=True, exist_ok=True)
    for name, target in (("JPEGImages", "images"), ("Annotations", "annotations")):
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to((photographs / target).resolve(), target_is_directory=True)
    names = sorted((p.stem for p in (photographs / "annotations").glob("*.xml")), key=lambda n: (len(n), n))
    if not names:
        sys.exit(f"{photographs}/annotations: holds no *.xml; expected Pascal VOC annotations")
    validates = [n for n in names if int(re.search(r"\d+$", n)[0]) % 5 == 0]
    (lists / "val.txt").write_text("\n".join(validates) + "\n")
    (lists / "train.txt").write_text("\n".join(n for n in names if n not in validates) + "\n")


class Seed:
    def __init__(self, options, seed):
        self.options, self.folder = options, options.results / f"seed-{seed}"
        self.folder.mkdir(parents=True, exist_ok=True)
        keys = [f"data.train.path={options.results}/data", f"data.test.path={options.results}/data", f"train.seed={seed}",
                f"data.seed={seed}", *options.set]
        self.spec = ["-e", SPEC, *(word for key in keys for word in ("--set", key))]

    def path(self, name):
        return self.folder / name

    def octet(self, output, *words):
        """Unless its output is there."""
        if not self.path(output).exists():
            started = time.monotonic()
            parts.run_octet(self.options.build / "bin/octet", *words)
            print(f"  {self.folder.name}: {words[0]} {output}, {time.monotonic() - started:.0f} s", file=sys.stderr)

    def measure(self, stage, model):
        report = f"{stage}.json"
        self.octet(report, "evaluate", *self.spec, "-m", self.path(model), "--json", self.path(report))
        return json.loads(self.path(report).read_text())["map"]

    def train(self, folder, stage, *words):
        self.octet(f"{folder}/model.onnx", "train", *self.spec, "-r", self.path(folder), "--stage", stage, *words)

    def quantize(self, source, calibrated, trained, engine):
        """Calibration, quantization-aware training, engine of a float model."""
        self.octet(calibrated, "calibrate", *self.spec, "-m", self.path(source), "-o", self.path(calibrated))
        self.train(trained, "qat", "-m", self.path(calibrated))
        self.octet(f"{trained}/model.qdq.onnx", "export", "-m", self.path(f"{trained}/model.onnx"), "-o",
                   self.path(f"{trained}/model.qdq.onnx"))
        self.octet(engine, "compile", "-m", self.path(f"{trained}/model.qdq.onnx"), "-o", self.path(engine))

    def run(self):
        self.train("float", "float")
        self.quantize("float/model.onnx", "calibrated.onnx", "qat", "model.octet")
        self.train("control", "control", "-m", self.path("float/model.onnx"))
        self.octet("pruned.onnx", "prune", "-m", self.path("float/model.onnx"), "-o", self.path("pruned.onnx"),
                   "--target-params", "0.35")
        # Retrained as long as it was trained, without quantization, then like the whole network.
        self.train("retrained", "float", "--set", f"model.pretrained={self.path('pruned.onnx')}", "--set", "model.load_graph=true")
        self.quantize("retrained/model.onnx", "pruned_calibrated.onnx", "pruned_qat", "pruned.octet")
        models = ("float/model.onnx", "calibrated.onnx", "qat/model.onnx", "control/model.onnx", "model.octet",
                  "retrained/model.onnx", "pruned.octet")
        return [self.measure(stage, model) for stage, model in zip(STAGES, models)]


def main():
    options = arguments()
    options.results = options.results.resolve()
    divide(options.photographs, options.results / "data")
    figures = {seed: Seed(options, seed).run() for seed in options.seeds}
    print(f"| stage | {' | '.join(f'seed {seed}' for seed in options.seeds)} | mean | deviation |")
    print(f"|---|{'---|' * (len(options.seeds) + 2)}")
    means = {}
    for i, (stage, title) in enumerate(zip(STAGES, TITLES)):
        values = [figures[seed][i] for seed in options.seeds]
        means[stage] = statistics.mean(values)
        deviation = statistics.stdev(values) if len(values) > 1 else 0
        print(f"| {title} | {' | '.join(f'{v:.1f}' for v in values)} | {means[stage]:.1f} | {deviation:.1f} |")
    if options.check:
        missed = [what for held, what in ((means["engine"] >= means["control"] - 0.5, "engine against control"),
                                          (means["calibrated"] >= means["float"] - 2, "calibrated against float")) if not held]
        if missed:
            sys.exit("missed: " + ", ".join(missed))


if __name__ == "__main__":
    main()
