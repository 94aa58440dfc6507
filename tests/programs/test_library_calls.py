"""Calls of cuBLAS, cuFFT and cuRAND as the process that emulates kernels computes them: what the whole program in ``fixtures`` does not tell."""

import struct
from collections.abc import Callable
from itertools import count

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE, Marks
from gpa_lsp.execution.emulator.resident import ResidentMemory
from gpa_lsp.execution.programs.allocations import AllocationLedger
from gpa_lsp.execution.programs.computing import DRAWN, TRANSFORMS, compute
from gpa_lsp.execution.programs.host_blas import ROUTINES
from gpa_lsp.execution.programs.library_calls import Refusal
from gpa_lsp.execution.programs.messages import Argument, ComputeRequest, CudaError, MalformedMessage

_OWN_BYTES, _BYTES = 1 << 24, 1 << 16
_BASE = ARENA_BASE + _OWN_BYTES
_MEMORY = ResidentMemory(np.zeros(_OWN_BYTES + 2 * _BYTES, np.uint8), _OWN_BYTES)
_MEMORY.allocate([(_BASE, _BYTES)])
_LEDGER = AllocationLedger(Marks(np.zeros(0, np.uint8), np.zeros(0, np.uint8)), _BASE, is_followed=False)


def call(
    function: str, *words: object, is_over: Callable[[], bool] = lambda: False
) -> tuple[CudaError, int, bytes, Refusal | None]:
    """Status and answer of a call: integers and addresses as they are, scalars of the host as numpy scalars, None where a result goes."""
    arguments = []
    for word in words:
        if word is None or isinstance(word, np.generic):
            value = b"" if word is None else word.tobytes()
            arguments.append(Argument(word=1, value=value.ljust(16, b"\0")))
        else:
            assert isinstance(word, int)
            arguments.append(Argument(word=word, value=None))
    request = ComputeRequest(
        function=function, arguments=tuple(arguments), path=0, generation=0, allocations=(), is_whole=False
    )
    error, answer, refusal = compute(request, _MEMORY, _LEDGER, is_over)
    return error, int.from_bytes(answer[:4], "little"), answer[4:], refusal


def place(values: npt.ArrayLike, dtype: str, offset: int = 0) -> tuple[int, npt.NDArray[np.generic]]:
    """Address and view of values in device memory."""
    made = np.asarray(values, dtype)
    view = _MEMORY.bytes_at(_BASE + offset, made.nbytes).view(made.dtype)
    view[:] = made.ravel(order="F")
    return _BASE + offset, view


_EDGES = st.sampled_from([0, 1, 2, 3, 4, 100, -1, -(1 << 31), (1 << 31) - 1, 105, 1 << 31, 1 << 62, -(1 << 63)])
_ADDRESSES = st.sampled_from([_BASE, _BASE + 8, _BASE + _BYTES - 4, _BASE + _BYTES, ARENA_BASE, _BASE - 1, 0, -1, -16])
_SCALARS = st.sampled_from([b"\0" * 16, struct.pack("<4f", 1, 0, 2, 1), struct.pack("<2d", 1, 0), b"\xff" * 16])


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_no_arguments_go_beyond_memory_or_end_in_a_traceback(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*ROUTINES, *TRANSFORMS, *DRAWN]))
    if name in ROUTINES:
        letters = [kind.letter for kind in ROUTINES[name].parameters.values()]
    else:
        letters = [*"i" * 15, "p", "p", "i"] if name in TRANSFORMS else [*"lllll", data.draw(st.sampled_from("pr"))]
    sizes = data.draw(st.sampled_from([st.integers(-1, 9), st.integers(1, 9), _EDGES]))
    arguments = []
    for letter in letters:
        word = data.draw(_ADDRESSES if letter in "psr" else sizes)
        value = data.draw(st.none() | _SCALARS) if letter in "sr" else None
        arguments.append(Argument(word=word, value=value))
    request = ComputeRequest(
        function=name, arguments=tuple(arguments), path=0, generation=0, allocations=(), is_whole=False
    )
    guard = _MEMORY.bytes_at(_BASE + _BYTES, _BYTES)
    guard[:] = 0x55
    left = count(100, -1)
    try:
        error, answer, refusal = compute(request, _MEMORY, _LEDGER, lambda: next(left) < 0)
    except MalformedMessage:
        return
    if error is CudaError.SUCCESS:
        assert (int.from_bytes(answer[:4], "little") != 0) == (refusal is not None)
    else:
        assert error is CudaError.LAUNCH_TIMEOUT and not answer
    assert (guard == 0x55).all()


def test_a_call_ends_with_the_time_of_the_run() -> None:
    """A hundred million products of one matrix; ended at the fourth look."""
    looks = count()
    at, _ = place(np.eye(2), "f4")
    one = np.float32(1)
    words = (0, 0, 2, 2, 2, one, at, 2, 0, at, 2, 0, one, at + 64, 2, 0, 10**8)
    error, *_ = call("cublasSgemmStridedBatched", *words, is_over=lambda: next(looks) > 3)
    assert error is CudaError.LAUNCH_TIMEOUT and next(looks) == 5


