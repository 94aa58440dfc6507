"""Names are demangled and shortened without losing which function is meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.kernel.names import demangle, shorten_distinctly, shorten_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_Z5saxpyifPKfPf", "saxpy(int, float, float const*, float*)"),
        ("?f@@YAXH@Z", "void __cdecl f(int)"),
        ("silu_kernel", "silu_kernel"),
        ("$_Z6kernelPf$_Z3fooi", "foo(int)"),
        ("$__internal_3_$__cuda_sm20_div_rn_f64_full", "__cuda_sm20_div_rn_f64_full"),
        ("<outside this module>", "<outside this module>"),
        ("", ""),
        ("a\0b", "a\0b"),
    ],
)
def test_linkage_names_of_every_kind(name: str, expected: str) -> None:
    assert demangle(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("daxpy_kernel(int, double, double *, double *)", "daxpy_kernel"),
        ("void squareSort<int, &cmp<int>>(T1 *, int)", "squareSort<int, &cmp<int>>"),
        ("void sort<int, &int cmp<int>(int, int)>(int*, int)", "sort<int, &int cmp<int>(int, int)>"),
        ("void at::native::<unnamed>::grid_kernel<float>(T1)", "at::native::grid_kernel<float>"),
        ("void at::native::(anonymous namespace)::grid_kernel<float>(T1)", "at::native::grid_kernel<float>"),
        ("cudapy::__main__::kernel[abi:v1][abi:cw51](Array<float, 1, C>)", "cudapy::__main__::kernel"),
        ("foo::operator()(int) const", "foo::operator()"),
        ("operator<<(std::ostream&, foo const&)", "operator<<"),
        ("bool operator< <int>(foo<int> const&)", "operator< <int>"),
        ("silu_kernel", "silu_kernel"),
        ("<outside this module>", "<outside this module>"),
        ("(", "("),
        ("", ""),
    ],
)
def test_short_names(name: str, expected: str) -> None:
    assert shorten_name(name) == expected


def test_long_names_lose_template_arguments_then_namespaces() -> None:
    name = f"void lib::deep::Kernel<lib::Gemm<{'x' * 90}>>(T1::Params)"
    assert shorten_name(name) == "lib::deep::Kernel<…>"
    assert shorten_name(name, 14) == "…::Kernel<…>"
    assert shorten_name(name, 9) == "…::Kerne…"


def test_alike_names_are_numbered() -> None:
    names = [f"void lib::Kernel<{letter * 90}>(int)" for letter in "ab"]
    assert list(shorten_distinctly([*names, names[0], "f(int)"]).values()) == [
        "lib::Kernel<…>#1", "lib::Kernel<…>#2", "f",
    ]  # fmt: skip


@given(st.text(alphabet="ab<>(){}:,*& ~_operator-", max_size=80), st.integers(8, 60))
def test_any_text_becomes_a_short_name(text: str, max_chars: int) -> None:
    assert len(shorten_name(text, max_chars)) <= max_chars
