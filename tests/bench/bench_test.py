#!/usr/bin/env python3
"""What `octet bench` writes: the keys of its JSON, its trace, and the rivals that take turns with it.

    bench_test.py BIN_FOLDER report|table|rivals

`rivals` needs the environment of scripts/peers_venv.sh; without it: exit status 77 (skipped).
"""
import csv
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

from inference_change_test import InferenceChange
from training_under_load_test import TrainingUnderLoad

ROOT = pathlib.Path(__file__).resolve().parents[2]
OCTET = pathlib.Path(sys.argv[1]).resolve() / "octet"
os.environ["OCTET_RIVAL_SCRIPT"] = str(ROOT / "bench/rival.py")  # the build folder may lie anywhere


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        subprocess.run([sys.executable, ROOT / "bench/make_qdq_graphs.py", cls.folder, "--networks", "mobilenetv2", "--modes",
                        "u8s8", "s8s8"], check=True, stdout=subprocess.DEVNULL)
        cls.octet("compile", "mobilenetv2_u8s8.onnx", "-o", "net.octet", "--quiet")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def octet(cls, *arguments, **environment):
        return subprocess.run([OCTET, *arguments], cwd=cls.folder, check=True, capture_output=True, text=True,
                              env={**os.environ, **environment})

    def bench(self, *arguments, **environment):
        done = self.octet("bench", *arguments, "--json", "bench.json", **environment)
        report = json.loads((self.folder / "bench.json").read_text())
        return done, report

    def check_ratios(self, measurement):
        """The stated ratios follow from the stated medians of the windows."""
        octet = measurement["results"][0]["window_median_ms"]
        for result in measurement["results"]:
            ratio = result["times_as_long"]
            expected = [r / o for r, o in zip(result["window_median_ms"], octet)]
            self.assertEqual(len(ratio["per_window"]), len(octet))
            for a, b in zip(ratio["per_window"], expected):
                self.assertAlmostEqual(a, b, places=9)
            self.assertAlmostEqual(ratio["median"], statistics.median(expected), places=9)
            self.assertAlmostEqual(ratio["min"], min(expected), places=9)
            self.assertAlmostEqual(ratio["max"], max(expected), places=9)


