"""Octet's C interface (include/octet/octet.h) for the programs of bench/. The library is that of OCTET_LIB."""
import ctypes
import os
import sys

import numpy as np

FLOATS = ctypes.POINTER(ctypes.c_float)


class TensorInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("rank", ctypes.c_int32), ("size", ctypes.c_int64), ("data_type", ctypes.c_int32)]


class TensorView(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("rank", ctypes.c_int32), ("size", ctypes.c_int64), ("data_type", ctypes.c_int32)]


TYPES = (np.float32, np.uint8, np.int8, np.int32, np.int64, np.bool_)  # octet_data_type


class ContextOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("isa", ctypes.c_char_p),
                ("cpus", ctypes.POINTER(ctypes.c_int32)), ("cpu_count", ctypes.c_int32), ("pool", ctypes.c_void_p),
                ("pool_user", ctypes.c_void_p), ("pool_concurrent", ctypes.c_int32), ("idle_spin_us", ctypes.c_int64),
                ("profile", ctypes.c_int32)]


class ImageFormat(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("pixel_stride", ctypes.c_int64), ("row_stride", ctypes.c_int64),
                ("image_stride", ctypes.c_int64), ("channel", ctypes.c_int32 * 4), ("scale", ctypes.c_float * 4),
                ("offset", ctypes.c_float * 4)]


class Engine:
    """An engine file and one context. `outputs` are arrays that run() writes, or makes where sizes come up in a run; `names` those of the
    outputs."""

    def __init__(self, path, threads=0):
        self.path, self.engine, self.context, self.kept = path, ctypes.c_void_p(), ctypes.c_void_p(), None
        self.lib = ctypes.CDLL(os.environ["OCTET_LIB"])
        self.lib.octet_last_error.restype = ctypes.c_char_p
        self.lib.octet_context_isa.restype = ctypes.c_char_p
        options = ContextOptions(ctypes.sizeof(ContextOptions), threads, idle_spin_us=-1)
        self.good(self.lib.octet_engine_load(os.fsencode(path), ctypes.byref(self.engine)))
        self.good(self.lib.octet_context_create(self.engine, ctypes.byref(options), ctypes.byref(self.context)))
        self.names, self.outputs = [], []
        self.finds_sizes = bool(self.lib.octet_engine_finds_sizes(self.engine))
        for index in range(self.lib.octet_engine_output_count(self.engine)):
            info = TensorInfo(ctypes.sizeof(TensorInfo))
            self.good(self.lib.octet_engine_output(self.engine, index, ctypes.byref(info)))
            self.names.append(info.name.decode())
            if self.finds_sizes:
                continue
            self.outputs.append(np.empty(info.shape[: info.rank], np.float32))
            self.good(self.lib.octet_context_bind_output(self.context, index, self.outputs[-1].ctypes.data_as(FLOATS)))

    def good(self, status):
        if status:
            sys.exit(f"{self.path}: {self.lib.octet_last_error().decode()}")

    def isa(self):
        return self.lib.octet_context_isa(self.context).decode()

    def bind(self, values):
        """The floats of the only input, read in place by every run."""
        self.kept = values
        self.good(self.lib.octet_context_bind_input(self.context, 0, values.ctypes.data_as(FLOATS)))

    def bind_image(self, pixels, image_format):
        """8-bit pixels [rows, columns, channels]."""
        self.kept = pixels
        self.good(self.lib.octet_context_bind_image(self.context, 0, pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)),
                                                    ctypes.byref(image_format)))

    def run(self):
        self.good(self.lib.octet_context_run(self.context))
        if self.finds_sizes:
            self.outputs = [self.result(index) for index in range(len(self.names))]

    def result(self, index):
        """A copy of an output of the latest run."""
        view = TensorView(ctypes.sizeof(TensorView))
        self.good(self.lib.octet_context_result(self.context, index, ctypes.byref(view)))
        kind = np.dtype(TYPES[view.data_type])
        data = ctypes.string_at(view.data, view.size * kind.itemsize)
        return np.frombuffer(data, kind).reshape(view.shape[: view.rank]).copy()


def normalizing(mean, std):
    """(pixel / 255 - mean) / std"""
    form = ImageFormat(ctypes.sizeof(ImageFormat), channel=(ctypes.c_int32 * 4)(0, 1, 2, 3))
    for channel, (m, s) in enumerate(zip(mean, std)):
        form.scale[channel], form.offset[channel] = 1 / (255 * s), -m / s
    return form
