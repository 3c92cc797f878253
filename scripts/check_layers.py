#!/usr/bin/env python3
"""Checks the rules of docs/architecture.md that a machine can check.

1. A file of a layer includes only headers of the layers that its layer may use (arrows point down).
2. LibTorch headers appear only in train/, and in tasks/ in the files called loss and training.
3. No source file has more than 800 lines.
Exit status 1 with one line for each breach.
"""
import pathlib
import re
import sys

# A layer may use those listed and everything that they may use.
USES = {
    "base": [],
    "schema": ["base"],
    "tao": ["schema"],
    "numerics": ["base"],
    "dense": ["numerics"],
    "ir": ["numerics", "dense"],
    "onnx": ["ir"],
    "models": ["ir", "schema"],
    "quant": ["ir", "schema"],
    "passes": ["ir", "quant"],
    "train/options": ["quant"],
    "vision": ["base"],
    "data": ["vision", "schema"],
    "spec": ["models", "data", "quant", "train/options", "tasks"],
    "metrics": ["vision"],
    "report": ["base"],
    "engine/kernels": ["numerics"],
    "engine": ["engine/kernels", "dense"],
    "lower": ["ir", "passes", "engine"],
    "compiler": ["lower", "onnx"],
    "checkpoint": ["ir", "onnx"],
    "weights": ["checkpoint"],
    "train": ["ir", "onnx", "checkpoint", "passes", "train/options", "data", "engine/kernels"],
    "tasks": ["passes", "metrics", "models", "data", "schema", "tao"],
    "tasks/losses": ["tasks", "train"],  # by the names of files, not by a folder
    "app": ["tasks", "spec", "compiler", "report", "weights"],
    "app/training": ["app", "tasks/losses"],
    "cli": ["app"],
    "cli/training": ["cli", "app/training"],
}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
MAX_LINES = 800


def reachable(layer):
    seen, todo = {layer}, [layer]
    while todo:
        for used in USES[todo.pop()]:
            if used not in seen:
                seen.add(used)
                todo.append(used)
    return seen


def layer_of(path):
    """The longest layer name that is a prefix of the path 'engine/kernels/avx2/x.h'. What a task needs of LibTorch lies beside
    the rest of it, in files called loss and training."""
    if path.startswith("tasks/") and pathlib.PurePosixPath(path).stem in ("loss", "training"):
        return "tasks/losses"
    parts = pathlib.PurePosixPath(path).parts[:-1]
    for n in range(len(parts), 0, -1):
        if "/".join(parts[:n]) in USES:
            return "/".join(parts[:n])
    return None


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    breaches = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cc", ".def", ".cu"):
            continue
        inside = path.relative_to(root / "src").as_posix()
        layer = layer_of(inside)
        if layer is None:
            breaches.append(f"src/{inside}: lies in no layer of docs/architecture.md")
            continue
        allowed = reachable(layer)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            header = found[1]
            if TORCH.match(header) and layer not in ("train", "tasks/losses"):
                breaches.append(f"src/{inside}:{number}: LibTorch header {header} outside train/ and the losses of tasks/")
            used = layer_of(header)
            if used and (root / "src" / header).exists() and used not in allowed:
                breaches.append(f"src/{inside}:{number}: {layer} may not use {used} ({header})")
    for folder in ("src", "include", "tests", "scripts", "bench", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".cu", ".py", ".sh") and path.is_file():
                lines = len(path.read_text(errors="replace").splitlines())
                if lines > MAX_LINES:
                    breaches.append(f"{path.relative_to(root)}: {lines} lines, the limit is {MAX_LINES}")
    print("\n".join(breaches) if breaches else "layers: all includes point down, LibTorch in its place, no file too long")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
