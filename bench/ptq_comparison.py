"""Post-training quantization by Octet, NNCF and ONNX Runtime, each with its defaults, from one FP32 file and the same photographs:
for bench/pretrained.py and bench/ptq_networks.py."""
import json
import os
import pathlib
import subprocess
import sys

import parts

CALIBRATION, HELD_OUT = 100, 100
TITLES = {"octet": "Octet", "openvino": "NNCF, OpenVINO", "onnxruntime": "ONNX Runtime"}


def python_of(which):
    """The Python of one of the environments of scripts/peers_venv.sh."""
    done = subprocess.run([parts.ROOT / "scripts/peers_venv.sh", which], check=True, capture_output=True, text=True)
    return pathlib.Path(done.stdout.strip()) / "bin/python"


def run(*words, **environment):
    """The last line that the program prints."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr.strip()}")
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


class Comparison:
    """`photographs`: a folder of at least 200, of which the first 100 calibrate and the next 100 are measured."""

    def __init__(self, photographs, work, build, mean, std, pillow):
        self.work, self.build, self.mean, self.std = work, build, mean, std
        self.nncf = python_of("--nncf")
        self.calibration, self.held_out = work / "calibration", work / "held_out"
        self.environment = {"PICTURES_MEAN": mean, "PICTURES_STD": std, "OCTET_LIB": str(build / "lib/liboctet.so")}
        for folder, first, count in ((self.calibration, 0, CALIBRATION), (self.held_out, CALIBRATION, HELD_OUT)):
            run(pillow, parts.ROOT / "bench/pretrained_models.py", "pictures", photographs, folder, 224, first, count)

    def models(self, *words):
        return run(self.nncf, parts.ROOT / "bench/product_models.py", *words, **self.environment)

    def quantized(self, product, full, folder):
        """The file that `product` runs, made anew; and the version of a rival."""
        if not product.startswith("octet"):
            path = folder / {"openvino": "nncf.xml", "onnxruntime": "onnxruntime.onnx"}[product]
            return path, self.models(product, full, self.calibration, path).split()[-1]
        stem, target = folder / product.replace(":", "-"), product.partition(":")[2]
        program, qdq, engine = self.build / "bin/octet", stem.with_suffix(".onnx"), stem.with_suffix(".octet")
        parts.run_octet(program, "quantize", "-m", full, "--images", self.calibration, "--mean", self.mean, "--std", self.std, "-o", qdq,
                        *(["--target", target] if target else []), "--force", "--quiet")
        parts.run_octet(program, "compile", "-m", qdq, "-o", engine, "--force", "--quiet")
        return engine, ""

    def compare(self, full, folder, products=tuple(TITLES)):
        """{"octet": {"sqnr_db", "differences_db", "same_class", "version"}, "openvino": ...}; "octet:openvino" is what Octet makes
        for OpenVINO, with unsigned codes behind ReLU, run by Octet's engine as all that is Octet's."""
        folder.mkdir(parents=True, exist_ok=True)
        files, versions = {}, {}
        for product in products:
            files[product], versions[product] = self.quantized(product, full, folder)
        found = json.loads(self.models("accuracy", full, self.held_out, *(f"{n}={p}" for n, p in files.items())))
        return {name: {**found[name], "version": versions[name]} for name in products}
