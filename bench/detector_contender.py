#!/usr/bin/env python3
"""One contender of bench/detector_speed.py: from the bytes of a frame to the objects in it, again and again.

    detector_contender.py octet|openvino MODEL PRECISION THREADS SPEC FRAMES

Talks as bench/rival.py does: prints a line of JSON, {"version", "detail", "objects", "parts_ms"} or {"error"}; then, for each
line `RUNS MILLISECONDS` on standard input, the milliseconds of every frame as a JSON list. Frames are PPM files of the network's
size. Every contender normalizes them in its own best way (Octet by octet_context_bind_image, OpenVINO within its graph, by
PrePostProcessor), and clusters by the same code, the task's own (bench/task_library.cc).
PRECISION: what OpenVINO may use where the graph is not quantized (f32, bf16); Octet's is that of its engine file.
"""
import ctypes
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

import octet_library
import product_models
import rival


def frames_of(folder):
    found = []
    for path in sorted(pathlib.Path(folder).glob("*.ppm")):
        header, pixels = path.read_bytes().split(b" 255\n", 1)
        width, height = map(int, header.split()[1:3])
        found.append(np.frombuffer(pixels, np.uint8).reshape(height, width, 3).copy())
    return found


class Octet:
    def __init__(self, path, _, threads):
        self.engine = octet_library.Engine(path, threads)
        self.format = octet_library.normalizing(product_models.MEAN, product_models.STD)
        self.names, self.outputs = self.engine.names, self.engine.outputs
        self.version, self.detail = "", self.engine.isa()

    def run(self, frame):
        self.engine.bind_image(frame, self.format)
        self.engine.run()


class OpenVino:
    def __init__(self, path, precision, threads):
        import openvino
        from openvino.preprocess import PrePostProcessor

        core = openvino.Core()
        model = core.read_model(path)
        model.reshape([1, *[d.get_length() for d in list(model.inputs[0].partial_shape)[1:]]])
        steps = PrePostProcessor(model)
        steps.input().tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("NHWC"))
        steps.input().model().set_layout(openvino.Layout("NCHW"))
        steps.input().preprocess().convert_element_type(openvino.Type.f32).mean([255 * m for m in product_models.MEAN]).scale(
            [255 * s for s in product_models.STD])
        compiled = core.compile_model(steps.build(), "CPU", rival.openvino_settings(threads, "latency", precision))
        self.tensor, self.request = openvino.Tensor, compiled.create_infer_request()
        self.names = [next(iter(o.names)) for o in compiled.outputs]
        self.outputs = [np.empty(tuple(o.shape), np.float32) for o in compiled.outputs]
        for index, values in enumerate(self.outputs):
            self.request.set_output_tensor(index, openvino.Tensor(values, shared_memory=True))
        self.version = openvino.__version__.split("-")[0]
        self.detail = f"{rival.openvino_int8_detail(compiled)}, rest {precision}"

    def run(self, frame):
        self.request.set_input_tensor(self.tensor(frame[None], shared_memory=True))
        self.request.infer()


class Decoder:
    """The task's post-processing over arrays that stay where they are."""

    def __init__(self, spec, size, names, outputs):
        self.lib = ctypes.CDLL(os.environ["OCTET_BENCH_TASK"])
        self.lib.octet_bench_decoder.restype = ctypes.c_void_p
        count = len(names)
        shapes = (ctypes.c_int64 * (4 * count))(*(d for o in outputs for d in o.shape))
        values = (ctypes.c_void_p * count)(*(o.ctypes.data for o in outputs))
        handle = self.lib.octet_bench_decoder(os.fsencode(spec), *size, count, (ctypes.c_char_p * count)(*(n.encode() for n in names)),
                                              shapes, values)
        if not handle:
            sys.exit("the task does not take these outputs")
        self.handle, self.kept = ctypes.c_void_p(handle), (shapes, values, outputs)

    def __call__(self):
        return self.lib.octet_bench_decode(self.handle)


def main():
    kind, path, precision, threads, spec, folder = sys.argv[1:]
    try:
        frames = frames_of(folder)
        network = {"octet": Octet, "openvino": OpenVino}[kind](path, precision, int(threads))
        # The order of the task's own networks: coverage, boxes.
        order = sorted(range(len(network.names)), key=lambda i: network.names[i].startswith("output_bbox"))
        decode = Decoder(spec, frames[0].shape[:2], [network.names[i] for i in order], [network.outputs[i] for i in order])
        count = 0

        def run():
            nonlocal count
            network.run(frames[count % len(frames)])
            count += 1
            return decode()

        objects, parts = [run() for _ in frames], {"network": [], "clustering": []}
        for frame in frames:
            for part, work in (("network", lambda: network.run(frame)), ("clustering", decode)):  # noqa: B023
                begin = time.perf_counter()
                work()
                parts[part].append((time.perf_counter() - begin) * 1e3)
    except Exception as e:
        print(json.dumps({"error": (str(e).splitlines() or [type(e).__name__])[0]}), flush=True)
        sys.exit(1)
    print(json.dumps({"version": network.version, "detail": network.detail, "objects": objects,
                      "parts_ms": {part: round(statistics.median(times), 3) for part, times in parts.items()}}), flush=True)
    turn = rival.latency_turn(run)
    for line in sys.stdin:
        runs, milliseconds = line.split()
        print(json.dumps(turn(int(runs), float(milliseconds) / 1e3)), flush=True)


if __name__ == "__main__":
    main()
