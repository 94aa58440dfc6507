"""A tiny assembler: listings a reader can see become :class:`Instructions` with a :class:`Function` around them.

The notation is that of :mod:`tests.binary.listing`, with nvdisasm's labels::

    start:
        @P0 BRA `(done)
        BRX R2 -0x10 (*"BRANCH_TARGETS start,done"*)
        CALL.REL.NOINC `($kernel$helper)
    done:
        EXIT
    $kernel$helper:
        RET.REL.NODEC R20 `(kernel)

A label that starts with ``$`` opens a sub-function. A name that is no label of the listing is a symbol elsewhere.
"""

import re
from itertools import pairwise
from typing import Any

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Flow, Function, Instructions
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.model import FlowGraph
from tests.binary.listing import parse_listing
from tests.rows.builders import make_function, make_sub_function

_COMMENT = re.compile(r"\s*(?:#|//).*")
_LABEL = re.compile(r"([\w.$]+):")
_TARGET_LIST = re.compile(r'\(\*"BRANCH_TARGETS (.*?)"\*\)')
_QUOTED_OFFSET = re.compile(r"`\((0x[0-9a-f]+)\)")
_ELSEWHERE = re.compile(r"`\((.*?)\)")


def assemble(listing: str, name: str = "kernel", **facts: Any) -> tuple[Function, Instructions]:
    """The function and its instructions.

    Args:
        listing: in the notation above.
        name: of the function.
        facts: other fields of the function.
    """
    lines = [line for one in listing.splitlines() if (line := _COMMENT.sub("", one).strip())]
    labels: dict[str, int] = {}
    listed: dict[int, list[str]] = {}
    count = 0
    for line in lines:
        if label := _LABEL.fullmatch(line):
            labels[label[1]] = count
            continue
        if targets := _TARGET_LIST.search(line):
            listed[count * INSTRUCTION_BYTES] = targets[1].split(",")
        count += 1
    text = _QUOTED_OFFSET.sub(r"\1", _TARGET_LIST.sub("", "\n".join(lines)))
    instructions = parse_listing(text)
    subs = [(label, first) for label, first in labels.items() if label.startswith("$") and first < count]
    function = make_function(
        name,
        count,
        sub_functions=tuple(
            make_sub_function(label, first, end - first) for (label, first), (_, end) in pairwise([*subs, ("", count)])
        ),
        indirect_branch_targets={
            offset: tuple(INSTRUCTION_BYTES * labels[label] for label in targets) for offset, targets in listed.items()
        },
        call_symbols={
            row * INSTRUCTION_BYTES: symbol[1]
            for row, one in enumerate(instructions.texts)
            if instructions.flow[row] in (Flow.BRANCH, Flow.CALL) and (symbol := _ELSEWHERE.search(one))
        },
        **facts,
    )
    return function, instructions


def build(listing: str) -> FlowGraph:
    """The flow graph of a listing."""
    return build_flow_graph(*assemble(listing))
