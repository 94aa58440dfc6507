"""Library calls that numpy computes: their operands as checked views of device memory (:class:`LibraryCall`); the C declarations and stubs of
cuBLAS.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Annotated, Any, get_type_hints

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE
from gpa_lsp.execution.emulator.resident import ResidentMemory
from gpa_lsp.execution.programs.messages import Argument, ComputeRequest, MalformedMessage

PIECE = 1 << 22  # elements at once: temporary copies stay small, and time is looked at in between
_INTS, _WORDS = 1 << 31, 1 << 64


class Refusal(Enum):
    """Reason why a function was not computed."""

    INVALID_VALUE = auto()
    UNREACHABLE = auto()  # an operand is not memory of the device, or too little of it
    NOT_SUPPORTED = auto()
    NO_MEMORY = auto()


class RefusedCall(Exception):  # noqa: N818  (it is no error of ours)
    """A function that is not computed; its caller gets a status."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why)
        self.why = why


class TimeIsOver(Exception):  # noqa: N818
    """The run's time was over before a call was done."""


class LibraryCall:
    """One call.

    Args:
        request: it, as the program sent it: nothing of it is trusted.
        memory: of the device.
        on_access: told each address that is about to be accessed.
        is_over: whether the run's time is over.

    Attributes:
        answer: bytes of the result that the host waits for.
    """

    def __init__(
        self,
        request: ComputeRequest,
        memory: ResidentMemory,
        *,
        on_access: Callable[[int], None],
        is_over: Callable[[], bool],
    ) -> None:
        self.function = request.function
        self.answer = b""
        self._memory = memory
        self._on_access = on_access
        self._is_over = is_over

    @staticmethod
    def take_number(one: Argument) -> int:
        """An argument that is an ``int`` of C.

        Raises:
            MalformedMessage: it is none.
        """
        if not -_INTS <= one.word < _INTS:
            raise MalformedMessage(f"{one.word} is no int")
        return one.word

    def need(self, condition: bool) -> None:
        """Refuse the call unless a condition of the documentation holds."""
        if not condition:
            raise RefusedCall(Refusal.INVALID_VALUE)

    def check_time(self) -> None:
        """Raise :class:`TimeIsOver` once the run's time is over."""
        if self._is_over():
            raise TimeIsOver

    def split(self, count: int, piece: int = PIECE) -> Iterator[slice]:
        """Slices of at most *piece*, and at least 1, that make up a count; checks the time before each."""
        piece = max(piece, 1)
        for first in range(0, count, piece):
            self.check_time()
            yield slice(first, min(first + piece, count))

    def reach(self, address: int, elements: int, dtype: npt.DTypeLike) -> npt.NDArray[np.uint8]:
        """The bytes of an operand.

        Raises:
            RefusedCall: an allocation, or the variables of modules, do not hold all of them.
        """
        if elements <= 0:
            return np.empty(0, np.uint8)
        address %= _WORDS
        size = elements * np.dtype(dtype).itemsize
        if ARENA_BASE <= address < self._memory.own_end:  # variables of modules
            end = self._memory.own_end
        else:
            region = self._memory.find(address)
            end = 0 if region is None else region.base + region.size_bytes
        if size > end - address:
            raise RefusedCall(Refusal.UNREACHABLE)
        self._on_access(address)
        return self._memory.bytes_at(address, size)

    def vector(self, address: int, n: int, step: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A vector (n,); one with a negative step begins at its end."""
        content = self.reach(address, 1 + (n - 1) * abs(step) if n > 0 else 0, dtype)
        found = np.ndarray((max(n, 0),), dtype, content, strides=(abs(step) * np.dtype(dtype).itemsize,))
        return found[::-1] if step < 0 else found

    def matrix(self, address: int, rows: int, columns: int, step: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A matrix (rows, columns), column-major, with *step* elements from one column to the next."""
        shape = max(rows, 0), max(columns, 0)
        content = self.reach(address, (columns - 1) * step + rows if min(shape) else 0, dtype)
        item = np.dtype(dtype).itemsize
        return np.ndarray(shape, dtype, content, strides=(item, step * item))

    def scalar(self, one: Argument, dtype: npt.DTypeLike) -> np.generic:
        """A scalar, of the host or in device memory."""
        self.need(one.word != 0)
        content = self.reach(one.word, 1, dtype).tobytes() if one.value is None else one.value
        found: np.generic = np.frombuffer(content, dtype, 1)[0]
        return found

    def place_result(self, one: Argument, dtype: npt.DTypeLike) -> Callable[[Any], None]:
        """Check the place of a result, and give a function that stores it."""
        self.need(one.word != 0)
        place = self.vector(one.word, 1, 1, dtype) if one.value is None else np.zeros(1, dtype)

        def put(value: Any) -> None:
            place[0] = value
            self.answer = b"" if one.value is None else place.tobytes()

        return put


Values = npt.NDArray[Any]
Compute = Callable[..., None]
_WITH_HANDLE = "_v2"  # ends the names of functions that the legacy interface has without a handle


class Kind(Struct, frozen=True, kw_only=True):
    """C type of a parameter, and how it is sent."""

    c_type: str  # T and R stand for the type of elements, and its real one
    letter: str  # see ``compute`` in ``runtime/runtime.h``
    reads_letter: str = ""  # turns the character of the legacy interface into the value


Int = Annotated[int, Kind(c_type="int ", letter="i")]
Long = Annotated[int, Kind(c_type="long long ", letter="l")]
Form = Annotated[int, Kind(c_type="cublasOperation_t ", letter="i", reads_letter="form_of")]
Fill = Annotated[int, Kind(c_type="cublasFillMode_t ", letter="i", reads_letter="fill_of")]
Side = Annotated[int, Kind(c_type="cublasSideMode_t ", letter="i", reads_letter="side_of")]
Diagonal = Annotated[int, Kind(c_type="cublasDiagType_t ", letter="i", reads_letter="diagonal_of")]
DataType = Annotated[int, Kind(c_type="cudaDataType ", letter="i")]
ComputeType = Annotated[int, Kind(c_type="cublasComputeType_t ", letter="i")]
Algorithm = Annotated[int, Kind(c_type="cublasGemmAlgo_t ", letter="i")]
In = Annotated[int, Kind(c_type="const T *", letter="p")]
Out = Annotated[int, Kind(c_type="T *", letter="p")]
ManyIn = Annotated[int, Kind(c_type="const T *const *", letter="p")]
ManyOut = Annotated[int, Kind(c_type="T *const *", letter="p")]
Scalar = Annotated[Argument, Kind(c_type="const T *", letter="s")]
RealScalar = Annotated[Argument, Kind(c_type="const R *", letter="s")]
Result = Annotated[Argument, Kind(c_type="T *", letter="r")]
RealResult = Annotated[Argument, Kind(c_type="R *", letter="r")]
IndexResult = Annotated[Argument, Kind(c_type="int *", letter="r")]


class Element(Struct, frozen=True, kw_only=True):
    """Element type that a letter in a function's name stands for."""

    c_type: str
    c_real: str
    index: str  # its letter in the name of a function whose result is an index
    norm: str  # letters in the name of one whose result is real
    dtype: str
    real: str  # dtype of the real one
    wide: str  # dtype of sums


ELEMENTS = {
    "S": Element(c_type="float", c_real="float", index="s", norm="S", dtype="f4", real="f4", wide="f8"),
    "D": Element(c_type="double", c_real="double", index="d", norm="D", dtype="f8", real="f8", wide="f8"),
    "C": Element(c_type="cuComplex", c_real="float", index="c", norm="Sc", dtype="c8", real="f4", wide="c16"),
    "Z": Element(c_type="cuDoubleComplex", c_real="double", index="z", norm="Dz", dtype="c16", real="f8", wide="c16"),
    "H": Element(c_type="void", c_real="void", index="", norm="", dtype="f2", real="f2", wide="f8"),
    "": Element(c_type="void", c_real="float", index="", norm="", dtype="V1", real="f4", wide="f8"),
}


class Routine(Struct, frozen=True, kw_only=True):
    """A function of the library."""

    name: str
    compute: Compute
    element: Element
    parameters: dict[str, Kind]
    scalar_bytes: str  # of its scalars, in C

    def run(self, call: LibraryCall, arguments: tuple[Argument, ...]) -> None:
        """Compute the routine; there are as many arguments as parameters."""
        given: list[Argument | int] = []
        for kind, one in zip(self.parameters.values(), arguments, strict=True):
            number = call.take_number(one) if kind.letter == "i" else one.word
            given.append(one if kind.letter in "sr" else number)
        with np.errstate(all="ignore"):
            self.compute(BlasCall(call, self), *given)


class BlasCall:
    """A call with the types of its elements."""

    def __init__(self, call: LibraryCall, routine: Routine) -> None:
        self.base = call
        self.need, self.check_time, self.split = call.need, call.check_time, call.split
        self.dtype, self.real, self.wide = routine.element.dtype, routine.element.real, routine.element.wide
        self.is_conjugated = routine.name.removesuffix("_v2").endswith("c")  # dotc and gerc

    def vector(self, address: int, n: int, step: int) -> Values:
        """A vector of elements."""
        return self.base.vector(address, n, step, self.dtype)

    def matrix(self, address: int, rows: int, columns: int, step: int) -> Values:
        """A matrix of elements."""
        return self.base.matrix(address, rows, columns, step, self.dtype)

    def scalar(self, one: Argument) -> Any:
        """An element as a scalar."""
        return self.base.scalar(one, self.dtype)

    def pairs(self, x: Values, y: Values) -> Iterator[tuple[Values, Values]]:
        """Matching parts of two vectors; single elements if one vector has step 0, so that elements change one by one."""
        for part in self.split(len(x), *((1,) if 0 in x.strides + y.strides else ())):
            yield x[part], y[part]


def read_values(values: Values, dtype: str | None) -> Values:
    """Elements converted for computing; ``uint16`` stands for ``bfloat16``."""
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values if dtype is None else values.astype(dtype)


def write_values(into: Values, values: Values, where: Values | bool) -> None:
    """Round and store results; *where* selects elements."""
    if into.dtype == np.uint16:  # rounded to the nearest, halfway cases to the even one
        bits = values.astype(np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        values = np.where(np.isnan(values), 0x7FFF, rounded)
    elif into.dtype == np.int32:  # sums wrap
        values = values.astype(np.int64)
    np.copyto(into, values, casting="unsafe", where=where)


def enter_routine(
    routines: dict[str, Routine], pattern: str, elements: str = "SDCZ", *, scalar_bytes: str = ""
) -> Callable[[Compute], Compute]:
    """Enter a function into some routines, under the names that a pattern gives for each element.

    Args:
        pattern: ``P`` stands for the element's letter, ``i`` and ``N`` for those of an index and a norm, ``r`` for that of its real type.
        elements: their letters; empty for a function whose name has none.
        scalar_bytes: of its scalars, in C; empty for those of the element.
    """

    def enter(compute: Compute) -> Compute:
        hints = get_type_hints(compute, include_extras=True)
        names = list(inspect.signature(compute).parameters)[1:]
        parameters = {name: hints[name].__metadata__[0] for name in names}
        is_real = any(kind.c_type == "const R *" for kind in parameters.values())
        for letter in elements or [""]:
            element = ELEMENTS[letter]
            name = "cublas" + pattern.format(
                P=letter, i=element.index, N=element.norm, r="s" if element.c_real == "float" else "d"
            )
            size = str(np.dtype(element.real if is_real else element.dtype).itemsize)
            routines[name] = Routine(
                name=name, compute=compute, element=element, parameters=parameters, scalar_bytes=scalar_bytes or size
            )
        return compute

    return enter


def write_declarations(routines: Iterable[Routine]) -> str:
    """C declarations for the headers: functions with a handle, macros for their unversioned names, and the legacy interface."""
    listed = list(routines)
    versions = [one.name.removesuffix(_WITH_HANDLE) for one in listed if one.name.endswith(_WITH_HANDLE)]
    return "\n".join(
        (
            *(f"cublasStatus_t {one.name}(cublasHandle_t handle, {_declare(one)});" for one in listed),
            "#ifdef CUBLAS_V2_H_",
            *(f"#define {name} {name}{_WITH_HANDLE}" for name in versions),
            "#endif\n#ifdef CUBLAS_H_",
            *(f"{_read_legacy(one)[0]};" for one in listed if one.name.endswith(_WITH_HANDLE)),
            "#endif\n",
        )
    )


def write_functions(routines: Iterable[Routine]) -> str:
    """C definitions of the functions with a handle."""
    return "\n".join(
        f"PUBLIC cublasStatus_t {one.name}(cublasHandle_t handle, {_declare(one)}) {{\n"
        f'    return ask_for(handle, __func__, {one.scalar_bytes}, "{"".join(kind.letter for kind in one.parameters.values())}", '
        f"{', '.join(one.parameters)});\n}}"
        for one in routines
    )


def write_legacy_functions(routines: Iterable[Routine]) -> str:
    """C definitions of the legacy functions: scalars and results by value, operations as letters."""
    return "\n".join(_write_legacy(one) for one in routines if one.name.endswith(_WITH_HANDLE))


def _write_legacy(one: Routine) -> str:
    head, passed, result = _read_legacy(one)
    body = f"keep({one.name}(handle, {', '.join(passed)}));"
    if result != "void":
        body = f"{result} found = 0;\n    {body}\n    return found;"
    return f"PUBLIC {head} {{\n    {body}\n}}"


def _read_legacy(one: Routine) -> tuple[str, list[str], str]:
    """Head of a legacy function, the arguments it passes on to the one with a handle, and its result type."""
    shown, passed, result = [], [], "void"
    is_in_place = one.compute.__name__ == "trmm"  # where BLAS has one matrix, cuBLAS has two
    for name, kind in one.parameters.items():
        c_type = _spell(kind, one)
        if is_in_place and name in ("c", "ldc"):
            passed.append(name.replace("c", "b"))
        elif kind.letter == "r":
            result = c_type.removesuffix(" *")
            passed.append("&found")
        elif kind.letter == "s":
            shown.append(f"{c_type.removeprefix('const ').removesuffix('*')}{name}")
            passed.append(f"&{name}")
        else:
            shown.append(f"char {name}" if kind.reads_letter else f"{c_type}{name}")
            passed.append(f"{kind.reads_letter}({name})" if kind.reads_letter else name)
    if is_in_place:
        shown = [word.removeprefix("const ") if word.endswith("*b") else word for word in shown]
    return f"{result} {one.name.removesuffix(_WITH_HANDLE)}({', '.join(shown)})", passed, result


def _declare(one: Routine) -> str:
    return ", ".join(f"{_spell(kind, one)}{name}" for name, kind in one.parameters.items())


def _spell(kind: Kind, one: Routine) -> str:
    """C type of a parameter, for the elements of a routine."""
    return re.sub(r"\b[TR]\b", lambda found: one.element.c_type if found[0] == "T" else one.element.c_real, kind.c_type)
