#!/usr/bin/env python3
"""Runs the node tests of the onnx package through Octet: onnx_node_tests.py PROGRAM EXCEPTIONS [PATTERN]

Every test whose operators Octet lists (PROGRAM --operators, and those of dynamic quantization, whose refusal is tested)
is compiled and run by PROGRAM (peers_run_graphs), and by the plain evaluator where it has the operators. The engine's
tensors are float32 and parameters are constants, so a test is put into that form first, which changes no number:
- parameters (weights, axes, scales ...) become initializers; only what a network computes stays an input;
- float64 is float32;
- an 8-bit input comes from a QuantizeLinear of the numbers its codes stand for; an 8-bit output goes through the
  DequantizeLinear of its scale, and the codes are compared exactly;
- of an operator that is folded, on constants alone, all inputs are constants, and the network adds its result to zeros;
  operators that are read elsewhere, too, run in both forms;
- operators that may lie in a program behind the plan run there, too ("_behind"), or nowhere else: all their inputs are computed, floats
  by a choice between a number and itself, integers and bools by a Cast, so that the program begins before the operator.
Floats are compared as the package's own runner does it: rtol 1e-3, atol 1e-7.

EXCEPTIONS has a line "name: reason" for every test that does not pass; the name may hold *, and is meant for the form "_behind" alone where
it ends with that. Such a test must be refused
with a sentence, unless the reason starts with "differs:". A failure that is not listed, and a pass that is, fail.
"""
import fnmatch
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

DYNAMIC = {"ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"}
# Inputs that are parameters although they are floats.
PARAMETERS = {
    "Conv": (1, 2), "ConvTranspose": (1, 2), "Gemm": (1, 2), "BatchNormalization": (1, 2, 3, 4), "Clip": (1, 2),
    "PRelu": (1,), "Resize": (1, 2, 3), "Pad": (1, 2, 3), "Dropout": (1, 2), "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2), "QLinearConv": (1, 2, 3, 4, 5, 6, 7, 8), "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "ConvInteger": (1, 2, 3), "MatMulInteger": (1, 2, 3), "Slice": (1, 2, 3, 4), "Split": (1,),
    "LayerNormalization": (1, 2), "InstanceNormalization": (1, 2), "GroupNormalization": (1, 2), "RMSNormalization": (1,),
    "Expand": (1,), "Reshape": (1,), "Tile": (1,), "If": (0,),
    "Upsample": (1,), "Where": (0,),
}
# (scale, zero point) of an input or output of 8-bit codes, as places among the inputs.
INPUT_SCALE = {("DequantizeLinear", 0): (1, 2), ("QLinearConv", 0): (1, 2), ("QLinearMatMul", 0): (1, 2),
               ("QLinearMatMul", 3): (4, 5)}
OUTPUT_SCALE = {"QuantizeLinear": (1, 2), "QLinearConv": (6, 7), "QLinearMatMul": (6, 7)}
CODES = (numpy.uint8, numpy.int8)


def listed_operators(program):
    """{name: "folded" where it is supported on constants alone, "both" where in some forms elsewhere, too, "behind" in programs behind
    the plan alone, else "any"}, and the names of all that programs may hold."""
    lines = subprocess.run([program, "--operators"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {name: how for name, how, _ in rows} | {name: "any" for name in DYNAMIC}, {name for name, _, place in rows if place == "behind"}


def load_tensors(folder, what, infos):
    out = []
    for i, info in enumerate(infos):
        data = (folder / "test_data_set_0" / f"{what}_{i}.pb").read_bytes()
        if not info.type.HasField("tensor_type"):
            raise ValueError("no tensor")
        out.append(numpy_helper.to_array(TensorProto.FromString(data)))
    return out


def folded(model, arrays, expected):
    """The same for an operator of constants: zeros plus its result."""
    graph = model.graph
    initializers = [numpy_helper.from_array(a, i.name) for i, a in zip(graph.input, arrays)]
    behind, inputs, outputs = [], [], []
    for info, array in zip(graph.output, expected):
        name = info.name
        behind.append(helper.make_node("Cast", [name], [name + "_float"], to=TensorProto.FLOAT))
        behind.append(helper.make_node("Add", [name + "_zeros", name + "_float"], [name + "_sum"]))
        inputs.append(helper.make_tensor_value_info(name + "_zeros", TensorProto.FLOAT, array.shape))
        outputs.append(helper.make_tensor_value_info(name + "_sum", TensorProto.FLOAT, array.shape))
    made = helper.make_graph(list(graph.node) + behind, graph.name, inputs, outputs,
                             initializers + list(graph.initializer))
    made = helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version)
    return made, [numpy.zeros(a.shape, numpy.float32) for a in expected], [None] * len(expected)


class NotThere(Exception):
    """The form lacks a type, and so there is no such test."""


BEHIND = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32, "bool": TensorProto.BOOL}


