"""Where the instructions of a module stand in its text, for who writes between them: :func:`find_statements`."""

from msgspec import Struct

from gpa_lsp.code.ptx.bodies import list_instruction_spans
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.module_text import ModuleReader
from gpa_lsp.code.ptx.parse import blank_comments


class FunctionText(Struct, frozen=True, kw_only=True):
    """Where a function with a body stands."""

    start: int  # behind the brace that opens its body
    # of each instruction, as in :attr:`~gpa_lsp.code.ptx.model.PtxFunction.instructions`: its first label or itself, itself with its guard, and the
    # place behind its semicolon
    spans: tuple[tuple[int, int, int], ...]


class ModuleStatements(Struct, frozen=True, kw_only=True):
    """A module's text with the places in it."""

    text: str  # without comments
    functions: dict[str, FunctionText]  # those with a body, by name. An alias stands where its function does.


def find_statements(module: PtxModule) -> ModuleStatements:
    """Find them.

    >>> from gpa_lsp.code.ptx.parse import parse_ptx
    >>> module = parse_ptx(".version 8.0 .target sm_80 .entry k() { .reg .pred %p<2>; A: @!%p1 bra A; ret; }", name="k")
    >>> found = find_statements(module)
    >>> [found.text[start:end] for _, start, end in found.functions["k"].spans]
    ['@!%p1 bra A;', 'ret;']
    """
    text = blank_comments(module.text.rstrip("\0"))
    reader = ModuleReader(name=module.name, original=module.text, text=text)
    reader.read()
    return ModuleStatements(
        text=text,
        functions={
            name: FunctionText(start=span.start, spans=list_instruction_spans(text, span.start, span.end))
            for name, span in reader.bodies.items()
        },
    )
