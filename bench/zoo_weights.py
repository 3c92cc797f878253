#!/usr/bin/env python3
"""Whether weights of torchvision and timm, saved by PyTorch, compute the same in the networks of Octet's zoo: each network
gets random weights there (and batch norms that have seen something), is saved with torch.save(), converted by
`octet models NAME --convert`, and run by ONNX Runtime beside PyTorch.
  $(scripts/peers_venv.sh --exporters)/bin/python bench/zoo_weights.py [NAME ...] [--octet build/release/bin/octet]
Ends with 1 where an output differs by more than 1e-4 of the largest."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import timm
import torch
import torchvision

SMALL = (3, 224, 224)
# Octet's name: how the network is made, and the shape of its input.
NETWORKS = {
    **{name: (lambda name=name: torchvision.models.get_model(name, weights=None), SMALL) for name in (
        "resnet18", "resnet34", "resnet50", "resnet101", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small",
        "efficientnet_b0", "vgg16", "vgg16_bn", "vgg19", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "regnet_y_400mf",
        "regnet_y_800mf", "regnet_y_1_6gf", "densenet121", "convnext_tiny", "swin_t")},
    "efficientnet_b3": (lambda: torchvision.models.efficientnet_b3(weights=None), (3, 300, 300)),
    "squeezenet": (lambda: torchvision.models.squeezenet1_0(weights=None), SMALL),
    "googlenet": (lambda: torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=True), SMALL),
    "inception_v3": (lambda: torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=True), (3, 299, 299)),
    "vit_tiny": (lambda: timm.create_model("vit_tiny_patch16_224"), SMALL),
    "vit_small": (lambda: timm.create_model("vit_small_patch16_224"), SMALL),
}


def randomize(model):
    """Every parameter counts, and activations keep their size."""
    for name, tensor in model.state_dict().items():
        if "running_var" in name:
            tensor.uniform_(0.5, 1.5)
        elif "running_mean" in name or name.endswith("bias"):
            tensor.normal_(0, 0.1)
        elif "layer_scale" in name or "relative_position_bias_table" in name or "cls_token" in name:
            tensor.normal_(0, 0.5)


def difference(name, octet, folder):
    make, shape = NETWORKS[name]
    torch.manual_seed(1)
    with torch.no_grad():
        model = make().eval()
        randomize(model)
        images = torch.randn(2, *shape)
        expected = model(images).numpy()
    weights, converted = folder / f"{name}.pth", folder / f"{name}.onnx"
    torch.save(model.state_dict(), weights)
    subprocess.run([octet, "models", name, "--convert", weights, "-o", converted, "--quiet"], check=True)
    session = onnxruntime.InferenceSession(str(converted), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: images.numpy()})[0]
    weights.unlink()
    converted.unlink()
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), metavar="NAME")
    parser.add_argument("--octet", default="build/release/bin/octet")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.networks:
            worst = difference(name, arguments.octet, pathlib.Path(folder))
            wrong += not worst <= 1e-4
            print(f"{name:20} {worst:.1e}{'' if worst <= 1e-4 else '  differs'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
