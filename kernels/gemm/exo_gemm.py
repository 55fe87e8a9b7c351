"""exo_gemm from Python: any array that speaks DLPack, on the GPU it lies on.

    lib = ExoGemm("exo_gemm.so")          # cc -shared of exo_gemm.c
    lib.gemm(a, b, c)                     # c[m, n] = a[m, k] @ b[n, k].T
    lib.choice("bf16", 4096, 4096, 4096)  # the kernels that would run

PyTorch, CuPy and JAX arrays work; nothing but ctypes is imported. Rows may
stand apart, their elements not. `stream` is a CUstream as an integer.
"""
import ctypes

# Element types by DLPack's (code, bits): kDLFloat 2, kDLBfloat 4, fp8 from 1.1.
_TYPES = {(4, 16): "bf16", (2, 16): "f16", (2, 32): "tf32",
          (10, 8): "e4m3", (12, 8): "e5m2"}
_CUDA = 2


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Matrix:
    """Address, shape, row stride and element type of a matrix on a GPU."""

    def __init__(self, array):
        capsule = array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype = ctypes.c_void_p
        get.argtypes = [ctypes.py_object, ctypes.c_char_p]
        t = ctypes.cast(get(capsule, b"dltensor"),
                        ctypes.POINTER(_DLTensor)).contents
        if t.device_type != _CUDA:
            raise ValueError("the array must lie on a CUDA device")
        if t.ndim != 2:
            raise ValueError(f"expected a matrix, found {t.ndim} dimensions")
        self.rows, self.columns = t.shape[0], t.shape[1]
        self.stride = t.strides[0] if t.strides else self.columns
        if t.strides and t.strides[1] != 1 and self.columns > 1:
            raise ValueError("the elements of a row must be adjacent")
        self.address = t.data + t.byte_offset
        self.type = _TYPES.get((t.code, t.bits))


class ExoGemm:
    """The library that `exo-translate tuned.json --to=c` prints, compiled."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._function = self._library.exo_gemm
        self._function.restype = ctypes.c_int
        self._error = self._library.exo_gemm_last_error
        self._error.restype = ctypes.c_char_p
        name = self._library.exo_gemm_type_name
        name.restype = ctypes.c_char_p
        self.types = []
        while name(len(self.types)):
            self.types.append(name(len(self.types)).decode())

    def _type(self, kind):
        if kind not in self.types:
            raise ValueError(f"the library has no kernels of type {kind}, "
                             f"only of {', '.join(self.types)}")
        return ctypes.c_int(self.types.index(kind))

    def _check(self, status):
        if status != 0:
            raise RuntimeError(self._error().decode())

    def run(self, kind, shape, a, lda, b, ldb, c, ldc, stream=0):
        """The C function: addresses and strides as integers."""
        self._check(self._function(
            self._type(kind),
            *(ctypes.c_int64(n) for n in shape),
            ctypes.c_void_p(a), ctypes.c_int64(lda), ctypes.c_void_p(b),
            ctypes.c_int64(ldb), ctypes.c_void_p(c), ctypes.c_int64(ldc),
            ctypes.c_void_p(stream)))

    def gemm(self, a, b, c, kind=None, stream=0):
        """c = a @ b.T; `kind` names the element type where DLPack cannot."""
        a, b, c = Matrix(a), Matrix(b), Matrix(c)
        if (a.columns != b.columns or c.rows != a.rows or
                c.columns != b.rows):
            raise ValueError(
                f"shapes do not fit: {a.rows}x{a.columns}, "
                f"{b.rows}x{b.columns}, {c.rows}x{c.columns}")
        self.run(kind or a.type, (a.rows, b.rows, a.columns), a.address,
                 a.stride, b.address, b.stride, c.address, c.stride, stream)

    def choice(self, kind, m, n, k):
        text = ctypes.create_string_buffer(256)
        self._check(self._library.exo_gemm_choice(
            self._type(kind), ctypes.c_int64(m),
            ctypes.c_int64(n), ctypes.c_int64(k), text,
            ctypes.c_size_t(len(text))))
        return text.value.decode()
