#!/usr/bin/env python3
"""Checks the rules of style that a machine can check.

1. C++ files are as clang-format (.clang-format) leaves them. Skipped with a word where it is not installed.
2. American spelling everywhere but in quotations: quantize, center, color.
3. A counter is incremented in front: ++i.
4. The files that CONTRIBUTING.md names exist.
5. What scripts/install_packages.sh installs is used: a header or a tool of each package is named in the tree.
6. Each reader of foreign bytes has a fuzzer.
7. The tests that docs/tao_quirks.md names exist, and each of its rows names one.
8. A flag that takes one of a few words is made with limit_to (src/cli/flags.h), which says what there is.
9. CHANGELOG.md has a section for the version of CMakeLists.txt, or names it as the next.
10. A file that begins with #! can be run by its name, as the documents have it.
Exit status 1 with one line for each breach.
    scripts/check_style.py --fix    formats and respells in place what it can
"""
import concurrent.futures
import contextlib
import doctest
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = {".cc", ".h", ".def", ".cu", ".txt", ".cmake", ".py", ".sh", ".md", ".yaml", ".json"}

STEMS = (
    "analys binaris canonicalis categoris characteris customis discretis equalis factoris finalis generalis initialis linearis "
    "localis materialis maximis memoris minimis neutralis normalis optimis organis parametris penalis prioritis quantis "
    "randomis rasteris realis recognis regularis serialis specialis stabilis standardis summaris symmetris synchronis tokenis "
    "utilis vectoris visualis"
).split()
WORDS = {
    "artefact": "artifact", "behaviour": "behavior", "cancelled": "canceled", "cancelling": "canceling",
    "catalogue": "catalog", "centre": "center", "centred": "centered", "centring": "centering", "colour": "color",
    "favour": "favor", "grey": "gray", "honour": "honor", "labelled": "labeled", "labelling": "labeling",
    "modelled": "modeled", "modelling": "modeling", "neighbour": "neighbor", "signalled": "signaled",
    "travelled": "traveled", "travelling": "traveling",
}  # fmt: skip
BRITISH_STEM = re.compile(rf"(?i:({'|'.join(STEMS)})(e[dr]?|ers|es|ing|able|ations?))(?![a-z])")
BRITISH_WORD = re.compile(rf"(?i:({'|'.join(sorted(WORDS, key=len, reverse=True))}))")
NOUNS = {"analyses"}  # the plural of analysis

COUNTED = r"([A-Za-z_](?:\w|\.|->|\[\w+\])*)(\+\+|--)"
FOR_COUNTER = re.compile(rf"(\bfor \([^;]*;[^;]*; ?(?:[^;()]*, )?){COUNTED}(?=\)|, )")
STATEMENT = re.compile(rf"^(\s*(?:(?:if|else|while|for)\b(?:.*\))? )?){COUNTED};")

# What in the tree proves that a package is used. None: what every build needs.
PACKAGES = {
    "build-essential": None, "cmake": None, "ninja-build": None, "pkg-config": None, "git": None, "ca-certificates": None,
    "ccache": r"ccache", "mold": r"mold", "python3": None, "python3-pip": r"-m pip", "python3-venv": r"-m venv",
    "libprotozero-dev": r"#include <protozero/", "libcli11-dev": r"#include <CLI/", "libyaml-cpp-dev": r"#include <yaml-cpp/",
    "nlohmann-json3-dev": r"#include <nlohmann/",
    "libturbojpeg0-dev": r"#include <turbojpeg", "libwebp-dev": r"#include <webp/", "libpng-dev": r"#include <png",
    "libopencv-dev": r"#include <opencv2/",
    "libpugixml-dev": r"#include <pugixml", "zlib1g-dev": r"#include <zlib", "libxxhash-dev": r"#include <xxhash",
    "libhdf5-dev": r"#include <hdf5",
    "libgloo-dev": r"#include <gloo/", "libxbyak-dev": r"#include <xbyak/", "libgtest-dev": r"#include <gtest/",
    "libgmock-dev": r"#include <gmock/", "libbenchmark-dev": r"#include <benchmark/", "clang": r"clang\+\+",
    "chromium": r"which\(.chromium", "clang-format": None, "g++-aarch64-linux-gnu": r"aarch64-linux-gnu", "qemu-user": r"qemu-aarch64",
    "googletest": r"/usr/src/googletest", "dataset-fashion-mnist": r"dataset-fashion-mnist|fashion-mnist",
}  # fmt: skip

