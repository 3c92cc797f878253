#!/usr/bin/env python3
"""A rival of the engine as a process that `octet bench --compare` talks to, so that both take turns in one run.

    rival.py onnxruntime|openvino MODEL.onnx THREADS BATCH

Prints one line `ready NAME VERSION` (or `error REASON`), then for each line `run N` on standard input runs the model N
times on a fixed input after a short warm-up and prints the N times in ms as a JSON list. Ends with its input.
"""
import json
import sys
import time


def onnxruntime_runner(path, threads, batch):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning workers of a rival that waits for its turn would take a core from the one that runs.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0]
    shape = [batch] + [d if isinstance(d, int) else 1 for d in first.shape[1:]]
    x = numpy.random.default_rng(1).random(shape, dtype=numpy.float32)
    return onnxruntime.__version__, lambda: session.run(None, {first.name: x})


def openvino_runner(path, threads, batch):
    import numpy
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    shape = [batch] + [d.get_length() if d.is_static else 1 for d in model.inputs[0].partial_shape][1:]
    model.reshape(shape)
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(numpy.random.default_rng(1).random(shape, dtype=numpy.float32)))
    return openvino.__version__.split("-")[0], request.infer


def main():
    peer, path, threads, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    try:
        version, run = {"onnxruntime": onnxruntime_runner, "openvino": openvino_runner}[peer](path, threads, batch)
        for _ in range(3):
            run()
    except Exception as e:
        print("error", str(e).splitlines()[0], flush=True)
        sys.exit(1)
    print("ready", peer, version, flush=True)
    for line in sys.stdin:
        count = int(line.split()[1])
        warm_until = time.perf_counter() + 0.05
        while time.perf_counter() < warm_until:
            run()
        times = []
        for _ in range(count):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
