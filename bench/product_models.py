#!/usr/bin/env python3
"""What bench/product.py needs of the rivals' Python: their quantizers, and the outputs of all products.

    product_models.py settle FLOAT.onnx PICTURES OUT.onnx        batch norms with the statistics of 16 pictures
    product_models.py openvino FLOAT.onnx PICTURES OUT.xml       NNCF's post-training quantization, OpenVINO IR
    product_models.py onnxruntime FLOAT.onnx PICTURES OUT.onnx   ONNX Runtime's static quantization, QDQ
    product_models.py accuracy FLOAT.onnx PICTURES octet=ENGINE openvino=XML onnxruntime=ONNX
                                                                 prints JSON: {product: {"sqnr_db": ..., "differences_db": ...}};
                                                                 octet:ANYTHING is a further product of Octet's

Run by the Python of `scripts/peers_venv.sh --nncf`. PICTURES is a folder of PPM files of one size.
accuracy takes Octet's library from OCTET_LIB.
"""
import json
import os
import pathlib
import re
import sys
import tempfile

import numpy as np

import octet_library

# Of ImageNet, what networks of this kind are trained with, unless the environment says otherwise.
MEAN = tuple(map(float, os.environ.get("PICTURES_MEAN", "0.485,0.456,0.406").split(",")))
STD = tuple(map(float, os.environ.get("PICTURES_STD", "0.229,0.224,0.225").split(",")))


def pictures(folder, count=None):
    """Arrays 1 x 3 x H x W, normalized."""
    for path in sorted(pathlib.Path(folder).glob("*.ppm"))[:count]:
        content = path.read_bytes()
        header = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", content)
        width, height = int(header[1]), int(header[2])
        image = np.frombuffer(content[header.end():], np.uint8).reshape(height, width, 3).astype(np.float32) / 255
        yield np.ascontiguousarray(((image - np.float32(MEAN)) / np.float32(STD)).transpose(2, 0, 1)[None])


