#!/usr/bin/env python3
"""What the TensorRT compiler makes of QDQ ONNX files, without a GPU.

TensorRT for RTX compiles ahead of time on a CPU, here for SM 8.6, and its log lists every layer of the engine with its
data types. For each file this prints how many convolutions and matrix products there are and how many run in INT8, and
fails (exit 1) if a file is refused or if fewer weighted layers run in INT8 than the file quantizes.

    tensorrt_layers.py MODEL.onnx ...
"""
import re
import sys

import onnx
import tensorrt_rtx as trt

MATRIX_LAYERS = ("correlation", "convolution", "conv", "gemm")


class Log(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.text, self.errors = [], []

    def log(self, severity, message):
        (self.errors if severity <= trt.ILogger.ERROR else self.text).append(message)


def compile_for_sm86(path):
    """(engine or None, log)"""
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log)
    if not parser.parse_from_file(path):
        return None, log
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM86, 0)
    profile = builder.create_optimization_profile()
    dynamic = False
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        if any(d < 0 for d in tensor.shape):
            shape = [1 if d < 0 else d for d in tensor.shape]
            profile.set_shape(tensor.name, shape, shape, shape)
            dynamic = True
    if dynamic:
        config.add_optimization_profile(profile)
    return builder.build_serialized_network(network, config), log


def data_types(line, field):
    """Data types of the tensors in the list `field: [...]` of a layer's line."""
    start = line.find(field + ": [")
    if start < 0:
        return []
    depth = 0
    for end in range(start + len(field) + 2, len(line)):
        depth += {"[": 1, "]": -1}.get(line[end], 0)
        if depth == 0:
            return re.findall(r"Datatype: (\w+)", line[start:end])
    return []


def matrix_layers(log):
    """[(name, runs in INT8)] of all convolutions and products of the engine."""
    out = []
    for text in log.text:
        for line in text.splitlines():
            found = re.match(r"\s*Name: (.+?), LayerType: (\w+)", line)
            if found and found[2] in MATRIX_LAYERS:
                int8 = "Int8" in data_types(line, "Inputs")[:1] and "Int8" in data_types(line, "Constants")[:1]
                out.append((found[1], int8))
    return out


def quantized_weighted_nodes(path):
    """How many convolutions and products of the file read both operands through a DequantizeLinear."""
    graph = onnx.load(path).graph
    dequantized = {o for n in graph.node if n.op_type == "DequantizeLinear" for o in n.output}
    weighted = [n for n in graph.node if n.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul")]
    quantized = [n for n in weighted if n.input[0] in dequantized and n.input[1] in dequantized]
    convolutions = [n for n in quantized if n.op_type in ("Conv", "ConvTranspose")]
    return len(weighted), len(quantized), len(convolutions)


def main():
    failed = False
    for path in sys.argv[1:]:
        engine, log = compile_for_sm86(path)
        if engine is None:
            print(f"{path}: refused: {log.errors[0] if log.errors else 'no reason given'}")
            failed = True
            continue
        layers = matrix_layers(log)
        int8 = sum(is_int8 for _, is_int8 in layers)
        weighted, quantized, convolutions = quantized_weighted_nodes(path)
        ok = convolutions > 0 and int8 >= convolutions and len(layers) >= convolutions
        print(f"{path}: {int8} of {len(layers)} convolutions and products in INT8 "
              f"(the file quantizes {quantized} of {weighted}, {convolutions} of them convolutions): "
              f"{'ok' if ok else 'FAILED'}")
        for name, is_int8 in layers:
            if not is_int8:
                print(f"  in floating point: {name}")
        failed |= not ok
    sys.exit(failed)


if __name__ == "__main__":
    main()
