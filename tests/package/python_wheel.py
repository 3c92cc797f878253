#!/usr/bin/env python3
"""What octet_infer gives, beside the bytes that the C++ interface gives for the same numbers.

    python_wheel.py ENGINE EXPECTED.f32       both of the tests: write_small_engine.cc, write_outputs.cc
"""
import gc
import sys
import unittest

import numpy
import octet_infer

ENGINE, EXPECTED = sys.argv[1:3]


def numbers(count):
    """Those of write_outputs.cc."""
    state, out = 1, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(numpy.float32(numpy.float32(state >> 8) / numpy.float32(4194304) - numpy.float32(2)))
    return numpy.array(out, numpy.float32)


class Wheel(unittest.TestCase):
    def setUp(self):
        self.engine = octet_infer.Engine(ENGINE)
        self.x = numbers(90).reshape(1, 3, 6, 5)

    def test_bits_are_those_of_the_engine(self):
        expected = numpy.fromfile(EXPECTED, numpy.float32)
        for threads, isa in ((2, None), (1, "scalar")):
            y = self.engine.context(threads=threads, isa=isa).run(self.x)
            self.assertEqual(y.shape, (1, 20, 3, 2))
            self.assertEqual(y.tobytes(), expected.tobytes())
        with open(ENGINE, "rb") as file:
            self.assertEqual(octet_infer.Engine(file.read()).context().run(self.x).tobytes(), expected.tobytes())
        out = numpy.zeros((1, 20, 3, 2), numpy.float32)
        self.assertIs(self.engine.context().run(self.x, out=out), out)
        self.assertEqual(out.tobytes(), expected.tobytes())

    def test_it_describes_itself(self):
        (x,), (y,) = self.engine.inputs, self.engine.outputs
        self.assertEqual((x.name, x.shape, x.dtype), ("x", (1, 3, 6, 5), numpy.dtype("float32")))
        self.assertEqual(y.name, "y")
        self.assertEqual(self.engine.profiles, 1)
        self.assertEqual(self.engine.find_profile((1, 3, 6, 5)), 0)
        self.assertEqual(self.engine.classes, ["cat", "dog"])
        self.assertEqual(self.engine.metadata["author"], "somebody")
        context = self.engine.context(threads=2)
        self.assertEqual(context.threads, 2)
        self.assertTrue(context.isa)
        self.assertRegex(octet_infer.version(), r"^\d+\.\d+\.\d+$")

    def test_integers_and_other_layouts(self):
        whole = (self.x * 10).round()
        context = self.engine.context()
        expected = context.run(whole)
        for dtype in ("int8", "int32", "int64"):
            self.assertEqual(context.run(whole.astype(dtype)).tobytes(), expected.tobytes())
        self.assertEqual(context.run(whole.astype("float64")).tobytes(), expected.tobytes())
        self.assertEqual(context.run(numpy.asfortranarray(whole)).tobytes(), expected.tobytes())
        rounded = numpy.zeros(expected.shape, numpy.int32)
        context.run(whole, out=rounded)
        self.assertTrue((rounded == numpy.rint(expected)).all())

    def test_images(self):
        pixels = (numpy.arange(90) * 3 % 256).astype(numpy.uint8).reshape(1, 6, 5, 3)
        # The file: bgr, (x / 255 - mean) / std with mean 0.25, 0.5, 0.75 and std 0.5.
        bgr = pixels[..., ::-1].astype(numpy.float32)
        scale, mean = numpy.float32(1 / (255 * 0.5)), numpy.array([0.25, 0.5, 0.75])
        x = bgr * scale + (-mean / 0.5).astype(numpy.float32)
        context = self.engine.context()
        expected = context.run(numpy.transpose(x, (0, 3, 1, 2)))
        self.assertTrue(numpy.allclose(context.run_image(pixels), expected, atol=1e-5))
        self.assertEqual(context.run_image(pixels[0]).tobytes(), context.run_image(pixels).tobytes())

    def test_mistakes_are_sentences(self):
        context = self.engine.context()
        with self.assertRaisesRegex(octet_infer.Error, "nothing.octet"):
            octet_infer.Engine("nothing.octet")
        with self.assertRaisesRegex(octet_infer.Error, "not an Octet engine file"):
            octet_infer.Engine(b"junk" * 40)
        with self.assertRaisesRegex(octet_infer.Error, r"input 'x' is \[1, 3, 6, 5\], not \[90\]"):
            context.run(self.x.ravel())
        with self.assertRaisesRegex(octet_infer.Error, "given 2 inputs; the engine has 1"):
            context.run(self.x, self.x)
        with self.assertRaisesRegex(octet_infer.Error, "dense, writable array"):
            context.run(self.x, out=numpy.zeros(120, numpy.float32))
        with self.assertRaisesRegex(octet_infer.Error, "takes uint8"):
            context.run_image(numpy.zeros((5, 6, 3), numpy.uint8))
        with self.assertRaisesRegex(octet_infer.Error, "unknown instruction set"):
            self.engine.context(isa="sse9")

    def test_memory_of_the_engine_outlives_its_object(self):
        context = self.engine.context()
        expected = context.run(self.x)
        engine, self.engine = self.engine, None
        context.engine = None
        del engine
        gc.collect()
        self.assertEqual(context.run(self.x).tobytes(), expected.tobytes())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
