"""Sources made to stop the server: what is done with a text on the event loop ends soon, whatever is in it."""

import subprocess
import sys

import pytest

from gpa_lsp.code.sources.directives import hide_directives
from gpa_lsp.code.sources.trees import LARGEST_SOURCE_BYTES, read_tree
from gpa_lsp.editor.lines.finder import find_definitions
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.line_map import map_lines
from tests.conftest import ROOT
from tests.patience import CPU_LIMIT_S, LIMIT_S, in_bounded_time

"""A guard: without the bounds these take minutes or hours, with them less than a second."""

SIZE = LARGEST_SOURCE_BYTES - 100


def repeat(text: str, size: int = SIZE) -> str:
    return text * (size // len(text))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "__global__ /* ",
            "__global__ f(",
            "__global__ a" + " " * 3900,
            "__global__ a" + "< >" * 1300,
            "__global__ a" + "<" * 3900,
        ),
        *(
            "__global__ " + "a " * 1950,
            "__global__ " + "alignas(1) " * 300,
            "\r",
            "def ",
            " ",
            "template<",
            "attributes(a) ",
        ),
    ],
)
def test_kernels_are_found_in_no_time(text: str) -> None:
    with in_bounded_time():
        found = find_definitions(repeat(text, 1_000_000) + "\n__global__ void last(int x) {}")
    assert not found or "last" in found


def test_lines_that_pair_up_one_by_one_do_not_cost_the_square() -> None:
    old, new = [], []
    for number in range(20_000, 0, -1):
        for lines, letter in ((old, "o"), (new, "n")):
            lines += [f"{letter}{number}", f"u{number - 1}", f"u{number}"]
    with in_bounded_time():
        found = map_lines(old, new)
    assert all(not line or old[index] == new[line - 1] for index, line in enumerate(found.current_lines))


@pytest.mark.parametrize("name", ["a ", "f(int) ", "operator ", "<", ">::", "[abi:x]", "(anonymous namespace)::"])
def test_a_name_of_a_million_characters_is_shortened_in_no_time(name: str) -> None:
    with in_bounded_time():
        assert len(shorten_name(repeat(name, 1_000_000))) <= 60


HARD = [
    *(("k.cu", "a<"), ("k.cu", "<a<b>*c"), ("k.cu", "(a)&"), ("k.cu", "(a)&f({})&"), ("k.cu", "a[b]"), ("k.jl", "a**")),
    *(
        ("k.jl", "not "),
        ("k.py", "a?b:"),
        ("k.f90", "a[b]"),
        ("k.jl", "a**" * 5000 + ";"),
        ("k.cu", "a<" * 50_000 + ";"),
    ),
]
"""The shorter ones are one expression without end; the others pass for statements, and take ten seconds and more."""


def test_texts_that_are_hard_to_parse_are_not_parsed() -> None:
    """Parse in a process of its own: texts like these have ended the process that parsed them."""
    program = (
        "import sys, time; from gpa_lsp.code.sources.trees import read_tree\n"
        f"for file, text in {HARD!r}:\n"
        f"    whole, started = text * ({SIZE} // len(text)), time.process_time()\n"
        "    for _ in range(20): read_tree(file, whole)\n"
        "    print(file, text[:10], f'{time.process_time() - started:.1f} s')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert all(float(line.split()[-2]) < CPU_LIMIT_S / 5 for line in done.stdout.splitlines()), done.stdout


@pytest.mark.parametrize("text", ["#pragma ", "#pragma \\\n", "_Pragma(", '_Pragma("', "#define a \\\n", "# "])
def test_directives_are_hidden_in_no_time(text: str) -> None:
    whole = repeat(text).encode()
    with in_bounded_time():
        assert len(hide_directives(whole)) == len(whole)


def test_what_people_write_is_parsed() -> None:
    kernel = "__global__ void f(float *x, int n)\n{\n    for (int i = 0; i < n; ++i)\n        x[i] = x[i] * 2 + (float)i;\n}\n\n"
    tree = read_tree("k.cu", repeat(kernel, 300_000))
    assert tree is not None and not tree.root.has_error
    table = "const int table[] = {" + "1234, " * 20_000 + "0};\n"
    assert read_tree("k.cu", table + kernel) is not None
    assert read_tree("k.cu", "x" * (LARGEST_SOURCE_BYTES + 1)) is None
