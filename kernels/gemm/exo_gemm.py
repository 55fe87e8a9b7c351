"""exo_gemm from Python: any array that speaks DLPack, on the GPU it lies on.

    lib = ExoGemm("exo_gemm.so")          # cc -shared of exo_gemm.c
    lib.gemm(a, b, c)                     # c[m, n] = a[m, k] @ b[n, k].T
    lib.gemm(a, b, c, alpha=0.5, beta=1.0, bias=v, activation="gelu")
    lib.choice("bf16", 4096, 4096, 4096)  # the kernels that would run
    lib.tune(a, b, c)                     # times kernels; gemm takes the best
    lib.save_tuned("tuned.txt")           # and load_tuned in a later program

PyTorch, CuPy and JAX arrays work; no package is imported. a and b may be
transposed views (either of the two dimensions may be the one whose elements are
adjacent), rows may stand apart, arrays of three dimensions are batches. The
element type of c says what is written. `stream` is a CUstream as an integer.
"""
import ctypes
import os
from typing import NamedTuple

# Element types by DLPack's (code, bits): kDLFloat 2, kDLBfloat 4, fp8 from 1.1.
_TYPES = {(4, 16): "bf16", (2, 16): "f16", (2, 32): "tf32",
          (10, 8): "e4m3", (12, 8): "e5m2"}
_OUTPUTS = {None: 0, "tf32": 1, "f32": 1, "bf16": 2, "f16": 3}
_BITS = {"bf16": 16, "f16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8}
_INTEGERS = (0, 1)  # kDLInt, kDLUInt
_ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "silu": 3}
_CUDA = 2


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Args(ctypes.Structure):
    """exo_gemm_args of the header."""
    _fields_ = [(name, ctypes.c_int) for name in
                ("type", "output", "activation", "a_mn_major", "b_mn_major")
                ] + [(name, ctypes.c_int64) for name in
                     ("m", "n", "k", "batch")
                     ] + [(name, ctypes.c_void_p) for name in ("a", "b", "c")
                          ] + [(name, ctypes.c_int64) for name in
                               ("lda", "ldb", "ldc", "a_batch", "b_batch",
                                "c_batch")
                               ] + [("alpha", ctypes.c_float),
                                    ("beta", ctypes.c_float),
                                    ("bias", ctypes.c_void_p),
                                    ("stream", ctypes.c_void_p)]


class _Tuning(ctypes.Structure):
    """exo_gemm_tuning of the header."""
    _fields_ = [("candidates", ctypes.c_int), ("us", ctypes.c_double),
                ("untuned_us", ctypes.c_double)]


class Tuning(NamedTuple):
    """Plans that were timed, microseconds of the fastest, and of what the
    measured costs choose."""
    candidates: int
    us: float
    untuned_us: float


class Array:
    """Address, shape, strides and element type of an array on a GPU."""

    def __init__(self, array, dimensions):
        capsule = array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype = ctypes.c_void_p
        get.argtypes = [ctypes.py_object, ctypes.c_char_p]
        t = ctypes.cast(get(capsule, b"dltensor"),
                        ctypes.POINTER(_DLTensor)).contents
        if t.device_type != _CUDA:
            raise ValueError("the array must lie on a CUDA device")
        if t.ndim not in dimensions:
            raise ValueError(f"expected {' or '.join(map(str, dimensions))} "
                             f"dimensions, found {t.ndim}")
        self.shape = tuple(t.shape[i] for i in range(t.ndim))
        self.strides = (tuple(t.strides[i] for i in range(t.ndim))
                        if t.strides else self._dense())
        self.address = (t.data or 0) + t.byte_offset
        self.code, self.bits = t.code, t.bits if t.lanes == 1 else 0
        self.type = _TYPES.get((self.code, self.bits))

    def _dense(self):
        strides, step = [], 1
        for extent in reversed(self.shape):
            strides.insert(0, step)
            step *= extent
        return tuple(strides)


class Matrix(Array):
    """One matrix, or a batch of them. `mn_major`: rows are columns in memory;
    `stride`: from one row or column of adjacent elements to the next."""

    def __init__(self, array, name, may_be_transposed=True):
        super().__init__(array, (2, 3))
        self.rows, self.columns = self.shape[-2:]
        self.batch = self.shape[0] if len(self.shape) == 3 else 1
        self.batch_stride = self.strides[0] if len(self.shape) == 3 else 0
        down, right = self.strides[-2:]
        self.mn_major = right != 1 and self.columns > 1
        if self.mn_major and (down != 1 or not may_be_transposed):
            raise ValueError(f"the elements of {name}'s rows must be adjacent" +
                             (", or those of its columns"
                              if may_be_transposed else ""))
        self.stride = right if self.mn_major else down