# Readers of foreign bytes and the fuzzer that drives each.
READERS = {
    "onnx": "onnx_fuzz", "engine files": "engine_fuzz", "programs behind plans": "program_fuzz", "specs": "spec_fuzz", "IDX": "idx_fuzz", "CIFAR": "cifar_fuzz",
    "specifications of TAO": "tao_fuzz",
    "images": "image_folder_fuzz", "BMP, PPM and PGM": "bitmap_fuzz", "ImageNet's records": "image_record_fuzz",
    "annotations and records": "annotation_fuzz", "checkpoints": "checkpoint_fuzz",
    "safetensors": "safetensors_fuzz", "masks": "mask_fuzz", "HDF5 of Keras": "keras_fuzz",
    "networks, to the run": "graph_fuzz", "metadata of models": "model_info_fuzz",
}  # fmt: skip


def american(text):
    def stem(match):
        head, tail = match.group(1), match.group(2)
        if (head + tail).lower() in NOUNS:
            return match.group(0)
        return head[:-1] + ("Z" if head[-1] == "S" else "z") + tail

    def word(match):
        found, wanted = match.group(1), WORDS[match.group(1).lower()]
        return wanted.upper() if found.isupper() else wanted.capitalize() if found[0].isupper() else wanted

    return BRITISH_WORD.sub(word, BRITISH_STEM.sub(stem, text))


def counted_in_front(line):
    """Turns i++ into ++i where nobody reads its value.

    >>> counted_in_front("  for (; i < n; i++, a.b[c]++) if (is(i)) found[i]++;")
    '  for (; i < n; ++i, ++a.b[c]) if (is(i)) ++found[i];'
    >>> counted_in_front("    if (tall == is(t)) ordered[t] = next++;")
    '    if (tall == is(t)) ordered[t] = next++;'
    >>> counted_in_front("for (; i < n; at[i] = next++) use(i++);")
    'for (; i < n; at[i] = next++) use(i++);'
    >>> counted_in_front("for (; i < n; put(x, at++)) use(i++);")
    'for (; i < n; put(x, at++)) use(i++);'
    """
    previous = None
    while line != previous:  # a for may have several counters
        previous = line
        line = FOR_COUNTER.sub(r"\1\3\2", STATEMENT.sub(r"\1\3\2;", line))
    return line


def quirks_without_tests(table, tests):
    """What is wrong with the last column of a table, which names the tests of a row as `Suite.Name`, by lines.

    >>> quirks_without_tests("| quirk | test |\\n|---|---|\\n| a | `A.B`, `A.C` |\\n| b | |", {"A.B"})
    [(3, 'there is no test A.C'), (4, 'names no test')]
    """
    wrong = []
    for number, line in enumerate(table.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or set(cells[0]) <= set("-:") or cells[-1] in ("test", "tests"):
            continue
        named = re.findall(r"`(\w+\.\w+)`", cells[-1])
        wrong += [(number, f"there is no test {name}") for name in named if name not in tests]
        if not named:
            wrong.append((number, "names no test"))
    return wrong


def tracked():
    try:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):  # not a git checkout, as in an unpacked release
        listed = [p.relative_to(ROOT).as_posix() for d in ("src", "include", "tests", "bench", "docs", "scripts", "examples", "cmake") for p in (ROOT / d).rglob("*")]
    return [f for f in listed if f and (ROOT / f).is_file() and not f.startswith(("tests/fuzz/corpus/", "bench/results/"))]


