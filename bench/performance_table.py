#!/usr/bin/env python3
"""The tables of docs/studies and docs/performance.md from bench/results/inference-<cpu>.json.

    performance_table.py FILE.json                                 prints them as Markdown
    performance_table.py FILE.json --update docs/studies/CPU.md    replaces what stands between the marker lines of that file
    performance_table.py FILE.json... --summary docs/performance.md
        the same there with one row for each machine and instruction set
    performance_table.py FILE.json --check                         exit status 1 when a required ratio does not hold
"""
import argparse
import json
import pathlib
import statistics
import sys

TABLES = ("<!-- tables: begin (bench/performance_table.py) -->", "<!-- tables: end -->")
SUMMARY = ("<!-- summary: begin (bench/performance_table.py) -->", "<!-- summary: end -->")
TITLES = {"resnet50": "ResNet-50", "resnet18": "ResNet-18", "mobilenetv2": "MobileNetV2", "efficientnetb0": "EfficientNet-B0",
          "detectnet": "DetectNet_v2-R18, 960x544"}
ISA_TITLES = {"amx_int8": "AMX", "avx512_vnni": "AVX-512 VNNI", "avx_vnni": "AVX-VNNI", "avx2": "AVX2"}
TARGETS = json.loads((pathlib.Path(__file__).parent / "targets.json").read_text())["inference"]["times_faster"]  # [required, aim]


def table(titles, rows):
    out = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    out += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(out) + "\n"


def headline(measurements):
    """The measurement that targets are stated for."""
    return next((m for m in measurements if m["threads"] == 2), None)


def verdict(ratio, target):
    if target is None:
        return ""
    return "aim" if ratio >= target[1] else "holds" if ratio >= target[0] else "**missed**"


def digits_of(ratio, target):
    """Two decimals, three where two would show a target as reached that is not."""
    reached = [t for t in target or () if ratio < t <= round(ratio, 2)]
    return f"{ratio:.3f}" if reached else f"{ratio:.2f}"


def ratio_rows(report):
    for network, isas in report["networks"].items():
        for isa, row in isas.items():
            m = headline(row["latency"])
            if not m or not m["ratio"]:
                continue
            target = TARGETS.get(network, {}).get(isa)
            ratio = m["ratio"]
            rival = min(m["contenders"][1:], key=lambda c: statistics.median(c["times_as_long"]))
            short = f"{m['min_ms']:.2f} ms, {digits_of(ratio['median'], target)}" + (f" of {target[0]:.1f}" if target else "")
            missed = target is not None and ratio["median"] < target[0]
            yield {"network": network, "isa": isa, "ratio": ratio["median"], "target": target, "missed": missed,
                   "short": f"**{short}**" if missed else short, "cells": [
                TITLES.get(network, network), ISA_TITLES.get(isa, isa), f"{m['min_ms']:.3f} ({m['median_ms']:.3f})",
                f"{rival['min_ms']:.3f} ({rival['median_ms']:.3f})", rival["name"] + ", " + rival["graph"].rsplit("_", 1)[-1],
                f"**{digits_of(ratio['median'], target)}** ({ratio['min']:.2f}-{ratio['max']:.2f})",
                f"{target[0]:.1f}" if target else "-", f"{target[1]:.1f}" if target else "-", verdict(ratio["median"], target)]}


def other_modes(report):
    rows = []
    for network, isas in report["networks"].items():
        for isa, row in isas.items():
            cells = [TITLES.get(network, network), ISA_TITLES.get(isa, isa)]
            one = next((m for m in row["latency"] if m["threads"] == 1), None)
            many = next(iter(row.get("throughput", [])), None)
            for m, text in ((one, lambda m: f"{m['min_ms']:.3f}"), (many, lambda m: f"{1e3 / m['median_ms']:.0f}")):
                cells.append(text(m) if m else "-")
                cells.append(f"{m['ratio']['median']:.2f} ({m['ratio']['min']:.2f}-{m['ratio']['max']:.2f})" if m and m["ratio"] else "-")
            rows.append(cells)
    return rows


def costs(report):
    rows = []
    for network, isas in report["networks"].items():
        for isa, row in isas.items():
            compile_ms = row["compile_ms"]
            memory = row["weights_mb"] + row["arena_mb"]
            rows.append([TITLES.get(network, network), ISA_TITLES.get(isa, isa), f"{compile_ms['model'] / 1e3:.2f}",
                         f"{compile_ms['timing'] / 1e3:.1f}" if "timing" in compile_ms else "-", f"{row['load_to_first_ms']:.1f}",
                         f"{row['rss_engine_mb']:.1f}", f"{memory:.1f}", f"{row['rss_engine_mb'] / memory:.2f}"])
    return rows


