#!/usr/bin/env python3
"""A network whose channels have very different ranges, before and after cross-layer equalization (quant.equalize).

    bench/equalization.py MODEL -e SPEC [--set KEY=VALUE] [--equalize exact] [--check]
                                                          needs build/release and scripts/peers_venv.sh

MODEL, a trained float network as of `./quickstart.sh`, computes the same after each channel between two convolutions was multiplied by
a random power of two from 1/32 to 32 in the first and divided by it in the second: what training can leave behind, exaggerated. The
second may be depthwise, so that all layers of a MobileNet are spoiled where it has ReLU (`--set model.activation=relu` when it is
trained); with ReLU6 only the linear projections are, of blocks without a sum. It is calibrated with a scale for each output channel of
the weights and with one for all, without and with equalization, and measured on the test images. With --check, exit 1 unless plain
calibration loses more than 5 points somewhere and equalization at most 0.5.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import parts

SPOIL = '''
import sys, numpy, onnx
from onnx import numpy_helper
model = onnx.load(sys.argv[1])
constants = {c.name: c for c in model.graph.initializer}
readers = {}
for node in model.graph.node:
    for name in node.input:
        readers.setdefault(name, []).append(node)
random = numpy.random.default_rng(1)
def multiply(name, factors, axis):
    values = numpy_helper.to_array(constants[name])
    shape = [1] * values.ndim
    shape[axis] = -1
    constants[name].CopyFrom(numpy_helper.from_array(values * factors.reshape(shape), name))
pairs = 0
for node in model.graph.node:
    first, last, norms = node, node, []
    while first.op_type == "Conv" and len(readers.get(last.output[0], [])) == 1:
        last = readers[last.output[0]][0]
        if last.op_type == "BatchNormalization":
            norms.append(last)
        elif last.op_type != "Relu":
            break
    if first.op_type != "Conv" or last.op_type != "Conv" or last is first:
        continue
    channels, groups = constants[first.input[1]].dims[0], max([a.i for a in last.attribute if a.name == "group"], default=1)
    if groups not in (1, channels) or (groups > 1 and constants[last.input[1]].dims[0] != channels):
        continue
    factors = numpy.exp2(random.integers(-5, 6, channels)).astype(numpy.float32)
    for name in norms[-1].input[1:3] if norms else first.input[1:]:
        multiply(name, factors, 0)
    multiply(last.input[1], 1 / factors, 1 if groups == 1 else 0)
    pairs += 1
onnx.save(model, sys.argv[2])
print(pairs)
'''


def main():
    parser = argparse.ArgumentParser(description="What cross-layer equalization gives back of a spoiled network.")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("-e", "--experiment_spec", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the experiment, as octet takes it")
    parser.add_argument("--equalize", default="exact", choices=["exact", "unreached", "relaxed"])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    venv = subprocess.run([parts.ROOT / "scripts/peers_venv.sh"], check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)

        def octet(*words):
            settings = [word for setting in options.set for word in ("--set", setting)]
            parts.run_octet(options.build / "bin/octet", words[0], "-e", options.experiment_spec, *words[1:], *settings, "--quiet")

        def top1(model):
            report = folder / "report.json"
            octet("evaluate", "-m", model, "--json", report)
            return json.loads(report.read_text())["top1"]

        def calibrated(model, granularity, equalize):
            octet("calibrate", "-m", model, "-o", folder / "calibrated.onnx", "--force", "--set", f"quant.weights.granularity={granularity}", "--set",
                  f"quant.equalize={equalize}")
            return top1(folder / "calibrated.onnx")

        spoiled = folder / "spoiled.onnx"
        pairs = subprocess.run([pathlib.Path(venv) / "bin/python", "-c", SPOIL, options.model, spoiled], check=True, capture_output=True,
                               text=True).stdout.strip()
        print(f"{pairs} pairs of convolutions spoiled\n\n| network | float | scales of weights | calibrated | equalized and calibrated |\n|---|---|---|---|---|")
        least, most_lost = 100.0, 0.0
        for name, model in (("as it was trained", options.model), ("spoiled", spoiled)):
            full = top1(model)
            for granularity in ("channel", "tensor"):
                plain, equalized = (calibrated(model, granularity, how) for how in ("no", options.equalize))
                print(f"| {name} | {full:.2f} | one a {granularity} | {plain:.2f} | {equalized:.2f} |", flush=True)
                least, most_lost = min(least, plain - full + 100), max(most_lost, full - equalized)
    if options.check and (least > 95 or most_lost > 0.5):
        sys.exit(f"plain calibration lost {100 - least:.2f} points, with equalization {most_lost:.2f}")


if __name__ == "__main__":
    main()
