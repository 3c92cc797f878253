#!/usr/bin/env python3
"""The decoder of `task: detector` beside one in NumPy that reads the outputs of ONNX Runtime: foreign_detector.py OCTET

Small networks with made-up weights and the output layouts of SSD (default boxes whose strides are no whole numbers), RetinaNet,
FCOS (centerness in outputs of its own), YOLOv3, YOLOv8, and one that ends with its own suppression, on 24 made-up pictures.
Checked, for each of them:
- `octet infer --coco` finds what the decoder below finds, box by box;
- `octet evaluate`, with the network run by ONNX Runtime, has the average precision that pycocotools has for the detections of
  the decoder below. Objects to be found are some of these detections, moved a little, and some boxes that nothing found.
"""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/foreign_detector"))
from compare import compare  # noqa: E402

HEIGHT, WIDTH, CLASSES, IMAGES = 100, 150, 3, 24
THRESHOLD, OVERLAP = 0.3, 0.5  # of the suppression
NAMES = [f"kind{label}" for label in range(CLASSES)]


class Network:
    """A graph that is written node by node; weights from a generator."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.outputs, self.types = [], [], [], {}
        self.images = "N"  # at a time
        x, self.maps = "images", {}
        self.width = {"images": 3}
        for stride in (2, 4, 8, 16, 32):
            x = self.node("Relu", [self.conv(x, 24, stride=2)])
            self.width[x] = 24
            self.maps[stride] = x

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op, inputs, output=None, **attributes):
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def conv(self, x, channels, stride=1, gain=2.0, bias=0.0, output=None):
        inputs = self.width[x]
        weights = self.random.normal(0, np.sqrt(gain / (9 * inputs)), (channels, inputs, 3, 3)).astype(np.float32)
        biases = np.broadcast_to(np.float32(bias), channels).astype(np.float32)
        return self.node("Conv", [x, self.constant(weights), self.constant(biases)], output, kernel_shape=[3, 3], pads=[1] * 4,
                         strides=[stride] * 2)

    def rows(self, x, values):
        """[batch, shapes * values, rows, columns] to [batch, anchors, values], as exporters write it."""
        moved = self.node("Transpose", [x], perm=[0, 2, 3, 1])
        return self.node("Reshape", [moved, self.constant(np.array([0, -1, values], np.int64))])

    def output(self, name, type=TensorProto.FLOAT):
        self.outputs.append(name)
        self.types[name] = type

    def save(self, path):
        graph = helper.make_graph(
            self.nodes, "detector", [helper.make_tensor_value_info("images", TensorProto.FLOAT, [self.images, 3, HEIGHT, WIDTH])],
            [helper.make_tensor_value_info(o, self.types[o], None) for o in self.outputs], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def grid(stride):
    return -(-HEIGHT // stride), -(-WIDTH // stride)


def centers(rows, columns, step_y, step_x, offset):
    """[rows * columns, 2]: x, y."""
    y, x = np.meshgrid((np.arange(rows) + offset) * step_y, (np.arange(columns) + offset) * step_x, indexing="ij")
    return np.stack([x.ravel(), y.ravel()], 1)


def anchors(rows, columns, step_y, step_x, offset, shapes):
    """[rows * columns * shapes, 4]: center x, y, width, height."""
    middle = centers(rows, columns, step_y, step_x, offset)
    return np.concatenate([np.repeat(middle, len(shapes), 0), np.tile(shapes, (len(middle), 1))], 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def corners(center, size):
    return np.concatenate([center - size / 2, center + size / 2], -1)


def from_anchors(code, anchor, variances):
    code = code * variances
    return corners(anchor[:, :2] + code[:, :2] * anchor[:, 2:], anchor[:, 2:] * np.exp(np.minimum(code[:, 2:], np.log(1000 / 16))))


# --- The layouts: a network, the section `detector` that describes it, and boxes and scores [anchors, classes] of its outputs ------
def ssd(network):
    shapes = {8: [[20, 20], [32, 14], [14, 32]], 16: [[44, 44], [60, 30], [30, 60]]}
    for what, values, bias, gain in (("boxes", 4, 0, 2), ("scores", 1 + CLASSES, np.tile([6] + [0] * CLASSES, 3), 40)):
        parts = [network.rows(network.conv(network.maps[s], 3 * values, bias=bias, gain=gain), values) for s in shapes]
        network.output(network.node("Concat", parts, what, axis=1))
    levels = "".join("{cells: [%d, %d], shapes: %s}, " % (*grid(s), sum(shapes[s], [])) for s in shapes)
    section = f"""
  boxes: {{outputs: boxes, code: anchor_center, variances: [0.1, 0.1, 0.2, 0.2]}}
  scores: {{outputs: scores, activation: softmax, background: first}}
  levels: [{levels.rstrip(', ')}]"""
    places = np.concatenate([anchors(*grid(s), HEIGHT / grid(s)[0], WIDTH / grid(s)[1], 0.5, shapes[s]) for s in shapes])

    def decode(outputs):
        e = np.exp(outputs["scores"] - outputs["scores"].max(1, keepdims=True))
        return from_anchors(outputs["boxes"], places, [0.1, 0.1, 0.2, 0.2]), (e / e.sum(1, keepdims=True))[:, 1:]

    return section, decode


def retinanet(network):
    """Anchors of torchvision: around the corners of cells, halves of the sides rounded to whole pixels."""
    shapes = {8: [[22, 44], [32, 32], [46, 22]], 16: [[46, 90], [64, 64], [90, 46]]}
    for what, values, bias, gain in (("boxes", 4, 0, 0.5), ("scores", CLASSES, -4, 60)):
        parts = [network.rows(network.conv(network.maps[s], 3 * values, bias=bias, gain=gain), values) for s in shapes]
        network.output(network.node("Concat", parts, what, axis=1))
    levels = ", ".join("{stride: %d, offset: 0, shapes: %s}" % (s, sum(shapes[s], [])) for s in shapes)
    section = f"""
  boxes: {{outputs: boxes, code: anchor_center}}
  scores: {{outputs: scores, activation: sigmoid}}
  levels: [{levels}]"""
    places = np.concatenate([anchors(*grid(s), s, s, 0, shapes[s]) for s in shapes])

    def decode(outputs):
        return from_anchors(outputs["boxes"], places, [1, 1, 1, 1]), sigmoid(outputs["scores"])

    return section, decode


def fcos(network):
    strides = (8, 16, 32)
    for s in strides:
        network.output(network.conv(network.maps[s], CLASSES, output=f"cls{s}", gain=60, bias=-8))
        network.output(network.node("Relu", [network.conv(network.maps[s], 4, bias=1.2)], f"reg{s}"))
        network.output(network.conv(network.maps[s], 1, output=f"ctr{s}"))

    def names(what):
        return "[" + ", ".join(f"{what}{s}" for s in strides) + "]"

    section = f"""
  boxes: {{outputs: {names('reg')}, layout: grid, code: distances, unit: stride}}
  scores: {{outputs: {names('cls')}, layout: grid, activation: sigmoid, objectness: 0, objectness_outputs: {names('ctr')},
    geometric_mean: true}}
  levels: [{', '.join('{stride: %d}' % s for s in strides)}]"""

    def decode(outputs):
        boxes, scores = [], []
        for s in strides:
            def flat(what, stride=s):
                return outputs[f"{what}{stride}"].reshape(-1, np.prod(grid(stride))).T

            middle, reg = centers(*grid(s), s, s, 0.5), flat("reg") * s
            boxes.append(np.concatenate([middle - reg[:, :2], middle + reg[:, 2:]], 1))
            scores.append(np.sqrt(sigmoid(flat("cls")) * sigmoid(flat("ctr"))))
        return np.concatenate(boxes), np.concatenate(scores)

    return section, decode


def yolov3(network):
    shapes = {8: [[12, 18], [24, 16]], 16: [[40, 30], [30, 60]]}
    for s in shapes:
        network.output(network.conv(network.maps[s], 2 * (5 + CLASSES), output=f"level{s}", gain=30,
                                    bias=np.tile([0, 0, -1, -1] + [-2] * (1 + CLASSES), 2)))
    section = f"""
  boxes: {{outputs: [level8, level16], layout: grid, code: yolo}}
  scores: {{outputs: [level8, level16], layout: grid, first: 5, objectness: 4, activation: sigmoid}}
  levels: [{', '.join('{stride: %d, shapes: %s}' % (s, sum(shapes[s], [])) for s in shapes)}]"""

    def decode(outputs):
        boxes, scores = [], []
        for s in shapes:
            values = outputs[f"level{s}"].reshape(2, 5 + CLASSES, -1).transpose(2, 0, 1).reshape(-1, 5 + CLASSES)
            place = anchors(*grid(s), s, s, 0, shapes[s])  # the corner of the cell, as the paper counts
            boxes.append(corners(place[:, :2] + sigmoid(values[:, :2]) * s, place[:, 2:] * np.exp(values[:, 2:4])))
            scores.append(sigmoid(values[:, 5:]) * sigmoid(values[:, 4:5]))
        return np.concatenate(boxes), np.concatenate(scores)

    return section, decode


def yolov8_output(network, name):
    """[batch, values, anchors], decoded: centers and sizes in pixels, probabilities."""
    parts = []
    for s in (8, 16):
        flat = network.node("Reshape", [network.conv(network.maps[s], 4 + CLASSES, gain=30, bias=[0] * 2 + [-1] * 2 + [-4] * CLASSES),
                                        network.constant(np.array([0, 4 + CLASSES, -1], np.int64))])
        xy, wh, scores = (f"{what}{s}" for what in ("xy", "wh", "scores"))
        network.nodes.append(helper.make_node("Split", [flat, network.constant(np.array([2, 2, CLASSES], np.int64))], [xy, wh, scores],
                                              axis=1))
        middle = centers(*grid(s), s, s, 0.5).T[None].astype(np.float32)
        moved = network.node("Add", [network.node("Mul", [xy, network.constant(np.float32(s))]), network.constant(middle)])
        size = network.node("Mul", [network.node("Exp", [wh]), network.constant(np.float32(3 * s))])
        parts.append(network.node("Concat", [moved, size, network.node("Sigmoid", [scores])], axis=1))
    return network.node("Concat", parts, name, axis=2)


def yolov8(network):
    """Decoded in the graph; values before anchors."""
    network.output(yolov8_output(network, "out"))
    section = """
  boxes: {layout: columns, code: center}
  scores: {layout: columns, first: 4}"""

    def decode(outputs):
        values = outputs["out"].T
        return corners(values[:, :2], values[:, 2:4]), values[:, 4:]

    return section, decode


def suppressing(network):
    """As torchvision exports its detectors: as many rows as things were found, whose labels count from 1."""
    network.images = 1
    rows = yolov8_output(network, "rows")
    network.nodes.append(helper.make_node("Split", [rows, network.constant(np.array([4, CLASSES], np.int64))], ["codes", "all_scores"],
                                          axis=1))
    centered = network.node("Transpose", ["codes"], perm=[0, 2, 1])
    limits = [network.constant(np.array(v)) for v in (np.int64(1000), np.float32(OVERLAP), np.float32(THRESHOLD))]
    chosen = network.node("NonMaxSuppression", [centered, "all_scores", *limits], center_point_box=1)

    def column(of, index, axis):
        return network.node("Gather", [of, network.constant(np.int64(index))], axis=axis)

    mixing = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [-0.5, 0, 0.5, 0], [0, -0.5, 0, 0.5]], np.float32)
    corner_rows = network.node("MatMul", [column(centered, 0, 0), network.constant(mixing)])
    network.output(network.node("Gather", [corner_rows, column(chosen, 2, 1)], "boxes", axis=0))
    network.output(network.node("GatherND", ["all_scores", chosen], "scores"))
    network.output(network.node("Add", [column(chosen, 1, 1), network.constant(np.int64(1))], "labels"), TensorProto.INT64)
    section = """
  boxes: {outputs: boxes}
  scores: {outputs: scores}
  labels: {outputs: labels, value: 0, first: 1}"""

    def decode(outputs):
        scores = np.zeros((len(outputs["scores"]), CLASSES))
        scores[np.arange(len(scores)), outputs["labels"].astype(int) - 1] = outputs["scores"]
        return outputs["boxes"], scores

    return section, decode


# --- The decoder behind them ---------------------------------------------------------------------------------------------
def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return width * height / (sum(areas) - width * height)


def detections(boxes, scores):
    """[(score, label, box)], the best first."""
    boxes = np.clip(boxes, 0, [WIDTH, HEIGHT, WIDTH, HEIGHT])
    found = []
    for label in range(CLASSES):
        kept = []
        for i in np.argsort(-scores[:, label], kind="stable"):
            box = boxes[i]
            if scores[i, label] < THRESHOLD or box[2] <= box[0] or box[3] <= box[1]:
                continue
            if all(overlap(box, other) <= OVERLAP for other in kept):
                kept.append(box)
                found.append((float(scores[i, label]), label, box))
    return sorted(found, key=lambda d: -d[0])[:100]


# --- Pictures, and what is to be found in them -----------------------------------------------------------------------------
def make_pictures(folder):
    random = np.random.default_rng(4)
    for number in range(IMAGES):
        picture = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        picture[:] = random.integers(0, 256, 3)
        for _ in range(12):
            x, y, w, h = random.integers(0, WIDTH), random.integers(0, HEIGHT), random.integers(5, 60), random.integers(5, 60)
            picture[y : y + h, x : x + w] = random.integers(0, 256, 3)
        (folder / f"{number:06}.ppm").write_bytes(b"P6 %d %d 255\n" % (WIDTH, HEIGHT) + picture.tobytes())


def input_of(path):
    pixels = path.read_bytes().split(b" 255\n", 1)[1]
    return (np.frombuffer(pixels, np.uint8).reshape(HEIGHT, WIDTH, 3).astype(np.float32) / 255).transpose(2, 0, 1)[None]


def truth_of(found, random):
    def annotation(image, label, box):
        box = np.clip(box, 0, [WIDTH, HEIGHT, WIDTH, HEIGHT])
        x, y, w, h = (round(float(v), 2) for v in (box[0], box[1], box[2] - box[0], box[3] - box[1]))
        return {"image_id": image, "category_id": label + 1, "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0}

    annotations = []
    for image, objects in enumerate(found):
        for _, label, box in objects:
            if random.random() < 0.5 and box[2] - box[0] > 4 and box[3] - box[1] > 4:
                sides = np.array([box[2] - box[0], box[3] - box[1]] * 2)
                annotations.append(annotation(image, label, box + random.normal(0, 0.05, 4) * sides))
        x, y = random.uniform(0, WIDTH - 30), random.uniform(0, HEIGHT - 30)
        annotations.append(annotation(image, int(random.integers(0, CLASSES)), [x, y, x + 25, y + 20]))
    for number, each in enumerate(annotations):
        each["id"] = number + 1
    return {"images": [{"id": i, "file_name": f"{i:06}.ppm", "width": WIDTH, "height": HEIGHT} for i in range(IMAGES)],
            "categories": [{"id": label + 1, "name": name} for label, name in enumerate(NAMES)], "annotations": annotations}


def coco_results(found):
    return [{"image_id": image, "category_id": label + 1, "score": score,
             "bbox": [float(v) for v in (box[0], box[1], box[2] - box[0], box[3] - box[1])]}
            for image, objects in enumerate(found) for score, label, box in objects]


def coco_figures(truth, results):
    api = COCO()
    api.dataset = truth
    with contextlib.redirect_stdout(io.StringIO()):
        api.createIndex()
        judge = COCOeval(api, api.loadRes([dict(r) for r in results]), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return 100 * judge.stats


def octet(program, *words):
    done = subprocess.run([program, *map(str, words), "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"octet {' '.join(map(str, words))}\n{done.stderr}")


FIGURES = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar_1", "ar_10", "ar_100", "ar_small", "ar_medium", "ar_large")


def check(program, layout, seed, folder):
    network = Network(seed)
    section, decode = layout(network)
    model, spec, labels = folder / f"{layout.__name__}.onnx", folder / f"{layout.__name__}.yaml", folder / f"{layout.__name__}.json"
    network.save(model)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    found = []
    for path in sorted((folder / "images").glob("*.ppm")):
        outputs = dict(zip(network.outputs, session.run(network.outputs, {"images": input_of(path)})))
        of_image = {name: value if network.images == 1 else value[0] for name, value in outputs.items()}
        found.append(detections(*decode({name: value.astype(np.float64) for name, value in of_image.items()})))
    truth = truth_of(found, np.random.default_rng(seed))
    labels.write_text(json.dumps(truth))
    source = "{format: coco, path: %s, labels: %s}" % (folder / "images", labels)
    spec.write_text(f"""task: detector
