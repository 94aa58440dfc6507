"""The choice of kernels by name and of blocks."""

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.emulate import find_kernel
from gpa_lsp.execution.emulator.model import Sampling, SamplingKind, choose_blocks
from gpa_lsp.foundation.errors import InputError


def _build(*names: str) -> PtxModule:
    entries = " ".join(f".visible .entry {name}() {{ ret; }}" for name in names)
    return parse_ptx(f".version 8.0 .target sm_80 .address_size 64 {entries}", name="k.ptx")


_MODULE = _build("_Z5saxpyfPKfPf", "_Z3addIfEvPT_", "_Z3addIdEvPT_", "plain", "_ZN5outer5innerEi")


@pytest.mark.parametrize(
    ("name", "mangled"),
    [
        ("_Z5saxpyfPKfPf", "_Z5saxpyfPKfPf"),
        ("saxpy", "_Z5saxpyfPKfPf"),
        ("saxpy(float, float const*, float*)", "_Z5saxpyfPKfPf"),
        ("add<float>", "_Z3addIfEvPT_"),
        ("void add<double>(double*)", "_Z3addIdEvPT_"),
        ("plain", "plain"),
        ("outer::inner", "_ZN5outer5innerEi"),
        ("inner", "_ZN5outer5innerEi"),
    ],
)
def test_kernels_are_found_by_each_of_their_names(name: str, mangled: str) -> None:
    assert find_kernel(_MODULE, name).name == mangled


def test_a_name_of_several_kernels_is_an_error_that_lists_them() -> None:
    with pytest.raises(InputError, match="2 kernels") as caught:
        find_kernel(_MODULE, "add")
    assert "add<float>" in str(caught.value)
    assert "add<double>" in str(caught.value)


def test_a_name_of_no_kernel_is_an_error_that_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="no kernel nothing") as caught:
        find_kernel(_MODULE, "nothing")
    assert "saxpy" in str(caught.value)


def test_blocks_are_all_a_wave_some_or_spread() -> None:
    assert list(choose_blocks(5, Sampling())) == [0, 1, 2, 3, 4]
    assert list(choose_blocks(5, Sampling(kind=SamplingKind.WAVE, count=3))) == [0, 1, 2]
    assert list(choose_blocks(5, Sampling(kind=SamplingKind.WAVE, count=30))) == [0, 1, 2, 3, 4]
    assert np.asarray(choose_blocks(9, Sampling(kind=SamplingKind.CHOSEN, blocks=(8, 1, 1)))).tolist() == [1, 8]
    spread = np.asarray(choose_blocks(1000, Sampling(kind=SamplingKind.SPREAD, count=5)))
    assert (spread[0], spread[-1], len(spread)) == (0, 999, 5)
    assert len(choose_blocks(2**47, Sampling())) == 2**32


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(kind=SamplingKind.CHOSEN, blocks=(5,)),
        Sampling(kind=SamplingKind.CHOSEN, blocks=(-1,)),
        Sampling(kind=SamplingKind.WAVE),
        Sampling(kind=SamplingKind.SPREAD, count=-3),
    ],
)
def test_samples_of_nothing_are_errors(sampling: Sampling) -> None:
    with pytest.raises(InputError):
        choose_blocks(5, sampling)


def test_blocks_beyond_those_with_a_number_are_refused_in_so_many_words() -> None:
    sampling = Sampling(kind=SamplingKind.CHOSEN, blocks=(1 << 32,))
    with pytest.raises(
        InputError, match="block 4294967296 of a grid of 8,589,934,592, whose first 4,294,967,296 can be executed"
    ):
        choose_blocks(1 << 33, sampling)
    with pytest.raises(InputError, match="block 4294967296 of a grid of 7; choose 0 to 6"):
        choose_blocks(7, sampling)


def test_names_that_are_not_mangled_are_names_and_no_types() -> None:
    module = _build("f", "i", "Pf", "kernel")
    for name in ("f", "i", "Pf", "kernel"):
        assert find_kernel(module, name).name == name
    for name in ("float", "int", "float*", "None"):
        with pytest.raises(InputError, match=r"its kernels are: Pf, f, i, kernel$"):
            find_kernel(module, name)
