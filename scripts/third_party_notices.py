#!/usr/bin/env python3
"""Writes THIRD_PARTY_NOTICES.md: what Octet's programs and libraries hold of others, with the terms of each.

Libraries that are linked as shared ones come with packages and terms of their own and are only named. What is compiled in is
taken from the copyright files of the Debian packages of scripts/install_packages.sh.
    scripts/third_party_notices.py    run it when such a package is added, and look at the difference
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Package, what it is, where it is compiled in, and the stanzas of its copyright file that are of what is compiled in.
COMPILED_IN = [
    ("libxxhash-dev", "xxHash", "the engine and the programs", ["*"]),
    ("libcli11-dev", "CLI11", "the programs", ["*"]),
    ("nlohmann-json3-dev", "JSON for Modern C++", "the engine and the programs",
     ["*", "include/nlohmann/detail/conversions/to_chars.hpp", "include/nlohmann/detail/output/serializer.hpp"]),
    ("libprotozero-dev", "protozero", "the programs", ["*"]),
    ("libgloo-dev", "Gloo (its headers)", "the training program", ["*"]),
]
SHARED = [
    ("zlib", "zlib license"), ("libpng", "libpng license"), ("libjpeg-turbo", "IJG, BSD-3-Clause and zlib licenses"),
    ("libwebp", "BSD-3-Clause"), ("pugixml", "MIT"), ("yaml-cpp", "MIT"),
    ("HDF5 (loaded when a file of Keras is read)", "BSD-style license of The HDF Group"), ("GNU C and C++ libraries", "LGPL-2.1+; GPL-3 with the runtime exception"),
]  # fmt: skip


def stanzas(package):
    text = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text()
    for block in re.split(r"\n\s*\n(?=[A-Z])", text):
        fields = re.findall(r"^([\w-]+):[ \t]*((?:.*)(?:\n[ \t].*)*)", block, re.M)
        yield {name: value.strip() for name, value in fields}


def plain(text):
    """A license as Debian indents it, without the indentation and with its empty lines."""
    return "\n".join("" if line.strip() == "." else re.sub(r"^ ", "", line).rstrip() for line in text.splitlines()).strip()


def notice(package, wanted):
    blocks = list(stanzas(package))
    licenses = {}
    for block in blocks:
        name, _, body = block.get("License", "").partition("\n")
        if body:
            licenses.setdefault(name.strip(), plain(body))
    out, named = [], []
    for block in blocks:
        if block.get("Files", "").strip() in wanted:
            out.append("Copyright " + " ".join(block["Copyright"].split()))
            named += [n for n in re.split(r" and ", block["License"].partition("\n")[0].strip()) if n not in named]
    for name in named:
        body = licenses.get(name, "")
        out.append(f"\n{name}\n\n{body}" if body and not name.startswith("Apache") else f"\n{name}: the text is that of LICENSE")
    return "\n".join(out)


def main():
    out = ["# Third-party notices", "",
           "Octet is under the Apache License 2.0 (LICENSE). It holds or uses the following, made by scripts/third_party_notices.py.", "",
           "## Compiled in", ""]
    for package, name, where, wanted in COMPILED_IN:
        out += [f"### {name}", f"In {where}; Debian package `{package}`.", "```", notice(package, wanted), "```", ""]
    out += ["### Hershey Fonts (src/data/stroke_font.cc)", "In the programs.", "```",
            "The Hershey Fonts were originally created by Dr. A. V. Hershey while working at the U. S. National Bureau of Standards.",
            "The format of the font data was originally created by James Hurt, Cognition, Inc., 900 Technology Park Drive,",
            "Billerica, MA 01821 (mit-eddie!ci-dandelion!hurt).",
            "The font data may be converted into any other format except that distributed by the U. S. NTIS.", "```", "",
            "### LibTorch and its CUDA run-time libraries", "",
            "The package octet-training holds libtorch_cpu, libc10 and libgomp of PyTorch (BSD-3-Clause, and the licenses of what these "
            "hold) and NVIDIA's libcudart and libcupti (CUDA Toolkit End User License Agreement). Their texts are installed beside this file, in "
            "`licenses`. With CUDA kernels (OCTET_CUDA) NVIDIA's libcudart_static is linked in.", "",
            "## Linked as shared libraries", "", "| library | license |", "|---|---|"]
    out += [f"| {name} | {license} |" for name, license in SHARED]
    (ROOT / "THIRD_PARTY_NOTICES.md").write_text("\n".join(out) + "\n")


main()
