"""Octet's inference engine for numpy.

    import numpy, octet_infer

    engine = octet_infer.Engine("resnet18.octet")
    context = engine.context(threads=2)
    logits = context.run(image)                 # float32, in the shape of engine.inputs[0]
    logits = context.run_image(pixels)          # uint8 RGB, N x H x W x 3; the file says how they are normalized

`octet-infer quantize` and `octet-infer compile` make engine files from ONNX files; they are the commands of octet.
"""
import ctypes
import pathlib

import numpy

from ._library import Error, check, library
from ._library import ContextOptions as _ContextOptions
from ._library import ImageFormat as _ImageFormat
from ._library import TensorInfo as _TensorInfo

__all__ = ["Context", "Engine", "Error", "Tensor", "version"]

_TYPES = [numpy.dtype(name) for name in ("float32", "uint8", "int8", "int32", "int64", "bool")]  # octet_data_type


def version():
    """That of the engine, as "0.1.0"."""
    return library().octet_version().decode()


class Tensor:
    """Name, shape and dtype of an input or output."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.shape = tuple(info.shape[i] for i in range(info.rank))
        self.dtype = _TYPES[info.type]

    def __repr__(self):
        return f"Tensor({self.name!r}, {self.shape}, {self.dtype})"


class Engine:
    """A compiled network: an engine file (NAME.octet) by its path, or its bytes."""

    def __init__(self, source):
        self._handle = ctypes.c_void_p()
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            check(library().octet_engine_from_memory(data, len(data), None, ctypes.byref(self._handle)))
        else:
            path = str(pathlib.Path(source)).encode()
            check(library().octet_engine_load(path, ctypes.byref(self._handle)))

    def __del__(self):
        if getattr(self, "_handle", None):
            library().octet_engine_free(self._handle)

    @property
    def profiles(self):
        """For how many sizes the file was compiled."""
        return library().octet_engine_profile_count(self._handle)

    def find_profile(self, shape):
        """The number of the profile whose first input has this shape."""
        profile = ctypes.c_int32()
        sides = (ctypes.c_int64 * len(shape))(*shape)
        check(library().octet_engine_find_profile(self._handle, sides, len(shape), ctypes.byref(profile)))
        return profile.value

    def tensors(self, profile=0):
        """(inputs, outputs) of a profile, each a list of Tensor."""
        inputs = library().octet_engine_input_count(self._handle)
        outputs = library().octet_engine_output_count(self._handle)
        return (self._tensors(library().octet_engine_profile_input, profile, inputs),
                self._tensors(library().octet_engine_profile_output, profile, outputs))

    def _tensors(self, read, profile, count):
        out = []
        for index in range(count):
            info = _TensorInfo()
            check(read(self._handle, profile, index, ctypes.byref(info)))
            out.append(Tensor(info))
        return out

    @property
    def inputs(self):
        return self.tensors()[0]

    @property
    def outputs(self):
        return self.tensors()[1]

    @property
    def metadata(self):
        """What the model carries, by key ("octet.classes" ...)."""
        out = {}
        for index in range(library().octet_engine_metadata_count(self._handle)):
            key, value = ctypes.c_char_p(), ctypes.c_char_p()
            check(library().octet_engine_metadata_at(self._handle, index, ctypes.byref(key), ctypes.byref(value)))
            out[key.value.decode()] = value.value.decode(errors="replace")
        return out

    @property
    def classes(self):
        """Names in the order of the scores; empty where the file has none."""
        from ._library import ModelInfo
        info = ModelInfo()
        check(library().octet_engine_model_info(self._handle, ctypes.byref(info)))
        return [info.classes[i].decode(errors="replace") for i in range(info.class_count)]

    def context(self, threads=0, isa=None, profile=0):
        """Memory and threads for one inference at a time."""
        return Context(self, threads, isa, profile)


class Context:
    """Runs one inference at a time; made by Engine.context()."""

    def __init__(self, engine, threads=0, isa=None, profile=0):
        self._handle = ctypes.c_void_p()
        options = _ContextOptions(threads=threads, isa=isa.encode() if isa else None, profile=profile)
        check(library().octet_context_create(engine._handle, ctypes.byref(options), ctypes.byref(self._handle)))
        self.engine = engine
        self.inputs, self.outputs = engine.tensors(profile)

    def __del__(self):
        if getattr(self, "_handle", None):
            library().octet_context_free(self._handle)

    @property
    def threads(self):
        return library().octet_context_threads(self._handle)

    @property
    def isa(self):
        return library().octet_context_isa(self._handle).decode()

    def run(self, *inputs, out=None):
        """One array for each input, of float32, uint8, int8, int32 or int64 and of its shape; returns an array for each
        output, or the array where there is one. `out`: arrays to write to, of these types and of the outputs' shapes."""
        if len(inputs) != len(self.inputs):
            raise Error(f"run was given {len(inputs)} inputs; the engine has {len(self.inputs)}")
        kept = [_dense(value, tensor) for value, tensor in zip(inputs, self.inputs)]
        for index, array in enumerate(kept):
            check(library().octet_context_bind_typed_input(self._handle, index, _address(array), _TYPES.index(array.dtype)))
        return self._run(out)

    def run_image(self, pixels, out=None):
        """uint8 pixels, N x H x W x C (or H x W x C for a batch of one) in the order of red, green and blue, or gray ones, in the
        size of the input."""
        shape = self.inputs[0].shape
        pixels = numpy.ascontiguousarray(pixels)
        if len(shape) != 4:
            raise Error(f"input '{self.inputs[0].name}' is no image of rank 4")
        expected = (shape[0], shape[2], shape[3], shape[1])
        if pixels.dtype != numpy.uint8 or pixels.shape not in (expected, expected[1:] if shape[0] == 1 else expected):
            raise Error(f"the pixels are {pixels.dtype}{list(pixels.shape)}; input '{self.inputs[0].name}' takes uint8{list(expected)}")
        form = _ImageFormat()
        check(library().octet_engine_image_format(self.engine._handle, 0, ctypes.byref(form)))
        check(library().octet_context_bind_image(self._handle, 0, _address(pixels), ctypes.byref(form)))
        return self._run(out)

    def _run(self, out):
        if out is None:
            results = [numpy.empty(tensor.shape, tensor.dtype) for tensor in self.outputs]
        else:
            results = list(out) if isinstance(out, (list, tuple)) else [out]
            if len(results) != len(self.outputs):
                raise Error(f"out has {len(results)} arrays; the engine has {len(self.outputs)} outputs")
            for array, tensor in zip(results, self.outputs):
                if array.dtype not in _TYPES or array.shape != tensor.shape or not array.flags.c_contiguous or not array.flags.writeable:
                    raise Error(f"output '{tensor.name}' takes a dense, writable array of the shape {list(tensor.shape)}")
        for index, array in enumerate(results):
            check(library().octet_context_bind_typed_output(self._handle, index, _address(array), _TYPES.index(array.dtype)))
        check(library().octet_context_run(self._handle))
        return results if len(results) > 1 else results[0]


def _dense(value, tensor):
    array = numpy.ascontiguousarray(value)
    if array.dtype not in _TYPES:
        array = numpy.ascontiguousarray(array, dtype=numpy.float32)
    if array.shape != tensor.shape:
        raise Error(f"input '{tensor.name}' is {list(tensor.shape)}, not {list(array.shape)}")
    return array


def _address(array):
    return array.ctypes.data_as(ctypes.c_void_p)
