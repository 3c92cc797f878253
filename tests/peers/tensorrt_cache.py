#!/usr/bin/env python3
"""Whether a calibration cache and the ONNX file beside it belong together for TensorRT.

Parses the file with TensorRT's own parser, builds it for SM 8.6, and compares the names of the cache with those of the
network's tensors: each must be one. With --all every float tensor that is no constant must be in the cache, too.

    tensorrt_cache.py [--all] MODEL.clean.onnx CACHE
"""
import struct
import sys

import onnx
import tensorrt_rtx as trt

from tensorrt_layers import Log, compile_for_sm86


def tensors(path):
    """(names, those that no constant makes)"""
    log = Log()
    network = trt.Builder(log).create_network(0)
    parser = trt.OnnxParser(network, log)
    if not parser.parse_from_file(path):
        sys.exit(f"{path}: refused: {log.errors[0]}")
    made = {name for node in onnx.load(path).graph.node for name in node.output}
    names = {network.get_input(i).name for i in range(network.num_inputs)}
    activations = set(names)
    for i in range(network.num_layers):
        layer = network.get_layer(i)
        for o in range(layer.num_outputs):
            tensor = layer.get_output(o)
            names.add(tensor.name)
            # The parser adds layers of its own (shapes, constants, parts of a Gemm), whose tensors the file does not name.
            if tensor.dtype == trt.float32 and layer.type != trt.LayerType.CONSTANT and tensor.name in made:
                activations.add(tensor.name)
    return names, activations


def read_cache(path):
    """As ModelOpt reads one: the first line is skipped, names end at the last ': '."""
    scales = {}
    with open(path, encoding="utf-8") as file:
        assert file.readline().startswith("TRT-"), "no header"
        for line in file:
            name, digits = line.rstrip("\n").rsplit(": ", 1)
            scales[name] = struct.unpack("!f", bytes.fromhex(digits.zfill(8)))[0]
    return scales


def main():
    arguments = [a for a in sys.argv[1:] if a != "--all"]
    path, cache = arguments
    scales = read_cache(cache)
    names, activations = tensors(path)
    unknown = sorted(set(scales) - names)
    lacking = sorted(activations - set(scales)) if "--all" in sys.argv else []
    engine, log = compile_for_sm86(path)
    ok = scales and not unknown and not lacking and engine is not None
    print(f"{path}: {len(scales)} ranges for {len(activations)} tensors, {len(unknown)} of unknown names {unknown[:3]}, "
          f"{len(lacking)} lacking {lacking[:3]}: {'ok' if ok else 'FAILED'}")
    if engine is None:
        print(log.errors[:1])
    sys.exit(not ok)


if __name__ == "__main__":
    main()
