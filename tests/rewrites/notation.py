"""Rewrites as a reader sees them: a text whose lines of advice are marked, and the text afterwards.

    rewrite("loop_unrolling", '''
        __global__ void k(float *x, int n) {
          for (int i = 0; i < n; ++i)  //!
            x[i] = 0;
        }
    ''', unroll_copies=4)

The mark ``//!`` (``#!`` in Python) stands behind the lines the advice is about and is taken away with the blanks before it. Indentation common
to all lines is taken away, too.
"""

from textwrap import dedent

from gpa_lsp.diagnosis.rewrites.find import find_rewrites
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteContext, apply_edits

MARKS = ("//!", "#!")


def read_marked(text: str) -> tuple[str, tuple[int, ...]]:
    """The text without marks, and the 1-based lines that had one."""
    lines, marked = [], []
    for number, line in enumerate(dedent(text).lstrip("\n").split("\n"), start=1):
        words, end = line.rstrip("\r"), "\r" if line.endswith("\r") else ""
        mark = next((mark for mark in MARKS if words.endswith(mark)), None)
        if mark is not None:
            marked.append(number)
            words = words.removesuffix(mark).rstrip()
        lines.append(words + end)
    return "\n".join(lines), tuple(marked)


def offer(optimizer: str, text: str, *, file: str = "k.cu", kind: str = "", **context: object) -> tuple[Rewrite, ...]:
    """The rewrites offered for the marked lines; those of one kind, where it is named."""
    plain, lines = read_marked(text)
    found = find_rewrites(file, plain, lines, RewriteContext(optimizer=optimizer, **context))  # type: ignore[arg-type]
    return tuple(one for one in found if one.name == kind or not kind)


def rewrite(optimizer: str, text: str, *, file: str = "k.cu", kind: str = "", **context: object) -> str:
    """The text after the only rewrite that is offered."""
    found = offer(optimizer, text, file=file, kind=kind, **context)
    assert len(found) == 1, [one.title for one in found]
    return apply_edits(read_marked(text)[0], found[0].edits)


def plain(text: str) -> str:
    """An expected text without the indentation of the test."""
    return dedent(text).lstrip("\n")
