#!/usr/bin/env python3
"""Checks that files which OCTET_UNITY (cmake/OctetBuild.cmake) compiles together can be.

Names in unnamed namespaces of a target's files differ; functions may share a name where no call could mean either: where they take
another number of arguments, or a class of their own. The compiler says of equal ones so too, but only of files that happen to be
compiled together, which a new file changes; and where one takes a bool and the other a list, it silently calls the wrong one. A
name that two files share is often a helper that should be written once.
Exit status 1 with one line for each breach.
"""
import collections
import itertools
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


# Types that braces or another such type convert to.
PLAIN = re.compile(r"(const )?(bool|char|float|double|u?int(8|16|32|64)?(_t)?|size_t|string|string_view|path|(vector|span|array)<.*>|const char ?\*)[ &]*")


def types_of(parameters):
    """The types in a list of parameters, without names, defaults and the namespaces that files leave out; and how many have no default."""
    found, depth, text, least = [], 0, "", 0
    for c in re.sub(r"\s+", " ", parameters) + ",":
        depth += (c in "<({[") - (c in ">)}]")
        if c != "," or depth:
            text += c
            continue
        if text.strip():
            least += "=" not in text
            text = re.sub(r"\s*=.*", "", text).strip()
            text = re.sub(r"(?<=[ &*>])\w+(\[\w*\])?$", "", text).strip()
            found.append(re.sub(r"\b(std|ir|octet|fs)::", "", text))
        text = ""
    return found, least


def go_together(a, b):
    """Whether no call could mean both functions, as types_of() gives their parameters."""
    (types, least), (others, least_other) = a, b
    if len(types) < least_other or len(others) < least:
        return True
    return any(t != o and not (PLAIN.fullmatch(t) and PLAIN.fullmatch(o)) for t, o in zip(types, others))


def names_in(text):
    """Pairs of a name and what it means: types_of() a function, what an alias stands for, None otherwise."""
    for body in UNNAMED.finditer(text):
        for m in DECLARED.finditer(body.group(1)):
            if m["function"]:
                yield m["function"], types_of(m["parameters"])
            elif m["alias"]:
                yield m["alias"], " ".join(m["meaning"].split())
            else:
                yield m["type"] or m["variable"], None


def clash(a, b):
    """Whether two meanings of a name exclude each other."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return not go_together(a, b)
    return a is None or a != b


def main():
    targets = collections.defaultdict(lambda: collections.defaultdict(list))
    files = [p for top in ("src", "tests") for p in sorted((ROOT / top).rglob("*.cc"))]
    for path in files:
        target = target_of(path)
        if target in ONE_BY_ONE:
            continue
        for name, meaning in names_in(path.read_text()):
            targets[target][name].append((path.relative_to(ROOT), meaning))
    problems = []
    for target in targets.values():
        for name, places in target.items():
            for (first, meaning), (second, other) in itertools.combinations(places, 2):
                if first != second and clash(meaning, other):
                    problems.append(f"{name} is in the unnamed namespaces of {first} and {second}: share it, or give it another name")
    for problem in problems:
        print(problem)
    if not problems:
        print(f"unity: the names of {len(files)} files go together")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
