#!/usr/bin/env python3
"""Whether a change made the engine slower: two builds of octet, in turns.

    bench/before_after.py OLD NEW [--check] [--networks resnet18 resnet20 resnet50 mobilenet_v2] [--pairs 7]

OLD and NEW are programs (build/.../bin/octet). Each network of the zoo is quantized once, by NEW; then `octet bench` of one program
and of the other measure it with one thread and with two, and who begins changes from pair to pair. Prints the least and the median
time of each and NEW's times over OLD's: the median of the pairs and how far they lie apart. With --check, exit 1 where NEW takes more
than 3 % longer and more than the pairs' own spread (half of the range of their middle half) explains. Wants an idle machine: the
load is printed. Random weights, as times do not depend on them.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import busy_machine
import parts

MOST = 1.03


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--networks", nargs="+", default=["resnet18", "resnet20", "resnet50", "mobilenet_v2"], help="of the zoo (octet models)")
    parser.add_argument("--pairs", type=int, default=7, help="runs of each program (default 7)")
    parser.add_argument("--window-ms", type=int, default=500, help="least length of a run for a number of threads (default 500)")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there")
    parser.add_argument("--check", action="store_true", help=f"fail where NEW takes more than {MOST} times as long")
    return parser.parse_args()


def measure(program, model, report, window_ms):
    """Median and least time of one run, by the number of threads."""
    parts.run_octet(program, "bench", model, "--threads", "1,2", "--runs", 5, "--windows", 5, "--window_ms", window_ms // 5, "--json", report,
                    "--quiet")
    return [(one["median_ms"], one["min_ms"]) for one in json.loads(report.read_text())["measurements"]]


def row_of(options, network, model, folder):
    """One row for each number of threads."""
    runs = {"old": [], "new": []}
    for pair in range(options.pairs):
        for which in ("old", "new") if pair % 2 == 0 else ("new", "old"):
            runs[which].append(measure(getattr(options, which), model, folder / "report.json", options.window_ms))
    rows = []
    for index in range(2):
        row = {"network": network, "threads": index + 1}
        for which in runs:
            row[which] = {"median_ms": statistics.median(run[index][0] for run in runs[which]), "min_ms": min(run[index][1] for run in runs[which])}
        ratios = [new[index][0] / old[index][0] for old, new in zip(runs["old"], runs["new"])]
        low, middle, high = statistics.quantiles(ratios, n=4)
        row["ratio"] = {"median": middle, "spread": (high - low) / 2, "of_least": row["new"]["min_ms"] / row["old"]["min_ms"], "pairs": ratios}
        rows.append(row)
    return rows


def main():
    options = arguments()
    load = os.getloadavg()[0]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        options.octet = options.new
        for network, model in zip(options.networks, busy_machine.make_models(options, folder)):
            rows += row_of(options, network, model, folder)
    print(f"{parts.cpu_name()}, {len(os.sched_getaffinity(0))} CPUs, load before the run {load:.1f}, {options.pairs} pairs; milliseconds: "
          "median (least)\n")
    print("| network | threads | old | new | new over old | of the least |\n|---|---|---|---|---|---|")
    for row in rows:
        old, new, ratio = row["old"], row["new"], row["ratio"]
        print(f"| {row['network']} | {row['threads']} | {old['median_ms']:.3f} ({old['min_ms']:.3f}) | {new['median_ms']:.3f} ({new['min_ms']:.3f}) "
              f"| **{ratio['median']:.3f}** +- {ratio['spread']:.3f} | {ratio['of_least']:.3f} |")
    if options.json:
        parts.write_json(options.json, {"cpu": parts.cpu_name(), "commit": parts.commit(), "load_before": load, "rows": rows})
    slow = [f"{row['network']} ({row['threads']})" for row in rows if row["ratio"]["median"] - row["ratio"]["spread"] > MOST]
    if options.check and slow:
        sys.exit(f"NEW takes more than {MOST} times as long: {', '.join(slow)}")


if __name__ == "__main__":
    main()
