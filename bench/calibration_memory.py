#!/usr/bin/env python3
"""What calibration takes and whether its result hangs on the batch size: ResNet-50 at 224x224.

    bench/calibration_memory.py [--images 5000] [--check]      needs build/release

Calibrates a ResNet-50 (random weights: neither memory nor reproducibility depend on them) on so many pictures by KL and by MSE and
prints the most memory that each took; then on 128 pictures with batches of 1, 8 and 64, whose files must be the same to the byte.
With --check, exit 1 where more than 1.5 GiB are taken or files differ. The pictures are 200 made-up ones under 5,000 names.
"""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import parts

MOST_MIB = 1536
DISTINCT = 200


def make_pictures(folder, count):
    """200 of them, and further names for them."""
    folder.mkdir()
    subprocess.run([sys.executable, parts.ROOT / "bench/make_images.py", folder, str(min(DISTINCT, count))], check=True)
    made = sorted(folder.iterdir())
    for i in range(len(made), count):
        os.link(made[i % len(made)], folder / f"{i:06}.ppm")


def calibrate(program, model, pictures, output, *words):
    """Seconds and MiB that it takes."""
    command = [program, "quantize", "-m", model, "--images", pictures, "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225",
               "-o", output, "--force", "--quiet", *words]
    started = time.monotonic()
    child = subprocess.Popen(list(map(str, command)))
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"octet quantize ended with status {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - started, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description="What calibration takes and whether its result hangs on the batch size.")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--octet", type=pathlib.Path, default=parts.ROOT / "build/release/bin/octet")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model, output = folder / "resnet50.onnx", folder / "int8.onnx"
        parts.run_octet(options.octet, "models", "resnet50", "-o", model, "--quiet")
        make_pictures(folder / "pictures", options.images)
        print(f"{parts.cpu_name()}; ResNet-50, 224x224\n\n| method | images | MiB at most | seconds |\n|---|---|---|---|")
        for method in ("entropy", "mse"):
            seconds, mib = calibrate(options.octet, model, folder / "pictures", output, "--method", method, "--count", options.images)
            print(f"| {method} | {options.images} | {mib:.0f} | {seconds:.0f} |", flush=True)
            if mib > MOST_MIB:
                missed.append(f"{method} takes {mib:.0f} MiB, more than {MOST_MIB}")
        for method in ("entropy", "mse"):
            files = set()
            for batch in (1, 8, 64):
                calibrate(options.octet, model, folder / "pictures", output, "--method", method, "--count", 128, "--set",
                          f"quant.calibration.batch_size={batch}")
                files.add(hashlib.sha256(output.read_bytes()).hexdigest())
            print(f"{method}: batches of 1, 8 and 64 make {'the same file' if len(files) == 1 else f'{len(files)} files'}", flush=True)
            if len(files) > 1:
                missed.append(f"{method}: the scales hang on the batch size")
    for line in missed:
        print(line)
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
