#!/usr/bin/env python3
"""Trains a small detector with PyTorch and exports it, as anybody might who knows nothing of Octet.

    make_detector.py ssd|fcos SCENES FOLDER [--images 8000]

SCENES: what `octet scenes --format kitti --width 256 --height 192` writes. Writes FOLDER/model.onnx, the network alone, without
its decoder, and FOLDER/torchvision.json, what torchvision's own decoder finds in the test scenes (results in COCO's format).
Networks, losses and decoders are torchvision's: SSD with default boxes, and FCOS, which has no anchors.
"""
import argparse
import collections
import json
import pathlib
import random

import numpy as np
import torch
from PIL import Image
from torch import nn
from torchvision.models.detection import fcos, ssd
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator

WIDTH, HEIGHT = 256, 192
CLASSES = ("bag", "dress", "shoe", "top", "trousers")
NORMALIZATION = {"image_mean": [0.5] * 3, "image_std": [0.25] * 3}
CHANNELS = (64, 96, 128)  # of the features at strides 8, 16, 32
THRESHOLD = 0.05


def convolution(inputs, outputs, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.down, self.own = convolution(inputs, outputs, 2), convolution(outputs, outputs, 1)

    def forward(self, x):
        x = torch.relu(self.down(x))
        return torch.relu(x + self.own(x))


class Backbone(nn.Module):
    """Features at strides 8, 16 and 32, of CHANNELS or all of one width."""

    def __init__(self, width=None):
        super().__init__()
        self.stem = nn.Sequential(convolution(3, 16, 2), nn.ReLU(), Block(16, 32))
        self.blocks = nn.ModuleList(Block(i, o) for i, o in zip((32, *CHANNELS), CHANNELS))
        self.sides = nn.ModuleList(nn.Conv2d(c, width, 1) if width else nn.Identity() for c in CHANNELS)
        self.out_channels = width or list(CHANNELS)

    def forward(self, x):
        x, found = self.stem(x), collections.OrderedDict()
        for i, (block, side) in enumerate(zip(self.blocks, self.sides)):
            x = block(x)
            found[str(i)] = side(x)
        return found


def make_ssd():
    boxes = DefaultBoxGenerator([[2]] * 3, scales=[0.125, 0.25, 0.5, 0.75])
    head = ssd.SSDHead(list(CHANNELS), boxes.num_anchors_per_location(), len(CLASSES) + 1)
    return ssd.SSD(Backbone(), boxes, (WIDTH, HEIGHT), len(CLASSES) + 1, head=head, score_thresh=THRESHOLD, nms_thresh=0.45,
                   detections_per_img=100, **NORMALIZATION)


def make_fcos():
    head = fcos.FCOSHead(64, 1, len(CLASSES))
    # Batch normalization in the place of group normalization, and two layers in the place of four.
    head.classification_head = fcos.FCOSClassificationHead(64, 1, len(CLASSES), num_convs=2, norm_layer=nn.BatchNorm2d)
    head.regression_head = fcos.FCOSRegressionHead(64, 1, num_convs=2, norm_layer=nn.BatchNorm2d)
    anchors = AnchorGenerator(((8,), (16,), (32,)), ((1.0,),) * 3)
    return fcos.FCOS(Backbone(64), len(CLASSES), min_size=HEIGHT, max_size=WIDTH, anchor_generator=anchors, head=head,
                     score_thresh=THRESHOLD, nms_thresh=0.6, detections_per_img=100, **NORMALIZATION)


class Exported(nn.Module):
    """From normalized images to what the heads say, all levels joined."""

    def __init__(self, model, outputs):
        super().__init__()
        self.backbone, self.head, self.outputs = model.backbone, model.head, outputs

    def forward(self, images):
        said = self.head(list(self.backbone(images).values()))
        return tuple(said[name] for name in self.outputs)


KINDS = {"ssd": (make_ssd, ("bbox_regression", "cls_logits")),
         "fcos": (make_fcos, ("bbox_regression", "cls_logits", "bbox_ctrness"))}


def scene(labels, background):
    """(image, target) of a KITTI label file. `background`: whether label 0 stands for none."""
    pixels = np.array(Image.open(labels.parent.parent / "image_2" / f"{labels.stem}.png").convert("RGB"))
    lines = [line.split() for line in labels.read_text().splitlines()]
    boxes = torch.tensor([[float(v) for v in words[4:8]] for words in lines]).reshape(-1, 4)
    kinds = torch.tensor([CLASSES.index(words[0]) + background for words in lines], dtype=torch.int64)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous(), {"boxes": boxes, "labels": kinds}


def train(model, scenes, images):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    model.train()
    order = []
    for seen in range(0, images, 8):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1, seen / images * 20 + 0.05) * (1 - seen / images)
        if len(order) < 8:
            order = random.sample(range(len(scenes)), len(scenes))
        batch, order = [scenes[i] for i in order[:8]], order[8:]
        losses = model([image / 255 for image, _ in batch], [target for _, target in batch])
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10)
        optimizer.step()
        if seen % 800 == 0:
            print(f"{seen} of {images} images, loss {loss.item():.3f}", flush=True)


def results(model, tests, background):
    """Of torchvision's decoder, in COCO's format; ids of images are their numbers, those of classes count from 1."""
    model.eval()
    found = []
    with torch.no_grad():
        for labels in tests:
            image, _ = scene(labels, background)
            said = model([image / 255])[0]
            for box, label, score in zip(said["boxes"].tolist(), said["labels"].tolist(), said["scores"].tolist()):
                found.append({"image_id": int(labels.stem), "category_id": label + 1 - background, "score": score,
                              "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]]})
    return found


def main():
    parser = argparse.ArgumentParser(description="Train a small detector with PyTorch and export it.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("scenes", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--images", type=int, default=8000, help="to train with, repeated (default 8000)")
    options = parser.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    make, outputs = KINDS[options.kind]
    background = int(options.kind == "ssd")
    model = make()
    scenes = [scene(p, background) for p in sorted((options.scenes / "train/label_2").glob("*.txt"))]
    train(model, [s for s in scenes if len(s[1]["labels"])], options.images)
    options.folder.mkdir(parents=True, exist_ok=True)
    found = results(model, sorted((options.scenes / "test/label_2").glob("*.txt")), background)
    (options.folder / "torchvision.json").write_text(json.dumps(found))
    torch.onnx.export(Exported(model, outputs).eval(), torch.zeros(1, 3, HEIGHT, WIDTH), str(options.folder / "model.onnx"),
                      opset_version=13, input_names=["images"], output_names=list(outputs))
    print(f"wrote {options.folder}/model.onnx and torchvision.json ({len(found)} detections)")


if __name__ == "__main__":
    main()
