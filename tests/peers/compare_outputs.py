#!/usr/bin/env python3
"""Runs ONNX files in ONNX Runtime and compares with the outputs that Octet's float executor wrote beside them.

Every folder given holds model.onnx, input.npy and output.npy. The file must pass the ONNX checker. The largest
difference may be TOLERANCE times the largest absolute output: float32 sums of n products in another order differ by
about sqrt(n) * 2^-24 relative to the sum of magnitudes, 1e-5 for n = 4608 and a few dozen layers behind one another.
"""
import pathlib
import sys

import numpy
import onnx
import onnxruntime

TOLERANCE = 2e-4


def main():
    failed = False
    for folder in map(pathlib.Path, sys.argv[1:]):
        path = str(folder / "model.onnx")
        onnx.checker.check_model(path, full_check=True)
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.x64quantprecision", "1")  # sums saturate without VNNI otherwise
        options.log_severity_level = 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        x, expected = numpy.load(folder / "input.npy"), numpy.load(folder / "output.npy")
        (actual,) = session.run(None, {session.get_inputs()[0].name: x})
        if actual.shape != expected.shape:
            print(f"{folder.name}: shape {actual.shape}, Octet's is {expected.shape}: FAILED")
            failed = True
            continue
        relative = float(numpy.abs(actual - expected).max() / max(numpy.abs(expected).max(), 1e-30))
        ok = relative <= TOLERANCE
        print(f"{folder.name}: largest difference {relative:.2e} of the largest output: {'ok' if ok else 'FAILED'}")
        failed |= not ok
    sys.exit(failed)


if __name__ == "__main__":
    main()
