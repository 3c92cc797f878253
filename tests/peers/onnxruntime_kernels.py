#!/usr/bin/env python3
"""Whether ONNX Runtime computes in integers what Octet says it does, read off the graph that it optimizes.

    onnxruntime_kernels.py MODEL.onnx N_OF_M ...      N_OF_M: as `octet quantize --target onnxruntime` prints it, "20 of 21"

Fails (exit 1) where a file has fewer integer kernels than said, or fewer than 90 % of its convolutions and products.
"""
import collections
import os
import sys
import tempfile

import onnx
import onnxruntime

INTEGER = {"QLinearConv", "QGemm", "QLinearMatMul", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "ConvInteger"}
FLOAT = {"Conv", "FusedConv", "NhwcFusedConv", "ConvTranspose", "Gemm", "FusedGemm", "MatMul", "FusedMatMul"}


def kernels(path):
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = os.path.join(folder, "optimized.onnx")
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return collections.Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)


failed = False
for path, said in zip(sys.argv[1::2], sys.argv[2::2]):
    count = kernels(path)
    integer, floats = (sum(count[k] for k in kinds) for kinds in (INTEGER, FLOAT))
    said_integer, said_all = (int(word) for word in said.split(" of "))
    right = integer == said_integer and integer + floats == said_all and integer >= 0.9 * said_all
    failed = failed or not right
    print(f"{'ok  ' if right else 'FAIL'} {os.path.basename(path)}: ONNX Runtime {onnxruntime.__version__} runs {integer} of "
          f"{integer + floats} in integers, said were {said}; {dict(count)}")
sys.exit(1 if failed else 0)
