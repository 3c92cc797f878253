#!/usr/bin/env python3
"""Runs an ONNX file in float32 and one of the same network in float16 in ONNX Runtime: the outputs agree as halves do.

    half_precision.py FLOAT32.onnx FLOAT16.onnx
"""
import sys

import numpy
import onnx
import onnxruntime

TOLERANCE = 2e-2  # of the largest output: some dozen layers of 11-bit mantissas


def run(path, x):
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})


def main():
    single, half = sys.argv[1:]
    shape = [d.dim_value or 1 for d in onnx.load(single).graph.input[0].type.tensor_type.shape.dim]
    x = numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32)
    failed = False
    for expected, actual in zip(run(single, x), run(half, x)):
        assert actual.dtype == numpy.float32
        relative = float(numpy.abs(actual - expected).max() / numpy.abs(expected).max())
        ok = 0 < relative <= TOLERANCE
        print(f"{half}: largest difference {relative:.2e} of the largest output: {'ok' if ok else 'FAILED'}")
        failed |= not ok
    constants = [t.data_type for t in onnx.load(half).graph.initializer]
    failed |= onnx.TensorProto.FLOAT in constants
    sys.exit(failed)


if __name__ == "__main__":
    main()
