#!/usr/bin/env python3
"""Runs the kernel benchmark (graphs with random weights) and writes bench/results/inference-<cpu>.json; see bench/inference.sh.

Everything is measured by `octet bench`; this script only says what to run and keeps what is worth keeping.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import inference_change
import parts
import performance_table
from parts import STRENGTH, joined_measurement, kept_measurement

ROOT = parts.ROOT
NETWORKS = ("resnet50", "resnet18", "mobilenetv2", "efficientnetb0", "detectnet")
WEAKER = ("avx512_vnni", "avx2")  # besides the best instruction set of the machine


def arguments():
    parser = argparse.ArgumentParser(description="The kernel benchmark: Octet against OpenVINO and ONNX Runtime.")
    parser.add_argument("--quick", action="store_true", help="best instruction set, two threads, latency, three windows")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--isas", nargs="+", choices=STRENGTH[1:], help="default: the best, avx512_vnni, avx2")
    parser.add_argument("--tactics", choices=("model", "timing"), default="timing", help="how compile chooses kernels")
    parser.add_argument("--windows", type=int, default=9, help="interleaved turns of each contender (default 9)")
    parser.add_argument("--window-ms", type=int, default=120, help="least length of a turn (default 120)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="build folder with bin/octet")
    parser.add_argument("--before", type=pathlib.Path, metavar="BUILD",
                        help="another program's build folder: measured in turns with --build, and both reports are written")
    parser.add_argument("--rounds", type=int, help="how often to compile and measure everything (default 1, with --before 2)")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench", help="graphs, engines, raw reports")
    parser.add_argument("--output", type=pathlib.Path, help="default: bench/results/inference-<cpu>.json; --quick: none")
    options = parser.parse_args()
    if options.quick:
        options.windows = 3
    options.rounds = options.rounds or (2 if options.before else 1)
    return options


OPTIONS = arguments()
PROGRAMS = {name: build / "bin/octet" for name, build in (("before", OPTIONS.before), ("after", OPTIONS.build)) if build}
MODES = (("latency", "2"),) if OPTIONS.quick else (("latency", "1,2"), ("throughput", "2"))


def make_graphs(folder):
    """The graphs, made unless they are there with the published hashes."""
    names = [f"{n}_{m}.onnx" for n in OPTIONS.networks for m in ("u8s8", "s8s8")]
    published = [line for line in (ROOT / "bench/qdq_graphs.sha256").read_text().splitlines() if line.split()[1] in names]

    def good():
        check = subprocess.run(["sha256sum", "--check", "--status"], input="\n".join(published) + "\n", text=True, cwd=folder,
                               stderr=subprocess.DEVNULL)
        return check.returncode == 0

    folder.mkdir(parents=True, exist_ok=True)
    if good():
        return
    subprocess.run([sys.executable, ROOT / "bench/make_qdq_graphs.py", folder, "--networks", *OPTIONS.networks, "--modes", "u8s8",
                    "s8s8"], check=True, stdout=subprocess.DEVNULL)
    if not good():
        sys.exit(f"{folder}: the graphs differ from bench/qdq_graphs.sha256")


def bench(program, engine, graphs, isa, mode, threads, report):
    """`octet bench` against every rival that can be held to `isa`."""
    parts.run_octet(program, "bench", engine, "--isa", isa, "--mode", mode, "--threads", threads, "--compare", "onnxruntime,openvino",
                    *(word for g in graphs for word in ("--onnx", g)), "--runs", 3 * OPTIONS.windows, "--windows", OPTIONS.windows,
                    "--window_ms", OPTIONS.window_ms, "--json", report)
    return json.loads(report.read_text())


def kept_kernels(report):
    """Time and share of the peak of each kernel, over its layers."""
    kernels = {}
    for layer in report["layers"]:
        row = kernels.setdefault(layer["kernel"], {"kernel": layer["kernel"], "precision": layer["precision"], "layers": 0, "us": 0,
                                                   "gmacs": 0})
        row["layers"] += 1
        row["us"] += layer["us"]
        row["gmacs"] += layer["gmacs"] or 0
    for row in kernels.values():
        peak = report["peak"]["int8_gmac_per_s" if row["precision"] == "int8" else "fp32_gmac_per_s"]
        row["percent_of_peak"] = round(100 * row["gmacs"] / (row["us"] * 1e-6) / peak, 1) if row["us"] else 0
        row["us"] = round(row["us"], 1)
        row["gmacs"] = round(row["gmacs"], 5)
    return sorted(kernels.values(), key=lambda row: -row["us"])


def compile_engine(program, graph, engine, isa, tactics):
    """Milliseconds of the whole command."""
    start = time.perf_counter()
    parts.run_octet(program, "compile", graph, "-o", engine, "--isa", isa, "--tactics", tactics, "--threads", 2, "--force", "--quiet")
    return round((time.perf_counter() - start) * 1e3, 1)


def measure(program, network, isa):
    """What one program compiles, and how fast it is."""
    graphs = [OPTIONS.work / "graphs" / f"{network}_{mode}.onnx" for mode in ("u8s8", "s8s8")]
    engine = OPTIONS.work / f"{network}-{isa}.octet"
    compile_ms = {"model": compile_engine(program, graphs[0], engine, isa, "model")}
    if OPTIONS.tactics == "timing":
        compile_ms["timing"] = compile_engine(program, graphs[0], engine, isa, "timing")
    row = {"compile_ms": compile_ms}
    for mode, threads in MODES:
        report = bench(program, engine, graphs, isa, mode, threads, OPTIONS.work / f"{network}-{isa}-{mode}.json")
        row[mode] = [kept_measurement(m) for m in report["measurements"]]
        if mode == "latency":
            # The layers are those of the last number of threads, the totals too.
            row.update({key: report[key] for key in ("load_to_first_ms", "rss_mb", "rss_engine_mb", "weights_mb", "derived_mb",
                                                     "arena_mb", "peak", "line_exchange_ns", "totals")})
            row["kernels"] = kept_kernels(report)
    return row


def joined(rounds):
    """The rows of several rounds as one."""
    return rounds[-1] | {mode: [joined_measurement(same) for same in zip(*(row[mode] for row in rounds))] for mode, _ in MODES}


def run_rounds(network, isa):
    """A row for each program. Who begins changes from round to round, so that what drifts drifts for both. Where a ratio fell by
    more than its spread, up to twice as many rounds follow: the rival's time may have been another one of its own accord. All
    windows count."""
    rounds = {name: [] for name in PROGRAMS}
    for number in range(3 * OPTIONS.rounds if OPTIONS.before else OPTIONS.rounds):
        rows = {name: joined(measured) for name, measured in rounds.items() if measured}
        if number >= OPTIONS.rounds and not any(c["fell"] for c in inference_change.row_changes(rows["before"], rows["after"])):
            break
        for name in sorted(PROGRAMS, reverse=number % 2 == 0):
            rounds[name].append(measure(PROGRAMS[name], network, isa))
    rows = {name: joined(measured) for name, measured in rounds.items()}
    for name, row in rows.items():
        for mode, _ in MODES:
            for m in row[mode]:
                ratio = m["ratio"]
                print(f"{name if OPTIONS.before else '':7}{network:15} {isa:12} {mode:10} {m['threads']} threads: {m['median_ms']:8.3f} ms" +
                      (f", {ratio['median']:.2f} times as fast as {m['fastest_rival']} ({ratio['min']:.2f}-{ratio['max']:.2f})"
                       if ratio else ""), flush=True)
    return rows


def output_of(name, native):
    """The file of a report, or None."""
    slug = parts.cpu_slug(native["cpu"], native["isa"])
    output = OPTIONS.output or (None if OPTIONS.quick else ROOT / f"bench/results/inference-{slug}.json")
    return output.with_name("before-" + output.name) if output and name == "before" else output


def main():
    for program in PROGRAMS.values():
        if not program.exists():
            sys.exit(f"{program} is not there; build first: cmake --preset release && cmake --build --preset release --target octet_cli")
    started = time.time()
    make_graphs(OPTIONS.work / "graphs")
    probe = OPTIONS.work / "probe.json"
    parts.run_octet(PROGRAMS["after"], "bench", OPTIONS.work / "graphs" / f"{OPTIONS.networks[0]}_u8s8.onnx", "--runs", 1, "--json", probe)
    native = json.loads(probe.read_text())
    best = STRENGTH.index(native["isa"])
    isas = OPTIONS.isas or [native["isa"]] + ([] if OPTIONS.quick else [i for i in WEAKER if STRENGTH.index(i) < best])
    load = round(os.getloadavg()[0], 2)
    parts.warn_if_busy(load)
    reports = {name: {"cpu": native["cpu"], "cpus": os.cpu_count(), "best_isa": native["isa"], "date": time.strftime("%Y-%m-%d"),
                      "commit": parts.commit(program.parent), "load_average_before": load, "rounds": OPTIONS.rounds,
                      "windows": OPTIONS.windows, "window_ms": OPTIONS.window_ms, "tactics": OPTIONS.tactics,
                      "networks": {network: {} for network in OPTIONS.networks}} for name, program in PROGRAMS.items()}
    for network in OPTIONS.networks:
        for isa in isas:
            for name, row in run_rounds(network, isa).items():
                reports[name]["networks"][network][isa] = row
    for name, report in reports.items():
        report["minutes"] = round((time.time() - started) / 60, 1)
        if output := output_of(name, native):
            parts.write_json(output, report)
    print("\n" + performance_table.markdown(reports["after"]))
    if OPTIONS.before:
        print(inference_change.markdown(reports["before"], reports["after"]))


if __name__ == "__main__":
    main()
