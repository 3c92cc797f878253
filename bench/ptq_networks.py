#!/usr/bin/env python3
"""Post-training quantization of ten networks by Octet, NNCF and ONNX Runtime: what noise is left in the outputs.

    bench/ptq_networks.py PHOTOGRAPHS [--networks resnet18 ...] [--products octet ...] [--check]      needs build/release

PHOTOGRAPHS is a folder of at least 200: the first 100 calibrate, the next 100 are measured. `octet models` writes the networks, with
random weights of a fixed seed and the statistics of 16 of the photographs in their batch norms; each product quantizes the same FP32
file with its defaults and runs what it made. The table has the ratio of signal to quantization noise of the outputs, and in brackets
that of what they differ in from picture to picture. Octet's default has signed codes, as TensorRT takes no others, and its rivals'
have unsigned ones behind ReLU: so what `--target openvino` makes stands beside it. Writes bench/results/ptq-networks.json and goes on
where it was interrupted. With --products only these are measured, and the results of the others are those of that file: of rivals whose
kernels want another CPU than this one. With --check, exit 1 where Octet's default is more than 0.5 dB below a rival.
"""
import argparse
import json
import pathlib
import sys

import parts
from ptq_comparison import TITLES, Comparison, python_of

MEAN, STD = "0.485,0.456,0.406", "0.229,0.224,0.225"
NETWORKS = ("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "regnet_y_400mf", "densenet121",
            "shufflenet_v2_x1_0", "vit_tiny", "convnext_tiny")
COLUMNS = {"octet": "Octet", "octet:openvino": "Octet, unsigned codes", **{n: t for n, t in TITLES.items() if n != "octet"}}
SLACK_DB = 0.5


def main():
    parser = argparse.ArgumentParser(description="Post-training quantization of ten networks, beside NNCF's and ONNX Runtime's.")
    parser.add_argument("photographs", type=pathlib.Path)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--products", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--work", type=pathlib.Path, default=parts.ROOT / "build/bench/ptq_networks")
    parser.add_argument("--output", type=pathlib.Path, default=parts.ROOT / "bench/results/ptq-networks.json")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    comparison = Comparison(options.photographs, options.work, options.build, MEAN, STD, python_of("--pretrained"))
    before = json.loads(options.output.read_text())["networks"] if options.output.exists() else {}
    behind, report = [], {"commit": parts.commit(), "networks": before}  # those of other networks stay
    print("| network | " + " | ".join(COLUMNS.values()) + " |\n|---|" + "---|" * len(COLUMNS))
    for network in options.networks:
        folder = options.work / network
        folder.mkdir(exist_ok=True)
        kept, full = folder / "found.json", folder / "float.onnx"
        if not full.exists():
            parts.run_octet(options.build / "bin/octet", "models", network, "-o", folder / "initial.onnx", "--force", "--quiet")
            comparison.models("settle", folder / "initial.onnx", comparison.calibration, full)
        found = json.loads(kept.read_text()) if kept.exists() else {}
        if missing := [name for name in options.products if name not in found]:
            found.update(comparison.compare(full, folder, missing))
            kept.write_text(json.dumps(found))
        found = {**{n: f for n, f in before.get(network, {}).items() if n not in options.products}, **found}
        if missing := [name for name in COLUMNS if name not in found]:
            sys.exit(f"{network}: there are no results of {', '.join(missing)}; name them with --products, too")
        report["networks"][network] = found
        print(f"| {network} | " + " | ".join(f"{found[n]['sqnr_db']:.1f} ({found[n]['differences_db']:.1f})" for n in COLUMNS) + " |",
              flush=True)
        best = max(found[n]["sqnr_db"] for n in TITLES)
        if found["octet"]["sqnr_db"] < best - SLACK_DB:
            behind.append(f"{network} {found['octet']['sqnr_db']:.1f} < {best:.1f}")
    parts.write_json(options.output, report)
    if behind:
        print("more than 0.5 dB behind: " + "; ".join(behind))
    sys.exit(1 if options.check and behind else 0)


if __name__ == "__main__":
    main()
