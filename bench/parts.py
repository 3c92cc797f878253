"""What the programs of bench/ share: where things are, the name of the CPU, running `octet`, what is kept of its reports."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
STRENGTH = ("scalar", "generic", "avx2", "avx_vnni", "avx512_vnni", "amx_int8")  # instruction sets, ascending


def run_octet(program, *words):
    """What it prints; ends this program with its message where it fails."""
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, "OCTET_RIVAL_SCRIPT": str(ROOT / "bench/rival.py")})
    if done.returncode != 0:
        sys.exit(f"octet {' '.join(map(str, words))}\n{done.stderr.strip()}")
    return done.stdout


def training_speed(done):
    """Images a second of the last epoch of an `octet train` that has ended; ends this program where it failed."""
    found = re.findall(r"([\d.]+) (k )?images/s  loss", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"octet train: {done.stderr.strip()}")
    return float(found[-1][0]) * (1000 if found[-1][1] else 1)


def commit(folder=ROOT):
    """Of the working tree that `folder` is in."""
    done = subprocess.run(["git", "-C", folder, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def warn_if_busy(load):
    if load > 0.5:
        print(f"warning: the machine is busy (load {load}); these numbers mean little", file=sys.stderr)


def cpu_name():
    """As /proc/cpuinfo has it."""
    found = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1].strip() if found else "unknown CPU"


def cpu_slug(cpu, isa=""):
    """For file names: 'intel-xeon-amxint8'."""
    words = re.sub(r"\((r|tm)\)|\bcpu\b|\bprocessor\b|@.*", " ", cpu.lower())
    return "-".join(re.findall(r"[a-z0-9]+", words) + ([isa.replace("_", "")] if isa else []))


def rounded(value):
    return round(value, 4)


def kept_measurement(measurement):
    """What is worth keeping of one number of threads."""
    contenders = []
    for result in measurement["results"]:
        ratio = result["times_as_long"]
        contenders.append({"name": result["name"], "graph": pathlib.Path(result["file"]).stem, "how": result["detail"],
                           "min_ms": rounded(result["min_ms"]), "median_ms": rounded(result["median_ms"]),
                           "times_as_long": [rounded(r) for r in ratio["per_window"]]})
    ratio = measurement["ratio"]
    return {"threads": measurement["threads"], "min_ms": rounded(measurement["min_ms"]),
            "median_ms": rounded(measurement["median_ms"]), "fastest_rival": measurement["fastest_rival"],
            "ratio": ratio and {k: rounded(ratio[k]) for k in ("median", "min", "max")}, "contenders": contenders}


def joined_measurement(rounds):
    """kept_measurement() of several rounds as one with all their windows: least of the least times, median of the medians."""
    first = rounds[0]
    if len(rounds) == 1 or not first["ratio"]:
        return first
    contenders = []
    for same in zip(*(m["contenders"] for m in rounds)):
        contenders.append({**same[0], "min_ms": min(c["min_ms"] for c in same),
                           "median_ms": rounded(statistics.median(c["median_ms"] for c in same)),
                           "times_as_long": [ratio for c in same for ratio in c["times_as_long"]]})
    rival = min(contenders[1:], key=lambda c: statistics.median(c["times_as_long"]))
    windows = rival["times_as_long"]
    return {**first, "min_ms": contenders[0]["min_ms"], "median_ms": contenders[0]["median_ms"], "fastest_rival": rival["name"],
            "ratio": {"median": rounded(statistics.median(windows)), "min": min(windows), "max": max(windows)}, "contenders": contenders}


def compact(value, indent=0):
    """JSON with a line for everything that fits into one: a measurement is a few lines, not a hundred."""
    line = json.dumps(value)
    if len(line) + indent <= 400 or not isinstance(value, (dict, list)):
        return line
    pad = " " * (indent + 1)
    items = [f"{json.dumps(k)}: {compact(v, indent + 1)}" for k, v in value.items()] if isinstance(value, dict) else \
        [compact(v, indent + 1) for v in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "\n" + ",\n".join(pad + item for item in items) + "\n" + " " * indent + closing


def write_json(path, report):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(compact(report) + "\n")
    print(f"wrote {path}")