model: {{num_classes: {CLASSES}, input: [3, {HEIGHT}, {WIDTH}]}}
data: {{train: {source}, test: {source}}}
detector:{section}
  nms: {{score_threshold: {THRESHOLD}, iou_threshold: {OVERLAP}}}
""")
    results, figures = folder / "results.json", folder / "figures.json"
    octet(program, "infer", "-e", spec, "-m", model, "--coco", results, "--coco_annotations", labels, "--min_score", 0, "--force")
    octet(program, "evaluate", "-e", spec, "-m", model, "--runtime", "onnxruntime", "--json", figures)
    wanted = coco_results(found)
    boxes, scores, alone = compare(wanted, json.loads(results.read_text()), THRESHOLD, 0.01, 1e-4)
    expected = coco_figures(truth, wanted)
    have = {f["name"]: f["value"] for f in json.loads(figures.read_text())["figures"]}
    off = max(abs(have["coco_" + name] - want) for name, want in zip(FIGURES, expected) if want >= 0)
    print(f"{layout.__name__}: {len(wanted)} detections, {len(alone)} by one alone, boxes differ by at most {boxes:.1e} pixels, scores by "
          f"{scores:.1e}; COCO AP {have['coco_ap']:.3f}, by pycocotools {expected[0]:.3f}, figures differ by at most {off:.1e}", flush=True)
    # Enough of them that something is tested, and precision in between.
    return not alone and off < 1e-3 and len(wanted) > 2 * IMAGES and 5 < expected[0] < 95


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "images").mkdir()
        make_pictures(folder / "images")
        layouts = {ssd: 0, retinanet: 1, fcos: 2, yolov3: 3, yolov8: 4, suppressing: 6}  # seeds with which enough is found
        good = [check(sys.argv[1], layout, seed, folder) for layout, seed in layouts.items()]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
