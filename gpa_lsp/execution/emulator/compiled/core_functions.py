"""The core: machine code that executes operations of kernels, 32 lanes at a time. :func:`find_core` has it compiled once on a machine."""

import os
from functools import cache
from pathlib import Path

import numpy as np

from gpa_lsp.execution.emulator.compiled import lane_operations, rows, schedule
from gpa_lsp.execution.emulator.compiled.lane_operations import FIRST_EXCHANGE, OPERATIONS, write_operations
from gpa_lsp.foundation.machine_code import VARIABLE, types
from gpa_lsp.foundation.machine_code.build import Code, load_module
from gpa_lsp.foundation.machine_code.translate import Written, read_functions, translate

_ROOTS = (
    rows.free_rows, rows.forget_rows, rows.free_column, rows.append_rows, schedule.send_lanes, schedule.run_batches,
    schedule.begin_next_batch,
)  # fmt: skip


class Core:
    """The core of this process.

    Args:
        code: of its functions.
    """

    def __init__(self, code: Code) -> None:
        self.call = code.call
        addresses = [code.find_address(f"lane_{name}") for name in list(OPERATIONS)[:FIRST_EXCHANGE]]
        self.functions = np.array(addresses, np.uint64)  # of lane operations, by code

    def has_done(self, name: str, *arguments: "np.ndarray | int | None") -> bool:
        """Call a function, and see whether it could do it."""
        return self.call(name, *arguments) != -1


def may_translate() -> bool:
    """Whether kernels that run for long may be translated, too."""
    return os.environ.get(VARIABLE) != "interpreter"


@cache
def find_core() -> Core:
    """The core."""
    return Core(
        load_module(
            lambda: translate((*_ROOTS, *read_lane_functions()), name="core"),
            read_sources(),
            name="core",
            functions=[one.__name__ for one in _ROOTS],
            level=1,
        )
    )


def read_lane_functions() -> list[Written]:
    """Functions of lane operations, on places in memory."""
    written = read_functions(write_operations(), vars(types) | vars(lane_operations), "lane operations")
    return [written[f"lane_{name}"] for name in OPERATIONS]


@cache
def read_sources() -> tuple[str, ...]:
    """All that the core is made from."""
    return tuple(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
