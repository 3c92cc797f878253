#!/usr/bin/env python3
"""What bench/detector_speed.py needs of the rivals' Python to make a detector whose speed means something.

    detector_models.py frames FOLDER COUNT WIDTH HEIGHT     made-up frames, PPM
    detector_models.py construct IN.onnx FRAMES OUT.onnx    batch norms with the statistics of the frames; coverage and boxes in the
                                                            ranges of a trained network: CELLS cells of each class of a frame reach
                                                            the threshold of 0.05, with boxes of about 80 pixels
"""
import pathlib
import sys

import numpy as np

import product_models

CELLS, THRESHOLD, STEEPNESS = 20, 0.05, 4.0
BOX_MEAN, BOX_DEVIATION = 40 / 35, 0.2  # distances from a cell to the borders of its box, as the network codes them


def make_frames(folder, count, width, height):
    random = np.random.default_rng(11)
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    y, x = (np.linspace(0, 6.999, n) for n in (height, width))
    for number in range(count):
        coarse = random.uniform(0, 255, (8, 8, 3))
        rows = coarse[y.astype(int)] * (1 - y % 1)[:, None, None] + coarse[y.astype(int) + 1] * (y % 1)[:, None, None]
        frame = rows[:, x.astype(int)] * (1 - x % 1)[None, :, None] + rows[:, x.astype(int) + 1] * (x % 1)[None, :, None]
        for _ in range(25):
            top, left = random.integers(0, height - 20), random.integers(0, width - 20)
            h, w = random.integers(20, 160, 2)
            frame[top : top + h, left : left + w] = random.uniform(0, 255, 3) + random.normal(0, 12, frame[top : top + h, left : left + w].shape)
        data = np.clip(frame, 0, 255).astype(np.uint8)
        (pathlib.Path(folder) / f"{number:04}.ppm").write_bytes(b"P6 %d %d 255\n" % (width, height) + data.tobytes())


def construct(source, folder, out):
    import onnx
    import onnxruntime
    from onnx import numpy_helper

    product_models.settle(source, folder, out)
    model = onnx.load(out)
    initial = {i.name: i for i in model.graph.initializer}
    sigmoid = next(n for n in model.graph.node if n.op_type == "Sigmoid")
    heads = [next(n for n in model.graph.node if n.output[0] == name)
             for name in (sigmoid.input[0], next(o.name for o in model.graph.output if o.name != sigmoid.output[0]))]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.append(onnx.helper.make_tensor_value_info(heads[0].output[0], onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    said = [np.stack(values).astype(np.float64)
            for values in zip(*(session.run([h.output[0] for h in heads], {name: image}) for image in product_models.pictures(folder, 8)))]
    for head, values in zip(heads, said):
        channels = values.reshape(len(values), values.shape[2], -1).transpose(1, 0, 2).reshape(values.shape[2], -1)
        deviation = channels.std(1) + 1e-9
        if head is heads[0]:
            cells = values.shape[3] * values.shape[4]
            # The logit of the threshold lies where CELLS cells of a frame are above.
            at, factor = np.quantile(channels, 1 - CELLS / cells, axis=1), STEEPNESS / deviation
            shift = np.log(THRESHOLD / (1 - THRESHOLD)) - at * factor
        else:
            factor = BOX_DEVIATION / deviation
            shift = BOX_MEAN - channels.mean(1) * factor
        weight, bias = (numpy_helper.to_array(initial[n]).astype(np.float64) for n in head.input[1:3])
        for tensor, changed in ((head.input[1], weight * factor[:, None, None, None]), (head.input[2], bias * factor + shift)):
            initial[tensor].CopyFrom(numpy_helper.from_array(changed.astype(np.float32), tensor))
    onnx.save(model, out)


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "frames":
        make_frames(arguments[0], *map(int, arguments[1:]))
    else:
        construct(*arguments)


if __name__ == "__main__":
    main()
