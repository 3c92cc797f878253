#!/usr/bin/env python3
"""Quantization-aware training beside its control, the same further training without quantizers, over several seeds.

    bench/qat_control.py [-e SPEC] [--networks NAME ...] [--seeds 1 2 3] [--set KEY=VALUE ...] [--partial DB] [--check]

Runs `octet study` for each network and seed and prints top-1 on the test images of each stage, and how far the engine of the
quantization-aware network is from the control. With --check, exit 1 where the mean of that over the seeds is below the network's bound,
or an engine is not verified. With --partial, layers that read an activation of which `octet diagnose --quick` foretells less than so many
dB of the outputs, on the calibration images, stay in float (partial quantization). Goes on where it was interrupted. Needs build/release. Without other settings a network takes hours on two cores:
`--set data.train.limit=15000` and fewer epochs show the same in less.
"""
import argparse
import json
import pathlib
import statistics
import sys

import parts

BOUNDS = {"resnet18": 0.1, "mobilenet_v2": 0.1, "efficientnet_b0": 0.3}  # points that the engine may be below the control
STAGES = ("float", "ptq", "control", "qat", "engine")


def arguments():
    parser = argparse.ArgumentParser(description="Quantization-aware training beside the same training in float.")
    parser.add_argument("-e", "--experiment_spec", type=pathlib.Path, default=parts.ROOT / "examples/fashion_mnist_resnet20.yaml")
    parser.add_argument("--networks", nargs="+", default=list(BOUNDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the experiment")
    parser.add_argument("--results", type=pathlib.Path, default=parts.ROOT / "results/qat_control")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--partial", type=float, default=None, metavar="DB", help="leave layers below it in float, as 30")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def sensitive_layers(options, network, folder, keys):
    """Those that read an activation whose quantization costs much, by the Fisher information."""
    octet, spec = options.build / "bin/octet", ["-e", options.experiment_spec]
    spec += [word for key in (f"model.arch={network}", *keys) for word in ("--set", key)]
    trained, calibrated, diagnosis = (folder / name for name in ("float/model.onnx", "whole.onnx", "whole.json"))
    if not trained.exists():
        parts.run_octet(octet, "train", *spec, "-r", folder / "float", "--stage", "float")
    if not calibrated.exists():
        parts.run_octet(octet, "calibrate", *spec, "-m", trained, "-o", calibrated)
    if not diagnosis.exists():
        parts.run_octet(octet, "diagnose", *spec, "-m", calibrated, "--quick", "--json", diagnosis)
    harmful = [q for q in json.loads(diagnosis.read_text())["quantizers"] if q["fisher_db"] < options.partial and not q["weights"]]
    return sorted({reader for q in harmful for reader in q["readers"]})


def study(options, network, seed):
    """The stages' top-1, and whether the engine was proved to be the trained graph."""
    folder = options.results / f"seed-{seed}"
    keys = [f"train.seed={seed}", f"data.seed={seed}", *options.set]
    if options.partial is not None:
        layers = sensitive_layers(options, network, folder / network, keys)
        print(f"{network}, seed {seed}: {len(layers)} layers stay in float", file=sys.stderr, flush=True)
        if layers:
            keys.append(f"quant.exclude={json.dumps(layers)}")
    parts.run_octet(options.build / "bin/octet", "study", "-e", options.experiment_spec, "-r", folder, "--networks", network,
                    *(word for key in keys for word in ("--set", key)))
    scores = {stage: json.loads((folder / network / f"{stage}.json").read_text())["top1"] for stage in STAGES}
    return scores, json.loads((folder / network / "verify.json").read_text())["holds"]


def main():
    options = arguments()
    missed = []
    print("| network | seed | float | PTQ | control | QAT | INT8 engine | engine - control |\n|---|---|---|---|---|---|---|---|")
    for network in options.networks:
        differences = []
        for seed in options.seeds:
            scores, holds = study(options, network, seed)
            differences.append(scores["engine"] - scores["control"])
            print(f"| {network} | {seed} | " + " | ".join(f"{scores[s]:.2f}" for s in STAGES) + f" | {differences[-1]:+.2f} |", flush=True)
            if not holds:
                missed.append(f"{network}, seed {seed}: the engine is not verified")
        mean = statistics.mean(differences)
        print(f"| {network} | mean | | | | | | {mean:+.2f} |", flush=True)
        bound = BOUNDS.get(network, 0.1)
        if mean < -bound:
            missed.append(f"{network}: the engine is {-mean:.2f} points below the control, more than {bound}")
    for line in missed:
        print(line)
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
