#!/usr/bin/env python3
"""Compares Keras weights as h5py writes them with what Octet reads.

    keras_weights.py PROGRAM FOLDER    PROGRAM: peers_keras_weights, which turns each file into a safetensors file
The groups, attributes and datasets are those of Keras 2 (keras/saving/hdf5_format.py): Model.save() and save_weights(),
lists of names as bytes and as texts, cut where an attribute is too long, under several versions of the format; layers
of each kind with weights, one nested model. The layouts are turned by numpy here, by index arithmetic there.
"""
import json
import pathlib
import subprocess
import sys

import h5py
import numpy as np

HEADER_LIMIT = 64512  # of an attribute, as Keras has it


def save_list(group, name, texts, as_text):
    data = [t if as_text else t.encode() for t in texts]
    if not as_text:
        data = np.asarray(data)
        if data.nbytes > HEADER_LIMIT:
            pieces = np.array_split(data, -(-data.nbytes // HEADER_LIMIT))
            for i, piece in enumerate(pieces):
                group.attrs[f"{name}{i}"] = piece
            return
    group.attrs[name] = data


def layers_of(rng, many):
    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    layers = [("input_1", [])]
    for i in range(1200 if many else 3):
        conv = f"block_{i}_with_a_name_that_takes_some_room_in_the_list_of_names_conv"
        layers.append((conv, [(f"{conv}/kernel:0", normal(3, 3, 2, 4)), (f"{conv}/bias:0", normal(4))]))
    layers.append(("bn_conv1", [(f"bn_conv1/{n}:0", normal(4)) for n in ("gamma", "beta", "moving_mean", "moving_variance")]))
    layers.append(("conv_dw_1", [("conv_dw_1_1/depthwise_kernel:0", normal(3, 5, 4, 2))]))
    layers.append(("predictions", [("predictions/kernel:0", normal(6, 5)), ("predictions/bias:0", normal(5))]))
    layers.append(("inner", [("first/kernel:0", normal(1, 1, 3, 2)), ("second/gamma:0", normal(2))]))
    return layers


def expected_of(layers):
    names = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
    out = {}
    for layer, tensors in layers:
        for path, value in tensors:
            scope, kind = path.split(":")[0].split("/")
            owner = scope if layer == "inner" else layer
            if kind == "kernel":
                value, kind = np.transpose(value, (3, 2, 0, 1) if value.ndim == 4 else (1, 0)), "weight"
            elif kind == "depthwise_kernel":
                h, w, c, m = value.shape
                value, kind = np.transpose(value, (2, 3, 0, 1)).reshape(c * m, 1, h, w), "weight"
            out[f"{owner}.{names.get(kind, kind)}"] = value
    return out


def read_safetensors(path):
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    out = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", entry
        out[name] = np.frombuffer(raw[8 + length :][begin:end], np.float32).reshape(entry["shape"])
    return out


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    rng = np.random.default_rng(5)
    tensors = cases = 0
    for libver in ("earliest", "v108", "latest"):
        for as_text in (False, True):
            for whole in (False, True):
                many = not as_text and whole
                layers = layers_of(rng, many)
                path = folder / f"{libver}_{as_text}_{whole}.hdf5"
                with h5py.File(path, "w", libver=libver) as f:
                    root = f.create_group("model_weights") if whole else f
                    save_list(root, "layer_names", [name for name, _ in layers], as_text)
                    for name, weights in layers:
                        group = root.create_group(name)
                        save_list(group, "weight_names", [n for n, _ in weights], as_text)
                        for n, value in weights:
                            group.create_dataset(n, data=value)
                try:
                    subprocess.run([program, str(path)], check=True)
                except subprocess.CalledProcessError:
                    if libver != "latest":  # newer than the library that reads
                        raise
                    continue
                read, expected = read_safetensors(path.with_name(path.name + ".safetensors")), expected_of(layers)
                assert read.keys() == expected.keys(), (path.name, read.keys() ^ expected.keys())
                for name, value in expected.items():
                    assert np.array_equal(read[name], value), (path.name, name)
                tensors += len(expected)
                cases += 1
    print(f"{cases} files with {tensors} tensors are read as h5py wrote them")
    assert cases >= 8


if __name__ == "__main__":
    main()
