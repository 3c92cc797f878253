#!/usr/bin/env python3
"""Images per second of a detector's training: Octet's float stage and its quantization-aware one beside PyTorch's plain training of
the same graph (the file that Octet wrote), FP32 beside FP32 and BF16 beside PyTorch's BF16 autocast.

    bench/detector_training.py [--rounds 5] [--batch 8] ...

DetectNet_v2 with a ResNet-18 on made-up scenes. In every round each contender has a turn, in another order each time; ratios are
those of two turns of one round. Octet's turn is a whole `octet train` of two epochs, of which the second counts: reading and augmenting
images, rasterizing targets and its full loss are in it. PyTorch's turn are steps on images that are in memory, with the simplest
loss. Writes bench/results/detector-training-<cpu>.json and prints the table. Needs build/release and scripts/peers_venv.sh --torch.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import parts

NAMES = "top,trousers,top,dress,top,shoe,top,shoe,bag,shoe"
PRECISIONS = ("fp32", "bf16")


def arguments():
    parser = argparse.ArgumentParser(description="Images per second of a detector's training: Octet beside PyTorch.")
    parser.add_argument("--width", type=int, default=480)
    parser.add_argument("--height", type=int, default=272)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=12, help="of a turn (default 12)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pictures", default="/usr/share/datasets/fashion-mnist", help="what octet scenes takes")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release", help="build folder with bin/octet")
    parser.add_argument("--work", type=pathlib.Path, default=parts.ROOT / "build/bench/training", help="scenes and models")
    parser.add_argument("--output", type=pathlib.Path, help="default: bench/results/detector-training-<cpu>.json")
    return parser.parse_args()


class Bench:
    def __init__(self, options):
        self.options, self.program = options, options.build / "bin/octet"
        venv = subprocess.run([parts.ROOT / "scripts/peers_venv.sh", "--torch"], check=True, capture_output=True, text=True).stdout.strip()
        self.python, self.folder = pathlib.Path(venv) / "bin/python", options.work / f"{options.width}x{options.height}"
        self.spec, self.model, self.calibrated = (self.folder / n for n in ("spec.yaml", "first/model.onnx", "calibrated.onnx"))
        self.processes = {}

    def train(self, folder, stage, precision, *words):
        """Images a second of the last epoch."""
        section = "train" if stage == "float" else "finetune"
        done = subprocess.run([self.program, "train", "-e", self.spec, "-r", self.folder / folder, "--stage", stage, "--force", *words,
                               "--set", f"{section}.precision={precision}"], capture_output=True, text=True)
        return parts.training_speed(done)

    def prepare(self):
        options = self.options
        images = options.steps * options.batch
        scenes = self.folder / f"scenes-{images}"
        if not scenes.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            parts.run_octet(self.program, "scenes", "--pictures", options.pictures, "--names", NAMES, "--train", images, "--test", 1, "--width",
                            options.width, "--height", options.height, "--quiet", "-o", scenes)
        schedule = f"{{epochs: 2, batch_size_per_gpu: {options.batch}, threads: {options.threads}, optimizer: {{type: adam, lr: 0.00001}}}}"
        self.spec.write_text("task: detectnet_v2\n"
                             f"model: {{arch: resnet18, num_classes: 5, input: [3, {options.height}, {options.width}]}}\n"
                             f"data: {{train: {{format: voc, path: {scenes}, split: train}}}}\n"
                             f"train: {schedule}\nfinetune: {schedule}\nquant: {{calibration: {{images: 32}}}}\n")
        self.train("first", "float", "fp32")
        parts.run_octet(self.program, "calibrate", "-e", self.spec, "-m", self.model, "-o", self.calibrated, "--force", "--quiet")

    def start_torch(self):
        """Version of PyTorch; a process for each precision."""
        version = ""
        for precision in PRECISIONS:
            process = subprocess.Popen(
                [self.python, parts.ROOT / "bench/torch_training.py", self.model, precision,
                 *map(str, (self.options.threads, self.options.batch, self.options.height, self.options.width))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            ready = json.loads(process.stdout.readline() or '{"error": "it ended without a word"}')
            if "error" in ready:
                sys.exit(f"PyTorch: {ready['error']}")
            self.processes[precision], version = process, ready["version"]
        return version

    def turn(self, contender, precision):
        if contender != "pytorch":
            model = () if contender == "float" else ("-m", self.calibrated)
            return self.train(f"{contender}-{precision}", contender, precision, *model)
        process = self.processes[precision]
        process.stdin.write(f"{self.options.steps}\n")
        process.stdin.flush()
        return self.options.batch * 1e3 / statistics.mean(json.loads(process.stdout.readline()))

    def run(self):
        keys = [(c, p) for p in PRECISIONS for c in ("float", "qat", "pytorch")]
        speeds = {key: [] for key in keys}
        try:
            for turn in range(self.options.rounds):
                first = turn % len(keys)
                for key in keys[first:] + keys[:first]:
                    speeds[key].append(self.turn(*key))
                    print(f"round {turn + 1}: {key[0]:8} {key[1]}: {speeds[key][-1]:7.2f} images/s", file=sys.stderr, flush=True)
        finally:
            for process in self.processes.values():
                process.stdin.close()
                process.wait()
        return speeds


def rows_of(speeds):
    rows = []
    for (contender, precision), own in speeds.items():
        ratios = sorted(a / b for a, b in zip(own, speeds["pytorch", precision]))
        rows.append({"contender": contender, "precision": precision, "rounds": [round(s, 2) for s in own],
                     "images_per_s": {"median": round(statistics.median(own), 2), "most": round(max(own), 2)},
                     "of_pytorch": {"median": parts.rounded(statistics.median(ratios)), "min": parts.rounded(ratios[0]),
                                    "max": parts.rounded(ratios[-1])}})
    return rows


def markdown(report):
    titles = {"float": "Octet, float stage", "qat": "Octet, QAT stage", "pytorch": f"PyTorch {report['pytorch']}, plain"}
    lines = [f"{report['cpu']}, {report['cpus']} CPUs, {report['threads']} threads, {report['width']}x{report['height']}, batch {report['batch']}, "
             f"{report['date']}, {report['rounds']} rounds, load before the run {report['load_average_before']}.", "",
             "| training | precision | images/s, median (most) | times as fast as PyTorch, median (min to max) |", "|---|---|---|---|"]
    for r in report["rows"]:
        ratio = r["of_pytorch"]
        lines.append(f"| {titles[r['contender']]} | {r['precision'].upper()} | {r['images_per_s']['median']:.1f} ({r['images_per_s']['most']:.1f}) | "
                     f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f}) |")
    return "\n".join(lines)


def main():
    options = arguments()
    bench = Bench(options)
    if not bench.program.exists():
        sys.exit("build first: cmake --preset release && cmake --build --preset release")
    load = round(os.getloadavg()[0], 2)
    parts.warn_if_busy(load)
    bench.prepare()
    version = bench.start_torch()
    report = {"cpu": parts.cpu_name(), "cpus": os.cpu_count(), "date": time.strftime("%Y-%m-%d"), "commit": parts.commit(),
              "load_average_before": load, "threads": options.threads, "width": options.width, "height": options.height,
              "batch": options.batch, "steps": options.steps, "rounds": options.rounds, "pytorch": version, "rows": rows_of(bench.run())}
    output = options.output or parts.ROOT / "bench/results" / f"detector-training-{parts.cpu_slug(report['cpu'])}.json"
    parts.write_json(output, report)
    print("\n" + markdown(report))


if __name__ == "__main__":
    main()
