#!/usr/bin/env python3
"""Frames per second of a detector, from the bytes of a frame to its objects: DetectNet_v2 with a ResNet-18, whole and pruned.

    bench/detector_speed.py [--windows 15] [--threads 2] ...

Octet's INT8 engine (what `octet quantize` and `octet compile` make), the same engine in FP32, OpenVINO in INT8 (what NNCF makes),
BF16 and FP32, all from the same float network. Normalization and clustering included; frames have the network's size. Each
contender is a process of its own (bench/detector_contender.py); they take turns, in another order each time, and every ratio is
that of two turns of one round. The weights are random: nothing but the number of cells that reach the clustering depends on them,
and that is set (bench/detector_models.py). Writes bench/results/detector-speed-<cpu>.json and prints the table.
Needs build/release, there also `cmake --build build/release --target bench_task`, and scripts/peers_venv.sh --nncf.
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import parts

FRAMES = 24
CONTENDERS = (("octet_int8", "Octet INT8"), ("octet_fp32", "Octet FP32"), ("openvino_int8", "OpenVINO INT8"),
              ("openvino_bf16", "OpenVINO BF16"), ("openvino_fp32", "OpenVINO FP32"))


def arguments():
    parser = argparse.ArgumentParser(description="Frames per second of a detector: Octet beside OpenVINO.")
    parser.add_argument("--width", type=int, default=960)
    parser.add_argument("--height", type=int, default=544)
    parser.add_argument("--networks", nargs="+", choices=("whole", "pruned"), default=["whole", "pruned"])
    parser.add_argument("--target-params", type=float, default=0.35, help="of the pruned network (default 0.35)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--windows", type=int, default=15, help="turns that each contender takes (default 15)")
    parser.add_argument("--window-ms", type=int, default=400, help="least length of a turn (default 400)")
    parser.add_argument("--frames", type=int, default=FRAMES, help=f"made-up frames to calibrate with and to run (default {FRAMES})")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release", help="build folder with bin/octet")
    parser.add_argument("--work", type=pathlib.Path, default=parts.ROOT / "build/bench/detector", help="models and engines")
    parser.add_argument("--again", action="store_true", help="make the models anew")
    parser.add_argument("--output", type=pathlib.Path, help="default: bench/results/detector-speed-<cpu>.json")
    return parser.parse_args()


class Bench:
    def __init__(self, options):
        self.options, self.program = options, options.build / "bin/octet"
        venv = subprocess.run([parts.ROOT / "scripts/peers_venv.sh", "--nncf"], check=True, capture_output=True, text=True).stdout.strip()
        self.python = pathlib.Path(venv) / "bin/python"
        self.work = options.work / f"{options.width}x{options.height}"
        self.frames, self.spec = self.work / "frames", self.work / "spec.yaml"
        self.environment = {**os.environ, "OCTET_LIB": str(options.build / "lib/liboctet.so"),
                            "OCTET_BENCH_TASK": str(options.build / "lib/libbench_task.so")}

    def octet(self, *words):
        return parts.run_octet(self.program, *words)

    def rivals(self, script, *words):
        done = subprocess.run([self.python, parts.ROOT / "bench" / script, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{script} {' '.join(map(str, words))}\n{done.stderr.strip()}")

    def prepare(self):
        """The float networks."""
        options = self.options
        self.work.mkdir(parents=True, exist_ok=True)
        self.spec.write_text(
            "task: detectnet_v2\n"
            f"model: {{arch: resnet18, num_classes: 3, input: [3, {options.height}, {options.width}]}}\n"
            "data: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}\n"
            "detectnet_v2: {postprocessing: {coverage_threshold: 0.05, dbscan_eps: 0.3, dbscan_min_samples: 0.5}}\n")
        self.rivals("detector_models.py", "frames", self.frames, options.frames, options.width, options.height)
        initial, whole, cut = (self.work / f"{name}.onnx" for name in ("initial", "whole", "cut"))
        library = ctypes.CDLL(self.environment["OCTET_BENCH_TASK"])
        if library.octet_bench_network(os.fsencode(self.spec), os.fsencode(initial)) != 0:
            sys.exit("the network was not made")
        if self.needed(whole):
            self.rivals("detector_models.py", "construct", initial, self.frames, whole)
        if "pruned" in options.networks and self.needed(pruned := self.work / "pruned.onnx"):
            self.octet("prune", "-m", whole, "-o", cut, "--target-params", options.target_params, "--force", "--quiet")
            self.rivals("detector_models.py", "construct", cut, self.frames, pruned)

    def needed(self, path):
        return self.options.again or not path.exists()

    def contenders(self, network):
        """{name: (kind, file, precision)}"""
        folder = self.work / network
        folder.mkdir(exist_ok=True)
        source = self.work / f"{network}.onnx"
        int8, nncf = folder / "octet.qdq.onnx", folder / "nncf.xml"
        self.octet("quantize", "-e", self.spec, "-m", source, "--images", self.frames, "-o", int8, "--force", "--quiet")
        for graph, engine in ((int8, "int8.octet"), (source, "fp32.octet")):
            self.octet("compile", graph, "-o", folder / engine, "--tactics", "timing", "--threads", self.options.threads, "--force", "--quiet")
        if self.needed(nncf):
            self.rivals("product_models.py", "openvino", source, self.frames, nncf)
        return {"octet_int8": ("octet", folder / "int8.octet", "-"), "octet_fp32": ("octet", folder / "fp32.octet", "-"),
                "openvino_int8": ("openvino", nncf, "f32"), "openvino_bf16": ("openvino", source, "bf16"),
                "openvino_fp32": ("openvino", source, "f32")}

    def start(self, kind, path, precision):
        return subprocess.Popen(
            [self.python, parts.ROOT / "bench/detector_contender.py", kind, path, precision, str(self.options.threads), self.spec,
             self.frames], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)

    def run(self, network):
        processes, found = {}, {}
        try:
            for name, words in self.contenders(network).items():
                process = self.start(*words)
                ready = json.loads(process.stdout.readline() or '{"error": "it ended without a word"}')
                if "error" in ready:
                    print(f"{network}: {name} takes no part: {ready['error']}", file=sys.stderr)
                    process.kill()
                    continue
                processes[name] = process
                found[name] = {"version": ready["version"], "how": ready["detail"], "parts_ms": ready["parts_ms"],
                               "objects": statistics.mean(ready["objects"]), "windows_ms": [], "min_ms": float("inf")}
            names = list(processes)
            for window in range(self.options.windows):
                first = window % len(names)
                for name in names[first:] + names[:first]:
                    process = processes[name]
                    process.stdin.write(f"3 {self.options.window_ms}\n")
                    process.stdin.flush()
                    times = json.loads(process.stdout.readline())
                    found[name]["windows_ms"].append(parts.rounded(statistics.median(times)))
                    found[name]["min_ms"] = parts.rounded(min(found[name]["min_ms"], min(times)))
        finally:
            for process in processes.values():
                process.stdin.close()
                process.wait()
        if "octet_int8" not in found:
            sys.exit(f"{network}: nothing to compare with: Octet's engine did not run")
        octet = found["octet_int8"]["windows_ms"]
        for row in found.values():
            ratios = sorted(own / base for own, base in zip(row["windows_ms"], octet))
            row["median_ms"] = parts.rounded(statistics.median(row["windows_ms"]))
            row["frames_per_s"] = round(1000 / row["median_ms"], 2)
            row["times_as_long"] = {"median": parts.rounded(statistics.median(ratios)), "min": parts.rounded(ratios[0]),
                                    "max": parts.rounded(ratios[-1])}
        parameters = json.loads(self.octet("inspect", self.work / f"{network}.onnx", "--json", "-"))
        return {"parameters": parameters.get("parameters"), "macs": parameters.get("macs"), "contenders": found}


def markdown(report):
    lines = [f"{report['cpu']}, {report['cpus']} CPUs, {report['threads']} threads, {report['width']}x{report['height']}, {report['date']}, "
             f"{report['windows']} rounds, load before the run {report['load_average_before']}.", "",
             "| network | contender | frames/s | ms, median (least) | of that network, clustering | times as long as Octet INT8, median (min to max) |",
             "|---|---|---|---|---|---|"]
    for network, measured in report["networks"].items():
        for name, title in CONTENDERS:
            if name not in measured["contenders"]:
                continue
            r = measured["contenders"][name]
            ratio = r["times_as_long"]
            lines.append(f"| {network} | {title} | {r['frames_per_s']:.1f} | {r['median_ms']:.2f} ({r['min_ms']:.2f}) | "
                         f"{r['parts_ms']['network']:.2f}, {r['parts_ms']['clustering']:.2f} | {ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f}) |")
    return "\n".join(lines)


def main():
    options = arguments()
    bench = Bench(options)
    for path in (bench.program, *(pathlib.Path(bench.environment[name]) for name in ("OCTET_LIB", "OCTET_BENCH_TASK"))):
        if not path.exists():
            sys.exit(f"{path} is missing: cmake --preset release && cmake --build --preset release && cmake --build build/release --target bench_task")
    load = round(os.getloadavg()[0], 2)
    bench.prepare()
    report = {"cpu": parts.cpu_name(), "cpus": os.cpu_count(), "date": time.strftime("%Y-%m-%d"), "commit": parts.commit(),
              "load_average_before": load, "threads": options.threads, "width": options.width, "height": options.height,
              "windows": options.windows, "window_ms": options.window_ms, "target_params": options.target_params, "networks": {}}
    parts.warn_if_busy(load)
    for network in options.networks:
        report["networks"][network] = bench.run(network)
    isa = report["networks"][options.networks[0]]["contenders"]["octet_int8"]["how"]
    output = options.output or parts.ROOT / "bench/results" / f"detector-speed-{parts.cpu_slug(report['cpu'], isa)}.json"
    parts.write_json(output, report)
    print("\n" + markdown(report))


if __name__ == "__main__":
    main()
