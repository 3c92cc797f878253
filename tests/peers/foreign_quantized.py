#!/usr/bin/env python3
"""Quantizes a small network with ONNX Runtime's quantize_static in every format and runs the files in Octet and in ONNX
Runtime: foreign_quantized.py PROGRAM [PATTERN]

All combinations of QDQ and QOperator, u8 and s8 activations (asymmetric and symmetric), u8 and s8 weights, one scale
for each tensor or for each channel, opsets 10 to 21, fixed and dynamic batch. Checked:
- every convolution and product is INT8 in Octet, and nothing is FP32 for another reason than NINE_BITS (depthwise);
- the outputs differ from ONNX Runtime's by at most STEPS steps of the output's scale. Where single codes differ is the
  business of onnxruntime_codes.py; here a rounding tie may have gone through all layers behind it.
"""
import fnmatch
import itertools
import logging
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

STEPS = 3
NINE_BITS = "weight codes minus their zero point exceed 8 bits"
WEIGHTED = ("conv", "depthwise", "float_conv", "float_depthwise", "float_gemm", "float_matmul")


class Data(CalibrationDataReader):
    def __init__(self, shape):
        random = numpy.random.default_rng(2)
        self.batches = iter([{"x": random.standard_normal(shape).astype(numpy.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.batches, None)


def float_network(opset, batch, form):
    """Every kind of layer that quantize_static quantizes in this form, in 24 x 24 pixels."""
    random = numpy.random.default_rng(opset)
    nodes, constants = [], []

    def constant(values, name):
        constants.append(numpy_helper.from_array(values, name))
        return name

    def node(op, inputs, **attributes):
        name = f"{op.lower()}{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def conv(x, cin, cout, k, stride=1, groups=1):
        # Not centered on zero, so that asymmetric weights have a zero point of their own.
        w = random.uniform(-0.6, 1, (cout, cin // groups, k, k)) * 2 / numpy.sqrt(cin // groups * k * k)
        name = f"w{len(constants)}"
        inputs = [x, constant(w.astype(numpy.float32), name),
                  constant(random.uniform(-1, 1, cout).astype(numpy.float32), name + "b")]
        return node("Conv", inputs, kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4, group=groups)

    x = node("Relu", [conv("x", 3, 16, 3, 2)])
    x = node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = node("LeakyRelu", [conv(x, 16, 16, 3, groups=16)], alpha=0.1)
    left, right = conv(x, 16, 16, 1), node("Relu", [conv(x, 16, 16, 3)])
    x = node("Add", [left, right])
    x = node("Concat", [x, left], axis=1)
    x = node("Mul", [x, node("Sigmoid", [conv(x, 32, 32, 1)])])
    scales = constant(numpy.array([1, 1, 2, 2], numpy.float32), "scales")
    if opset == 10:
        x = node("Resize", [x, scales], mode="nearest")
    else:
        x = node("Resize", [x, constant(numpy.zeros(0, numpy.float32), "roi"), scales], mode="nearest",
                 coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = node("AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    if form == QuantFormat.QDQ:  # there is no QLinearConvTranspose
        w = random.uniform(-0.6, 1, (32, 32, 3, 3)) * 2 / numpy.sqrt(32 * 9 / 4)
        x = node("ConvTranspose", [x, constant(w.astype(numpy.float32), "tw"),
                                   constant(random.uniform(-1, 1, 32).astype(numpy.float32), "tb")],
                 kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])
    x = node("Flatten", [node("GlobalAveragePool", [conv(x, 32, 24, 3, groups=2)])])
    w = random.uniform(-0.4, 0.5, (24, 20)).astype(numpy.float32)
    x = node("Gemm", [x, constant(w, "gw"), constant(random.uniform(-1, 1, 20).astype(numpy.float32), "gb")])
    w = random.uniform(-0.4, 0.5, (20, 10)).astype(numpy.float32)
    x = node("MatMul", [x, constant(w, "mw")])
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 24, 24])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch, 10])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6 if opset < 15 else 8)


def cases():
    kinds = {"u8": QuantType.QUInt8, "s8": QuantType.QInt8}
    for form, act, weight, per_channel in itertools.product(("qdq", "qoperator"), kinds, kinds, (False, True)):
        for opset, batch, symmetric in ((13, 1, False), (13, "N", act == "s8"), (17, 2, False), (21, 1, False), (11, 1, False), (10, 1, False)):
            if (symmetric and act == "u8") or (act, weight) == ("s8", "u8") or (opset < 13 and per_channel and form == "qdq"):
                continue  # such files do not exist
            name = f"{form}-{act}-{weight}-{'channel' if per_channel else 'tensor'}-opset{opset}-batch{batch}"
            yield name + ("-symmetric" if symmetric else ""), dict(
                form=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator, act=kinds[act], weight=kinds[weight],
                per_channel=per_channel, opset=opset, batch=batch, symmetric=symmetric)


def make(case, folder):
    onnx.save(float_network(case["opset"], case["batch"], case["form"]), folder / "float.onnx")
    shape = [1 if case["batch"] == "N" else case["batch"], 3, 24, 24]
    quantize_static(folder / "float.onnx", folder / "model.onnx", Data(shape), quant_format=case["form"],
                    per_channel=case["per_channel"], activation_type=case["act"], weight_type=case["weight"],
                    extra_options={"ActivationSymmetric": case["symmetric"]})
    x = numpy.random.default_rng(3).standard_normal(shape).astype(numpy.float32)
    x.tofile(folder / "input_0.f32")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})
    return y


def problem_of(folder, expected):
    if (folder / "error.txt").exists():
        return (folder / "error.txt").read_text().strip()
    steps = [line.split(" ", 2) for line in (folder / "steps.txt").read_text().splitlines()]
    for kind, precision, reason in steps:
        if kind == "float_depthwise" and reason == NINE_BITS:
            continue  # asymmetric u8 weights: dense layers split them, depthwise ones do not
        if precision == "fp32" and (kind in WEIGHTED or reason):
            return f"step {kind} is FP32: {reason}"
    y = numpy.fromfile(folder / "output_0.f32", numpy.float32).reshape(expected.shape)
    step = float(numpy.diff(numpy.unique(y)).min()) if numpy.unique(y).size > 1 else 1.0
    off = float(numpy.abs(y - expected).max()) / step
    if off > STEPS + 0.5:
        return f"differs by {off:.1f} steps of the output"
    print(f"{folder.name}: {len(steps)} steps, off by {off:.0f}: ok")
    return None


def main():
    logging.disable(logging.WARNING)
    program, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "*"
    failed, expected = False, {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, case in cases():
            if fnmatch.fnmatch(name, pattern):
                folder = pathlib.Path(scratch) / name
                folder.mkdir()
                expected[folder] = make(case, folder)
        subprocess.run([program] + [str(f) for f in expected], check=True, stdout=subprocess.DEVNULL)
        for folder, y in expected.items():
            problem = problem_of(folder, y)
            if problem:
                failed = True
                print(f"{folder.name}: FAILED: {problem}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
