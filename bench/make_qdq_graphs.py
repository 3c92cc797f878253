#!/usr/bin/env python3
"""Writes the networks of the inference benchmark as ONNX files with random weights: ResNet-50, ResNet-18, MobileNetV2,
EfficientNet-B0 and DetectNet_v2-ResNet-18.

    make_qdq_graphs.py FOLDER [--networks resnet18 ...] [--modes u8s8 s8s8 fp32] [--keep-relu6]

Modes
    u8s8   QDQ graph, u8 activations (zero point 0 after ReLU, 128 elsewhere), s8 weights per channel
    s8s8   QDQ graph, s8 activations with zero point 0 (the TensorRT convention), s8 weights per channel
    fp32   the same network (same weights and biases) without quantization

Needs nothing but the Python standard library: the protobuf is written by hand, and the bytes are the same everywhere
(bench/qdq_graphs.sha256), so that times of two machines are times of the same work. Opset 13, batch 1, input "x" of
shape [1,3,224,224] (DetectNet: [1,3,544,960]). The weights are scaled so that few activations saturate, so the files
serve for comparing outputs as well as times (EfficientNet-B0 weakly: its activations use few steps).

Two rules that decide how fast a rival runs such a graph:
  * The int32 bias must have scale s_x * s_w of its convolution. If it has not, ONNX Runtime runs the convolution in
    fp32 and dequantizes the weights at every run, without a word.
  * u8 activations make a ReLU/ReLU6 before QuantizeLinear redundant (the range clips). MobileNetV2 in u8s8 leaves its
    ReLU6 out, as most quantizers do, unless --keep-relu6. With s8 and zero point 0 the activation has to stay.
"""
import argparse
import os
import random
import struct
import sys
from array import array


# --- protobuf wire format -------------------------------------------------------------------------------------------
def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def integer(field, n):
    return varint(field << 3) + varint(n)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def text(field, s):
    return message(field, s.encode())


def attribute(name, value):  # AttributeProto: int or list of ints
    if isinstance(value, list):
        return text(1, name) + b"".join(integer(8, v) for v in value) + integer(20, 7)
    return text(1, name) + integer(3, value) + integer(20, 2)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


FLOAT, UINT8, INT8, INT32 = 1, 2, 3, 6  # TensorProto.DataType
WEIGHT_RMS = 127 / 3**0.5  # of uniform int8 weights


