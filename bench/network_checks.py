#!/usr/bin/env python3
"""What Octet makes of an ONNX file, as one record of bench/networks.py.

    network_checks.py NETWORK FILE.onnx PICTURES WORK           prints the record as JSON
    network_checks.py engine ENGINE IMAGES.npy OUTPUTS.npz          outputs of an engine, a process of its own

Run by the Python of `scripts/peers_venv.sh --exporters`; OCTET is the program, OCTET_LIB the library of the engine's C interface.
Every cell of the record is {"good": true or false, ...}: with figures, or with the first line of the error.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np

import network_exports
import octet_library

RELATIVE = 1e-4  # of FP32 outputs, to the largest value of the output
CALIBRATION, HELD_OUT = 8, 4
CLASSES = 1000  # outputs of all classifiers
WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class Failed(Exception):
    """With the sentence that the table shows."""


def octet(*words, good=(0,)):
    """Standard output of the program; Failed with its first error line. Seconds go to the caller's record."""
    done = subprocess.run([os.environ["OCTET"], *map(str, words)], capture_output=True, text=True, timeout=900)
    if done.returncode not in good:
        if done.returncode < 0:
            raise Failed(f"octet {words[0]} died of signal {-done.returncode}")
        lines = [line for line in done.stderr.splitlines() if line.startswith("error")] or done.stderr.strip().splitlines()[-1:] or ["?"]
        raise Failed(re.sub(r"^(error|octet): |/\S*/(?=\S+\.onnx)", "", lines[0]))  # without folders
    return done.stdout


