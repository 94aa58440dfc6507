"""Generators of arrays give the same bytes always, and the promised distributions."""

import hashlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.launches.build import _CHUNK, generate_array
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator
from gpa_lsp.execution.launches.type_names import check_scalar, pack_scalar, round_floats
from gpa_lsp.foundation.errors import InputError
from tests.conftest import examples


def make(fill: Generator, kind: ScalarType = ScalarType.F32, count: int = 1000, **given: float) -> np.ndarray:
    return generate_array(ArrayArgument(name="x", type=kind, count=count, generator=fill, **given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fill", "digest"),
    [
        (Generator.UNIFORM, "44e6a1e5e7002eb7"),
        (Generator.NORMAL, "2d4b0268f4ba6908"),
        (Generator.PERMUTATION, "9904d1a4626907c4"),
    ],
)
def test_the_same_bytes_in_every_version_of_numpy(fill: Generator, digest: str) -> None:
    """Compares with digests of numpy 2.4's output, so that results stay comparable."""
    content = make(fill, ScalarType.F64, 5000, seed=3, low=-2.0, high=5.0)
    assert hashlib.sha256(content.astype("<f8").tobytes()).hexdigest()[:16] == digest


def test_uniform_numbers_are_those_of_the_generator() -> None:
    numbers = np.random.Generator(np.random.PCG64(11)).random(1000)
    assert np.array_equal(make(Generator.UNIFORM, ScalarType.F64, seed=11), numbers)


def test_chunks_make_no_difference() -> None:
    long = make(Generator.UNIFORM, count=_CHUNK + 1000, seed=1)
    short = make(Generator.UNIFORM, count=1000, seed=1)
    assert np.array_equal(long[:1000], short)
    steps = make(Generator.SEQUENCE, ScalarType.U32, _CHUNK + 10)
    assert np.array_equal(steps, np.arange(_CHUNK + 10))
    values = make(Generator.VALUES, ScalarType.S8, _CHUNK + 10, values=(1, -2, 3))  # type: ignore[arg-type]
    assert np.array_equal(values, np.resize(np.array([1, -2, 3], dtype=np.int8), _CHUNK + 10))


def test_distributions() -> None:
    uniform = make(Generator.UNIFORM, ScalarType.F64, 100_000, seed=5, low=2.0, high=4.0)
    assert uniform.min() >= 2
    assert uniform.max() < 4
    assert abs(uniform.mean() - 3) < 0.01
    normal = make(Generator.NORMAL, ScalarType.F64, 100_000, seed=5, low=10.0, high=2.0)
    assert abs(normal.mean() - 10) < 0.03
    assert abs(normal.std() - 2) < 0.03
    assert abs(normal - 10).max() <= 12
    whole = make(Generator.UNIFORM, ScalarType.S16, 100_000, low=-3, high=3)
    assert sorted(set(whole.tolist())) == [-3, -2, -1, 0, 1, 2]
    order = make(Generator.PERMUTATION, ScalarType.U32, 1000, seed=9)
    assert sorted(order.tolist()) == list(range(1000))
    assert order.tolist() != list(range(1000))
    assert not np.array_equal(order, make(Generator.PERMUTATION, ScalarType.U32, 1000, seed=10))


def test_edges_of_types() -> None:
    assert make(Generator.SEQUENCE, ScalarType.U8, 3, low=254).tolist() == [254, 255, 0]
    assert make(Generator.SEQUENCE, ScalarType.S64, 2, low=-1.0, step=-1.0).tolist() == [-1, -2]
    assert make(Generator.SEQUENCE, ScalarType.F32, 3, low=1, step=0.5).tolist() == [1, 1.5, 2]
    assert make(Generator.CONSTANT, ScalarType.U64, 2, value=2**64 - 1).tolist() == [2**64 - 1] * 2
    assert make(Generator.CONSTANT, ScalarType.F16, 1, value=1.0).tolist() == [0x3C00]
    assert make(Generator.UNIFORM, ScalarType.S64, 10, low=1e30, high=2e30).tolist() == [2**63 - 1] * 10
    assert make(Generator.UNIFORM, ScalarType.U8, 10, low=-50, high=-40).tolist() == [0] * 10
    assert make(Generator.CONSTANT, ScalarType.F32, 1, value=1e300).tolist() == [float("inf")]
    assert make(Generator.UNIFORM, ScalarType.U8, 2, low=float("nan")).tolist() == [0, 0]
    assert make(Generator.SEQUENCE, ScalarType.S32, 2, low=1.5, step=1e308).tolist() == [1, 2**31 - 1]
    assert make(Generator.ZEROS, ScalarType.BF16, 0).dtype == np.uint16


@pytest.mark.parametrize(
    "kind", [kind for kind in ScalarType if kind.value[0] in "usfb" and "x" not in kind.value and kind.bytes < 16]
)
def test_arrays_are_of_the_natural_dtype_and_ones_own(kind: ScalarType) -> None:
    for fill in (
        Generator.ZEROS,
        Generator.CONSTANT,
        Generator.UNIFORM,
        Generator.SEQUENCE,
        Generator.NORMAL,
        Generator.PERMUTATION,
    ):
        made = make(fill, kind, 50)
        assert made.dtype == kind.natural_dtype
        assert made.shape == (50,)
        made[0] = 0


def test_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6, dtype=np.int32).reshape(2, 3))
    (tmp_path / "a.bin").write_bytes(np.arange(6, dtype="<f2").tobytes())
    found = generate_array(
        ArrayArgument(name="x", type=ScalarType.U32, count=6, generator=Generator.FILE, file=tmp_path / "a.npy")
    )
    assert found.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.dtype == np.uint32
    halves = generate_array(
        ArrayArgument(name="x", type=ScalarType.F16, count=6, generator=Generator.FILE, file=tmp_path / "a.bin")
    )
    assert halves.view(np.float16).tolist() == [0, 1, 2, 3, 4, 5]
    halves[0] = 1
    with pytest.raises(InputError, match="holds 6 elements, but 5"):
        generate_array(
            ArrayArgument(name="x", type=ScalarType.U32, count=5, generator=Generator.FILE, file=tmp_path / "a.npy")
        )
    with pytest.raises(InputError, match="names no file"):
        generate_array(ArrayArgument(name="x", type=ScalarType.U32, count=5, generator=Generator.FILE))


