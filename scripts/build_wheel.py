#!/usr/bin/env python3
"""Makes the Python wheel octet-infer of a finished build: the engine for numpy, and the program without LibTorch.

    build_wheel.py BUILD_FOLDER [OUTPUT_FOLDER]     default: BUILD_FOLDER/packages

Of the libraries that the program needs, those go along that not every Linux has; the rest is that of the distribution on which
it was built (glibc as new as there). Installing takes no compiler.
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Every Linux with Python has these.
COMMON = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libgcc_s|libstdc\+\+|libz)\.so")
METADATA = """Metadata-Version: 2.1
Name: octet-infer
Version: {version}
Summary: Octet's INT8 inference engine for numpy, with the commands that make its files
License: see licenses/LICENSE
Requires-Python: >=3.8
Requires-Dist: numpy
Description-Content-Type: text/plain

{description}
"""


def project_version():
    return re.search(r"project\(octet VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.IGNORECASE).group(1)


def needed_libraries(program):
    """Those that are no part of every Linux, by the name under which they are looked for."""
    out = {}
    for line in subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout.splitlines():
        found = re.match(r"\s*(\S+) => (/\S+)", line)
        if found and not COMMON.match(found.group(1)):
            out[found.group(1)] = pathlib.Path(found.group(2))
        if "not found" in line:
            sys.exit(f"{program}: {line.strip()}")
    return out


def license_of(library):
    """The copyright file of the Debian package that a library is of, and the package's name."""
    owner = subprocess.run(["dpkg", "-S", library.resolve()], capture_output=True, text=True).stdout.split(":")[0].strip()
    file = pathlib.Path("/usr/share/doc") / owner / "copyright"
    if not owner or not file.exists():
        sys.exit(f"{library}: the license is not found under /usr/share/doc, and a wheel with the library needs it")
    return owner, file


def stripped(source, target):
    shutil.copyfile(source, target)
    strip = shutil.which("strip")
    if strip:
        subprocess.run([strip, "--strip-unneeded", target], check=True)
    target.chmod(0o755)


def collect(build, folder):
    """The package as it is installed, in `folder`."""
    package = folder / "octet_infer"
    shutil.copytree(ROOT / "python/octet_infer", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "lib").mkdir()
    (package / "bin").mkdir()
    stripped(build / "lib/liboctet.so", package / "lib/liboctet.so")
    stripped(build / "bin/octet", package / "bin/octet")
    libraries = needed_libraries(build / "bin/octet")
    for name, path in libraries.items():
        stripped(path, package / "lib" / name)
    version = project_version()
    info = folder / f"octet_infer-{version}.dist-info"
    (info / "licenses").mkdir(parents=True)
    for name in ("LICENSE", "THIRD_PARTY_NOTICES.md"):
        shutil.copyfile(ROOT / name, info / "licenses" / name)
    for owner, file in sorted(license_of(path) for path in libraries.values()):
        shutil.copyfile(file, info / "licenses" / f"{owner}.copyright")
    description = (package / "__init__.py").read_text().split('"""')[1].strip()
    (info / "METADATA").write_text(METADATA.format(version=version, description=description))
    libc = platform.libc_ver()[1].replace(".", "_")
    tag = f"py3-none-manylinux_{libc}_{platform.machine()}"
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: octet\nRoot-Is-Purelib: false\nTag: {tag}\n")
    (info / "entry_points.txt").write_text("[console_scripts]\noctet-infer = octet_infer.__main__:main\n")
    return info, f"octet_infer-{version}-{tag}.whl"


def write_wheel(folder, info, path):
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for file in files:
            data, name = file.read_bytes(), file.relative_to(folder).as_posix()
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes from the same build
            entry.external_attr = (stat.S_IFREG | (0o755 if os.access(file, os.X_OK) else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        name = (info / "RECORD").relative_to(folder).as_posix()
        wheel.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), "\n".join([*record, f"{name},,"]) + "\n")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    output = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else build / "packages")
    for file in ("bin/octet", "lib/liboctet.so"):
        if not (build / file).exists():
            sys.exit(f"{build / file} is missing; build the targets octet_cli and octet_shared first")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        info, name = collect(build, pathlib.Path(folder))
        write_wheel(pathlib.Path(folder), info, output / name)
    print(output / name)


if __name__ == "__main__":
    main()
