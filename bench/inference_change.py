#!/usr/bin/env python3
"""Whether a ratio of the kernel benchmark fell from one program to another: bench/inference.sh --before writes both reports.

    inference_change.py BEFORE.json AFTER.json                                 prints the table as Markdown
    inference_change.py BEFORE.json AFTER.json --update docs/studies/CPU.md    replaces what stands between the marker lines of that file
    inference_change.py BEFORE.json AFTER.json --check                         exit status 1 when a ratio fell by more than its own spread

A ratio is that of the faster rival's time to Octet's, the median of its windows. Its spread is how far the middle four fifths of its
windows lie apart, before or after, whichever is more: single windows in which another guest of the host had the CPUs do not count.
"""
import argparse
import json
import pathlib
import statistics
import sys

import performance_table
from performance_table import ISA_TITLES, TITLES

CHANGE = ("<!-- change: begin (bench/inference_change.py) -->", "<!-- change: end -->")


def windows_of(measurement):
    """How many times as long as Octet the faster rival took, of each window."""
    return min((c["times_as_long"] for c in measurement["contenders"][1:]), key=statistics.median)


def spread_of(windows):
    """How far the middle four fifths lie apart."""
    tenths = statistics.quantiles(windows, n=10, method="inclusive")
    return tenths[-1] - tenths[0]


def row_changes(before, after):
    """A dictionary for every ratio that both rows, each of a network and an instruction set, have."""
    for mode in ("latency", "throughput"):
        for m in after.get(mode, []):
            was = next((old for old in before.get(mode, []) if old["threads"] == m["threads"]), None)
            if was and was["ratio"] and m["ratio"]:
                first, second = windows_of(was), windows_of(m)
                fell = statistics.median(first) - statistics.median(second)
                spread = max(spread_of(first), spread_of(second))
                yield {"mode": mode, "threads": m["threads"], "before": statistics.median(first), "after": statistics.median(second),
                       "windows": min(len(first), len(second)), "spread": spread, "fell": fell > spread,
                       "ms": (was["median_ms"], m["median_ms"])}


def changes(before, after):
    for network, isas in after["networks"].items():
        for isa, row in isas.items():
            for change in row_changes(before["networks"].get(network, {}).get(isa, {}), row):
                yield {"network": network, "isa": isa, **change}


def markdown(before, after):
    rows = []
    for c in changes(before, after):
        how = "throughput" if c["mode"] == "throughput" else f"{c['threads']} thread{'s' if c['threads'] > 1 else ''}"
        rows.append([TITLES.get(c["network"], c["network"]), ISA_TITLES.get(c["isa"], c["isa"]), how, f"{c['ms'][0]:.3f}", f"{c['ms'][1]:.3f}",
                     f"{c['before']:.2f}", f"{c['after']:.2f}", f"{c['after'] - c['before']:+.2f}", f"{c['spread']:.2f}",
                     str(c["windows"]), "**fell**" if c["fell"] else "holds"])
    note = (f"{after['cpu']}, {after['cpus']} CPUs, {after['date']}: {before['commit']} and {after['commit']}, built beside each other and "
            f"measured in turns, {after['rounds']} times {after['windows']} windows of at least {after['window_ms']} ms, more where a ratio seemed "
            f"to have fallen; load before the run {after['load_average_before']}. Median of a run in ms, times faster than the faster rival "
            "before and after, and how far the middle four fifths of all windows lie apart.")
    return note + "\n\n" + performance_table.table(["network", "instruction set", "", "ms before", "ms after", "times faster before", "after",
                                                    "change", "spread", "windows", ""], rows)


def main():
    parser = argparse.ArgumentParser(description="Whether a ratio of the kernel benchmark fell by more than its own spread.")
    parser.add_argument("before", type=pathlib.Path, metavar="BEFORE.json")
    parser.add_argument("after", type=pathlib.Path, metavar="AFTER.json")
    parser.add_argument("--update", type=pathlib.Path, metavar="FILE.md", help="replace the table between its markers")
    parser.add_argument("--check", action="store_true", help="exit status 1 when a ratio fell by more than its own spread")
    options = parser.parse_args()
    before, after = json.loads(options.before.read_text()), json.loads(options.after.read_text())
    if options.update:
        performance_table.update(options.update, markdown(before, after), CHANGE)
    else:
        print(markdown(before, after), end="")
    fell = [c for c in changes(before, after) if c["fell"]]
    if options.check and fell:
        sys.exit("fell by more than its spread: " + ", ".join(
            f"{c['network']} {c['isa']} {c['mode']} {c['threads']} {c['before']:.2f} to {c['after']:.2f}" for c in fell))


if __name__ == "__main__":
    main()
