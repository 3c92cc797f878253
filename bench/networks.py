#!/usr/bin/env python3
"""Every network of network_exports.py from every exporter: what Octet makes of it, as a table.

    bench/networks.py PICTURES [--networks NAME ...] [--exporters NAME ...] [--results FILE]

PICTURES is a folder of photographs: some calibrate, some are measured. Writes one line of JSON a network and exporter to the results
(bench/results/networks.jsonl), replacing the lines of those that ran. Needs build/release; makes its Python environment with
scripts/peers_venv.sh --exporters. One file at a time lies in the work folder.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import network_exports
import parts


def read_results(path):
    """{(network, exporter): record}"""
    lines = path.read_text().splitlines() if path.exists() else []
    return {(r["network"], r["exporter"]): r for r in map(json.loads, lines)}


def write_results(path, results):
    order = {name: i for i, name in enumerate(network_exports.NETWORKS)}
    rows = sorted(results.values(), key=lambda r: (order[r["network"]], network_exports.EXPORTERS.index(r["exporter"])))
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def run(words, environment):
    """(standard output, None) or (None, the sentence of the error)"""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"signal {-done.returncode}"]
        errors = [line.strip() for line in lines if re.match(r"[\w.]*(Error|Exception)\b.*: ", line)]
        return None, (errors or lines)[-1]
    return done.stdout, None


def main():
    parser = argparse.ArgumentParser(description="Networks from PyTorch's and Keras' exporters through Octet, as a table.")
    parser.add_argument("pictures", type=pathlib.Path)
    parser.add_argument("--networks", nargs="*", choices=network_exports.NETWORKS, default=list(network_exports.NETWORKS))
    parser.add_argument("--exporters", nargs="*", choices=network_exports.EXPORTERS, default=network_exports.EXPORTERS)
    parser.add_argument("--results", type=pathlib.Path, default=parts.ROOT / "bench/results/networks.jsonl")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the ONNX files, which are taken from there the next time")
    parser.add_argument("--work", type=pathlib.Path, default=parts.ROOT / "build/bench/networks")
    options = parser.parse_args()
    venv = subprocess.run([parts.ROOT / "scripts/peers_venv.sh", "--exporters"], check=True, capture_output=True, text=True).stdout.strip()
    python, scripts = pathlib.Path(venv) / "bin/python", parts.ROOT / "bench"
    environment = {"OCTET": str(options.build / "bin/octet"), "OCTET_LIB": str(options.build / "lib/liboctet.so")}
    for network in options.networks:
        for exporter in (e for e in options.exporters if e in network_exports.exporters_of(network)):
            folder = options.work / f"{network}-{exporter}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            file = folder / "model.onnx"
            begin = time.perf_counter()
            record = {"network": network, "exporter": exporter}
            kept = options.keep / f"{network}-{exporter}.onnx" if options.keep else None
            error = None
            if kept and kept.exists():
                file = kept
            else:
                _, error = run([python, scripts / "network_exports.py", network, exporter, options.pictures, file], environment)
                if kept and error is None:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    file = shutil.move(file, kept)
            record["export"] = {"good": error is None, **({"reason": error} if error else {"mib": round(file.stat().st_size / 2**20, 1)}),
                                "seconds": round(time.perf_counter() - begin, 1)}
            if error is None:
                found, error = run([python, scripts / "network_checks.py", network, file, options.pictures, folder], environment)
                record.update(json.loads(found) if error is None else {"imports": {"good": False, "reason": error}})
            shutil.rmtree(folder)
            results = read_results(options.results)
            results[network, exporter] = record
            write_results(options.results, results)
            failed = [f"{name}: {cell['reason']}" for name, cell in record.items() if isinstance(cell, dict) and not cell["good"]]
            print(network, exporter, f"{time.perf_counter() - begin:.0f} s", *failed, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
