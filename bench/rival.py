#!/usr/bin/env python3
"""A rival of the engine as a process that `octet bench --compare` talks to, so that both take turns in one run, and that
`octet evaluate --runtime` gives images to.

    rival.py onnxruntime|openvino MODEL.onnx THREADS BATCH latency|throughput|outputs

Prints one line of JSON, {"version": ..., "detail": ...} or {"error": ...}. outputs: each line of standard input is the
shape of the model's only input, numbers with spaces between, and that many float32 follow; a line of JSON is printed, the
shapes of the outputs in the order of the model, and their float32 follow. Else: for each line `RUNS MILLISECONDS` on
standard input, it runs the model on a fixed input, after a short warm-up, at least that often and that long, and prints
the milliseconds per inference as a JSON list: of every run (latency: one inference at a time on all threads), or one
number (throughput: one inference on each thread). Ends with its input.

Each rival gets its best configuration. OpenVINO: the hint of the mode, one stream (latency) or one for each thread, no
more threads than Octet has, its own pinning, one infer request with its input tensor bound once, and the faster of f32
and bf16 for what the graph leaves in float, found by timing both. ONNX Runtime: its default level of optimization (all),
one session with as many threads as Octet has, or (throughput) one thread for each caller. Nobody spins while waiting for a turn.
"""
import collections
import json
import os
import sys
import tempfile
import threading
import time

WARM_UP = 0.05  # seconds


def timed_runs(run, runs, seconds):
    """Milliseconds of each run."""
    times = []
    begin = time.perf_counter()
    start = begin
    while len(times) < runs or start - begin < seconds:
        run()
        end = time.perf_counter()
        times.append((end - start) * 1e3)
        start = end
    return times


def warm_up(run):
    until = time.perf_counter() + WARM_UP
    while time.perf_counter() < until:
        run()


def latency_turn(run):
    def turn(runs, seconds):
        warm_up(run)
        return timed_runs(run, runs, seconds)

    return turn


# --- ONNX Runtime -----------------------------------------------------------------------------------------------------
def onnxruntime_int8_detail(path):
    """How many of the convolutions and products ONNX Runtime really runs in INT8: it falls back silently."""
    import onnx
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = os.path.join(folder, "optimized.onnx")
        options.log_severity_level = 4
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        counts = collections.Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)
    int8 = sum(counts[op] for op in ("QLinearConv", "QLinearMatMul", "QGemm", "MatMulIntegerToFloat", "ConvInteger"))
    floats = sum(counts[op] for op in ("Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul"))
    return f"{int8} of {int8 + floats} convolutions and products in INT8"