# --- statistics of batch norms ----------------------------------------------------------------------------------------
def settle(source, folder, out):
    """A network with random weights and the initial statistics (mean 0, variance 1) may shrink what flows through it to 1e-9,
    as no trained network does. Every batch norm gets the statistics of its input in one pass over some pictures."""
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    model = onnx.load(source)
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    initial = {i.name: i for i in model.graph.initializer}
    norms = [n for n in model.graph.node if n.op_type == "BatchNormalization"]
    if not norms:  # a transformer
        return onnx.save(model, out)
    pass_ = onnx.ModelProto()
    pass_.CopyFrom(model)
    nodes, outputs = [], []

    def average(x, name):
        if opset < 18:
            return helper.make_node("ReduceMean", [x], [name], axes=[0, 2, 3], keepdims=1)
        return helper.make_node("ReduceMean", [x, "settle.axes"], [name], keepdims=1)

    pass_.graph.initializer.append(numpy_helper.from_array(np.array([0, 2, 3], np.int64), "settle.axes"))
    pass_.graph.initializer.append(numpy_helper.from_array(np.array([1, -1, 1, 1], np.int64), "settle.shape"))
    for n in model.graph.node:
        if n.op_type != "BatchNormalization":
            nodes.append(n)
            continue
        x, scale, shift, y = n.input[0], n.input[1], n.input[2], n.output[0]
        epsilon = next((a.f for a in n.attribute if a.name == "epsilon"), 1e-5)
        pass_.graph.initializer.append(numpy_helper.from_array(np.float32(epsilon), y + ".eps"))
        nodes += [average(x, y + ".mean"), helper.make_node("Sub", [x, y + ".mean"], [y + ".d"]),
                  helper.make_node("Mul", [y + ".d", y + ".d"], [y + ".dd"]), average(y + ".dd", y + ".var"),
                  helper.make_node("Add", [y + ".var", y + ".eps"], [y + ".ve"]), helper.make_node("Sqrt", [y + ".ve"], [y + ".s"]),
                  helper.make_node("Div", [y + ".d", y + ".s"], [y + ".n"]),
                  helper.make_node("Reshape", [scale, "settle.shape"], [y + ".g"]),
                  helper.make_node("Reshape", [shift, "settle.shape"], [y + ".b"]),
                  helper.make_node("Mul", [y + ".n", y + ".g"], [y + ".m"]), helper.make_node("Add", [y + ".m", y + ".b"], [y])]
        outputs += [y + ".mean", y + ".var"]
    del pass_.graph.node[:], pass_.graph.output[:], pass_.graph.value_info[:]
    pass_.graph.node.extend(nodes)
    pass_.graph.output.extend(helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in outputs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(pass_.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = session.run(outputs, {session.get_inputs()[0].name: np.concatenate(list(pictures(folder, 16)))})
    for n, mean, variance in zip(norms, found[0::2], found[1::2]):
        initial[n.input[3]].CopyFrom(numpy_helper.from_array(mean.reshape(-1), n.input[3]))
        initial[n.input[4]].CopyFrom(numpy_helper.from_array(variance.reshape(-1), n.input[4]))
    onnx.save(model, out)


# --- the rivals' quantizers -------------------------------------------------------------------------------------------
def quantize_openvino(source, folder, out):
    """NNCF as its documentation says: the converted model, the pictures, the defaults."""
    import nncf
    import openvino

    model = openvino.convert_model(source)
    images = list(pictures(folder))
    model.reshape([1, *images[0].shape[1:]])
    quantized = nncf.quantize(model, nncf.Dataset(images), subset_size=len(images), target_device=nncf.TargetDevice.CPU)
    openvino.save_model(quantized, out, compress_to_fp16=False)
    return nncf.__version__


def quantize_onnxruntime(source, folder, out):
    """ONNX Runtime as its documentation says for CPUs with VNNI: prepared, QDQ, u8 activations, s8 weights per channel."""
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as temporary:
        prepared = os.path.join(temporary, "prepared.onnx")
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        name = onnxruntime.InferenceSession(prepared, providers=["CPUExecutionProvider"]).get_inputs()[0].name

        class Reader(CalibrationDataReader):
            images = ({name: image} for image in pictures(folder))

            def get_next(self):
                return next(self.images, None)

        quantize_static(prepared, out, Reader(), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8, reduce_range=False)
    return onnxruntime.__version__


# --- outputs ----------------------------------------------------------------------------------------------------------
def run_onnxruntime(path, images):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return [session.run(None, {name: image})[0] for image in images]


def run_openvino(path, images):
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return [compiled(image)[0] for image in images]


def run_octet(path, images):
    engine, outputs = octet_library.Engine(path), []
    for image in images:
        engine.bind(image)
        engine.run()
        outputs.append(engine.outputs[0].copy())
    return outputs


def ratio_db(signal, noise):
    return round(float(10 * np.log10((signal ** 2).sum() / max((noise ** 2).sum(), 1e-300))), 2)


def accuracy(source, folder, products):
    """Signal to quantization noise of the outputs. "differences_db": after the mean output over the pictures is taken off, as
    random networks answer nearly the same to every picture. "same_class": pictures whose best class is that of the float network."""
    images = list(pictures(folder))
    expected = np.concatenate(run_onnxruntime(source, images)).astype(np.float64)
    found = {}
    for product in products:
        name, path = product.split("=", 1)
        run = {"octet": run_octet, "openvino": run_openvino, "onnxruntime": run_onnxruntime}[name.split(":")[0]]
        got = np.concatenate(run(path, images)).astype(np.float64)
        centered = expected - expected.mean(0)
        found[name] = {"sqnr_db": ratio_db(expected, got - expected),
                       "differences_db": ratio_db(centered, got - got.mean(0) - centered),
                       "same_class": int((got.argmax(1) == expected.argmax(1)).sum())}
    print(json.dumps(found))


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "settle":
        settle(*arguments)
    elif command == "accuracy":
        accuracy(arguments[0], arguments[1], arguments[2:])
    else:
        version = {"openvino": quantize_openvino, "onnxruntime": quantize_onnxruntime}[command](*arguments)
        print(f"version {version}")


if __name__ == "__main__":
    main()