def behind(model, arrays, expected):
    """The same with every input computed where only a program can."""
    graph = model.graph
    nodes, inputs, feeds = [], [], []
    for info, array in zip(graph.input, arrays):
        name = info.name
        if array.dtype == numpy.float64:
            array = array.astype(numpy.float32)
        if array.dtype.name not in BEHIND:
            raise NotThere
        if array.size == 0:  # no input of an engine: a constant
            graph.initializer.append(numpy_helper.from_array(array, name))
            continue
        shape = array.shape or (1,)
        inputs.append(helper.make_tensor_value_info(name + "_given", TensorProto.FLOAT, shape))
        feeds.append(array.reshape(shape))
        made = name if array.shape else name + "_list"
        if array.dtype == numpy.float32:
            nodes.append(helper.make_node("Equal", [name + "_given", name + "_given"], [name + "_same"]))
            nodes.append(helper.make_node("Where", [name + "_same", name + "_given", name + "_given"], [made]))
        else:
            nodes.append(helper.make_node("Cast", [name + "_given"], [made], to=BEHIND[array.dtype.name]))
        if not array.shape:
            graph.initializer.append(numpy_helper.from_array(numpy.zeros(0, numpy.int64), name + "_scalar"))
            nodes.append(helper.make_node("Reshape", [made, name + "_scalar"], [name]))
    for info, array in zip(graph.output, expected):
        if array.dtype == numpy.float64:
            info.type.tensor_type.elem_type = TensorProto.FLOAT
        elif array.dtype.name not in BEHIND:
            raise NotThere
    for node in graph.node:
        for a in node.attribute:
            if a.name == "to" and a.i == TensorProto.DOUBLE:
                a.i = TensorProto.FLOAT
    made = helper.make_graph(nodes + list(graph.node), graph.name, inputs, graph.output, graph.initializer)
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version), feeds, [None] * len(expected)


def rewritten(model, arrays, expected):
    """The test as a model of float inputs and outputs; the arrays to feed, and what codes each output stands for."""
    graph, node = model.graph, model.graph.node[0]
    by_name = {i.name: a for i, a in zip(graph.input, arrays)}
    parameters = PARAMETERS.get(node.op_type)
    feeds, inputs, nodes, initializers, scales = [], [], [], [], []

    def pair(op, places, like, name):
        """Names of scale and zero point of a tensor of codes; a unit scale where the operator has none."""
        names = [node.input[p] for p in places if p < len(node.input) and node.input[p]] if places else []
        if not names:
            initializers.append(numpy_helper.from_array(numpy.float32(1), name + "_unit"))
            initializers.append(numpy_helper.from_array(like.dtype.type(0), name + "_zero"))
            return [name + "_unit", name + "_zero"], numpy.float32(1), like.dtype.type(0)
        zero = by_name[names[1]] if len(names) > 1 else like.dtype.type(0)
        return names, by_name[names[0]], zero

    def along_axis(values, like):
        if numpy.size(values) == 1:
            return numpy.reshape(values, ())
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        shape = [1] * like.ndim
        shape[axis] = -1
        return numpy.reshape(values, shape)

    for info in graph.input:
        array = by_name[info.name]
        if array.dtype == numpy.float64:
            array = array.astype(numpy.float32)
            info.type.tensor_type.elem_type = TensorProto.FLOAT
        place = next((list(n.input).index(info.name) for n in graph.node if info.name in n.input), 0)
        fixed = place in parameters if parameters is not None else place > 0 and array.dtype.kind in "iub"
        if fixed:
            initializers.append(numpy_helper.from_array(array, info.name))
            continue
        if array.dtype in CODES and node.op_type != "Cast":
            names, scale, zero = pair(node.op_type, INPUT_SCALE.get((node.op_type, place)), array, info.name)
            feeds.append(((array.astype(numpy.float32) - along_axis(zero, array).astype(numpy.float32))
                          * along_axis(scale, array)).astype(numpy.float32))
            inputs.append(helper.make_tensor_value_info(info.name + "_real", TensorProto.FLOAT, array.shape))
            q = helper.make_node("QuantizeLinear", [info.name + "_real"] + names, [info.name])
            q.attribute.extend(a for a in node.attribute if a.name == "axis" and node.op_type == "DequantizeLinear")
            nodes.append(q)
            continue
        feeds.append(array)
        inputs.append(info)
    outputs, behind = [], []
    for info, array in zip(graph.output, expected):
        if array.dtype == numpy.float64:
            info.type.tensor_type.elem_type = TensorProto.FLOAT
        if array.dtype not in CODES or node.op_type == "Cast":
            outputs.append(info)
            scales.append(None)
            continue
        names, scale, zero = pair(node.op_type, OUTPUT_SCALE.get(node.op_type), array, info.name)
        dq = helper.make_node("DequantizeLinear", [info.name] + names, [info.name + "_real"])
        dq.attribute.extend(a for a in node.attribute if a.name == "axis" and node.op_type == "QuantizeLinear")
        behind.append(dq)
        outputs.append(helper.make_tensor_value_info(info.name + "_real", TensorProto.FLOAT, array.shape))
        scales.append((along_axis(scale, array), along_axis(zero, array)))
    made = helper.make_graph(nodes + list(graph.node) + behind, graph.name, inputs, outputs,
                             initializers + list(graph.initializer))
    made = helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version)
    made.functions.extend(model.functions)
    return made, feeds, scales