def unformatted(files, fix):
    tool = shutil.which("clang-format")
    if not tool:
        print("check_style.py: clang-format is not installed; formats are not checked (scripts/install_packages.sh)", file=sys.stderr)
        return []

    # Files that were found in order once are not looked at again: what they hold, and who judged it by which rules.
    known = pathlib.Path(os.environ.get("OCTET_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "octet") / "formatted"
    judge = subprocess.run([tool, "--version"], capture_output=True).stdout + (ROOT / ".clang-format").read_bytes()
    digest = lambda name: hashlib.sha256(judge + (ROOT / name).read_bytes()).hexdigest()
    in_order = set(known.read_text().split()) if known.exists() else set()
    files = [name for name in files if digest(name) not in in_order]

    def check(chunk):
        command = [tool, "-i", *chunk] if fix else [tool, "--dry-run", *chunk]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        return {line.split(":")[0] for line in run.stderr.splitlines() if "-Wclang-format-violations" in line}

    chunks = [files[n : n + 32] for n in range(0, len(files), 32)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = sorted(set().union(*pool.map(check, chunks)))
    with contextlib.suppress(OSError):  # without a cache the next run takes longer
        known.parent.mkdir(parents=True, exist_ok=True)
        with known.open("a") as log:
            log.write("".join(digest(name) + "\n" for name in files if name not in bad))
    return bad


def main():
    fix = "--fix" in sys.argv[1:]
    if doctest.testmod().failed:
        return 1
    files = tracked()
    texts = {f: (ROOT / f).read_text(errors="replace") for f in files if pathlib.PurePath(f).suffix in TEXT}
    breaches = []
    this = pathlib.Path(__file__).relative_to(ROOT).as_posix()

    for name, text in texts.items():
        if name == this:
            continue
        respelled = american(text)
        if respelled != text and fix:
            (ROOT / name).write_text(respelled)
        elif respelled != text:
            for number, (old, new) in enumerate(zip(text.splitlines(), respelled.splitlines()), 1):
                for found, wanted in zip(re.findall(r"\w+", old), re.findall(r"\w+", new)):
                    if found != wanted:
                        breaches.append(f"{name}:{number}: '{found}' is spelled {wanted} here (scripts/check_style.py --fix)")
        if name.endswith((".cc", ".h", ".cu")):
            lines = respelled.split("\n")
            counted = [counted_in_front(line) for line in lines]
            if counted != lines and fix:
                (ROOT / name).write_text("\n".join(counted))
            else:
                breaches += [f"{name}:{number}: a counter is incremented in front: ++i (scripts/check_style.py --fix)"
                             for number, (old, new) in enumerate(zip(lines, counted), 1) if old != new]

    sources = [f for f in files if f.endswith((".cc", ".h", ".cu")) and not f.startswith("examples/")]
    breaches += [f"{name}: not as clang-format leaves it (scripts/check_style.py --fix)" for name in unformatted(sources, fix)]

    # Paths with a folder and an ending, and folders; <name> stands for any name.
    for number, line in enumerate(texts["CONTRIBUTING.md"].splitlines(), 1):
        for path in re.findall(r"`([\w./<>*-]+/[\w./<>*-]*)`", line):
            if re.match(r"(src|tests|docs|scripts|bench|examples|cmake)/", path):
                pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
                if not any(True for _ in ROOT.glob(pattern)):
                    breaches.append(f"CONTRIBUTING.md:{number}: there is no {path}")

    listed = " ".join(re.findall(r"packages=\((.*?)\)", texts["scripts/install_packages.sh"], re.S)).split()
    everything = "\n".join(text for name, text in texts.items() if name not in (this, "scripts/install_packages.sh"))
    for package in listed:
        if package not in PACKAGES:
            breaches.append(f"scripts/install_packages.sh: say in {this} how one sees that '{package}' is used")
        elif PACKAGES[package] and not re.search(PACKAGES[package], everything):
            breaches.append(f"scripts/install_packages.sh: nothing uses '{package}'; remove it")

    for reader, fuzzer in READERS.items():
        if f"tests/fuzz/{fuzzer}.cc" not in files:
            breaches.append(f"tests/fuzz: {reader} need a fuzzer, {fuzzer}.cc")

    tests = {f"{suite}.{name}" for file, text in texts.items() if file.startswith("tests/")
             for suite, name in re.findall(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text, re.M)}
    quirks = "docs/tao_quirks.md"
    breaches += [f"{quirks}:{number}: {what}" for number, what in quirks_without_tests(texts[quirks], tests)]

    for name in sources:
        if name.startswith("src/cli/") and re.search(r"CLI::(IsMember|CheckedTransformer|Transformer)\b", texts[name]):
            breaches.append(f"{name}: a flag that takes one of a few words is made with limit_to (src/cli/flags.h)")
        if re.search(r"at::parallel_(for|reduce)\(", texts[name]):
            breaches.append(f"{name}: LibTorch's loop runs on one thread here; use parallel_for (src/train/parallel.h)")

    for name, text in texts.items():
        if text.startswith("#!") and not os.access(ROOT / name, os.X_OK):
            if fix:
                (ROOT / name).chmod(0o755)
            else:
                breaches.append(f"{name}: begins with #!, and cannot be run: chmod +x (scripts/check_style.py --fix)")

    version = re.search(r"project\(octet VERSION ([\d.]+)", texts["CMakeLists.txt"]).group(1)
    if version not in texts["CHANGELOG.md"]:
        breaches.append(f"CHANGELOG.md: says nothing of version {version}")

    print("\n".join(breaches) if breaches else f"style: {len(texts)} files in order")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
