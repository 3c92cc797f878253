#!/usr/bin/env python3
"""Checks that files which OCTET_UNITY (cmake/OctetBuild.cmake) compiles together can be.

Names in unnamed namespaces of a target's files differ; functions may share a name where their parameters do not. The compiler
says so too, but only of files that happen to be compiled together, which a new file changes. A name that two files share is
often a helper that should be written once.
Exit status 1 with one line for each breach.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ONE_BY_ONE = {"src/base", "src/models", "src/engine/kernels", "tests/fuzz", "tests/kernels"}
# Folders that lie under another one's target.
TARGETS = {"src/app/training", "src/cli/training", "src/engine/kernels", "src/train/options"}

UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)
DECLARED = re.compile(
    r"""^(?:template\ <[^\n]*>\n)?(?:
    (?:struct|class|enum\ class|enum)\ (?P<type>\w+)[^;\n]*\{
    |using\ (?P<alias>\w+)\ =(?P<meaning>[^;]*);
    |(?:const|constexpr|thread_local|static|inline|std::)[^()\n={]*?[ &*](?P<variable>\w+)(?:\[[^\]\n]*\])*(?:\ =\ ?|\{|;)
    |[\w:][\w:<>,&*\ \[\]]*?[ &*](?P<function>\w+)\((?P<parameters>[^{;]*?)\)[^{;\n]*\{
    )""",
    re.M | re.X,
)


def target_of(path):
    folder = path.parent.relative_to(ROOT)
    if folder.parts[:2] == ("tests", "tasks") or folder.parts[:2] == ("src", "tasks"):
        trains = re.fullmatch(r"(loss|training)(_test)?\.cc", path.name)
        return "/".join(folder.parts[:2]) + ("/losses" if trains else "")
    for parent in [folder, *folder.parents]:
        if str(parent) in TARGETS | ONE_BY_ONE:
            return str(parent)
    return "/".join(folder.parts[:2])


def types_of(parameters):
    """The types in a list of parameters, without names, defaults and the namespaces that files leave out."""
    found, depth, text = [], 0, ""
    for c in re.sub(r"\s+", " ", parameters) + ",":
        depth += (c in "<({[") - (c in ">)}]")
        if c != "," or depth:
            text += c
            continue
        text = re.sub(r"\s*=.*", "", text).strip()
        text = re.sub(r"(?<=[ &*>])\w+(\[\w*\])?$", "", text).strip()
        found.append(re.sub(r"\b(std|ir|octet)::", "", text))
        text = ""
    return ", ".join(filter(None, found))


def names_in(text):
    """Name, with types of parameters where it is a function, to what it means where it is an alias."""
    out = {}
    for body in UNNAMED.finditer(text):
        for m in DECLARED.finditer(body.group(1)):
            if m["function"]:
                out[f"{m['function']}({types_of(m['parameters'])})"] = None
            elif m["alias"]:
                out[m["alias"]] = " ".join(m["meaning"].split())
            else:
                out[m["type"] or m["variable"]] = None
    return out


def main():
    targets = collections.defaultdict(lambda: collections.defaultdict(list))
    files = [p for top in ("src", "tests") for p in sorted((ROOT / top).rglob("*.cc"))]
    for path in files:
        target = target_of(path)
        if target in ONE_BY_ONE:
            continue
        for name, meaning in names_in(path.read_text()).items():
            targets[target][name].append((path.relative_to(ROOT), meaning))
    problems = []
    for target in targets.values():
        for name, places in target.items():
            if len(places) > 1 and (places[0][1] is None or any(meaning != places[0][1] for _, meaning in places)):
                problems.append(f"{name} is in the unnamed namespaces of {' and '.join(str(p) for p, _ in places)}: share it, or "
                                "give it another name")
    for problem in problems:
        print(problem)
    if not problems:
        print(f"unity: the names of {len(files)} files go together")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
