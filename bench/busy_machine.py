#!/usr/bin/env python3
"""What a second thread is worth beside busy processes: it must not cost anything.

    bench/busy_machine.py [--check] [--busy 4] [--networks resnet18 resnet20] [--models FILE ...]

Starts busy loops (four by default) and lets `octet bench` measure each network with one thread and with two, in turns within one
run. Prints for both the least and the median time of all runs, and two threads' over one thread's: of these medians, and median and
least of the windows (a window in which all went well has far more runs than others, so both count). With --check, exit 1 where the
ratio of the medians, or the median of the windows' ratios, is above 1.3. Whatever else the machine does meanwhile only makes it busier. Needs build/release; random weights, as times do not
depend on them. --models: engine or ONNX files instead of networks of the zoo.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import parts

MOST = 1.3  # times one thread's median


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=["resnet18", "resnet20"], help="of the zoo (octet models)")
    parser.add_argument("--models", nargs="+", type=pathlib.Path, help="engine or quantized ONNX files instead")
    parser.add_argument("--busy", type=int, default=4, help="busy processes (default 4)")
    parser.add_argument("--windows", type=int, default=15, help="turns of each number of threads (default 15)")
    parser.add_argument("--window-ms", type=int, default=300, help="least length of a turn (default 300)")
    parser.add_argument("--octet", type=pathlib.Path, default=parts.ROOT / "build/release/bin/octet")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there")
    parser.add_argument("--check", action="store_true", help=f"fail where two threads take more than {MOST} times as long as one")
    return parser.parse_args()


def make_models(options, folder):
    """ResNets as their user gets them: quantized on 16 made-up pictures."""
    pictures = folder / "pictures"
    pictures.mkdir()
    subprocess.run([sys.executable, parts.ROOT / "bench/make_images.py", pictures, "16", "0"], check=True)
    models = []
    for network in options.networks:
        parts.run_octet(options.octet, "models", network, "-o", folder / f"{network}.float.onnx", "--quiet")
        models.append(folder / f"{network}.onnx")
        parts.run_octet(options.octet, "quantize", "-m", folder / f"{network}.float.onnx", "--images", pictures, "-o", models[-1], "--quiet")
    return models


def measure(options, model, report):
    """The two measurements of `octet bench` beside the busy processes."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
    try:
        parts.run_octet(options.octet, "bench", model, "--threads", "1,2", "--runs", options.windows, "--windows", options.windows,
                        "--window_ms", options.window_ms, "--json", report, "--quiet")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return json.loads(report.read_text())


def row_of(name, report):
    one, two = report["measurements"]
    windows = [b / a for a, b in zip(one["results"][0]["window_median_ms"], two["results"][0]["window_median_ms"])]
    return {"network": name, "isa": report["isa"], "waited_for_cpu_percent": report.get("waited_for_cpu_percent"),
            "one_thread": {"min_ms": one["min_ms"], "median_ms": one["median_ms"]},
            "two_threads": {"min_ms": two["min_ms"], "median_ms": two["median_ms"]},
            "ratio": {"of_medians": two["median_ms"] / one["median_ms"], "median_of_windows": statistics.median(windows),
                      "least_of_windows": min(windows), "most_of_windows": max(windows)}}


def main():
    options = arguments()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        models = options.models or make_models(options, folder)
        rows = [row_of(model.stem, measure(options, model, folder / "report.json")) for model in models]
    print(f"{parts.cpu_name()}, {len(os.sched_getaffinity(0))} CPUs, {options.busy} busy processes, load before the run {load:.1f}, "
          f"{options.windows} windows of at least {options.window_ms} ms; milliseconds: median (least) of all runs\n")
    print("| network | instruction set | one thread | two threads | ratio of the medians | of the windows: median (least-most) |\n"
          "|---|---|---|---|---|---|")
    for row in rows:
        one, two, ratio = row["one_thread"], row["two_threads"], row["ratio"]
        print(f"| {row['network']} | {row['isa']} | {one['median_ms']:.3f} ({one['min_ms']:.3f}) | {two['median_ms']:.3f} ({two['min_ms']:.3f}) "
              f"| **{ratio['of_medians']:.2f}** | **{ratio['median_of_windows']:.2f}** ({ratio['least_of_windows']:.2f}-{ratio['most_of_windows']:.2f}) |")
    if options.json:
        parts.write_json(options.json, {"cpu": parts.cpu_name(), "commit": parts.commit(), "load_before": load, "busy": options.busy, "rows": rows})
    slow = [row["network"] for row in rows if max(row["ratio"]["of_medians"], row["ratio"]["median_of_windows"]) > MOST]
    if options.check and slow:
        sys.exit(f"{', '.join(slow)}: two threads take more than {MOST} times as long as one")


if __name__ == "__main__":
    main()
