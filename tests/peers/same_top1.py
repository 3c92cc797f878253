#!/usr/bin/env python3
"""Runs a QDQ file in ONNX Runtime and OpenVINO on the Fashion-MNIST test images and compares the top-1 classes with those
of Octet's engine (`octet infer --json`). Fails when ONNX Runtime, which rounds as Octet does, agrees on fewer than 99.9 % of the
images, or when OpenVINO, which does not, disagrees on any image that is no close call to it: of a network that was trained for
seconds it swaps about one top-1 in a thousand, by up to 0.05 of scores that differ by up to 0.16 from ONNX Runtime's.

    same_top1.py MODEL.qdq.onnx PREDICTIONS.json DATA_FOLDER MEAN STD [LIMIT]
"""
import gzip
import json
import pathlib
import platform
import sys

import numpy

CLOSE_CALL = 0.1  # difference of two scores


def images(folder, mean, std):
    with gzip.open(pathlib.Path(folder) / "t10k-images-idx3-ubyte.gz") as f:
        raw = numpy.frombuffer(f.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
    return ((raw.astype(numpy.float32) / numpy.float32(255) - numpy.float32(mean)) / numpy.float32(std)).astype(numpy.float32)


def onnxruntime_scores(path, x):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")  # sums saturate without VNNI otherwise
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return numpy.concatenate([session.run(None, {name: x[i:i + 100]})[0] for i in range(0, len(x), 100)])


def openvino_scores(path, x):
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape([100, *x.shape[1:]])
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return numpy.concatenate([compiled(x[i:i + 100])[0] for i in range(0, len(x), 100)])


def sums_saturate():
    """OpenVINO adds products of u8 and s8 in 16 bits on x86-64 without VNNI, whatever it is asked for."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return platform.machine() == "x86_64" and "avx512_vnni" not in flags and "avx_vnni" not in flags


def main():
    path, predictions, folder, mean, std = sys.argv[1:6]
    x = images(folder, float(mean), float(std))
    if len(sys.argv) > 6:
        x = x[:int(sys.argv[6])]
    with open(predictions) as f:
        octet = numpy.array([entry["class"] for entry in json.load(f)["predictions"]])
    if len(octet) != len(x):
        sys.exit(f"{predictions} holds {len(octet)} predictions, there are {len(x)} images")
    failed = False
    peers = [("ONNX Runtime", onnxruntime_scores(path, x), 0, 0.999)]
    if sums_saturate():
        print("OpenVINO: its sums saturate on this CPU, it is not asked")
    else:
        peers.append(("OpenVINO", openvino_scores(path, x), CLOSE_CALL, 1))
    for name, scores, tolerance, least in peers:
        best = scores.max(1)
        same = int((scores.argmax(1) == octet).sum())
        close = int((best - scores[numpy.arange(len(x)), octet] <= tolerance).sum())
        ok = close >= least * len(x)
        print(f"{name}: the same top-1 as Octet's engine on {same} of {len(x)} images, a close call on {close - same}: {'ok' if ok else 'FAILED'}")
        failed |= not ok
    sys.exit(failed)


if __name__ == "__main__":
    main()
