#!/usr/bin/env python3
"""Compares every quantized tensor of QDQ networks with ONNX Runtime's: onnxruntime_codes.py PROGRAM MODEL.onnx...

ONNX Runtime runs the whole network with its fusions (QLinearConv, QLinearAdd, QGemm ...) and gives out the codes behind
every QuantizeLinear. The network is then cut there, and PROGRAM (peers_run_graphs) runs every piece on the codes that
ONNX Runtime had: so every operator is compared by itself. Codes must be equal, but behind an Add, where the two libraries round
differently (docs/numerics.md): there a code may be off by one where the exact sum is a tie or within 1e-4 of one.
Every Conv of the file must have become a QLinearConv, or the comparison would say nothing.
"""
import collections
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NEAR_TIE = 1e-4


class Network:
    def __init__(self, path):
        self.model = onnx.load(path)
        graph = self.model.graph
        self.constants = {i.name: i for i in graph.initializer}
        self.producer = {o: n for n in graph.node for o in n.output}
        self.input = graph.input[0]
        self.quantizers = [n for n in graph.node if n.op_type == "QuantizeLinear"]

    def number(self, name):
        return numpy_helper.to_array(self.constants[name])

    def run(self, x, work):
        """Codes behind every quantizer, and what the operators became."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for q in self.quantizers:
            kind = TensorProto.INT8 if self.number(q.input[2]).dtype == numpy.int8 else TensorProto.UINT8
            model.graph.output.append(helper.make_tensor_value_info(q.output[0], kind, None))
        options = onnxruntime.SessionOptions()
        # Where the CPU has no VNNI its sums of u8 times s8 saturate at 16 bits unless it is told to be exact.
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.log_severity_level = 3
        options.optimized_model_filepath = str(work / "optimized.onnx")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [q.output[0] for q in self.quantizers]
        codes = dict(zip(names, session.run(names, {self.input.name: x})))
        optimized = onnx.load(work / "optimized.onnx", load_external_data=False)
        return codes, collections.Counter(n.op_type for n in optimized.graph.node)

    def piece(self, q, x, codes, folder):
        """The nodes between q and the quantizers before it as a model with the codes as inputs. Returns its operators
        and the dequantized inputs, which are also written for the program."""
        nodes, inputs, feeds, constants, seen, stack = [], [], [], {}, set(), list(q.input)
        while stack:
            name = stack.pop()
            if name in seen or not name:
                continue
            seen.add(name)
            if name in self.constants:
                constants[name] = self.constants[name]
                continue
            node = self.producer.get(name)
            if node is None:
                inputs.append((name, x.shape))
                feeds.append(x)
                continue
            nodes.append(node)
            if node.op_type == "DequantizeLinear" and node.input[0] in codes:
                source = node.input[0]
                scale, zero = self.number(node.input[1]), self.number(node.input[2])
                real = (codes[source].astype(numpy.float32) - numpy.float32(zero)) * scale
                nodes.append(helper.make_node("QuantizeLinear", [source + "_real", *node.input[1:]], [source]))
                inputs.append((source + "_real", real.shape))
                feeds.append(real)
                stack += node.input[1:]
            else:
                stack += node.input
        order = {id(n): i for i, n in enumerate(self.model.graph.node)}
        nodes.sort(key=lambda n: order.get(id(n), -1))
        operators = [n.op_type for n in nodes if n.op_type not in ("QuantizeLinear", "DequantizeLinear")]
        nodes += [q, helper.make_node("DequantizeLinear", [q.output[0], *q.input[1:]], ["result"])]
        shape = codes[q.output[0]].shape
        graph = helper.make_graph(
            nodes, "piece", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
            [helper.make_tensor_value_info("result", TensorProto.FLOAT, shape)], list(constants.values()))
        folder.mkdir()
        onnx.save(helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version),
                  folder / "model.onnx")
        for i, feed in enumerate(feeds):
            feed.astype(numpy.float32).tofile(folder / f"input_{i}.f32")
        return operators, feeds


def compare(program, path):
    network = Network(path)
    shape = [d.dim_value or 1 for d in network.input.type.tensor_type.shape.dim]  # the batch may be free
    x = numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32)
    failed, totals = False, collections.defaultdict(lambda: [0, 0, 0])
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        codes, became = network.run(x, scratch)
        convolutions = sum(n.op_type == "Conv" for n in network.model.graph.node)
        if became["QLinearConv"] != convolutions:
            print(f"{path}: ONNX Runtime fused {became['QLinearConv']} of {convolutions} convolutions: FAILED")
            failed = True
        pieces = {}
        for i, q in enumerate(network.quantizers):
            pieces[i] = (q, *network.piece(q, x, codes, scratch / str(i)))
        subprocess.run([program] + [str(scratch / str(i)) for i in pieces], check=True, stdout=subprocess.DEVNULL)
        for i, (q, operators, feeds) in pieces.items():
            error = scratch / str(i) / "error.txt"
            if error.exists():
                print(f"{q.output[0]}: {error.read_text().strip()}: FAILED")
                failed = True
                continue
            scale, zero = network.number(q.input[1]), int(network.number(q.input[2]))
            got = numpy.rint(numpy.fromfile(scratch / str(i) / "output_0.f32", numpy.float32) / scale).astype(int) + zero
            want = codes[q.output[0]].astype(int).ravel()
            differ = numpy.flatnonzero(got != want)
            unexplained = len(differ)
            if "Add" in operators and len(feeds) == 2 and feeds[0].shape == feeds[1].shape:
                exact = (feeds[0].astype(float).ravel() + feeds[1].astype(float).ravel())[differ] / float(scale)
                near = numpy.abs(exact - numpy.floor(exact) - 0.5) < NEAR_TIE
                unexplained -= int((near & (numpy.abs(got - want)[differ] == 1)).sum())
            name = "+".join(reversed(operators)) if operators else "QuantizeLinear"
            for k, v in enumerate((want.size, len(differ), unexplained)):
                totals[name][k] += v
            if unexplained:
                failed = True
                print(f"{q.output[0]} ({name}): {unexplained} of {want.size} codes differ: FAILED")
    for name, (count, differ, _) in sorted(totals.items()):
        print(f"{pathlib.Path(path).stem}: {name}: {count} codes, {differ} differ" + (" (ties)" if differ else ""))
    return failed


def main():
    failed = [compare(sys.argv[1], path) for path in sys.argv[2:]]
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
