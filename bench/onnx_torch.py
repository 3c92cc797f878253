"""An ONNX file of a zoo network as a PyTorch module: the layers of PyTorch, with the weights of the file, in its order."""
import onnx
import torch
from onnx import numpy_helper
from torch import nn


def both(values, name):
    """PyTorch pads both ends alike."""
    half = len(values) // 2
    if list(values[:half]) != list(values[half:]):
        raise ValueError(f"{name}: pads {values} are not the same on both sides")
    return tuple(values[:half])


class OnnxModule(nn.Module):
    """Of Conv, BatchNormalization, Relu, Sigmoid, MaxPool and Add, with one input; ValueError for others."""

    def __init__(self, path):
        super().__init__()
        model = onnx.load(path)
        constants = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in model.graph.initializer}
        self.input, self.results = model.graph.input[0].name, [o.name for o in model.graph.output]
        self.layers, self.wiring = nn.ModuleList(), []
        for node in model.graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            self.layers.append(self.layer(node, attributes, constants))
            self.wiring.append(([i for i in node.input if i not in constants], node.output[0]))

    def layer(self, node, attributes, constants):
        if node.op_type == "Conv":
            weight = constants[node.input[1]]
            made = nn.Conv2d(weight.shape[1] * attributes.get("group", 1), weight.shape[0], weight.shape[2:],
                             attributes.get("strides", 1), both(attributes.get("pads", [0] * 4), node.name),
                             attributes.get("dilations", 1), attributes.get("group", 1), bias=len(node.input) > 2)
            made.weight.data = weight
            if len(node.input) > 2:
                made.bias.data = constants[node.input[2]]
            return made
        if node.op_type == "BatchNormalization":
            weight, bias, mean, variance = (constants[i] for i in node.input[1:])
            made = nn.BatchNorm2d(len(weight), attributes.get("epsilon", 1e-5), 1 - attributes.get("momentum", 0.9))
            made.weight.data, made.bias.data, made.running_mean, made.running_var = weight, bias, mean, variance
            return made
        if node.op_type == "MaxPool":
            return nn.MaxPool2d(attributes["kernel_shape"], attributes.get("strides", 1), both(attributes.get("pads", [0] * 4), node.name))
        if node.op_type == "Add":
            return Sum()
        simple = {"Relu": lambda: nn.ReLU(), "Sigmoid": nn.Sigmoid}
        if node.op_type not in simple:
            raise ValueError(f"{node.name}: {node.op_type} is not one of the operators of this module")
        return simple[node.op_type]()

    def forward(self, images):
        values = {self.input: images}
        for layer, (inputs, output) in zip(self.layers, self.wiring):
            values[output] = layer(*(values[i] for i in inputs))
        return [values[name] for name in self.results]


class Sum(nn.Module):
    def forward(self, a, b):
        return a + b