class ExoGemm:
    """The library that `exo-translate tuned.json --to=c` prints, compiled."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        for function in (self._library.exo_gemm_ex,
                         self._library.exo_gemm_ex_by,
                         self._library.exo_gemm_ex_choice,
                         self._library.exo_gemm_ex_tune,
                         self._library.exo_gemm_tune_first,
                         self._library.exo_gemm_tuned_save,
                         self._library.exo_gemm_tuned_load):
            function.restype = ctypes.c_int
        self._library.exo_gemm_tuned_clear.restype = None
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
        return self.types.index(kind)

    def _check(self, status):
        if status != 0:
            raise RuntimeError(self._error().decode())

    def args(self, kind, shape, **fields):
        """Args for C[m, n] = A B^T of (m, n, k); fields as in the header, names
        for `output` and `activation`."""
        for key, names in (("output", _OUTPUTS), ("activation", _ACTIVATIONS)):
            name = fields.get(key)
            if name not in names:
                raise ValueError(f"there is no {key} {name}")
            fields[key] = names[name]
        m, n, k = shape
        return Args(**{"type": self._type(kind), "m": m, "n": n, "k": k,
                       "alpha": 1.0, **fields})

    def run(self, args, kernel=None):
        """exo_gemm_ex; by the kernel of that name, one that serves the args,
        or by what `choice` answered."""
        if kernel is not None:
            self._check(self._library.exo_gemm_ex_by(ctypes.byref(args),
                                                     kernel.encode()))
        else:
            self._check(self._library.exo_gemm_ex(ctypes.byref(args)))

    def tune_args(self, args, candidates=0):
        """exo_gemm_ex_tune: times so many plans (0: 16) and remembers the
        fastest, as the header says. C is left as it is."""
        result = _Tuning()
        self._check(self._library.exo_gemm_ex_tune(
            ctypes.byref(args), candidates, ctypes.byref(result)))
        return Tuning(result.candidates, result.us, result.untuned_us)

    def tune_first(self, candidates):
        """Whether a call tunes first what was not tuned: 0 no, 1 with 16
        candidates, else with so many; the environment's EXO_GEMM_TUNE before
        this is called."""
        self._check(self._library.exo_gemm_tune_first(candidates))

    def save_tuned(self, path):
        """Writes what was tuned to a file."""
        self._check(self._library.exo_gemm_tuned_save(os.fsencode(path)))

    def load_tuned(self, path):
        """Reads such a file; answers how many lines of it name kernels that
        the library lacks, which are left out."""
        ignored = ctypes.c_int64()
        self._check(self._library.exo_gemm_tuned_load(
            os.fsencode(path), ctypes.byref(ignored)))
        return ignored.value

    def clear_tuned(self):
        """Forgets what was tuned."""
        self._library.exo_gemm_tuned_clear()

    def _kind(self, kind, a):
        """The type that `kind` or else the array names; bits may be those of
        integers, but not of another type."""
        kind = kind or a.type
        element = (kind or "").removesuffix("_sums")
        self._type(kind)
        if element != a.type and (a.code not in _INTEGERS or
                                  a.bits != _BITS.get(element)):
            raise ValueError(f"a and b have {a.bits} bits of type {a.type}, "
                             f"which is not {kind}")
        return kind

    def _args_of(self, a, b, c, kind=None, stream=0, alpha=1.0, beta=0.0,
                 bias=None, activation=None):
        """The Args of `gemm`."""
        a, b = Matrix(a, "a"), Matrix(b, "b")
        c = Matrix(c, "c", may_be_transposed=False)
        if (a.columns != b.columns or c.rows != a.rows or
                c.columns != b.rows or not a.batch == b.batch == c.batch):
            raise ValueError(f"shapes do not fit: {a.shape}, {b.shape}, "
                             f"{c.shape}")
        if (a.code, a.bits) != (b.code, b.bits):
            raise ValueError(f"a is of type {a.type}, b of {b.type}")
        kind = self._kind(kind, a)
        if c.type not in _OUTPUTS or c.type is None:
            raise ValueError("c's elements must be f32, bf16 or f16")
        if bias is not None:
            bias = Array(bias, (1, ))
            if bias.shape != (c.columns, ) or bias.type != c.type or \
                    bias.strides != (1, ):
                raise ValueError("the bias must be n adjacent elements of c's "
                                 "type")
        return self.args(
            kind, (a.rows, b.rows, a.columns), output=c.type,
            activation=activation, a_mn_major=a.mn_major,
            b_mn_major=b.mn_major, batch=a.batch, a=a.address, b=b.address,
            c=c.address, lda=a.stride, ldb=b.stride, ldc=c.stride,
            a_batch=a.batch_stride, b_batch=b.batch_stride,
            c_batch=c.batch_stride, alpha=alpha, beta=beta,
            bias=bias.address if bias else None, stream=stream)

    def gemm(self, a, b, c, **how):
        """c = activation(alpha * a @ b.T + beta * c + bias): `alpha`, `beta`,
        `bias`, `activation`, `stream`; `kind` names the element type of a and
        b where DLPack cannot (they are integers of as many bits), or of two
        kinds of sums."""
        self.run(self._args_of(a, b, c, **how))

    def tune(self, a, b, c, candidates=0, **how):
        """Tunes for `gemm` with these arguments, and leaves c as it is."""
        return self.tune_args(self._args_of(a, b, c, **how), candidates)

    def choice(self, kind, m, n, k, **fields):
        """The kernels that would run, fields as for `args`."""
        args = self.args(kind, (m, n, k), **fields)
        text = ctypes.create_string_buffer(256)
        self._check(self._library.exo_gemm_ex_choice(
            ctypes.byref(args), text, ctypes.c_size_t(len(text))))
        return text.value.decode()
