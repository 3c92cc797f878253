"""bench/training_under_load.py: what it makes of the speeds of its rounds. Run by bench_test.py."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import training_under_load


class TrainingUnderLoad(unittest.TestCase):
    def test_ratios_are_of_the_same_round(self):
        # A slow second round hits all alike, and no ratio.
        speeds = {(0, "default"): [1000, 500], (0, "one-thread"): [600, 300], (2, "default"): [500, 250], (2, "one-thread"): [400, 200]}
        rows = {(r["busy"], r["variant"]): r for r in training_under_load.rows_of(speeds)}
        self.assertEqual(rows[2, "default"]["of_idle"], 0.5)
        self.assertEqual(rows[2, "default"]["of_one_thread"], 1.25)
        self.assertEqual(rows[0, "one-thread"]["of_default"], 0.6)
        self.assertEqual(rows[2, "one-thread"]["images_per_s"], {"median": 300, "most": 400})

    def test_requirements_are_of_the_default_threads(self):
        def misses(one, two):
            speeds = {(0, "default"): [900], (0, "one-thread"): [600], (1, "default"): [one], (1, "one-thread"): [600],
                      (2, "default"): [two], (2, "one-thread"): [150]}
            return training_under_load.missed(training_under_load.rows_of(speeds), 2)

        self.assertEqual(misses(420, 310), [])
        self.assertIn("beside 1 busy processes 0.60 of one thread's speed", " ".join(misses(360, 310)))
        self.assertIn("beside 2 busy processes 0.30 of the idle speed", " ".join(misses(420, 270)))
        self.assertEqual(len(misses(360, 90)), 3)
