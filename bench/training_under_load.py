#!/usr/bin/env python3
"""How much of its speed training keeps beside other busy processes; see bench/training_under_load.sh.

Trains ResNet-20 on made-up pictures of 32x32 for one epoch, again and again: idle and beside busy processes (by default one,
and one for each CPU, each pinned to its CPU), with the default threads, with one thread, and with whatever waiting policies
--variants names. All of them take turns in every round, so that what else the machine does meanwhile hits all alike; another one begins each
round. Prints images a second (median and most of the rounds) and ratios of each round (median), writes JSON.

    --variants  default        as a user starts it
                one-thread     train.threads=1
                spin=N         GOMP_SPINCOUNT=N
                passive        OMP_WAIT_POLICY=passive
                active         OMP_WAIT_POLICY=active
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import parts

LEAST_KEPT = 1 / 3  # of the idle speed, with as many busy processes as CPUs
LEAST_OF_ONE_THREAD = 2 / 3  # of what one thread does beside the same processes, however many they are


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", default=["default", "one-thread"])
    parser.add_argument("--busy", nargs="+", type=int, help="numbers of busy processes (default: none, one, and one for each CPU)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=1536, help="of an epoch (default 1536)")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--octet", type=pathlib.Path, default=parts.ROOT / "build/release/bin/octet")
    parser.add_argument("--output", type=pathlib.Path, help="JSON; default: bench/results/training-under-load-<cpu>.json")
    parser.add_argument("--check", action="store_true",
                        help="fail when less than a third of the idle speed is left beside one busy process for each CPU, or less than "
                             "two thirds of one thread's beside any number of them")
    options = parser.parse_args()
    for variant in options.variants:
        variant_setting(variant)
    return options


def variant_setting(name):
    """(overrides of the spec, environment)"""
    if name.startswith("spin="):
        return [], {"GOMP_SPINCOUNT": name[5:]}
    known = {"default": ([], {}), "one-thread": (["--set", "train.threads=1"], {}), "passive": ([], {"OMP_WAIT_POLICY": "passive"}),
             "active": ([], {"OMP_WAIT_POLICY": "active"})}
    if name not in known:
        sys.exit(f"--variants {name}: not one of {', '.join(known)}, spin=N")
    return known[name]


def make_data(folder, images):
    """Pictures of three classes, by their brightest channel."""
    rng = random.Random(1)
    for channel in range(3):
        (folder / "data" / str(channel)).mkdir(parents=True)
    for i in range(images):
        pixels = bytearray(rng.randrange(60) for _ in range(32 * 32 * 3))
        pixels[i % 3::3] = bytes(150 + v for v in pixels[i % 3::3])
        (folder / "data" / str(i % 3) / f"{i:05}.ppm").write_bytes(b"P6 32 32 255\n" + pixels)


def start_busy(cpus, count):
    """Processes that do nothing but be busy, each on one CPU. They end by themselves should this program be killed."""
    code = "import os,sys\nos.sched_setaffinity(0,[int(sys.argv[1])])\nparent=os.getppid()\nwhile os.getppid()==parent:\n for _ in range(10**6): pass"
    return [subprocess.Popen([sys.executable, "-c", code, str(cpus[i % len(cpus)])]) for i in range(count)]


def images_per_second(octet, folder, variant, name, precision):
    overrides, environment = variant_setting(variant)
    clean = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS", "OCTET_THREADS")}
    done = subprocess.run([octet, "train", "classification", "-e", folder / "spec.yaml", "-r", folder / name, *overrides],
                          capture_output=True, text=True, env={**clean, **environment})
    return parts.training_speed(done)


def measure(options, busy_counts):
    """{(busy processes, variant): [images/s of each round]}"""
    cpus = sorted(os.sched_getaffinity(0))
    speeds = {(b, v): [] for b in busy_counts for v in options.variants}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        make_data(folder, options.images)
        (folder / "spec.yaml").write_text(
            "model: {arch: resnet20, num_classes: 3, input: [3, 32, 32]}\n"
            f"data:\n  train: {{format: image_folder, path: {folder / 'data'}}}\n"
            f"train: {{epochs: 1, batch_size_per_gpu: 128, precision: {options.precision}}}\n")
        images_per_second(options.octet, folder, options.variants[0], "first", options.precision)  # files into the page cache
        for turn in range(options.rounds):
            keys = list(speeds)
            for busy, variant in keys[turn % len(keys):] + keys[:turn % len(keys)]:
                others = start_busy(cpus, busy)
                try:
                    speed = images_per_second(options.octet, folder, variant, f"{turn}-{busy}-{variant}", options.precision)
                finally:
                    for p in others:
                        p.kill()
                        p.wait()
                speeds[busy, variant].append(speed)
                print(f"round {turn + 1}: {variant:12} beside {busy} busy processes: {speed:7.0f} images/s", file=sys.stderr, flush=True)
    return speeds


def ratio(speeds, over):
    return round(statistics.median(a / b for a, b in zip(speeds, over)), 3)


def rows_of(speeds):
    least_busy = min(b for b, _ in speeds)
    rows = []
    for (busy, variant), own in speeds.items():
        row = {"variant": variant, "busy": busy, "images_per_s": {"median": round(statistics.median(own)), "most": round(max(own))},
               "rounds": [round(s) for s in own], "of_idle": ratio(own, speeds[least_busy, variant])}
        if (busy, "one-thread") in speeds:
            row["of_one_thread"] = ratio(own, speeds[busy, "one-thread"])
        if (busy, "default") in speeds:
            row["of_default"] = ratio(own, speeds[busy, "default"])
        rows.append(row)
    return rows


def markdown(report):
    lines = [f"{report['cpu']}, {report['cpus']} CPUs, {report['date']}, {report['rounds']} rounds, {report['precision']}, "
             f"load before the run {report['load_average_before']}.", "",
             "| how it waits | busy processes beside it | images/s, median (most) | of its idle speed | of one thread's | of the default's |",
             "|---|---|---|---|---|---|"]
    for r in report["rows"]:
        cell = lambda key: f"{r[key]:.2f}" if key in r else "-"
        lines.append(f"| {r['variant']} | {r['busy']} | {r['images_per_s']['median']} ({r['images_per_s']['most']}) | {cell('of_idle')} | "
                     f"{cell('of_one_thread')} | {cell('of_default')} |")
    return "\n".join(lines) + "\n"


def missed(rows, cpus):
    """What the default threads do not reach of the requirements, in sentences."""
    misses = []
    for r in rows:
        if r["variant"] != "default":
            continue
        if r["busy"] == cpus and r["of_idle"] < LEAST_KEPT:
            misses.append(f"beside {cpus} busy processes {r['of_idle']:.2f} of the idle speed is left, at least {LEAST_KEPT:.2f} is required")
        if r.get("of_one_thread", 1) < LEAST_OF_ONE_THREAD:
            misses.append(f"beside {r['busy']} busy processes {r['of_one_thread']:.2f} of one thread's speed is reached, at least "
                          f"{LEAST_OF_ONE_THREAD:.2f} is required")
    return misses


def main():
    options = arguments()
    if not options.octet.exists():
        sys.exit("build first: cmake --preset release && cmake --build --preset release --target octet_cli")
    cpus = len(os.sched_getaffinity(0))
    report = {"cpu": parts.cpu_name(), "cpus": cpus, "date": time.strftime("%Y-%m-%d"),
              "load_average_before": round(os.getloadavg()[0], 2), "rounds": options.rounds, "precision": options.precision}
    parts.warn_if_busy(report["load_average_before"])
    report["rows"] = rows_of(measure(options, options.busy or sorted({0, 1, cpus})))
    output = options.output or parts.ROOT / "bench/results" / f"training-under-load-{parts.cpu_slug(report['cpu'])}.json"
    parts.write_json(output, report)
    print("\n" + markdown(report))
    if options.check and (misses := missed(report["rows"], cpus)):
        sys.exit("\n".join(misses))


if __name__ == "__main__":
    main()