class Report(Bench):
    def test_the_graphs_are_the_published_ones(self):
        published = dict(reversed(line.split()) for line in (ROOT / "bench/qdq_graphs.sha256").read_text().splitlines())
        for name in ("mobilenetv2_u8s8.onnx", "mobilenetv2_s8s8.onnx"):
            self.assertEqual(hashlib.sha256((self.folder / name).read_bytes()).hexdigest(), published[name])

    def test_json_of_a_latency_run(self):
        done, report = self.bench("net.octet", "--threads", "2", "--runs", "5", "--trace", "trace.json")
        self.assertEqual(report["threads"], 2)
        self.assertEqual(report["mode"], "latency")
        self.assertIn(report["isa"], ("scalar", "generic", "avx2", "avx_vnni", "avx512_vnni", "amx_int8"))
        self.assertGreater(report["min_ms"], 0)
        times = [report[key] for key in ("min_ms", "median_ms", "p90_ms", "p99_ms", "max_ms")]
        self.assertEqual(times, sorted(times))
        self.assertIsNone(report["ratio"])
        self.assertIsNone(report["compile_ms"])
        self.assertGreater(report["load_to_first_ms"], 0)
        self.assertGreater(report["rss_mb"], report["weights_mb"] + report["arena_mb"])
        self.assertEqual([len(r["window_median_ms"]) for r in report["results"]], [5])
        self.check_ratios(report)
        self.check_layers(report)
        self.check_trace(json.loads((self.folder / "trace.json").read_text()), report["layers"], 2)
        self.assertIn("% of peak", done.stdout)
        self.assertGreaterEqual(report["waiting_us"], 0)
        self.assertIn("for threads to meet", done.stdout)
        self.assertEqual(report["too_busy"], "too busy to trust" in done.stderr)
        if report["waited_for_cpu_percent"] is not None:
            self.assertEqual(report["too_busy"], report["waited_for_cpu_percent"] > 5)

    def test_real_images_are_part_of_the_time(self):
        (self.folder / "images").mkdir()
        for i in range(3):  # so large that reading them takes longer than the network, however busy the machine is
            row = bytes((x * (i + 3) // 7 + c * 50) % 256 for x in range(2048) for c in range(3))
            (self.folder / f"images/{i}.ppm").write_bytes(b"P6 2048 1536 255\n" + row * 1536)
        flags = ("net.octet", "--threads", "1", "--runs", "10", "--images", "images", "--mean", "0.5", "--std", "0.25", "--csv", "bench.csv")
        for mode in ("latency", "throughput"):
            done, report = self.bench(*flags, "--mode", mode)
            plain, with_images = report["results"]
            self.assertEqual(with_images["kind"], plain["kind"] + "_images")
            self.assertIn("3 images", with_images["detail"])
            self.assertGreater(with_images["times_as_long"]["median"], 1)  # pictures are decoded and resized
            self.assertEqual(report["median_ms"], plain["median_ms"])
            rows = list(csv.DictReader((self.folder / "bench.csv").open()))
            self.assertEqual([row["kind"] for row in rows], [plain["kind"], with_images["kind"]])
            for row, result in zip(rows, report["results"]):
                self.assertEqual(float(row["median_ms"]), result["median_ms"])
                self.assertEqual(float(row["p99_ms"]) if row["p99_ms"] else None, result["p99_ms"])
                self.assertEqual(row["p99_ms"] == "", mode == "throughput")

    def check_layers(self, report):
        keys = {"name", "op", "precision", "kernel", "in_bands", "us", "gmacs", "gmac_per_s", "percent_of_peak", "bytes", "gb_per_s", "reason"}
        for layer in report["layers"]:
            self.assertEqual(set(layer), keys)
            self.assertGreater(layer["us"], 0)
            self.assertGreater(layer["bytes"], 0)
            if layer["gmacs"]:
                self.assertAlmostEqual(layer["gmac_per_s"], layer["gmacs"] / layer["us"] * 1e6, delta=1e-6 * layer["gmac_per_s"])
                peak = report["peak"]["int8_gmac_per_s" if layer["precision"] == "int8" else "fp32_gmac_per_s"]
                self.assertAlmostEqual(layer["percent_of_peak"], 100 * layer["gmac_per_s"] / peak, delta=1e-6)
        totals = report["totals"]
        self.assertEqual(totals["layers"], len(report["layers"]))
        if totals["layers_without_known_macs"] == 0:  # MobileNetV2 has 0.30 G multiply-accumulates
            self.assertAlmostEqual(totals["gmacs"], 0.3008, delta=1e-3)
        self.assertAlmostEqual(totals["gmac_per_s"], totals["gmacs"] / report["median_ms"] * 1e3, delta=1e-3)

    def check_trace(self, trace, layers, threads):
        """Complete events in microseconds, one row per part, every layer once in each row (a run on a busy machine may have fewer
        parts), in order, without overlap."""
        events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        names = [e for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"]
        self.assertEqual([e["tid"] for e in names], list(range(threads)))
        for thread in range(threads):
            row = [e for e in events if e["tid"] == thread]
            if thread == 0 or len(row) == len(layers):
                self.assertEqual([e["name"] for e in row], [layer["name"] for layer in layers])
            self.assertLessEqual(len(row), len(layers))
            end = 0
            for event in row:
                self.assertGreaterEqual(event["ts"], end - 1e-3)
                self.assertGreaterEqual(event["dur"], 0)
                end = event["ts"] + event["dur"]

    def test_several_thread_counts(self):
        _, report = self.bench("net.octet", "--threads", "1,3", "--runs", "4", "--windows", "2")
        self.assertEqual([m["threads"] for m in report["measurements"]], [1, 3])
        self.assertEqual(report["threads"], 3)
        self.assertEqual(report["min_ms"], report["measurements"][1]["min_ms"])

    def test_throughput(self):
        done, report = self.bench("net.octet", "--threads", "2", "--runs", "2", "--windows", "2", "--mode", "throughput")
        self.assertEqual(report["mode"], "throughput")
        first = report["results"][0]
        self.assertAlmostEqual(first["inferences_per_s"], 1e3 / first["median_ms"], delta=1e-6)
        self.assertEqual(report["peak"]["threads"], 1)
        self.assertIn("one inference on each", done.stdout)

    def test_onnx_files_are_compiled(self):
        _, report = self.bench("mobilenetv2_s8s8.onnx", "--threads", "1", "--runs", "1")
        self.assertGreater(report["compile_ms"], 0)
        self.assertIsNone(report["load_to_first_ms"])

    def test_mistakes(self):
        for arguments, message in ((["bench", "net.octet", "--compare", "openvino"], "--onnx"),
                                   (["bench", "net.octet", "--mode", "fast"], "mode"),
                                   (["bench", "net.octet", "--threads", "-1"], "threads"),
                                   (["bench", "net.octet", "--runs", "0"], "runs")):
            done = subprocess.run([OCTET, *arguments], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)


class Table(unittest.TestCase):
    """bench/performance_table.py on a made-up report."""

    @staticmethod
    def measurement(threads, octet_ms, ratios):
        contenders = [{"name": "Octet INT8", "graph": "resnet18-amx_int8", "how": "", "min_ms": octet_ms, "median_ms": octet_ms,
                       "times_as_long": [1, 1, 1]}]
        for name, graph, times in ratios:
            contenders.append({"name": name, "graph": graph, "how": "", "min_ms": octet_ms * min(times), "median_ms": octet_ms * 2,
                               "times_as_long": times})
        best = min(ratios, key=lambda r: statistics.median(r[2]))
        return {"threads": threads, "min_ms": octet_ms, "median_ms": octet_ms, "fastest_rival": best[0], "contenders": contenders,
                "ratio": {"median": statistics.median(best[2]), "min": min(best[2]), "max": max(best[2])}}

    def report(self, ratio):
        rivals = [("openvino 2026.4.1", "resnet18_u8s8", [9, 8, 7]), ("onnxruntime 1.31.1", "resnet18_s8s8", [ratio, ratio - 0.1, ratio + 0.1])]
        row = {"compile_ms": {"model": 400, "timing": 6000}, "load_to_first_ms": 9, "rss_mb": 80, "rss_engine_mb": 15, "weights_mb": 11,
               "derived_mb": 0, "arena_mb": 2, "latency": [self.measurement(2, 0.7, rivals), self.measurement(1, 1.2, rivals)],
               "throughput": [self.measurement(2, 0.6, rivals)],
               "peak": {"threads": 1, "int8_gmac_per_s": 3600, "int8_instruction": "tdpbusd"}, "totals": {},
               "kernels": [{"kernel": "conv amx_int8", "precision": "int8", "layers": 20, "us": 600, "gmacs": 1.8, "percent_of_peak": 41.0}]}
        return {"cpu": "A CPU", "cpus": 2, "best_isa": "amx_int8", "date": "2026-01-01", "load_average_before": 0.1, "windows": 3,
                "window_ms": 100, "tactics": "timing", "networks": {"resnet18": {"amx_int8": row}}}

    def table(self, report, *arguments, document="docs/studies/amx.md"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "report.json").write_text(json.dumps(report))
            (path / "doc.md").write_text((ROOT / document).read_text())
            done = subprocess.run([sys.executable, ROOT / "bench/performance_table.py", "report.json", *arguments], cwd=path,
                                  capture_output=True, text=True)
            return done, (path / "doc.md").read_text()

    def test_the_faster_rival_decides(self):
        done, _ = self.table(self.report(1.7), "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| ResNet-18 | AMX | 0.700 (0.700) | 1.120 (1.400) | onnxruntime 1.31.1, s8s8 | **1.70** (1.60-1.80) | 1.6 | 2.0 | "
                      "holds |", done.stdout)
        self.assertIn("| ResNet-18 | AMX | 1.200 | 1.70 (1.60-1.80) | 1667 | 1.70 (1.60-1.80) |", done.stdout)

    def test_a_missed_requirement_fails_the_check(self):
        done, _ = self.table(self.report(1.5), "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("resnet18 amx_int8 1.50 < 1.6", done.stderr)
        self.assertIn("**missed**", done.stdout)
        self.assertIn("| aim |", self.table(self.report(2.0))[0].stdout)

    def test_rounding_does_not_reach_a_requirement(self):
        done, _ = self.table(self.report(1.597), "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("resnet18 amx_int8 1.597 < 1.6", done.stderr)
        self.assertIn("**1.597** (1.50-1.70) | 1.6 | 2.0 | **missed** |", done.stdout)

    def test_update_replaces_what_stands_between_the_markers(self):
        before = (ROOT / "docs/studies/amx.md").read_text()
        done, after = self.table(self.report(1.7), "--update", "doc.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("**1.70**", after)
        for text in (before, after):
            self.assertEqual(text.count("<!-- tables: begin"), 1)
        self.assertEqual(before.split("<!-- tables: end -->")[1], after.split("<!-- tables: end -->")[1])

    def test_the_summary_has_a_row_for_each_instruction_set(self):
        before = (ROOT / "docs/performance.md").read_text()
        done, after = self.table(self.report(1.597), "report.json", "--summary", "doc.md", document="docs/performance.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = "| A CPU | AMX | 2026-01-01 | **0.70 ms, 1.597 of 1.6** |"
        self.assertEqual([line for line in after.splitlines() if line.startswith("| A CPU")], [row, row])
        self.assertEqual(before.split("<!-- summary: end -->")[1], after.split("<!-- summary: end -->")[1])

    def test_several_reports_have_no_other_tables(self):
        done, _ = self.table(self.report(1.7), "report.json", "--update", "doc.md")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--summary FILE.md", done.stderr)


class ProductTable(unittest.TestCase):
    """bench/product_table.py on a made-up report."""

    @staticmethod
    def report(ratios):
        contenders = [{"name": "Octet INT8 (avx512_vnni)", "graph": "avx512_vnni", "how": "", "min_ms": 1.0, "median_ms": 1.1,
                       "times_as_long": [1, 1, 1]},
                      {"name": "openvino 2026.4.1", "graph": "nncf", "how": "53 of 53 in INT8", "min_ms": 2.0, "median_ms": 2.2,
                       "times_as_long": ratios}]
        row = {"threads": 2, "contenders": contenders}
        decibels = {"sqnr_db": 30.04, "differences_db": 12.0}
        return {"cpu": "A CPU", "cpus": 2, "best_isa": "amx_int8", "date": "2026-01-01", "commit": "abc", "load_average_before": 0.1,
                "windows": 3, "window_ms": 100, "threads": 2, "nncf": "3.4.0", "pictures": 200, "held_out": 24,
                "networks": {"mobilenet_v2": {"latency": {"avx512_vnni": row, "amx_int8": row},
                                              "accuracy": {p: decibels for p in ("octet", "openvino", "onnxruntime")}}}}

    def table(self, report, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.json"
            path.write_text(json.dumps(report))
            document = path.with_name("doc.md")
            document.write_text((ROOT / "docs/performance.md").read_text())
            done = subprocess.run([sys.executable, ROOT / "bench/product_table.py", path, "--update", document, *arguments],
                                  capture_output=True, text=True)
            return done, document.read_text()

    def test_the_median_of_the_windows_decides(self):
        done, _ = self.table(self.report([9, 2.0, 1.5]), "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| MobileNetV2 | AVX-512 VNNI | 1.000 (1.100) | openvino 2026.4.1 | 2.000 (2.200) | 53 of 53 in INT8 | **2.00** "
                      "(1.50-9.00) | 2.0 | holds |", done.stdout)
        self.assertIn("| MobileNetV2 | AMX | 1.000 (1.100) | openvino 2026.4.1 | 2.000 (2.200) | 53 of 53 in INT8 | **2.00** "
                      "(1.50-9.00) | - |  |", done.stdout)
        self.assertIn("| MobileNetV2 | 30.0 (12.0) | 30.0 (12.0) | 30.0 (12.0) |", done.stdout)

    def test_a_missed_requirement_fails_the_check(self):
        done, _ = self.table(self.report([1.997, 1.9, 3]), "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("mobilenet_v2 avx512_vnni 1.997 < 2.0", done.stderr)
        self.assertIn("**1.997** (1.90-3.00) | 2.0 | **missed** |", done.stdout)

    def test_update_replaces_what_stands_between_its_markers_alone(self):
        before = (ROOT / "docs/performance.md").read_text()
        _, after = self.table(self.report([2, 2, 2]))
        self.assertIn("| MobileNetV2 | AVX-512 VNNI | 1.000", after)
        self.assertEqual(before.split("<!-- product: begin")[0], after.split("<!-- product: begin")[0])
        self.assertEqual(before.split("<!-- product: end -->")[1], after.split("<!-- product: end -->")[1])

    def test_networks_that_came_later_have_a_table_of_their_own(self):
        before = (ROOT / "docs/performance.md").read_text()
        report = self.report([2, 2, 2])
        report["networks"] = {"vit_tiny": report["networks"].pop("mobilenet_v2")}
        _, after = self.table(report)
        begin, end = "<!-- product, newer: begin (bench/product_table.py) -->", "<!-- product, newer: end -->"
        self.assertIn("| ViT-Tiny | AVX-512 VNNI | 1.000", after.split(begin)[1].split(end)[0])
        self.assertEqual((before.split(begin)[0], before.split(end)[1]), (after.split(begin)[0], after.split(end)[1]))


class Rivals(Bench):
    ONNX = ["--onnx", "mobilenetv2_u8s8.onnx", "--onnx", "mobilenetv2_s8s8.onnx"]

    def compare(self, *arguments):
        return self.bench("net.octet", "--compare", "onnxruntime,openvino", *self.ONNX, "--threads", "2", "--runs", "5", *arguments)

    def test_each_rival_runs_each_file(self):
        _, report = self.compare()
        rivals = [(r["kind"], r["file"]) for r in report["results"][1:]]
        self.assertEqual(rivals, [(k, f) for k in ("onnxruntime", "openvino") for f in self.ONNX[1::2]])
        self.check_ratios(report)
        fastest = min(report["results"][1:], key=lambda r: r["times_as_long"]["median"])
        self.assertEqual(report["fastest_rival"], fastest["name"])
        self.assertEqual(report["ratio"], fastest["times_as_long"])
        # A rival that falls back to float would make the comparison worthless.
        for result in report["results"][1:]:
            if result["kind"] == "openvino" or result["file"] == "mobilenetv2_u8s8.onnx":
                self.assertIn("53 of 53", result["detail"])

    def test_a_file_for_one_rival_alone(self):
        files = ["openvino=mobilenetv2_s8s8.onnx", "onnxruntime=mobilenetv2_u8s8.onnx"]
        _, report = self.bench("net.octet", "--compare", "onnxruntime,openvino", "--onnx", files[0], "--onnx", files[1], "--threads", "2",
                               "--runs", "2", "--windows", "1")
        self.assertEqual([(r["kind"], r["file"]) for r in report["results"][1:]],
                         [("onnxruntime", "mobilenetv2_u8s8.onnx"), ("openvino", "mobilenetv2_s8s8.onnx")])
        done = subprocess.run([OCTET, "bench", "net.octet", "--compare", "openvino", "--onnx", files[1]], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--compare openvino: name the ONNX file that it runs with --onnx", done.stderr)

    def test_throughput(self):
        _, report = self.compare("--mode", "throughput", "--windows", "1")
        self.assertEqual(len(report["results"]), 5)
        for result in report["results"]:
            self.assertGreater(result["inferences_per_s"], 0)

    def test_a_capped_run_compares_with_capped_openvino_alone(self):
        done, report = self.compare("--isa", "avx2")
        kinds = {r["kind"] for r in report["results"]}
        native = self.octet("bench", "net.octet", "--runs", "1", "--json", "-").stdout
        if '"isa": "avx2"' in native:
            self.skipTest("AVX2 is the best of this machine")
        self.assertEqual(kinds, {"octet_int8", "openvino"})
        self.assertIn("ONEDNN_MAX_CPU_ISA=AVX2", report["results"][1]["detail"])
        self.assertIn("onnxruntime is left out", done.stderr)

    def test_a_refused_file_is_one_sentence(self):
        (self.folder / "broken.onnx").write_text("nonsense")
        done = subprocess.run([OCTET, "bench", "net.octet", "--compare", "openvino", "--onnx", "broken.onnx"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("broken.onnx: openvino refuses it", done.stderr)


def main():
    part = sys.argv[2]
    if part == "rivals":
        have = subprocess.run([ROOT / "scripts/peers_venv.sh", "--print"], capture_output=True)
        if have.returncode != 0:
            sys.exit(77)
    cases = {"report": [Report], "rivals": [Rivals], "table": [Table, ProductTable, TrainingUnderLoad, InferenceChange]}[part]
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(map(load, cases)))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
