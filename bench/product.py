#!/usr/bin/env python3
"""Product against product, from the same FP32 file and pictures; writes bench/results/product-<cpu>.json; see bench/product.sh.

Octet runs what `octet quantize` and `octet compile` make, OpenVINO what NNCF makes, ONNX Runtime what its own quantizer makes.
All speed is measured by `octet bench`, in turns within one run, as in bench/inference.py.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import parts
import product_table

PICTURES, HELD_OUT = 200, 24


def arguments():
    parser = argparse.ArgumentParser(description="Product against product: Octet, OpenVINO with NNCF, ONNX Runtime.")
    parser.add_argument("--networks", nargs="+", choices=product_table.TITLES, default=list(product_table.FIRST))
    parser.add_argument("--newer", dest="networks", action="store_const", const=list(product_table.NEWER),
                        help="those that came later: " + ", ".join(product_table.NEWER) + "; the report is product-newer-<cpu>.json")
    parser.add_argument("--files", nargs="+", type=pathlib.Path, default=[], metavar="FILE.onnx",
                        help="FP32 files instead of the zoo's networks, such as bench/networks.py --keep leaves; they are taken as they are, "
                        "and the report is exported-<cpu>.json")
    parser.add_argument("--pictures", type=int, default=PICTURES, help=f"that calibrate (default {PICTURES})")
    parser.add_argument("--isas", nargs="+", choices=parts.STRENGTH[1:], help="default: the best and avx512_vnni")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--windows", type=int, default=9, help="interleaved turns of each contender (default 9)")
    parser.add_argument("--window-ms", type=int, default=120, help="least length of a turn (default 120)")
    parser.add_argument("--build", type=pathlib.Path, default=parts.ROOT / "build/release", help="build folder with bin/octet")
    parser.add_argument("--work", type=pathlib.Path, default=parts.ROOT / "build/bench/product", help="models, engines, raw reports")
    parser.add_argument("--again", action="store_true", help="make also the rivals' models anew")
    parser.add_argument("--output", type=pathlib.Path, help="default: bench/results/product-<cpu>.json")
    parser.add_argument("--check", action="store_true", help="fail when a ratio of bench/targets.json does not hold")
    return parser.parse_args()


class Bench:
    def __init__(self, options):
        self.options = options
        self.program = options.build / "bin/octet"
        self.python = pathlib.Path(subprocess.run([parts.ROOT / "scripts/peers_venv.sh", "--nncf"], check=True, capture_output=True,
                                                  text=True).stdout.strip()) / "bin/python"
        self.calibration, self.held_out = options.work / "pictures", options.work / "held_out"

    def octet(self, *words):
        return parts.run_octet(self.program, *words)

    def models(self, *words):
        """What bench/product_models.py prints last."""
        done = subprocess.run([self.python, parts.ROOT / "bench/product_models.py", *map(str, words)], capture_output=True, text=True,
                              env={**os.environ, "OCTET_LIB": str(self.options.build / "lib/liboctet.so")})
        if done.returncode != 0:
            sys.exit(f"product_models.py {' '.join(map(str, words))}\n{done.stderr.strip()}")
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""

    def make_pictures(self):
        for folder, count, first in ((self.calibration, self.options.pictures, 0), (self.held_out, HELD_OUT, 1000)):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            subprocess.run([sys.executable, parts.ROOT / "bench/make_images.py", folder, str(count), str(first)], check=True)

    def prepare(self, network, given):
        """The files of all products, by name. The float file and the rivals' are kept from one run to the next."""
        folder = self.options.work / network
        folder.mkdir(exist_ok=True)
        files = {"float": folder / "float.onnx", "octet": folder / "octet.qdq.onnx", "openvino": folder / "nncf.xml",
                 "onnxruntime": folder / "onnxruntime.qdq.onnx"}
        if given is not None:
            files["float"] = given
        elif self.options.again or not files["float"].exists():
            raw = folder / "initial.onnx"
            self.octet("models", network, "-o", raw, "--force", "--quiet")
            self.models("settle", raw, self.calibration, files["float"])
        for rival in ("openvino", "onnxruntime"):
            if self.options.again or not files[rival].exists():
                self.models(rival, files["float"], self.calibration, files[rival])
        self.octet("quantize", "-m", files["float"], "--images", self.calibration, "--mean", "0.485,0.456,0.406", "--std",
                   "0.229,0.224,0.225", "-o", files["octet"], "--force", "--quiet")
        return files

    def run(self, network, given, isas):
        files = self.prepare(network, given)
        found = {"latency": {}}
        for isa in isas:
            engine, report = files["octet"].with_name(f"{isa}.octet"), files["octet"].with_name(f"{isa}.json")
            self.octet("compile", files["octet"], "-o", engine, "--isa", isa, "--tactics", "timing", "--threads", self.options.threads,
                       "--force", "--quiet")
            self.octet("bench", engine, "--isa", isa, "--threads", self.options.threads, "--compare", "openvino,onnxruntime",
                       "--onnx", f"openvino={files['openvino']}", "--onnx", f"onnxruntime={files['onnxruntime']}",
                       "--runs", 3 * self.options.windows, "--windows", self.options.windows, "--window_ms", self.options.window_ms,
                       "--json", report)
            measured = json.loads(report.read_text())
            found["latency"][isa] = parts.kept_measurement(measured["measurements"][0])
            found["latency"][isa]["float_layers"] = [f"{l['name']}: {l['reason']}" for l in measured["layers"]
                                                     if l["precision"] == "fp32" and l["reason"]]
            for contender in found["latency"][isa]["contenders"]:
                ratios = sorted(contender["times_as_long"])
                print(f"{network:15} {isa:12} {contender['name']:28} {contender['median_ms']:8.3f} ms, {ratios[len(ratios) // 2]:.2f} times "
                      f"as long as Octet ({ratios[0]:.2f}-{ratios[-1]:.2f})", flush=True)
        found["accuracy"] = json.loads(self.models("accuracy", files["float"], self.held_out, f"octet={engine}",
                                                   f"openvino={files['openvino']}", f"onnxruntime={files['onnxruntime']}"))
        return found


