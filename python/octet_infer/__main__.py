"""octet-infer COMMAND ...: the program octet of this package, without LibTorch: quantize, compile, infer, bench, compare ..."""
import os
import sys

from ._library import FOLDER


def main():
    program = FOLDER / "bin" / "octet"
    libraries = os.pathsep.join(filter(None, [str(FOLDER / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
    os.execve(program, ["octet", *sys.argv[1:]], {**os.environ, "LD_LIBRARY_PATH": libraries})


if __name__ == "__main__":
    main()
