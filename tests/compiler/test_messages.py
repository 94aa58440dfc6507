"""Compilers' output as messages; the texts are real output."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.execution.compiler.compile import explain_placeless
from gpa_lsp.execution.compiler.included_files import explain_missing_headers, find_missing_header
from gpa_lsp.execution.compiler.messages import MOST_MESSAGES, parse_messages
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerFlags, CompilerKind
from gpa_lsp.foundation.errors import ProblemSeverity

FRONT_END = """\
src/e1.cu(7): error: identifier "yy" is undefined
   __attribute__((global)) void tabbed(int *p) { ((p)->nothing); yy = 3; }
                                                                 ^

src/e1.cu(3): error: expression must have class type but it has type "int"
  template<class T> struct S { T v; __attribute__((device)) void go(){ v.foo(); } };
                                                                       ^
          detected during:
            instantiation of "void S<T>::go() [with T=int]" at line 4
            instantiation of "void f(T) [with T=int]" at line 5 of "/p/a b.cuh"

src/e1.cu(5): warning #177-D: variable "unused" was declared but never referenced
  __global__ void k(float*x,int n){ int unused; }
                                        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

2 errors detected in the compilation of "src/e1.cu".
"""


def test_messages_of_the_front_end() -> None:
    line = "\t__global__ void tabbed(int *p) { LOAD(p); yy = 3; }"
    found = parse_messages(FRONT_END, find_line=lambda path, number: line if number == 7 else None)
    assert [(one.severity.value, str(one.path), one.line, one.column, one.number) for one in found] == [
        ("error", "src/e1.cu", 7, line.index("yy") + 1, None),
        ("error", "src/e1.cu", 3, 70, None),
        ("note", "src/e1.cu", 4, None, None),
        ("note", "/p/a b.cuh", 5, None, None),
        ("warning", "src/e1.cu", 5, 39, "177"),
    ]
    assert found[0].text == 'identifier "yy" is undefined'
    assert found[2].text == 'during instantiation of "void S<T>::go() [with T=int]"'


@pytest.mark.parametrize(
    ("output", "severity", "place", "text"),
    [
        ("src/e2.cu:1:10: fatal error: missing_one.h: No such file or directory\n    1 | #include\n      |          ^~~~~\ncompilation terminated.",
         "error", ("src/e2.cu", 1, 10), "missing_one.h: No such file or directory"),
        ("/a.cu(1): catastrophic error: cannot open source file \"x.h\"\n  #include \"x.h\"\n                ^\n", "error", ("/a.cu", 1, 15),
         'cannot open source file "x.h"'),
        ("ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x13880 bytes, 0xc000 max)", "error", (None, None, None),
         "Entry function '_Z1kPf' uses too much shared data (0x13880 bytes, 0xc000 max)"),
        ("ptxas fatal   : Unresolved extern function '_Z1gi'", "error", (None, None, None), "Unresolved extern function '_Z1gi'"),
        ("ptxas warning : Stack size for entry function 'k' cannot be statically determined", "warning", (None, None, None),
         "Stack size for entry function 'k' cannot be statically determined"),
        ("ptxas /tmp/x.ptx, line 26; error   : Not a name of any known instruction: 'bogus'", "error", (None, None, None),
         "Not a name of any known instruction: 'bogus' (line 26 of the PTX)"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_20'", "error", (None, None, None), "Unsupported gpu architecture 'compute_20'"),
        ("nvcc warning : incompatible redefinition for option 'std', the last value of this option was used", "warning", (None, None, None),
         "incompatible redefinition for option 'std', the last value of this option was used"),
        ("nvlink error   : Undefined reference to '_Z1gi' in 'x.o'", "error", (None, None, None), "Undefined reference to '_Z1gi' in 'x.o'"),
        ("sh: 1: gcc: not found", "error", (None, None, None), "gcc: not found"),
        ("Command-line error: cannot open source file \"foo.h\"", "error", (None, None, None), 'cannot open source file "foo.h"'),
        ("At end of source: error: expected a \"}\"", "error", (None, None, None), 'expected a "}"'),
        ("nvrtc: error: unrecognized option --x found", "error", (None, None, None), "unrecognized option --x found"),
        (r"C:\p\k.cu(12): error C2065: 'y': undeclared identifier", "error", (r"C:\p\k.cu", 12, None), "'y': undeclared identifier"),
        ("/p/k.cu:4: warning: \"N\" redefined", "warning", ("/p/k.cu", 4, None), '"N" redefined'),
        ("/p/k.cu(9): remark #20: text", "note", ("/p/k.cu", 9, None), "text"),
    ],
)  # fmt: skip
def test_one_message_of_each_kind(
    output: str, severity: str, place: tuple[str | None, int | None, int | None], text: str
) -> None:
    [found] = parse_messages(output)
    path = None if place[0] is None else Path(place[0])
    assert (found.severity.value, found.path, found.line, found.column, found.text) == (
        severity,
        path,
        *place[1:],
        text,
    )


def test_what_is_no_message_is_left_out() -> None:
    told = (
        "ptxas info    : 0 bytes gmem\nptxas info    : Used 8 registers, used 0 barriers\nIn file included from a.cu:3:\n"
        '1 error detected in the compilation of "x".\n'
    )
    assert parse_messages(told) == ()


def test_errors_are_not_pushed_out_by_warnings() -> None:
    output = (
        "".join(f"/a.cu({number}): warning #1-D: w{number}\n" for number in range(5000)) + "/a.cu(1): error: last\n"
    )
    found = parse_messages(output)
    assert len(found) == MOST_MESSAGES
    assert found[0].text == "last"


def test_the_same_said_by_two_passes_is_said_once() -> None:
    assert len(parse_messages("/a.cu(1): error: x\n/a.cu(1): error: x\n/a.cu(2): error: x\n")) == 2


@given(
    st.lists(
        st.sampled_from(
            [
                "/a.cu(3): error: ",
                "ptxas ",
                "error",
                ": ",
                "  ^",
                "\n",
                "(",
                ")",
                "12",
                " at line 3",
                "detected during ",
                "x" * 50,
                "é",
            ]
        ),
        max_size=30,
    )
)
def test_any_output_is_read(parts: list[str]) -> None:
    for message in parse_messages("".join(parts)):
        assert message.line is None or message.line > 0


def test_hostile_output_is_read_fast() -> None:
    assert (
        parse_messages(
            "(1): error: " * 100_000 + "\n" + "a(" * 200_000 + "error\n" + " detected during instantiation of" * 10_000
        )
        != ()
    )
    assert parse_messages("x:error" * 300_000) == ()


def make_failed(output: str) -> CompiledUnit:
    return CompiledUnit(
        source=Path("/k.cu"),
        kind=CompilerKind.NVRTC,
        compiler="",
        compute_capability=(8, 0),
        ptx=None,
        cubin=None,
        messages=parse_messages(output),
    )


def test_a_missing_header_says_where_was_searched_and_what_to_do() -> None:
    unit = make_failed('/k.cu(1): catastrophic error: cannot open source file "x.h"')
    bare = explain_missing_headers(unit, CompilerFlags(directory=Path("/")))
    assert "no compile command of this file was found; add compile_commands.json" in bare.messages[0].text
    known = explain_missing_headers(
        unit, CompilerFlags(directory=Path("/"), includes=(Path("/inc"),), origin="build/build.ninja")
    )
    assert "/inc were searched, the include folders of build/build.ninja" in known.messages[0].text
    assert find_missing_header(known.messages[0].text) == "x.h"


def test_without_cudas_headers_their_wheels_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpa_lsp.execution.compiler.included_files.find_cuda_headers", tuple)
    unit = make_failed('/k.cu(1): catastrophic error: cannot open source file "cuda_fp16.h"')
    assert (
        "nvidia-cuda-runtime nvidia-cuda-cccl"
        in explain_missing_headers(unit, CompilerFlags(directory=Path("/"))).messages[0].text
    )


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (
            "ptxas fatal   : Unresolved extern function '_Z1gi'",
            "Unresolved extern function '_Z1gi'; define it in this source",
        ),
        (
            "ptxas info    : Compile time = 1.750 ms\n\0ptxas error   : Entry function '_Z1kPf' uses too much shared data "
            "(0x13880 bytes, 0xc000 max)\n",
            "Entry function '_Z1kPf' uses too much shared data (0x13880 bytes, 0xc000 max); declare less, or take the array",
        ),
        ("nvcc fatal   : Something broke", "Something broke; no line is named"),
    ],
)
def test_an_error_without_a_place_names_the_source_and_a_remedy(output: str, words: str) -> None:
    (message,) = explain_placeless(make_failed(output)).messages
    assert (message.path, message.line, message.severity) == (Path("/k.cu"), None, ProblemSeverity.ERROR)
    assert message.text.startswith(words)


def test_that_assembling_was_given_up_is_said_only_where_nothing_says_why() -> None:
    given_up = "ptxas fatal   : Ptx assembly aborted due to errors"
    why = "ptxas /tmp/k.ptx, line 26; error   : Not a name of any known instruction: 'bogus'"
    (message,) = explain_placeless(make_failed(f"{why}\n{given_up}")).messages
    assert "(line 26 of the PTX); correct the asm statement" in message.text
    assert len(explain_placeless(make_failed(given_up)).messages) == 1


def test_what_the_assembler_tells_of_functions_is_no_message() -> None:
    output = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1kPfi' for 'sm_80'
ptxas info    : Function properties for _Z1kPfi
    256 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 58 registers, used 0 barriers, 256 bytes cumulative stack size, 364 bytes cmem[0]
ptxas info    : Function properties for _Z3reci
ptxas         .     40 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
"""
    assert parse_messages(output) == ()