@examples(60)
@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_bfloat16_is_rounded_once(value: float) -> None:
    bits = int(round_floats(np.array([value]), ScalarType.BF16)[0])
    neighbours = [one for one in (bits - 1, bits, bits + 1) if 0 <= one & 0x7FFF <= 0x7F80]
    errors = {one: abs(read_bfloat16(one) - Fraction(value)) for one in neighbours}
    assert errors[bits] == min(errors.values())
    ties = [one for one, error in errors.items() if error == errors[bits]]
    if len(ties) > 1:
        assert bits & 1 == 0


def read_bfloat16(bits: int) -> Fraction:
    """Exact value; infinity as the next power of two, which is where rounding to it begins to be near."""
    exponent, mantissa = bits >> 7 & 0xFF, bits & 0x7F
    size = Fraction(2) ** (max(exponent, 1) - 134) * (mantissa + (128 if exponent else 0))
    return -size if bits & 0x8000 else size


@examples(60)
@given(
    st.sampled_from([ScalarType.S8, ScalarType.U16, ScalarType.S32, ScalarType.U64, ScalarType.B32]),
    st.integers(-(2**65), 2**65),
)
def test_numbers_fit_or_are_refused(kind: ScalarType, value: int) -> None:
    bits = 8 * kind.bytes
    fits = {
        "s": -(2 ** (bits - 1)) <= value < 2 ** (bits - 1),
        "u": 0 <= value < 2**bits,
        "b": -(2 ** (bits - 1)) <= value < 2**bits,
    }
    if fits[kind.value[0]]:
        assert int.from_bytes(pack_scalar(check_scalar(value, kind), kind), "little") == value % 2**bits
    else:
        with pytest.raises(InputError, match="does not fit"):
            check_scalar(value, kind)
