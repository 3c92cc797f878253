#!/usr/bin/env python3
"""What fewer than 8 bits cost, and what gives it back: adaptive rounding, learned scales.

    bench/low_bits.py [-e SPEC] [--seeds 1 ...] [--rows all|calibrated] [--set KEY=VALUE ...] [--check]     needs build/release

The quick start's network is trained in float, calibrated with 4-bit weights and 8- or 4-bit activations (first and last layers 8), its
weights rounded to the nearest code, adaptively (quant.adaround) or by GPTQ (quant.gptq), and trained on with 4 bits, the scales following what they see
(quant.*.averaging_constant) or learned (quant.*.learned: lsq, lsq_plus, pact); the control is the same further training in float. All are
measured on the test images, the last of them as an engine, too. Writes results/low_bits and goes on where it was interrupted. Takes hours on two cores of an old CPU; `--set
data.train.limit=15000 --set train.epochs=4` shows the same in less, and --rows calibrated trains nothing but the float models. With
--check, exit 1 unless training with lsq ends within 1.5 points of float and of the control with every seed, and either way of
rounding by results is clearly above rounding to the nearest: by more than 2.5 standard errors of the difference on the same test images, those of all seeds
together, as the images of one seed do not tell 0.3 points from chance.
"""
import argparse
import gzip
import json
import math
import pathlib
import sys

import parts

W4A8 = ["quant.weights.bits=4"]
W4A4 = [*W4A8, "quant.activations.bits=4", "quant.activations.unsigned=auto"]
ADAROUND = ["quant.adaround.iterations=1000"]
GPTQ = ["quant.gptq.images=500"]
BY_RESULTS = ("adaptive", "GPTQ")
LSQ = ["quant.weights.learned=lsq", "quant.activations.learned=lsq"]
LSQ_PLUS = ["quant.weights.learned=lsq", "quant.activations.learned=lsq_plus", "quant.activations.asymmetric=yes"]
PACT = ["quant.weights.learned=lsq", "quant.activations.learned=pact"]
TRAINED = ["finetune.epochs=3"]
# Name, whether it is trained on, settings.
ROWS = [("W4A8, nearest", False, W4A8), ("W4A8, adaptive", False, W4A8 + ADAROUND), ("W4A8, GPTQ", False, W4A8 + GPTQ),
        ("W4A4, nearest", False, W4A4), ("W4A4, adaptive", False, W4A4 + ADAROUND), ("W4A4, GPTQ", False, W4A4 + GPTQ),
        ("W4A4, trained, scales follow", True, W4A4 + TRAINED), ("W4A4, trained, pact", True, W4A4 + TRAINED + PACT),
        ("W4A4, trained, lsq_plus", True, W4A4 + TRAINED + LSQ_PLUS), ("W4A4, trained, lsq", True, W4A4 + TRAINED + LSQ)]


CLEARLY = 2.5  # standard errors: one in 160 would be so far above by chance
LABELS = pathlib.Path("/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz")


def gained_and_lost(better, worse):
    """Of models that saw the same images: how many the first alone finds, and the second alone."""
    return sum(b and not w for b, w in zip(better, worse)), sum(w and not b for b, w in zip(better, worse))


def standard_errors(pairs):
    """By how many standard errors of their difference two kinds of models are apart (McNemar's test over the pairs)."""
    gained, lost = (sum(counts) for counts in zip(*pairs))
    return (gained - lost) / math.sqrt(max(1, gained + lost))


