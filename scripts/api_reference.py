#!/usr/bin/env python3
"""Writes docs/api.md, the reference of the programming interface, from the comments of the public headers.

    api_reference.py            writes it
    api_reference.py --check    exit status 1 where it is not what the headers say

Every declaration of a header stands there as it is in the header, what is private left out, behind the comment above it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/api.md"
HEADERS = (
    ("include/octet/engine.h", "C++: octet/engine.h", "cpp"),
    ("include/octet/compiler.h", "C++: octet/compiler.h", "cpp"),
    ("include/octet/octet.h", "C: octet/octet.h", "c"),
    ("include/octet/octet_compiler.h", "C: octet/octet_compiler.h", "c"),
)
INTRO = """# Programming interface

What the headers of `liboctet-dev` say; `scripts/api_reference.py` writes this page from them. [deployment.md](deployment.md#the-engine-in-your-program)
shows how to install and link, [compatibility.md](compatibility.md) what stays the same between versions.
"""


def code_of(line):
    """The line without comments that end on it, for counting brackets."""
    return re.sub(r"/\*.*?\*/|//.*|/\*.*", "", line)


def blocks_of(lines):
    """(comment, declaration) pairs: lines of each, from what stands at the top level of the header."""
    comment, declaration, depth, in_comment = [], [], 0, False
    for line in lines:
        text = line.rstrip()
        if not declaration:
            if in_comment or text.startswith(("//", "/*")):
                in_comment = text.lstrip().startswith("/*") and "*/" not in text or in_comment and "*/" not in text
                comment.append(text)
                continue
            if not text:
                if comment:
                    yield comment, []
                    comment = []
                continue
        declaration.append(text)
        code = code_of(text)
        depth += code.count("{") + code.count("(") - code.count("}") - code.count(")")
        if text.startswith("#"):
            ended = not text.endswith("\\")
        elif declaration[0].startswith("#"):
            ended = not text.endswith("\\")
        else:
            ended = depth == 0 and code.rstrip().endswith((";", "}"))
        if ended:
            yield comment, declaration
            comment, declaration, depth = [], [], 0


def prose(comment):
    out = []
    for line in comment:
        text = re.sub(r"^(//|/\*+|\s*\*/?) ?", "", line)
        out.append(re.sub(r"\s*\*/$", "", text).rstrip())
    return out


def markdown(lines, language):
    """A comment as Markdown: what is indented is code."""
    out, code = [], False
    for line in lines:
        indented = line.startswith("  ")
        if indented and not code:
            out.append("```" + language)
        if code and not indented and line:
            out.append("```")
        code = indented or code and not line
        out.append(line[2:] if indented else line)
    if code:
        out.append("```")
    text = "\n".join(out)
    return re.sub(r"\n+```\n", "\n```\n", text).strip()


def public(declaration):
    """Without the private part of a class."""
    out, private = [], False
    for line in declaration:
        if re.match(r" (private|protected):", line):
            private = True
        elif re.match(r" public:", line):
            private = False
        if line == "};":
            private = False
        if not private:
            out.append(line)
    while len(out) > 1 and not out[-2]:
        del out[-2]
    return out


def title_of(declaration):
    first = next((line for line in declaration if not line.startswith("#")), "")
    named = re.match(r"(?:typedef )?(struct|class|enum(?: class)?) (\w+)", first)
    if named and ("{" in first or first.endswith("{")):
        return named.group(2)
    return ""


def is_noise(declaration):
    text = "\n".join(declaration)
    if re.fullmatch(r"(struct|class) \w+;", text):  # named ahead of its definition, or of somebody else's
        return True
    return bool(re.match(r"#(pragma|include|ifndef|endif|ifdef|define OCTET_\w+_H$)|namespace|extern \"C\"|}", text)) or not text


def reference(path, title, language):
    lines = (ROOT / path).read_text().splitlines()
    out, pending, first = [f"## {title}"], [], True
    lines = [line for line in lines if not re.match(r"namespace \w+ \{$|\}  // namespace|extern \"C\" \{$", line)]

    def flush():
        if pending:
            out.append("```" + language + "\n" + "\n".join(pending).strip("\n") + "\n```")
            pending.clear()

    for comment, declaration in blocks_of(lines):
        if first and comment:
            out.append(markdown(prose(comment), language))
            first = False
            comment = []
        section = re.match(r"/\* ---- (.*?) ---- \*/", comment[0]) if comment else None
        if section:
            flush()
            out.append(f"### {section.group(1)[0].upper()}{section.group(1)[1:]}")
            comment = comment[1:]
        if is_noise(declaration):
            continue
        named = title_of(declaration)
        if named and language == "cpp":
            flush()
            out.append(f"### {named}")
            if comment:
                out.append(markdown(prose(comment), language))
            pending.extend(public(declaration))
            flush()
        else:
            if comment and pending:
                pending.append("")
            pending.extend(comment + public(declaration))
    flush()
    return "\n\n".join(part for part in out if part)


def page():
    return "\n\n".join([INTRO.strip()] + [reference(*header) for header in HEADERS]) + "\n"


def main():
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
        return
    if not PAGE.exists() or PAGE.read_text() != page():
        sys.exit("docs/api.md is not what the headers say; run scripts/api_reference.py")
    print("docs/api.md says what the headers say")


if __name__ == "__main__":
    main()