def onnxruntime_turn(path, threads, batch, mode):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads if mode == "latency" else 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Workers spin within a run, where it makes ONNX Runtime faster, and stop at its end: a rival that waits for its turn
    # must not take a core from the one that runs.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0]
    shape = [batch] + [d if isinstance(d, int) else 1 for d in first.shape[1:]]
    x = numpy.random.default_rng(1).random(shape, dtype=numpy.float32)

    def run():
        session.run(None, {first.name: x})

    def throughput(runs, seconds):
        ends, counts = [], []

        def work():
            warm_up(run)
            begin = time.perf_counter()
            counts.append(len(timed_runs(run, -(-runs // threads), seconds)))
            ends.append((begin, time.perf_counter()))

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        return [1 / sum(n / (end - begin) / 1e3 for n, (begin, end) in zip(counts, ends))]

    for _ in range(3):
        run()
    try:
        detail = onnxruntime_int8_detail(path)
    except Exception:
        detail = ""
    return onnxruntime.__version__, detail, latency_turn(run) if mode == "latency" else throughput


# --- OpenVINO ---------------------------------------------------------------------------------------------------------
def openvino_int8_detail(compiled):
    int8 = total = 0
    for op in compiled.get_runtime_model().get_ops():
        info = op.get_rt_info()
        if str(info["layerType"].astype(str)) in ("Convolution", "FullyConnected", "MatMul"):
            total += 1
            int8 += str(info["runtimePrecision"].astype(str)) in ("u8", "i8")
    return f"{int8} of {total} convolutions and products in INT8"


def openvino_settings(threads, mode, precision):
    return {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1 if mode == "latency" else threads, "PERFORMANCE_HINT": mode.upper(),
            "INFERENCE_PRECISION_HINT": precision}


def openvino_turn(path, threads, batch, mode):
    import numpy
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    shape = [batch] + [d.get_length() if d.is_static else 1 for d in model.inputs[0].partial_shape][1:]
    model.reshape(shape)
    x = numpy.random.default_rng(1).random(shape, dtype=numpy.float32)

    def compile_model(precision):
        return core.compile_model(model, "CPU", openvino_settings(threads, mode, precision))

    def latency_run(compiled):
        request = compiled.create_infer_request()
        request.set_input_tensor(openvino.Tensor(x))
        return request.infer

    def throughput_turn(compiled):
        queue = openvino.AsyncInferQueue(compiled, compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        for request in queue:
            request.set_input_tensor(openvino.Tensor(x))

        def turn(runs, seconds):
            warm_up(queue.start_async)
            queue.wait_all()
            count, begin = 0, time.perf_counter()
            while count < runs or time.perf_counter() - begin < seconds:
                queue.start_async()
                count += 1
            queue.wait_all()
            return [(time.perf_counter() - begin) * 1e3 / count]

        return turn

    candidates = []
    for precision in ("f32", "bf16"):
        try:
            compiled = compile_model(precision)
        except Exception:
            if precision == "f32":
                raise
            continue
        turn = latency_turn(latency_run(compiled)) if mode == "latency" else throughput_turn(compiled)
        candidates.append({"precision": precision, "compiled": compiled, "turn": turn, "best": float("inf")})
    for _ in range(3):
        for c in candidates:
            c["best"] = min(c["best"], *c["turn"](1, 0.05))
    best = min(candidates, key=lambda c: c["best"])
    try:
        detail = openvino_int8_detail(best["compiled"]) + ", rest " + best["precision"]
    except Exception:
        detail = "rest " + best["precision"]
    return openvino.__version__.split("-")[0], detail, best["turn"]


# --- Outputs ----------------------------------------------------------------------------------------------------------
def onnxruntime_run(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return onnxruntime.__version__, lambda x: session.run(None, {name: x})


def openvino_run(path, threads):
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(path, "CPU", settings)

    def run(x):
        results = compiled([x])
        return [results[output] for output in compiled.outputs]

    return openvino.__version__.split("-")[0], run


def serve_outputs(run):
    import numpy

    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while line := stdin.readline():
        shape = [int(d) for d in line.split()]
        x = numpy.frombuffer(stdin.read(4 * int(numpy.prod(shape))), dtype=numpy.float32).reshape(shape)
        try:
            results = [numpy.ascontiguousarray(r, dtype=numpy.float32) for r in run(x)]
        except Exception as e:
            stdout.write((json.dumps({"error": (str(e).splitlines() or [type(e).__name__])[0]}) + "\n").encode())
            stdout.flush()
            continue
        stdout.write((json.dumps([r.shape for r in results]) + "\n").encode())
        for r in results:
            stdout.write(r.tobytes())
        stdout.flush()


def main():
    peer, path, threads, batch, mode = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    try:
        if mode == "outputs":
            version, run = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}[peer](path, threads)
            print(json.dumps({"version": version, "detail": ""}), flush=True)
            return serve_outputs(run)
        start = {"onnxruntime": onnxruntime_turn, "openvino": openvino_turn}[peer]
        version, detail, turn = start(path, threads, batch, mode)
    except Exception as e:
        print(json.dumps({"error": (str(e).splitlines() or [type(e).__name__])[0]}), flush=True)
        sys.exit(1)
    print(json.dumps({"version": version, "detail": detail}), flush=True)
    for line in sys.stdin:
        runs, milliseconds = line.split()
        print(json.dumps(turn(int(runs), float(milliseconds) / 1e3)), flush=True)


if __name__ == "__main__":
    main()