def main():
    options = arguments()
    bench = Bench(options)
    if not bench.program.exists() or not (options.build / "lib/liboctet.so").exists():  # the library measures accuracy
        sys.exit("build first: cmake --preset release && cmake --build --preset release")
    started = time.time()
    options.work.mkdir(parents=True, exist_ok=True)
    bench.make_pictures()
    probe = options.work / "probe"
    bench.octet("models", "resnet20", "-o", probe.with_suffix(".onnx"), "--force", "--quiet")
    bench.octet("bench", probe.with_suffix(".onnx"), "--runs", 1, "--json", probe.with_suffix(".json"))
    native = json.loads(probe.with_suffix(".json").read_text())
    weaker = ["avx512_vnni"] if parts.STRENGTH.index(native["isa"]) > parts.STRENGTH.index("avx512_vnni") else []
    nncf = subprocess.run([bench.python, "-c", "import importlib.metadata as m; print(m.version('nncf'))"], check=True,
                          capture_output=True, text=True).stdout.strip()
    report = {"cpu": native["cpu"], "cpus": os.cpu_count(), "best_isa": native["isa"], "date": time.strftime("%Y-%m-%d"),
              "commit": parts.commit(), "load_average_before": round(os.getloadavg()[0], 2), "windows": options.windows,
              "window_ms": options.window_ms, "threads": options.threads, "nncf": nncf, "pictures": options.pictures, "held_out": HELD_OUT,
              "networks": {}}
    parts.warn_if_busy(report["load_average_before"])
    chosen = {file.stem: file for file in options.files} or dict.fromkeys(options.networks)
    for network, given in chosen.items():
        report["networks"][network] = bench.run(network, given, options.isas or [native["isa"], *weaker])
    report["minutes"] = round((time.time() - started) / 60, 1)
    newer = set(options.networks) <= set(product_table.NEWER)
    kind = "exported" if options.files else "product-newer" if newer else "product"
    output = options.output or parts.ROOT / "bench/results" / f"{kind}-{parts.cpu_slug(native['cpu'], native['isa'])}.json"
    parts.write_json(output, report)
    print("\n" + product_table.markdown(report))
    if options.check and (failed := product_table.missed(report)):
        sys.exit("required and not reached: " + "; ".join(failed))


if __name__ == "__main__":
    main()
