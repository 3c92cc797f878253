#!/usr/bin/env python3
"""What a target is worth: ONNX Runtime and OpenVINO on the float file of a zoo network and on what `octet quantize` makes of it for
any target and for theirs, in turns within one run.

    bench/target_speed.py [--check] [--networks resnet20 resnet50 mobilenet_v2] [--threads 2]

Needs build/release and scripts/peers_venv.sh. With --check, exit 1 where the file made for ONNX Runtime is slower there than the float
file by the median or has less than 90 % of its convolutions and products in INT8, or OpenVINO has less than all of them; its times are
printed and not judged, as it computes a float file in BF16 where the CPU can. Random weights: times do not depend on them.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

import parts

RUNTIMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
LEAST_SHARE = {"onnxruntime": 0.9, "openvino": 1.0}  # of convolutions and products in INT8


class Rival:
    """A process of rival.py."""

    def __init__(self, python, runtime, model, threads):
        self.process = subprocess.Popen([python, parts.ROOT / "bench/rival.py", runtime, str(model), str(threads), "1", "latency"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        about = self.answer()
        if "error" in about:
            sys.exit(f"{runtime} on {model}: {about['error']}")
        self.version, self.detail, self.windows = about["version"], about["detail"], []

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def turn(self, milliseconds):
        self.process.stdin.write(f"3 {milliseconds}\n")
        self.process.stdin.flush()
        self.windows.append(statistics.median(self.answer()))

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def share(detail):
    found = re.match(r"(\d+) of (\d+)", detail)
    return int(found[1]) / int(found[2]) if found else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=["resnet20", "resnet50", "mobilenet_v2"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--windows", type=int, default=15, help="turns of each file (default 15)")
    parser.add_argument("--window-ms", type=int, default=150, help="least length of a turn (default 150)")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--work", type=pathlib.Path, default=parts.ROOT / "build/bench/targets")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    python = pathlib.Path(subprocess.run([parts.ROOT / "scripts/peers_venv.sh", "--print"], check=True, capture_output=True,
                                         text=True).stdout.strip()) / "bin/python"
    pictures = options.work / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, parts.ROOT / "bench/make_images.py", pictures, "32", "0"], check=True)

    def octet(*words):
        return parts.run_octet(options.build / "bin/octet", *words)

    print(f"{parts.cpu_name()}, {options.threads} threads, batch 1; median of {options.windows} turns, least of them in brackets\n")
    print("| network | runtime | file | INT8 | ms | times the float file's |\n|---|---|---|---|---|---|")
    missed = []
    for network in options.networks:
        files = {"float": options.work / f"{network}.onnx"}
        octet("models", network, "-o", files["float"], "--force", "--quiet")
        for target in ("any", *RUNTIMES):
            files[target] = options.work / f"{network}.{target}.onnx"
            octet("quantize", "-m", files["float"], "--images", pictures, "--target", target, "-o", files[target], "--force", "--quiet")
        for runtime, title in RUNTIMES.items():
            rivals = {name: Rival(python, runtime, files[name], options.threads) for name in ("float", "any", runtime)}
            for _ in range(options.windows):
                for rival in rivals.values():
                    rival.turn(options.window_ms)
            for rival in rivals.values():
                rival.end()
            base = rivals["float"].windows
            for name, rival in rivals.items():
                ratio = statistics.median(own / other for own, other in zip(rival.windows, base))
                made = "float" if name == "float" else f"--target {name}"
                print(f"| {network} | {title} {rival.version} | {made} | {rival.detail.split(' convolutions')[0] if name != 'float' else ''} "
                      f"| {statistics.median(rival.windows):.2f} ({min(rival.windows):.2f}) | {ratio:.2f} |", flush=True)
                if name == runtime == "onnxruntime" and ratio > 1:
                    missed.append(f"{network}: {title} takes {ratio:.2f} times as long as for the float file")
                if name == runtime and share(rival.detail) < LEAST_SHARE[runtime]:
                    missed.append(f"{network}: {title} runs {rival.detail}")
    print("\n".join(missed))
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
