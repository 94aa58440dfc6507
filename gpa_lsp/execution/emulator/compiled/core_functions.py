"""The core: machine code that executes operations of kernels, 32 lanes at a time. :func:`find_core` has it compiled once on a machine."""

import ctypes
import os
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpa_lsp.execution.emulator.compiled import (
    addresses,
    matrices,
    memory,
    rows,
    schedule,
    shared_watch,
    textures,
    transfers,
)
from gpa_lsp.execution.emulator.compiled.lane_operations import OPERATIONS, list_steps, write_operations
from gpa_lsp.execution.emulator.compiled.model import MOST_FUNCTIONS, CoreMachine
from gpa_lsp.execution.emulator.engine.geometry import pack_lanes
from gpa_lsp.execution.emulator.semantics.find import find_names
from gpa_lsp.execution.emulator.semantics.model import Meaning
from gpa_lsp.foundation.machine_code import VARIABLE
from gpa_lsp.foundation.machine_code.build import Code, load_module
from gpa_lsp.foundation.machine_code.translate import Written, read_functions, translate

_ROOTS = (
    rows.free_rows, rows.forget_rows, rows.free_column, rows.append_rows, schedule.send_lanes, schedule.run_batches,
    schedule.begin_next_batch, memory.choose_lanes, memory.access_lanes, shared_watch.find_suspects, transfers.find_lost,
    shared_watch.pass_blocks, shared_watch.pass_warps, memory.find_wrong_copies, memory.copy_lanes,
)  # fmt: skip


class Core:
    """The core of this process.

    Args:
        code: of its functions.

    Attributes:
        functions: uint64, addresses of lane operations by number; 0 for those not yet compiled.
    """

    def __init__(self, code: Code) -> None:
        self.call = code.call
        self.functions = np.zeros(MOST_FUNCTIONS, np.uint64)
        self._lock = threading.Lock()
        self._codes: list[Code] = []

    def prepare(self, numbers: Iterable[int]) -> None:
        """Compile the lane operations that are not yet compiled.

        Raises:
            TranslationError: one is written in a way that the translator does not know.
        """
        with self._lock:
            wanted = {
                number: one for number in numbers if (one := OPERATIONS.find(number)) and not self.functions[number]
            }
            if not wanted:
                return
            # in an order of their own, so that what was compiled before is found again
            ordered = sorted(wanted.items(), key=lambda one: (one[1].value, one[1].other, one[1].bits))
            text = write_operations({f"operation_{place}": one for place, (_, one) in enumerate(ordered)})
            code = load_module(
                lambda: translate(_read_lane_functions(text), name="lanes"),
                (*read_sources(), text),
                name="lanes",
                level=1,
            )
            for place, (number, _) in enumerate(ordered):
                self.functions[number] = code.find_address(f"lane_operation_{place}")
            self._codes.append(code)

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
            lambda: translate(_ROOTS, name="core"),
            read_sources(),
            name="core",
            functions=[one.__name__ for one in _ROOTS],
            level=1,
        )
    )


def _read_lane_functions(text: str) -> list[Written]:
    written = read_functions(text, find_lane_names(), "lane operations")
    return [one for name, one in written.items() if name.startswith("lane_")]


@cache
def find_lane_names() -> dict[str, Any]:
    """Functions and types that the expressions of lane operations may name."""
    more = (
        CoreMachine, matrices.multiply_matrices, matrices.multiply_floats, matrices.find_unit, matrices.are_shared, matrices.have_no_offset,
        schedule.read_clock, addresses.pack, addresses.are_fixed, textures.surface_bases, textures.step_along,
        textures.surface_extents,
    )  # fmt: skip
    return find_names() | {one.__name__: one for one in more}


@cache
def read_sources() -> tuple[str, ...]:
    """Texts of all modules that the core and lane operations are compiled from."""
    folders = (Path(__file__).parent, Path(__file__).parents[1] / "semantics")
    return tuple(path.read_text(encoding="utf-8") for one in folders for path in sorted(one.rglob("*.py")))


def prepare_meanings(meanings: Iterable[Meaning]) -> None:
    """Compile the meanings of several instructions together."""
    find_core().prepare([OPERATIONS.number(step.function) for one in meanings for step in list_steps(one)])


_PLACE, _MASK = ctypes.c_void_p, ctypes.c_uint32
LANE_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, *(_PLACE,) * 6, ctypes.c_int64, *(_MASK,) * 3, _PLACE)


class LaneOperation:
    """Meaning of one instruction, evaluated by the core without a kernel.

    Args:
        meaning: it.
    """

    def __init__(self, meaning: Meaning) -> None:
        self.meaning = meaning
        self._steps = list_steps(meaning)
        self.reads_carry = any("k" in step.operands for step in self._steps)
        numbers = [OPERATIONS.number(step.function) for step in self._steps]
        core = find_core()
        core.prepare(numbers)
        self._functions = [LANE_FUNCTION(int(core.functions[number])) for number in numbers]

    def evaluate(self, active: Any, *sources: Any) -> Any:
        """Results of warps, [w, 32] each.

        Args:
            active: bool[w, 32], the lanes that execute it.
            sources: in the natural dtypes of the meaning's, [w, 32] or anything that broadcasts to that; the carry flag last.
        """
        shape = active.shape
        kept = {
            name: np.ascontiguousarray(np.broadcast_to(one, shape)) for name, one in zip("abcde", sources, strict=False)
        }
        if self.reads_carry:
            kept["k"] = np.ascontiguousarray(sources[-1]).reshape(shape)
        for place, kind in enumerate(self.meaning.results):
            kept[f"r{place}"] = np.zeros(shape, kind.natural_dtype)
        kept["new carry"] = np.zeros(shape, np.bool_)
        masks = pack_lanes(active)
        for step, function in zip(self._steps, self._functions, strict=True):
            if step.result not in kept:
                kept[step.result] = np.zeros(shape, f"u{step.function.bits // 8}")
            other = "new carry" if step.other_result == "k" else step.other_result or "new carry"
            names = (step.result, other, *step.operands, *("a",) * (3 - len(step.operands)))
            given = [(kept[name].ctypes.data, kept[name].strides[0]) if name in kept else (0, 0) for name in names]
            for warp, mask in enumerate(masks.tolist()):
                places = [start + warp * size for start, size in given]
                function(*places, None, 0, mask, mask, 0xFFFFFFFF, None)
        results = [kept[f"r{place}"] for place in range(len(self.meaning.results))]
        if self.meaning.carry:
            results.append(kept["new carry"])
        return tuple(results) if len(results) > 1 else results[0]
