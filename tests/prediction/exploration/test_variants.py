"""Sources with other macros and unroll factors: lines stay where they are, and nothing else changes."""

from pathlib import Path

import pytest

from gpa_lsp.execution.prediction.exploration.model import Configuration, Definition, Unroll
from gpa_lsp.execution.prediction.exploration.simulating import list_variants, write_variant
from gpa_lsp.foundation.errors import InputError

TEXT = """\
#ifndef TILE
#define TILE 16 // threads
#endif
#define FLAG
__global__ void k(float* a)
{
#pragma unroll 2
    for (int i = 0; i < TILE; ++i)
        a[i] = WIDTH;
    for (int i = 0; i < 4; ++i)
        a[i] += 1;
}
"""


def write(definitions: tuple[Definition, ...] = (), unrolls: tuple[Unroll, ...] = ()) -> str:
    configuration = Configuration(block=(32, 1, 1), definitions=definitions, unrolls=unrolls)
    return write_variant(Path("k.cu"), TEXT, configuration)


def test_a_macro_of_the_source_gets_its_value_where_it_is_defined() -> None:
    changed = write((("TILE", "32"), ("FLAG", "1")))
    assert changed.splitlines()[1] == "#define TILE 32"
    assert changed.splitlines()[3] == "#define FLAG 1"
    assert [one for one in zip(TEXT.splitlines(), changed.splitlines(), strict=True) if one[0] != one[1]] == [
        ("#define TILE 16 // threads", "#define TILE 32"),
        ("#define FLAG", "#define FLAG 1"),
    ]


def test_another_macro_is_defined_before_the_first_line_which_stays_the_first() -> None:
    assert write((("WIDTH", "8"),)) == f"#define WIDTH 8\n#line 1\n{TEXT}"


def test_a_loop_is_unrolled_by_its_pragma_or_by_a_new_one_on_its_line() -> None:
    changed = write(unrolls=((8, 4), (10, 1))).splitlines()
    assert changed[6] == "#pragma unroll 4"
    assert changed[9] == '    _Pragma("unroll 1") for (int i = 0; i < 4; ++i)'
    assert len(changed) == len(TEXT.splitlines())


def test_what_is_not_asked_for_changes_nothing() -> None:
    assert write() == TEXT


def test_a_line_without_a_loop_is_an_error() -> None:
    with pytest.raises(InputError, match="no loop begins on line 9"):
        write(unrolls=((9, 2),))


@pytest.mark.parametrize("text", ["TILE", "=8", "TILE=", "TILE=8,", "T I=8", 'TILE=8"', "TILE=8\n#include <x>", "9=8"])
def test_definitions_that_mean_nothing(text: str) -> None:
    with pytest.raises(InputError, match="defines nothing"):
        list_variants([text], [])


@pytest.mark.parametrize("text", ["12", "12=", "12=0", "0=2", "12=a", "=2", "12=2,,4"])
def test_unroll_factors_that_mean_nothing(text: str) -> None:
    with pytest.raises(InputError, match="names no loop"):
        list_variants([], [text])


def test_every_combination_once() -> None:
    found = list_variants(["A=1,2,2", "B=3"], ["5=1,2"])
    assert [(one.definitions, one.unrolls) for one in found] == [
        ((("A", "1"), ("B", "3")), ((5, 1),)),
        ((("A", "1"), ("B", "3")), ((5, 2),)),
        ((("A", "2"), ("B", "3")), ((5, 1),)),
        ((("A", "2"), ("B", "3")), ((5, 2),)),
    ]
    assert [(one.definitions, one.unrolls) for one in list_variants([], [])] == [((), ())]


def test_too_many_versions_are_refused() -> None:
    many = ",".join(map(str, range(100)))
    with pytest.raises(InputError, match="more than 4,096 versions"):
        list_variants([f"A={many}", f"B={many}"], [])
