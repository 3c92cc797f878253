#!/usr/bin/env python3
"""A network of Keras with random weights as the ONNX file that tf2onnx makes of its SavedModel. (Model.export(format="onnx") of Keras calls
tf2onnx, too, but leaves the constants of EfficientNet's normalization open, as further inputs.)

    keras_exports.py NETWORK IMAGES.npy OUT.onnx        NETWORK: a function of keras.applications

Run by the Python of `scripts/peers_venv.sh --keras`, for network_exports.py. IMAGES: [N, rows, columns, 3], as the network takes them; they
give the running statistics of its batch norms.
"""
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
import numpy as np

SEED = 1


def settle(model, images):
    random = np.random.default_rng(SEED)
    norms = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    for layer in norms:
        if layer.scale:
            layer.gamma.assign(random.uniform(0.5, 1.5, layer.gamma.shape))
        layer.beta.assign(random.uniform(-0.25, 0.25, layer.beta.shape))
        layer.momentum = 0.0
    model(images, training=True)


def main():
    network, images, out = sys.argv[1:]
    keras.utils.set_random_seed(SEED)
    images = np.load(images)
    model = getattr(keras.applications, network)(weights=None, input_shape=images.shape[1:])  # some leave the sizes open else
    settle(model, images)
    with tempfile.TemporaryDirectory() as saved:
        model.export(saved, verbose=False)
        subprocess.run([sys.executable, "-m", "tf2onnx.convert", "--saved-model", saved, "--output", out], check=True)


if __name__ == "__main__":
    main()