class Study:
    def __init__(self, options, seed):
        self.program = options.build / "bin/octet"
        self.folder = options.results / f"seed-{seed}"
        self.folder.mkdir(parents=True, exist_ok=True)
        keys = [f"train.seed={seed}", f"data.seed={seed}", *options.set]
        self.common = ["-e", options.experiment_spec, *(word for key in keys for word in ("--set", key))]

    def octet(self, command, output, *words):
        if not output.exists():
            parts.run_octet(self.program, command, *self.common, *words, "--quiet")
        return output

    def top1(self, model, settings=()):
        report = self.folder / (str(model.relative_to(self.folder)).replace("/", "-") + ".json")
        self.octet("evaluate", report, "-m", model, "--json", report, *settings)
        return json.loads(report.read_text())["top1"]

    def right(self, model):
        """Of each test image, whether its class is found."""
        report = self.folder / (model.stem + ".predictions.json")
        self.octet("infer", report, "-m", model, "--json", report)
        labels = gzip.decompress(LABELS.read_bytes())[8:]
        predictions = json.loads(report.read_text())["predictions"]
        if len(predictions) != len(labels):
            sys.exit(f"{report} has {len(predictions)} images, {LABELS} has {len(labels)}")
        return [p["class"] == label for p, label in zip(predictions, labels)]

    def float_model(self):
        return self.octet("train", self.folder / "float/model.onnx", "-r", self.folder / "float", "--stage", "float")

    def control(self):
        words = [word for setting in TRAINED for word in ("--set", setting)]
        return self.octet("train", self.folder / "control/model.onnx", "-m", self.float_model(), "-r", self.folder / "control",
                          "--stage", "control", *words)

    def model(self, name, is_trained, settings):
        stem = name.replace(", ", "-").replace(" ", "-")
        words = [word for setting in settings for word in ("--set", setting)]
        calibrated = self.octet("calibrate", self.folder / f"{stem}.onnx", "-m", self.float_model(), "-o", self.folder / f"{stem}.onnx", *words)
        if not is_trained:
            return calibrated
        return self.octet("train", self.folder / stem / "model.onnx", "-m", calibrated, "-r", self.folder / stem, "--stage", "qat", *words)

    def engine(self, model):
        engine = model.with_suffix(".octet")
        return self.octet_plain("compile", engine, "-m", model, "-o", engine)

    def octet_plain(self, command, output, *words):
        if not output.exists():
            parts.run_octet(self.program, command, *words, "--quiet")
        return output


def main():
    parser = argparse.ArgumentParser(description="What fewer than 8 bits cost, and what gives it back.")
    parser.add_argument("-e", "--experiment_spec", type=pathlib.Path, default=parts.ROOT / "examples/fashion_mnist_resnet20.yaml")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--rows", choices=("all", "calibrated"), default="all", help="calibrated: without those trained with 4 bits")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the experiment")
    parser.add_argument("--results", type=pathlib.Path, default=parts.ROOT / "results/low_bits")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    missed, pairs = [], {(bits, how): [] for bits in ("W4A8", "W4A4") for how in BY_RESULTS}
    print("| seed | network | top-1 | against float |\n|---|---|---|---|")
    for seed in options.seeds:
        study = Study(options, seed)
        scores = {"float": study.top1(study.float_model())}
        print(f"| {seed} | float | {scores['float']:.2f} | |", flush=True)
        scores["control"] = study.top1(study.control())
        print(f"| {seed} | float, trained on | {scores['control']:.2f} | {scores['control'] - scores['float']:+.2f} |", flush=True)
        for name, is_trained, settings in ROWS:
            if is_trained and options.rows == "calibrated":
                continue
            model = study.model(name, is_trained, settings)
            scores[name] = study.top1(model)
            print(f"| {seed} | {name} | {scores[name]:.2f} | {scores[name] - scores['float']:+.2f} |", flush=True)
        for (bits, how), of_seeds in pairs.items():
            of_seeds.append(gained_and_lost(*(study.right(study.model(f"{bits}, {each}", False, [])) for each in (how, "nearest"))))
        if options.rows == "calibrated":
            continue
        scores["engine"] = study.top1(study.engine(model))
        print(f"| {seed} | the last as an engine | {scores['engine']:.2f} | {scores['engine'] - scores['float']:+.2f} |", flush=True)
        bar = max(scores["float"], scores["control"]) - 1.5
        if scores["W4A4, trained, lsq"] < bar or scores["engine"] < bar:
            missed.append(f"seed {seed}: training with lsq ends more than 1.5 points below float or its control")
    for (bits, how), of_seeds in pairs.items():
        apart = standard_errors(of_seeds)
        print(f"{bits}, {len(of_seeds)} seeds: {how} rounding is {apart:.1f} standard errors above rounding to the nearest "
              f"(seed by seed {', '.join(f'{standard_errors([counts]):.1f}' for counts in of_seeds)})")
        if apart < CLEARLY:
            missed.append(f"{bits}: {how} rounding is not clearly above rounding to the nearest")
    for line in missed:
        print(line)
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
