"""The C interface (octet/octet.h) by ctypes."""
import ctypes
import functools
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent


class Error(RuntimeError):
    """One sentence that says what is wrong and what to do."""


class _Struct(ctypes.Structure):
    def __init__(self, **members):
        super().__init__(**members)
        self.struct_size = ctypes.sizeof(type(self))


class TensorInfo(_Struct):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("rank", ctypes.c_int32), ("size", ctypes.c_int64), ("type", ctypes.c_int32)]


class ModelInfo(_Struct):
    _fields_ = [("struct_size", ctypes.c_size_t), ("task", ctypes.c_char_p), ("classes", ctypes.POINTER(ctypes.c_char_p)),
                ("class_count", ctypes.c_int32), ("channel_count", ctypes.c_int32), ("mean", ctypes.POINTER(ctypes.c_double)),
                ("std", ctypes.POINTER(ctypes.c_double)), ("color_order", ctypes.c_char_p), ("layout", ctypes.c_char_p),
                ("resize", ctypes.c_char_p), ("interpolation", ctypes.c_char_p), ("shorter_side", ctypes.c_int64),
                ("central_fraction", ctypes.c_double), ("exif_orientation", ctypes.c_int32), ("decoder", ctypes.c_char_p)]


class ContextOptions(_Struct):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("isa", ctypes.c_char_p),
                ("cpus", ctypes.POINTER(ctypes.c_int32)), ("cpu_count", ctypes.c_int32), ("pool", ctypes.c_void_p),
                ("pool_user", ctypes.c_void_p), ("pool_concurrent", ctypes.c_int32), ("idle_spin_us", ctypes.c_int64),
                ("profile", ctypes.c_int32)]

    def __init__(self, **members):
        super().__init__(**{"idle_spin_us": -1, **members})


class ImageFormat(_Struct):
    _fields_ = [("struct_size", ctypes.c_size_t), ("pixel_stride", ctypes.c_int64), ("row_stride", ctypes.c_int64),
                ("image_stride", ctypes.c_int64), ("channel", ctypes.c_int32 * 4), ("scale", ctypes.c_float * 4),
                ("offset", ctypes.c_float * 4)]


_HANDLE = ctypes.c_void_p
_OUT = ctypes.c_void_p  # of a handle, a struct or a number, by reference
_FUNCTIONS = {
    "octet_last_error": (ctypes.c_char_p, []),
    "octet_version": (ctypes.c_char_p, []),
    "octet_engine_load": (ctypes.c_int, [ctypes.c_char_p, _OUT]),
    "octet_engine_from_memory": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, _OUT]),
    "octet_engine_free": (None, [_HANDLE]),
    "octet_engine_input_count": (ctypes.c_int32, [_HANDLE]),
    "octet_engine_output_count": (ctypes.c_int32, [_HANDLE]),
    "octet_engine_profile_count": (ctypes.c_int32, [_HANDLE]),
    "octet_engine_profile_input": (ctypes.c_int, [_HANDLE, ctypes.c_int32, ctypes.c_int32, _OUT]),
    "octet_engine_profile_output": (ctypes.c_int, [_HANDLE, ctypes.c_int32, ctypes.c_int32, _OUT]),
    "octet_engine_find_profile": (ctypes.c_int, [_HANDLE, ctypes.POINTER(ctypes.c_int64), ctypes.c_int32, _OUT]),
    "octet_engine_metadata_count": (ctypes.c_int32, [_HANDLE]),
    "octet_engine_metadata_at": (ctypes.c_int, [_HANDLE, ctypes.c_int32, _OUT, _OUT]),
    "octet_engine_model_info": (ctypes.c_int, [_HANDLE, _OUT]),
    "octet_engine_image_format": (ctypes.c_int, [_HANDLE, ctypes.c_int32, _OUT]),
    "octet_context_create": (ctypes.c_int, [_HANDLE, _OUT, _OUT]),
    "octet_context_free": (None, [_HANDLE]),
    "octet_context_bind_typed_input": (ctypes.c_int, [_HANDLE, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32]),
    "octet_context_bind_typed_output": (ctypes.c_int, [_HANDLE, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32]),
    "octet_context_bind_image": (ctypes.c_int, [_HANDLE, ctypes.c_int32, ctypes.c_void_p, _OUT]),
    "octet_context_run": (ctypes.c_int, [_HANDLE]),
    "octet_context_threads": (ctypes.c_int32, [_HANDLE]),
    "octet_context_isa": (ctypes.c_char_p, [_HANDLE]),
}


@functools.lru_cache(maxsize=None)
def library():
    loaded = ctypes.CDLL(str(FOLDER / "lib" / "liboctet.so"))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def check(status):
    if status != 0:
        raise Error(library().octet_last_error().decode(errors="replace"))
