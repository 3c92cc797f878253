#!/usr/bin/env python3
"""Training by two workers with a core each against one worker with a core: how far from twice as fast, and what the gradients cost.

    bench/workers.py [--rounds 5] [--arch resnet18] ...

Every contender is a whole `octet train` of two epochs on made-up pictures, of which the second counts; they take turns, in another
order each round, and each ratio is that of two turns of one round. Besides two workers as they are: with all gradients in one bucket,
which sets out when backward is done, so that nothing of the traffic is hidden behind it; with gradients that travel in BF16; and
with batch norms over each worker's own images, which spares two messages for each batch norm.
Writes bench/results/workers-<cpu>.json and prints the table. Needs build/release and two idle cores.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import parts
from training_under_load import make_data

CONTENDERS = {
    "one worker": (1, []),
    "two workers": (2, []),
    "two workers, one bucket": (2, ["train.reduction.bucket_mb=4096"]),
    "two workers, BF16 gradients": (2, ["train.reduction.compression=bf16"]),
    "two workers, batch norms apart": (2, ["train.sync_batch_norm=false"]),
    "two workers, batch norms apart, BF16 gradients": (2, ["train.sync_batch_norm=false", "train.reduction.compression=bf16"]),
}


def arguments():
    parser = argparse.ArgumentParser(description="How training scales from one worker to two, with one core each.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--arch", default="resnet18")
    parser.add_argument("--size", type=int, default=64, help="width and height of the images (default 64)")
    parser.add_argument("--batch", type=int, default=32, help="of each worker (default 32)")
    parser.add_argument("--images", type=int, default=640, help="of an epoch (default 640)")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--octet", type=pathlib.Path, default=parts.ROOT / "build/release/bin/octet")
    parser.add_argument("--output", type=pathlib.Path, help="default: bench/results/workers-<cpu>.json")
    return parser.parse_args()


def images_per_second(options, folder, name, results):
    workers, changes = CONTENDERS[name]
    words = [word for change in changes for word in ("--set", change)]
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))[:workers]))
    done = subprocess.run(["taskset", "-c", cpus, options.octet, "train", "classification", "-e", folder / "spec.yaml", "-r",
                           folder / results, "--workers", str(workers), *words], capture_output=True, text=True)
    return parts.training_speed(done)


def measure(options):
    speeds = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        make_data(folder, options.images)
        (folder / "spec.yaml").write_text(
            f"model: {{arch: {options.arch}, num_classes: 3, input: [3, {options.size}, {options.size}]}}\n"
            f"data:\n  train: {{format: image_folder, path: {folder / 'data'}}}\n"
            f"train: {{epochs: 2, threads: 1, batch_size_per_gpu: {options.batch}, precision: {options.precision}}}\n")
        for turn in range(options.rounds):
            names = list(CONTENDERS)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                speeds[name].append(images_per_second(options, folder, name, f"{turn}-{name.replace(' ', '-')}"))
                print(f"round {turn + 1}: {name:46} {speeds[name][-1]:7.1f} images/s", flush=True)
    return speeds


def main():
    options = arguments()
    load = os.getloadavg()[0]
    parts.warn_if_busy(load)
    speeds = measure(options)
    cpu = parts.cpu_name()
    rows = []
    for name, own in speeds.items():
        ideal = [speed / one / CONTENDERS[name][0] for speed, one in zip(own, speeds["one worker"])]
        rows.append({"contender": name, "images_per_s": {"median": statistics.median(own), "most": max(own)},
                     "of_ideal": {"median": round(statistics.median(ideal), 3), "least": round(min(ideal), 3), "most": round(max(ideal), 3)}})
    # Seconds for the images of a step, on two workers.
    step = {name: [2 * options.batch / speed for speed in own] for name, own in speeds.items()}
    hidden = statistics.median(a - b for a, b in zip(step["two workers, one bucket"], step["two workers"]))
    report = {"cpu": cpu, "date": time.strftime("%Y-%m-%d"), "commit": parts.commit(), "load_before": load, "network": options.arch,
              "size": options.size, "batch": options.batch, "precision": options.precision, "rounds": options.rounds, "rows": rows,
              "hidden_ms_per_step": round(1000 * hidden, 1)}
    parts.write_json(options.output or parts.ROOT / f"bench/results/workers-{parts.cpu_slug(cpu)}.json", report)
    print(f"\n{cpu}, {options.arch} {options.size}x{options.size}, {options.precision}, batch {options.batch} a worker, {report['date']}, "
          f"{options.rounds} rounds, load before the run {load:.2f}.\n")
    print("| workers, one core each | images/s, median (most) | of ideal scaling, median (least to most) |\n|---|---|---|")
    for row in rows:
        print(f"| {row['contender']} | {row['images_per_s']['median']:.1f} ({row['images_per_s']['most']:.1f}) "
              f"| {row['of_ideal']['median']:.2f} ({row['of_ideal']['least']:.2f} to {row['of_ideal']['most']:.2f}) |")
    print(f"\nOf a step of {1000 * statistics.median(step['two workers']):.0f} ms, backward hides {report['hidden_ms_per_step']:.0f} ms of the "
          "traffic that one bucket shows.")


if __name__ == "__main__":
    main()
