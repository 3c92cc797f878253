#!/usr/bin/env python3
"""PyTorch's plain training of the network in an ONNX file, for bench/detector_training.py.

    torch_training.py MODEL.onnx fp32|bf16 THREADS BATCH HEIGHT WIDTH

One step: forward, binary cross-entropy of the first output and mean absolute error of the second against fixed random targets,
backward, Adam, gradients cleared; channels last; bf16: under torch.autocast. Images are made once: no time goes into reading them.
Prints {"version": ...} or {"error": ...}; then, for each line with a number of steps, the milliseconds of each as a JSON list, after
two that are not timed.
"""
import json
import sys
import time


def main():
    path, precision, threads, batch, height, width = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    try:
        import torch
        from onnx_torch import OnnxModule

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        model = OnnxModule(path).train().to(memory_format=torch.channels_last)
        images = torch.rand(batch, 3, height, width).contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            targets = [torch.rand_like(o) for o in model(images)]
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)

        def step():
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
                coverage, boxes = model(images)
            loss = torch.nn.functional.binary_cross_entropy(coverage.float(), targets[0]) + (boxes.float() - targets[1]).abs().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        step()
    except Exception as e:
        print(json.dumps({"error": (str(e).splitlines() or [type(e).__name__])[0]}), flush=True)
        sys.exit(1)
    print(json.dumps({"version": torch.__version__}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line) + 2):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        print(json.dumps(times[2:]), flush=True)


if __name__ == "__main__":
    main()