def kernels(report):
    rows = []
    for network, isas in report["networks"].items():
        for isa, row in isas.items():
            total = sum(k["us"] for k in row["kernels"])
            for k in row["kernels"][:6]:
                rows.append([TITLES.get(network, network), ISA_TITLES.get(isa, isa), k["kernel"], str(k["layers"]),
                             f"{100 * k['us'] / total:.0f}", f"{k['percent_of_peak']:.1f}" if k["gmacs"] else "-"])
    return rows


def totals_note(report):
    isas = next(iter(report["networks"].values()), {})
    words = []
    for isa, row in isas.items():
        peak = row["peak"]
        words.append(f"{ISA_TITLES.get(isa, isa)} {peak['int8_gmac_per_s']:.0f} GMAC/s ({peak['int8_instruction']}, "
                     f"{peak['threads']} thread{'s' if peak['threads'] > 1 else ''})")
    return "Measured peaks: " + "; ".join(words) + "." + exchange_note(report)


def exchange_note(report):
    """Absent from older reports."""
    times = [t for isas in report["networks"].values() for row in isas.values()
             for t in row.get("line_exchange_ns", {}).values() if t > 0]
    if not times:
        return ""
    return (f" Two CPUs passed a cache line to and fro in {min(times):.0f} to {max(times):.0f} ns before and after the "
            f"measurements with two threads, the median in {sorted(times)[len(times) // 2]:.0f} ns.")


def markdown(report):
    note = (f"{report['cpu']}, {report['cpus']} CPUs, {report['date']}, {report['windows']} windows of at least "
            f"{report['window_ms']} ms, tactics by {report['tactics']}, load before the run {report['load_average_before']}"
            + (f", {report['minutes']} minutes" if "minutes" in report else "") + ".")
    parts = [note,
             "Latency with two threads, batch 1, whole model, minimum (median) in ms; ratio: median of the windows (least-most).",
             table(["network", "instruction set", "Octet ms", "faster rival ms", "rival, graph", "times faster", "required", "aim", ""],
                   [row["cells"] for row in ratio_rows(report)]),
             "One thread (minimum in ms), and throughput (inferences a second, one on each of two threads), with the ratio to "
             "the faster rival.",
             table(["network", "instruction set", "1 thread ms", "times faster", "throughput 1/s", "times faster"], other_modes(report)),
             "Compile (whole command, s), engine file to first result (ms), resident memory that it takes (MiB) and its ratio to "
             "weights and arena.",
             table(["network", "instruction set", "compile, model", "compile, timing", "load to first", "resident", "weights + arena",
                    "ratio"], costs(report)),
             "Where the time goes and how near the peak: kernels by their share of the time, each over all its layers. "
             + totals_note(report),
             table(["network", "instruction set", "kernel", "layers", "share %", "% of peak"], kernels(report))]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def summary(reports):
    """What each machine has for the headline measurement, with misses in bold."""
    networks = [n for n in TITLES if any(n in report["networks"] for report in reports)]
    rows = []
    for report in reports:
        shorts = {}  # by instruction set
        for row in ratio_rows(report):
            shorts.setdefault(row["isa"], {})[row["network"]] = row["short"]
        rows += [[report["cpu"], ISA_TITLES.get(isa, isa), report["date"]] + [cells.get(n, "-") for n in networks]
                 for isa, cells in shorts.items()]
    return table(["CPU, two threads", "instruction set", "measured"] + [TITLES[n] for n in networks], rows)


def update(path, text, markers):
    begin, end = markers
    lines = path.read_text()
    if lines.count(begin) != 1 or lines.count(end) != 1 or lines.index(begin) > lines.index(end):
        sys.exit(f"{path}: expected the lines '{begin}' and '{end}', once each")
    before, rest = lines.split(begin)
    path.write_text(before + begin + "\n" + text + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description="The tables of docs/studies and docs/performance.md.")
    parser.add_argument("reports", type=pathlib.Path, nargs="+", metavar="FILE.json")
    parser.add_argument("--update", type=pathlib.Path, metavar="FILE.md", help="replace the tables between its markers")
    parser.add_argument("--summary", type=pathlib.Path, metavar="FILE.md", help="replace the summary between its markers")
    parser.add_argument("--check", action="store_true", help="exit status 1 when a required ratio does not hold")
    options = parser.parse_args()
    reports = [json.loads(path.read_text()) for path in options.reports]
    if options.summary:
        update(options.summary, summary(reports), SUMMARY)
    elif len(reports) > 1:
        parser.error("several reports have a summary only: --summary FILE.md")
    elif options.update:
        update(options.update, markdown(reports[0]), TABLES)
    else:
        print(markdown(reports[0]), end="")
    missed = [r for report in reports for r in ratio_rows(report) if r["missed"]]
    if options.check and missed:
        sys.exit("required but missed: " + ", ".join(f"{r['network']} {r['isa']} {digits_of(r['ratio'], r['target'])} < {r['target'][0]}" for r in missed))


if __name__ == "__main__":
    main()