def problem_of(work, expected, scales):
    """Why the outputs are not the expected ones, or nothing."""
    error = work / "error.txt"
    if error.exists():
        if error.read_text().startswith("INTERNAL"):
            return error.read_text()
        return "refused: " + error.read_text().strip().split("model.onnx: ")[-1]
    for i, (want, scale) in enumerate(zip(expected, scales)):
        file = work / f"output_{i}.f32"
        if not file.exists():
            return "differs: no output"
        got = numpy.fromfile(file, numpy.float32)
        if got.size != want.size:
            return f"differs: output {i} has {got.size} elements, expected {want.size}"
        got = got.reshape(want.shape)
        if scale:
            codes = numpy.rint(got / scale[0]).astype(numpy.int64) + scale[1].astype(numpy.int64)
            if not numpy.array_equal(codes, want.astype(numpy.int64)):
                return f"differs: codes of output {i}: {int((codes != want).sum())} of {want.size}"
        elif want.dtype.kind in "iub":
            if not numpy.array_equal(got, want.astype(numpy.float32)):
                return f"differs: output {i}"
        elif not numpy.allclose(got, want, rtol=1e-3, atol=1e-7, equal_nan=True):
            return f"differs: output {i} by {float(numpy.nanmax(numpy.abs(got - want))):.3g}"
        file = work / f"evaluated_{i}.f32"
        if file.exists() and not scale:
            plain = numpy.fromfile(file, numpy.float32).reshape(want.shape)
            if not numpy.allclose(plain, want, rtol=1e-3, atol=1e-7, equal_nan=True):
                return f"differs: output {i} of the plain evaluator by {float(numpy.nanmax(numpy.abs(plain - want))):.3g}"
    return None


def read_exceptions(path):
    out = []
    for line in pathlib.Path(path).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(": ", 1)
            out.append((name, reason))
    return out


def main():
    program, exceptions = sys.argv[1], read_exceptions(sys.argv[2])
    pattern = sys.argv[3] if len(sys.argv) > 3 else "*"
    ops, in_programs = listed_operators(program)
    tests = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
    cases, problems = {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sorted(tests.iterdir()):
            if not fnmatch.fnmatch(folder.name, pattern):
                continue
            model = onnx.load(folder / "model.onnx")
            nodes = model.graph.node
            if any(n.domain or n.op_type not in ops for n in nodes):
                continue
            kinds = {ops[n.op_type] for n in nodes}
            forms = {}
            if "behind" not in kinds:
                forms[folder.name] = folded if "folded" in kinds or "both" in kinds and len(nodes) > 1 else rewritten
            if all(n.op_type in in_programs for n in nodes):
                forms[folder.name + "_behind"] = behind
            if kinds == {"both"} and len(nodes) == 1:
                forms[folder.name + "_on_constants"] = folded
            for name, form in forms.items():
                work = pathlib.Path(scratch) / name
                work.mkdir()
                try:
                    model = onnx.load(folder / "model.onnx")
                    arrays = load_tensors(folder, "input", model.graph.input)
                    expected = load_tensors(folder, "output", model.graph.output)
                    model, feeds, scales = form(model, arrays, expected)
                except NotThere:
                    continue
                except Exception as e:
                    problems[name] = f"refused: cannot be put into the engine's form ({e})"
                    continue
                onnx.save(model, work / "model.onnx")
                for i, array in enumerate(feeds):
                    array.astype(numpy.float32).tofile(work / f"input_{i}.f32")
                cases[name] = (work, expected, scales)
        done = subprocess.run([program] + [str(c[0]) for c in cases.values()], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{program} died with {done.returncode} on {done.stdout.split()[-1]}")
        for name, case in cases.items():
            problems[name] = problem_of(*case)

    failed, used, counts = False, set(), {"passed": 0, "listed": 0}
    for name, problem in sorted(problems.items()):
        behind_too = name.endswith("_behind")
        listed = next(((p, reason) for p, reason in exceptions
                       if fnmatch.fnmatchcase(name, p) and p.endswith("_behind") == behind_too), None)
        if listed:
            used.add(listed[0])
        if problem is None and not listed:
            counts["passed"] += 1
            print(f"{name}: pass")
        elif problem is None:
            failed = True
            print(f"{name}: UNEXPECTED PASS, listed with: {listed[1]}")
        elif listed and not problem.startswith("INTERNAL") and problem.startswith("differs") == listed[1].startswith("differs:"):
            counts["listed"] += 1
            print(f"{name}: listed: {listed[1]}")
        else:
            failed = True
            print(f"{name}: FAILED: {problem}")
    for name, _ in exceptions:
        if pattern == "*" and name not in used:
            failed = True
            print(f"{name}: listed, but there is no such test")
    print(f"{counts['passed']} passed, {counts['listed']} listed, {len(problems)} in all")
    sys.exit(failed)


if __name__ == "__main__":
    main()