class Graph:
    """Builds one network. `self.info[name]` holds the second moment and, once quantized, the scale of a tensor."""

    def __init__(self, mode, keep_relu6):
        self.quantized = mode != "fp32"
        self.signed = mode == "s8s8"
        self.keep_relu6 = keep_relu6
        self.nodes, self.initializers, self.count = [], [], 0
        self.info = {}
        self.random = random.Random(1)

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def node(self, op, inputs, moment=None, **attributes):
        out = self.name("t")
        self.nodes.append(b"".join(text(1, i) for i in inputs) + text(2, out) + text(3, self.name("n")) + text(4, op) +
                          b"".join(message(5, attribute(k, v)) for k, v in attributes.items()))
        if moment is not None:
            self.info[out] = {"moment": moment}
        return out

    def constant(self, dims, data_type, raw):
        name = self.name("w")
        self.initializers.append(b"".join(integer(1, d) for d in dims) + integer(2, data_type) + text(8, name) + message(9, raw))
        return name

    def moment(self, x):
        return self.info[x]["moment"]

    def quantize(self, x, positive, amax=None, scale=None):
        """QuantizeLinear + DequantizeLinear. The scale comes from `amax`, from `scale`, or from the second moment."""
        if scale is None:
            amax = amax or (6.0 if positive else 4.5) * self.moment(x) ** 0.5
            scale = amax / 255 if positive and not self.signed else amax / 127
        scale = struct.unpack("<f", floats([scale]))[0]
        moment = self.moment(x)
        if self.quantized:
            s = self.constant([], FLOAT, floats([scale]))
            z = self.constant([], INT8, bytes(1)) if self.signed else self.constant([], UINT8, bytes([0 if positive else 128]))
            x = self.node("DequantizeLinear", [self.node("QuantizeLinear", [x, s, z]), s, z])
        self.info[x] = {"moment": moment, "scale": scale}
        return x

    def weights(self, dims, channels, x, output_moment):
        """s8 weights (or the same values in fp32) and an int32 bias with scale s_x * s_w. Returns (weight, bias)."""
        per_channel = 1
        for d in dims[1:]:
            per_channel *= d
        raw = self.random.randbytes(channels * per_channel).replace(b"\x80", b"\x81")  # no -128
        base = (output_moment / (per_channel * self.moment(x))) ** 0.5 / WEIGHT_RMS
        scales = [struct.unpack("<f", floats([base * (0.8 + 0.05 * (c % 9))]))[0] for c in range(channels)]
        bias_scales = [struct.unpack("<f", floats([self.info[x]["scale"] * s]))[0] for s in scales]
        bias = [round((c * 37 % 200 - 100) * 0.001 * output_moment**0.5 / s) for c, s in enumerate(bias_scales)]
        if self.quantized:
            w = self.node("DequantizeLinear", [self.constant(dims, INT8, raw), self.constant([channels], FLOAT, floats(scales)),
                                               self.constant([channels], INT8, bytes(channels))], axis=0)
            b = self.node("DequantizeLinear", [self.constant([channels], INT32, struct.pack(f"<{channels}i", *bias)),
                                               self.constant([channels], FLOAT, floats(bias_scales)),
                                               self.constant([channels], INT32, bytes(4 * channels))], axis=0)
            return w, b
        values = array("f")
        for c, s in enumerate(scales):
            table = [s * (v - 256 if v > 127 else v) for v in range(256)]
            values.extend(map(table.__getitem__, raw[c * per_channel:(c + 1) * per_channel]))
        if sys.byteorder == "big":
            values.byteswap()
        return (self.constant(dims, FLOAT, values.tobytes()),
                self.constant([channels], FLOAT, floats([q * s for q, s in zip(bias, bias_scales)])))

    def conv(self, x, ic, oc, k, stride, groups=1, moment=1.0):
        w, b = self.weights([oc, ic // groups, k, k], oc, x, moment)
        return self.node("Conv", [x, w, b], moment, kernel_shape=[k, k], strides=[stride, stride], pads=[(k - 1) // 2] * 4, group=groups)

    # --- pieces of networks -----------------------------------------------------------------------------------------
    # The factors on second moments are rough. They are chosen so that a network rather shrinks than amplifies an error:
    # EfficientNet-B0 with random weights otherwise turns one rounding step into noise.
    def relu(self, x, halves=True):
        """`halves`: the input is centered on zero. The sum of a residual branch and a non-negative tensor is not."""
        return self.quantize(self.node("Relu", [x], self.moment(x) / (2 if halves else 1)), True)

    def relu6(self, x):
        moment = self.moment(x) / 2
        if not self.quantized or self.signed or self.keep_relu6:
            x = self.node("Clip", [x, self.constant([], FLOAT, floats([0.0])), self.constant([], FLOAT, floats([6.0]))])
        self.info[x] = {"moment": moment}
        return self.quantize(x, True, amax=6.0)

    def silu(self, x):
        x = self.quantize(x, False)
        gate = self.quantize(self.node("Sigmoid", [x], 0.3), True, amax=1.0)
        return self.quantize(self.node("Mul", [x, gate], 0.5 * self.moment(x)), False)

    def squeeze_excite(self, x, channels, squeezed):
        z = self.quantize(self.node("GlobalAveragePool", [x], 0.6 * self.moment(x)), False)
        z = self.silu(self.conv(z, channels, squeezed, 1, 1))
        z = self.quantize(self.conv(z, squeezed, channels, 1, 1), False)
        gate = self.quantize(self.node("Sigmoid", [z], 0.3), True, amax=1.0)
        return self.quantize(self.node("Mul", [x, gate], 0.3 * self.moment(x)), False)

    def add(self, a, b):
        return self.node("Add", [a, b], self.moment(a) + self.moment(b))

    def max_pool(self, x):
        y = self.node("MaxPool", [x], 2.5 * self.moment(x), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        return self.quantize(y, True, scale=self.info[x]["scale"])

    def classifier(self, x, ic, oc, positive):
        x = self.quantize(self.node("GlobalAveragePool", [x], 0.5 * self.moment(x)), positive)
        y = self.node("Flatten", [x], self.moment(x), axis=1)
        y = self.quantize(y, positive, scale=self.info[x]["scale"])
        w, b = self.weights([oc, ic], oc, y, 1.0)
        return self.quantize(self.node("Gemm", [y, w, b], 1.0, transB=1), False)

    def input(self, amax, positive):
        self.info["x"] = {"moment": amax**2 / 3}
        return self.quantize("x", positive, amax=amax)

    def save(self, path, input_shape, output, output_shape):
        def value(name, shape):
            dims = b"".join(message(1, integer(1, d)) for d in shape)
            return text(1, name) + message(2, message(1, integer(1, FLOAT) + message(2, dims)))

        graph = (b"".join(message(1, n) for n in self.nodes) + text(2, "g") + b"".join(message(5, i) for i in self.initializers) +
                 message(11, value("x", input_shape)) + message(12, value(output, output_shape)))
        with open(path, "wb") as f:
            f.write(integer(1, 8) + text(2, "make_qdq_graphs") + message(7, graph) + message(8, text(1, "") + integer(2, 13)))


# --- networks; each returns (output, input shape, output shape) -----------------------------------------------------------
RESIDUAL = 0.15  # second moment of a residual branch, so that sums do not blow up over many blocks


def resnet50(g):
    x = g.max_pool(g.relu(g.conv(g.input(1.0, False), 3, 64, 7, 2)))
    ic = 64
    for stage, (blocks, mid, oc) in enumerate([(3, 64, 256), (4, 128, 512), (6, 256, 1024), (3, 512, 2048)]):
        for i in range(blocks):
            stride = 2 if i == 0 and stage else 1
            y = g.relu(g.conv(x, ic, mid, 1, 1))
            y = g.relu(g.conv(y, mid, mid, 3, stride))
            y = g.quantize(g.conv(y, mid, oc, 1, 1, moment=RESIDUAL), False)
            shortcut = g.quantize(g.conv(x, ic, oc, 1, stride), False) if i == 0 else x
            x, ic = g.relu(g.add(y, shortcut), halves=i == 0), oc
    return g.classifier(x, 2048, 1000, True), [1, 3, 224, 224], [1, 1000]


def resnet18(g):
    x = g.max_pool(g.relu(g.conv(g.input(1.0, False), 3, 64, 7, 2)))
    ic = 64
    for stage, c in enumerate([64, 128, 256, 512]):
        for i in range(2):
            stride = 2 if i == 0 and stage else 1
            y = g.relu(g.conv(x, ic, c, 3, stride))
            y = g.quantize(g.conv(y, c, c, 3, 1, moment=RESIDUAL), False)
            shortcut = g.quantize(g.conv(x, ic, c, 1, stride), False) if stride == 2 else x
            x, ic = g.relu(g.add(y, shortcut), halves=stride == 2), c
    return g.classifier(x, 512, 1000, True), [1, 3, 224, 224], [1, 1000]


def detectnet(g):
    x = g.relu(g.conv(g.input(1.0, True), 3, 64, 7, 2))
    ic = 64
    for c, first in [(64, 2), (128, 2), (256, 2), (512, 1)]:
        for i in range(2):
            stride = first if i == 0 else 1
            y = g.relu(g.conv(x, ic, c, 3, stride))
            y = g.quantize(g.conv(y, c, c, 3, 1, moment=0.5), False)
            shortcut = g.quantize(g.conv(x, ic, c, 1, stride, moment=0.5), False)  # a projection in every block
            x, ic = g.relu(g.add(y, shortcut)), c
    return g.node("Sigmoid", [g.conv(x, 512, 4, 1, 1)]), [1, 3, 544, 960], [1, 4, 34, 60]  # heads stay in fp32


def mobilenetv2(g):
    x = g.relu6(g.conv(g.input(1.0, False), 3, 32, 3, 2))
    ic = 32
    for t, c, blocks, first in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(blocks):
            stride, hidden, y = first if i == 0 else 1, ic * t, x
            residual = stride == 1 and ic == c
            if t != 1:
                y = g.relu6(g.conv(y, ic, hidden, 1, 1))
            y = g.relu6(g.conv(y, hidden, hidden, 3, stride, hidden))
            y = g.quantize(g.conv(y, hidden, c, 1, 1, moment=RESIDUAL if residual else 1.0), False)
            x, ic = g.quantize(g.add(x, y), False) if residual else y, c
    return g.classifier(g.relu6(g.conv(x, 320, 1280, 1, 1)), 1280, 1000, True), [1, 3, 224, 224], [1, 1000]


def efficientnetb0(g):
    x = g.silu(g.conv(g.input(1.0, False), 3, 32, 3, 2))
    ic = 32
    for t, k, first, c, blocks in [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)]:
        for i in range(blocks):
            stride, hidden, y = first if i == 0 else 1, ic * t, x
            residual = stride == 1 and ic == c
            if t != 1:
                y = g.silu(g.conv(y, ic, hidden, 1, 1))
            y = g.silu(g.conv(y, hidden, hidden, k, stride, hidden))
            y = g.squeeze_excite(y, hidden, max(1, ic // 4))
            y = g.quantize(g.conv(y, hidden, c, 1, 1, moment=RESIDUAL if residual else 1.0), False)
            x, ic = g.quantize(g.add(x, y), False) if residual else y, c
    return g.classifier(g.silu(g.conv(x, 320, 1280, 1, 1)), 1280, 1000, False), [1, 3, 224, 224], [1, 1000]


NETWORKS = {f.__name__: f for f in (resnet50, resnet18, mobilenetv2, efficientnetb0, detectnet)}


def main():
    parser = argparse.ArgumentParser(description="Write QDQ and fp32 test networks as ONNX.")
    parser.add_argument("folder")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--modes", nargs="+", choices=("u8s8", "s8s8", "fp32"), default=["u8s8", "s8s8", "fp32"])
    parser.add_argument("--keep-relu6", action="store_true", help="keep the redundant Clip in u8s8 MobileNetV2")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    for name in args.networks:
        for mode in args.modes:
            graph = Graph(mode, args.keep_relu6)
            output, input_shape, output_shape = NETWORKS[name](graph)
            path = os.path.join(args.folder, f"{name}_{mode}.onnx")
            graph.save(path, input_shape, output, output_shape)
            print(f"{path}  {os.path.getsize(path) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
