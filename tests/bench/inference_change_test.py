"""bench/inference_change.py and what joins rounds, on made-up windows. Run by bench_test.py."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import parts


def measurement(windows, others=None, ms=1.0):
    """One of two threads in which `rival` took `windows` times as long, and another rival `others`."""
    contenders = [{"name": name, "graph": "resnet18_u8s8", "how": "", "min_ms": ms * times[0], "median_ms": ms * times[0], "times_as_long": times}
                  for name, times in (("Octet", [1] * len(windows)), ("rival", windows), ("slow", others or [9] * len(windows)))]
    return {"threads": 2, "min_ms": ms, "median_ms": ms, "fastest_rival": "rival",
            "ratio": {"median": 2, "min": min(windows), "max": max(windows)}, "contenders": contenders}


def report(windows, **more):
    return {"cpu": "A CPU", "cpus": 2, "date": "2026-01-01", "commit": "abc", "load_average_before": 0.1, "rounds": 2, "windows": 5,
            "window_ms": 100, "networks": {"resnet18": {"avx2": {"latency": [measurement(windows, **more)]}}}}


class InferenceChange(unittest.TestCase):
    # Nine windows within a tenth, and one in which somebody else had the CPUs.
    BEFORE = [1.96, 1.97, 1.98, 2.0, 2.0, 2.0, 2.01, 2.02, 2.03, 1.0]

    def change(self, after, **more):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("before.json", "after.json")]
            for path, content in zip(paths, (report(self.BEFORE), report(after, **more))):
                path.write_text(json.dumps(content))
            return subprocess.run([sys.executable, ROOT / "bench/inference_change.py", *paths, "--check"], capture_output=True, text=True)

    def test_a_fall_beyond_the_spread_fails_the_check(self):
        done = self.change([w - 0.3 for w in self.BEFORE])
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("resnet18 avx2 latency 2 2.00 to 1.70", done.stderr)
        self.assertIn("**fell**", done.stdout)

    def test_a_fall_within_the_spread_and_a_rise_hold(self):
        for by in (-0.05, 0.5):
            done = self.change([w + by for w in self.BEFORE])
            self.assertEqual(done.returncode, 0, done)
            self.assertIn("| holds |", done.stdout)

    def test_the_rival_that_is_faster_now_decides(self):
        done = self.change(self.BEFORE, others=[1.5] * 10)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("2.00 to 1.50", done.stderr)

    def test_rounds_join_to_all_their_windows(self):
        joined = parts.joined_measurement([measurement([2, 3, 4], ms=1.0), measurement([5, 6, 7], [1, 1, 1], ms=3.0)])
        self.assertEqual([c["times_as_long"] for c in joined["contenders"][1:]], [[2, 3, 4, 5, 6, 7], [9, 9, 9, 1, 1, 1]])
        self.assertEqual((joined["min_ms"], joined["median_ms"], joined["fastest_rival"]), (1, 2, "rival"))
        self.assertEqual(joined["ratio"], {"median": 4.5, "min": 2, "max": 7})