def run_engine(path, images, work):
    """List of {name: array}, one an image."""
    given, found = work / "images.npy", work / "outputs.npz"
    np.save(given, images)
    done = subprocess.run([sys.executable, __file__, "engine", path, given, found], capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise Failed(f"the engine: {(done.stderr.strip().splitlines() or [f'signal {-done.returncode}'])[-1]}")
    with np.load(found) as data:
        arrays = dict(data)
    return [{k.partition("/")[2]: v for k, v in arrays.items() if k.startswith(f"{i}/")} for i in range(len(images))]


def engine_outputs(path, given, found):
    engine, outputs = octet_library.Engine(path), {}
    for i, image in enumerate(np.load(given)):
        engine.bind(np.ascontiguousarray(image))
        engine.run()
        outputs.update({f"{i}/{name}": value.copy() for name, value in zip(engine.names, engine.outputs)})
    np.savez(found, **outputs)


def run_onnxruntime(path, images, plain=False):
    """The same of ONNX Runtime; plain: node by node as the file says, so that codes are those of Quantize and DequantizeLinear."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0]
    names = [o.name for o in session.get_outputs()]
    return [dict(zip(names, session.run(None, {first.name: image.reshape([d if isinstance(d, int) else 1 for d in first.shape])})))
            for image in images]


def relative(found, truth):
    """Largest difference of an output, to its largest value, over all outputs and images: an image on which a network finds nothing, whose
    probabilities are all next to 0, says little."""
    worst, largest_of = 0.0, {}
    for b in truth:
        for name, value in b.items():
            largest_of[name] = max(largest_of.get(name, 1e-30), float(np.abs(value).max()) if value.size else 0.0)
    for a, b in zip(found, truth):
        for name, value in b.items():
            if name not in a:
                raise Failed(f"output {name} is missing; there are {', '.join(a)}")
            if a[name].size != value.size:
                raise Failed(f"output {name} has shape {list(a[name].shape)}, ONNX Runtime's {list(value.shape)}")
            if value.size:
                difference = float(np.abs(a[name].reshape(value.shape).astype(np.float64) - value).max()) / largest_of[name]
                worst = max(worst, difference if np.isfinite(difference) else np.inf)
    return worst


def detections(outputs):
    """(boxes [n, 4], scores [n], labels [n]) of a detector of torchvision, whatever its outputs are called."""
    arrays = list(outputs.values())
    boxes = next(a for a in arrays if a.ndim == 2)
    labels = next(a for a in arrays if a.dtype.kind == "i")
    scores = next(a for a in arrays if a.ndim == 1 and a is not labels)
    return boxes.astype(np.float64), scores.astype(np.float64), labels


def further(outputs):
    """What else a detector says of each object: its mask, its keypoints and how sure they are."""
    arrays = [a for a in outputs.values() if a.ndim > 1]
    boxes = next(i for i, a in enumerate(arrays) if a.ndim == 2)
    return [a.astype(np.float64) for i, a in enumerate(arrays) if i != boxes]


def relative_of_detections(found, truth):
    """As relative(), of each detection beside the nearest one of its class that no other has: equal scores come in any order. What else is
    said of the objects counts by the norm of the difference: a mask has a few pixels that hang on the last bit of a logit."""
    worst = 0.0
    for outputs_a, outputs_b in zip(found, truth):
        a, b = detections(outputs_a), detections(outputs_b)
        if len(a[1]) != len(b[1]):
            raise Failed(f"{len(a[1])} objects are found, {len(b[1])} by ONNX Runtime")
        if not len(b[1]):
            continue
        size, score = max(np.abs(b[0]).max(), 1e-30), max(np.abs(b[1]).max(), 1e-30)
        free, order = np.ones(len(a[1]), bool), []
        for box, value, label in zip(*b):
            difference = np.maximum(np.abs(a[0] - box).max(axis=1) / size, np.abs(a[1] - value) / score)
            difference[~free | (a[2] != label)] = np.inf
            nearest = int(difference.argmin())
            free[nearest] = False
            order.append(nearest)
            worst = max(worst, float(difference[nearest]))
        for mine, theirs in zip(further(outputs_a), further(outputs_b)):
            if mine.shape != theirs.shape:
                raise Failed(f"an output has shape {list(mine.shape)}, ONNX Runtime's {list(theirs.shape)}")
            worst = max(worst, float(np.linalg.norm(mine[order] - theirs) / max(np.linalg.norm(theirs), 1e-30)))
    return worst


def found_again(found, truth):
    """Percent of the objects of `truth` that have one of their class in `found` with an IoU of 0.5 or more."""
    good = count = 0
    for a, b in zip(map(detections, found), map(detections, truth)):
        for box, _, label in zip(*b):
            count += 1
            mine = a[0][a[2] == label]
            low, high = np.maximum(mine[:, :2], box[:2]), np.minimum(mine[:, 2:], box[2:])
            shared = np.clip(high - low, 0, None).prod(axis=1)
            areas = (mine[:, 2:] - mine[:, :2]).prod(axis=1) + (box[2:] - box[:2]).prod() - shared
            good += bool((shared >= 0.5 * np.maximum(areas, 1e-30)).any())
    return round(100 * good / max(count, 1))


def ratio_db(found, truth):
    """Signal to noise of all outputs and images, in dB."""
    signal = noise = 0.0
    for a, b in zip(found, truth):
        for name, value in b.items():
            if a[name].size == value.size:
                signal += float((value.astype(np.float64) ** 2).sum())
                noise += float(((a[name].reshape(value.shape).astype(np.float64) - value) ** 2).sum())
    return round(min(10 * np.log10(max(signal, 1e-300) / max(noise, 1e-300)), 200.0), 1)


class Checks:
    def __init__(self, network, model, folder, work):
        self.network, self.model, self.work, self.record = network, model, work, {}
        self.detects = network_exports.NETWORKS[network].kind == "detector"
        self.images = [image[None] for image in network_exports.pictures(folder, network, 0, CALIBRATION + HELD_OUT)]
        mean, std = network_exports.normalization(network)
        self.normalization = ["--mean", ",".join(map(str, mean)), "--std", ",".join(map(str, std))]
        self.calibration = work / "calibration"
        self.calibration.mkdir(parents=True, exist_ok=True)
        paths = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".ppm"))
        for path in paths[:CALIBRATION]:
            shutil.copy(path, self.calibration)

    def cell(self, name, check):
        """False where it failed."""
        begin = time.perf_counter()
        try:
            found = {"good": True, **check()}
        except Failed as error:
            found = {"good": False, "reason": str(error)}
        except subprocess.TimeoutExpired:
            found = {"good": False, "reason": "not done after 15 minutes"}
        except Exception as error:  # what ONNX Runtime throws
            found = {"good": False, "reason": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}
        self.record[name] = {**found, "seconds": round(time.perf_counter() - begin, 1)}
        return found["good"]

    def imports(self):
        summary = json.loads(octet("inspect", self.model, "--json", "-"))
        self.weighted = {n["name"]: n["op"] for n in summary["nodes"] if n["op"] in WEIGHTED and (n["parameters"] > 0 or n["op"].startswith("Conv"))}
        self.outputs = summary["outputs"]
        return {"opset": summary["opset"], "nodes": len(summary["nodes"])}

    def fp32(self):
        engine = self.work / "float.octet"
        octet("compile", self.model, "-o", engine, "--force", "--quiet")
        # Node by node: ONNX Runtime's optimizer gives a Pad of zeros to the MaxPool behind it, which pads with less than any number, and
        # ResNet50V2 of Keras has negative values there (2 % of the outputs).
        self.truth = run_onnxruntime(self.model, self.images[CALIBRATION:], plain=True)
        measure = relative_of_detections if self.detects else relative
        found = measure(run_engine(engine, self.images[CALIBRATION:], self.work), self.truth)
        objects = {"objects": sum(len(detections(t)[1]) for t in self.truth)} if self.detects else {}
        if not found <= RELATIVE:
            raise Failed(f"differs by {found:.2e} of the largest value, more than {RELATIVE}")
        return {"relative": float(f"{found:.2g}"), **objects}

    def ptq(self):
        octet("quantize", "-m", self.model, "--images", self.calibration, *self.normalization, "-o", self.work / "int8.onnx", "--force",
              "--quiet")
        return {}

    def source(self, layer):
        """The node with weights that a layer comes from, or None: rewrites append to its name."""
        while layer and layer not in self.weighted:
            layer = layer.rpartition("/")[0]
        return layer or None

    def int8(self):
        engine = self.work / "int8.octet"
        octet("compile", self.work / "int8.onnx", "-o", engine, "--force", "--quiet")
        layers = json.loads(octet("inspect", engine, "--json", "-"))["layers"]
        counts, reasons, others = {"int8": 0, "fp32": 0}, {}, {}
        pieces = set()  # a ConvTranspose is a convolution for each phase of its stride, and moves of what they make
        for layer in layers:
            if layer["op"].startswith("ConvTranspose"):
                if layer["name"] in pieces or (layer["precision"] != "int8" and not layer["reason"]):
                    continue
                pieces.add(layer["name"])
            kinds = [kind for kind in layer["op"].split("+") if kind in WEIGHTED]
            if kinds and (len(kinds) > 1 or self.source(layer["name"])):
                counts[layer["precision"]] += len(kinds)  # several in one: a gate of squeeze-and-excite
                if layer["precision"] != "int8":
                    reasons.setdefault(layer["reason"], []).append(layer["name"])
            elif kinds and layer["precision"] == "int8":
                counts["int8"] += 1
            elif layer["precision"] != "int8":
                others[layer["op"]] = others.get(layer["op"], 0) + 1
        return {"int8": counts["int8"], "of": len(self.weighted), "float_layers": reasons, "other_float": others, "layers": len(layers)}

    def same(self):
        """The engine beside the QDQ file in ONNX Runtime, and both beside the float network."""
        images = self.images[CALIBRATION:]
        engine = run_engine(self.work / "int8.octet", images, self.work)
        qdq = run_onnxruntime(self.work / "int8.onnx", images, plain=True)
        if self.detects:
            return {"agreement_percent": found_again(engine, qdq),
                    **({"found_percent": found_again(engine, self.truth)} if hasattr(self, "truth") else {})}
        found = {"relative": float(f"{relative(engine, qdq):.2g}"), "agreement_db": ratio_db(engine, qdq)}
        if hasattr(self, "truth"):
            found["sqnr_db"] = ratio_db(engine, self.truth)
            found["qdq_sqnr_db"] = ratio_db(qdq, self.truth)
        return found

    def labeled(self):
        """The calibration images as two classes, and as scenes with an object each."""
        folders, scenes = self.work / "labeled", self.work / "scenes"
        for i, path in enumerate(sorted(self.calibration.iterdir())):
            for target in (folders / f"class{i % 2}", scenes / "image_2", scenes / "label_2"):
                target.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folders / f"class{i % 2}")
            shutil.copy(path, scenes / "image_2")
            (scenes / "label_2" / f"{path.stem}.txt").write_text("thing 0 0 0 10 10 50 50 0 0 0 0 0 0 0\n")
        return folders, scenes

    def train(self):
        """Two steps. A classifier learns two classes of its thousand. What is no task of Octet's learns its own outputs from itself as the
        teacher, under a decoder that nothing asks for."""
        folders, scenes = self.labeled()
        network = network_exports.NETWORKS[self.network]
        spec, results = self.work / "train.yaml", self.work / "trained"
        steps = f"{{epochs: 1, batch_size_per_gpu: {CALIBRATION // 2}, precision: fp32, optimizer: {{type: sgd, lr: 0.001}}}}"
        if network.kind == "classifier":
            spec.write_text(f"""task: classification
model: {{num_classes: {CLASSES}, input: [3, {network.size}, {network.size}], load_graph: true, pretrained: {self.model}}}
data: {{train: {{format: image_folder, path: {folders}}}, mean: [0.5], std: [0.25]}}
train: {steps}
""")
            octet("train", "-e", spec, "-r", results, "--quiet")
        else:
            channels = self.outputs[0]["shape"][1]
            spec.write_text(f"""task: detector
model: {{num_classes: {channels - 4}, input: [3, {network.size}, {network.size}]}}
data: {{train: {{format: kitti, path: {scenes}}}, test: {{format: kitti, path: {scenes}}}, target_classes: [thing{"".join(f", c{i}" for i in range(channels - 5))}]}}
detector:
  boxes: {{outputs: {self.outputs[0]["name"]}, layout: grid, code: distances}}
  scores: {{outputs: {self.outputs[0]["name"]}, layout: grid, first: 4}}
  levels: [{{stride: 1}}]
finetune: {steps}
""")
            octet("train", "-e", spec, "-r", results, "--stage", "control", "-m", self.model, "--quiet", "--set",
                  f"finetune.distill.teacher={self.model}")
        loss = json.loads((results / "history.json").read_text())[-1]["loss"]
        if not np.isfinite(loss):
            raise Failed(f"the loss is {loss}")
        return {"loss": round(loss, 3)}

    def verify(self):
        """The proof of octet verify that the engine computes the quantized model."""
        found = self.work / "verified.json"
        labeled = ["--images", self.labeled()[0], *self.normalization]
        if network_exports.NETWORKS[self.network].kind == "shipped":  # it may know its own classes
            labeled[1] = self.calibration
        if network_exports.NETWORKS[self.network].kind == "segmentation":
            labeled = ["-e", self.work / "train.yaml"]
        octet("verify", "-m", self.work / "int8.onnx", "--engine_file", self.work / "int8.octet", *labeled, "--tensor_images", HELD_OUT, "--json", found, "--quiet", good=(0, 3))
        result = json.loads(found.read_text())
        if not result["holds"]:
            raise Failed(result["objection"])
        places = [tensor["place"] for tensor in result["tensors"]]
        return {"compared": places.count("compared"), "of": len(places)}

    def run(self):
        if self.cell("imports", self.imports):
            self.cell("fp32", self.fp32)
            if not self.detects and network_exports.NETWORKS[self.network].kind != "shipped":
                self.cell("train", self.train)
            if self.cell("ptq", self.ptq) and self.cell("int8", self.int8):
                self.cell("same", self.same)
                self.cell("verify", self.verify)
        return self.record


def main():
    if sys.argv[1:2] == ["engine"]:
        engine_outputs(*sys.argv[2:5])
        return
    parser = argparse.ArgumentParser(description="What Octet makes of an ONNX file.")
    parser.add_argument("network", choices=network_exports.NETWORKS)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("pictures")
    parser.add_argument("work", type=pathlib.Path)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    print(json.dumps(Checks(options.network, options.model, options.pictures, options.work).run()))


if __name__ == "__main__":
    main()