def test_a_transform_that_is_larger_than_a_piece_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpa_lsp.execution.programs.computing._PIECE", 4)
    numbers = np.arange(8) + 1j
    at, _ = place(numbers, "c8")
    to, found = place(np.zeros(8), "c8", 128)
    numbers_of_plan = (1, 8, 1, 1, 1, *(0,) * 10)
    assert call("cufftExecC2C", *numbers_of_plan, at, to, -1)[1] == 0
    assert np.allclose(found, np.fft.fft(numbers))


@pytest.mark.parametrize(("function", "dtype"), [("cublasSnrm2_v2", "f4"), ("cublasDnrm2_v2", "f8")])
def test_no_square_of_a_norm_overflows(function: str, dtype: str) -> None:
    largest = float(np.finfo(dtype).max) / 4
    at, _ = place([largest] * 4, dtype)
    _, status, answer, _ = call(function, 4, at, 1, None)
    assert status == 0 and np.isclose(np.frombuffer(answer, dtype)[0], 2 * largest)


def test_what_is_multiplied_by_nothing_is_not_read() -> None:
    bad, _ = place([np.nan] * 4, "f8")
    at, c = place([1, 2, 3, 4], "f8", 64)
    nothing, two = np.float64(0), np.float64(2)
    assert call("cublasDgemm_v2", 0, 0, 2, 2, 2, nothing, 0, 2, 0, 2, two, at, 2)[1] == 0
    assert c.tolist() == [2, 4, 6, 8]
    left, _ = place(np.eye(2), "f8", 128)
    assert call("cublasDgemm_v2", 0, 0, 2, 2, 2, two, left, 2, left, 2, nothing, bad, 2)[1] == 0
    assert place([], "f8")[0] == bad and _MEMORY.bytes_at(bad, 32).view("f8").tolist() == [2, 0, 0, 2]


@pytest.mark.parametrize("n", [2, 120])
@pytest.mark.parametrize("fill", [0, 1])
def test_the_other_triangle_of_an_equation_is_not_read_and_infinity_goes_its_way(n: int, fill: int) -> None:
    rng = np.random.default_rng(n)
    whole = np.where(np.tri(n, dtype=bool), rng.random((n, n)) / n, np.nan) + 2 * np.eye(n)
    a, _ = place(whole if fill == 0 else whole.T, "f4", 1024)
    expected = rng.random(n)
    at, x = place(np.nan_to_num(whole) @ expected, "f4")
    form = 0 if fill == 0 else 1
    assert call("cublasStrsv_v2", fill, form, 0, n, a, n, at, 1)[1] == 0
    assert np.allclose(x, expected, atol=1e-5)
    x[0] = np.inf
    assert call("cublasStrsv_v2", fill, form, 0, n, a, n, at, 1)[1] == 0
    assert np.isposinf(x[0]) and not np.isfinite(x).any()


def test_sums_of_bytes_wrap_and_short_floats_are_rounded_to_even() -> None:
    a, _ = place([-128] * 4, "i1")
    into, sums = place([0], "i4", 64)
    least, none = np.int32(-(1 << 31)), np.int32(0)
    assert call("cublasGemmEx", 0, 0, 1, 1, 4, least, a, 3, 1, a, 3, 4, none, into, 10, 1, 72, -1)[1] == 0
    assert sums.tolist() == [0]  # -2^31 times 2^16
    left, _ = place([0x3F80, 0x3B80], "u2")  # 1 and 2^-8, halfway to the next
    right, _ = place([0x3F80, 0x3F80], "u2", 16)
    found, short = place([0], "u2", 64)
    one, nothing = np.float32(1), np.float32(0)
    assert call("cublasGemmEx", 0, 0, 1, 1, 2, one, left, 14, 1, right, 14, 2, nothing, found, 14, 1, 68, -1)[1] == 0
    assert short.tolist() == [0x3F80]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("cublasSaxpy_v2", (1, 2)),
        ("cublasNothing", ()),
        ("cufftExecC2C", (1,) * 17),
        ("cufftExecC2C", (4, *[1] * 14, _BASE, _BASE, -1)),
        ("cufftExecC2C", (2, 4, 0, 1, 1, *[1] * 10, _BASE, _BASE, -1)),
        ("cufftExecC2C", (2, 4, 4, 1, 1, 4, -4, 1, 1, 1, 4, 4, 1, 1, 1, _BASE, _BASE, -1)),
        ("curandGenerate", (1, 0, (1 << 20) + 1, 0, 0, _BASE)),
        ("curandGeneratePoisson", (1, 0, 4, -1, 0, _BASE)),
        ("cublasSasum_v2", (1 << 40, _BASE, 1, None)),
    ],
)
def test_what_no_library_asks_for_is_refused(function: str, words: tuple[object, ...]) -> None:
    with pytest.raises(MalformedMessage):
        call(function, *words)


@pytest.mark.parametrize("function", [one for one in DRAWN if not one.endswith("Poisson")])
def test_numbers_follow_from_seed_and_place_however_many_are_drawn(function: str) -> None:
    mean, deviation = (int(np.float64(one).view("i8")) for one in (2, 0.5))
    _, view = place(np.zeros(9), DRAWN[function])

    def draw(seed: int, at: int, many: int) -> list[float]:
        assert call(function, seed, at, many, mean, deviation, _BASE)[:2] == (CudaError.SUCCESS, 0)
        return [float(one) for one in view[:many]]

    whole = draw(-7, 3, 9)
    assert whole == draw(-7, 3, 4) + draw(-7, 7, 5) and len(set(whole)) == 9
    assert draw(8, 3, 9) != whole
