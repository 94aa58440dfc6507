"""Messages of a compiler that name no file: which source they are of, and what to do."""

import re
from dataclasses import replace

from gpa_lsp.compiler.model import CompiledUnit, CompilerMessage
from gpa_lsp.errors import ProblemSeverity

_ABORTED = re.compile(r"Ptx assembly aborted due to errors")
_REMEDIES = (
    (re.compile(r"\(line \d+ of the PTX\)"), "correct the asm statement that this is of"),
    (re.compile(r"Unresolved extern"), "define it in this source or in what it includes: nothing is linked to it"),
    (
        re.compile(r"too much shared data"),
        "declare less, or take the array as dynamic shared memory (extern __shared__)",
    ),
    (re.compile(r"uses too much|too much global"), "declare less of it"),
    (re.compile(r"architecture|compute_\d|sm_\d"), "choose another architecture, or another release of CUDA"),
    (re.compile(r"expected a"), "the source ends before it: look for what is not closed"),
)
_REMEDY = "no line is named: compile the source by itself to see more"


def explain_placeless(unit: CompiledUnit) -> CompiledUnit:
    """The unit with its source as the place of each message that has none, and a remedy behind each error among them.

    That assembling was given up is left out where something says why.
    """
    if all(one.path is not None for one in unit.messages):
        return unit
    others = any(one.severity is ProblemSeverity.ERROR and not _ABORTED.match(one.text) for one in unit.messages)
    kept = (one for one in unit.messages if not (others and _ABORTED.match(one.text)))
    return replace(unit, messages=tuple(_explain(one, unit) for one in kept))


def _explain(message: CompilerMessage, unit: CompiledUnit) -> CompilerMessage:
    if message.path is not None:
        return message
    if message.severity is not ProblemSeverity.ERROR:
        return replace(message, path=unit.source)
    remedy = next((remedy for pattern, remedy in _REMEDIES if pattern.search(message.text)), _REMEDY)
    return replace(message, path=unit.source, text=f"{message.text}; {remedy}")
