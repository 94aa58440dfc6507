"""Faults gathered while a kernel runs: :class:`FaultLog`."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction
from gpa_lsp.execution.emulator.engine.geometry import WarpSet
from gpa_lsp.execution.emulator.model import DeviceError, Fault, FaultKind, PassedEnd
from gpa_lsp.foundation.ownership import describe_stand_in

_MOST_FAULTS = 1000
_ORDER = tuple(FaultKind)


class Access(Struct, frozen=True, kw_only=True):
    """A faulty memory instruction."""

    instruction: int  # static number
    kind: AccessKind  # what it does
    bytes: int  # that each lane accesses


class FaultLog:
    """Faults, once per instruction and kind, with counts.

    Args:
        instructions: all static instructions.

    Attributes:
        device_error: what a GPU would have ended the launch with first; None where it would have gone on.
    """

    def __init__(self, instructions: tuple[StaticInstruction, ...]) -> None:
        self._instructions = instructions
        self._found: dict[tuple[FaultKind, int | None], Fault] = {}
        self.device_error: DeviceError | None = None

    def add(
        self,
        kind: FaultKind,
        message: str,
        *,
        instruction: int | None = None,
        other: int | None = None,
        count: int = 1,
        block: int | None = None,
        thread: tuple[int, int, int] | None = None,
        is_fatal: bool = False,
        passed: PassedEnd | None = None,
    ) -> None:
        """Note a fault; of later ones of the same kind at the same instruction only the count is kept."""
        key = (kind, instruction)
        before = self._found.get(key)
        if before is not None:
            self._found[key] = replace(before, count=before.count + count, is_fatal=before.is_fatal or is_fatal)
            return
        if len(self._found) >= _MOST_FAULTS:
            return
        chain = None if instruction is None else self._instructions[instruction].chain
        stand_in = describe_stand_in(chain)
        self._found[key] = Fault(
            kind=kind,
            message=f"{message} ({stand_in})" if stand_in else message,
            instruction=instruction,
            chain=chain,
            other_chain=None if other is None else self._instructions[other].chain,
            count=count,
            block=block,
            thread=thread,
            is_fatal=is_fatal,
            passed=passed,
        )

    def end_on_gpu(self, error: DeviceError) -> None:
        """Note that a GPU ends the kernel here."""
        self.device_error = self.device_error or error

    def is_known(self, kind: FaultKind, instruction: int | None) -> bool:
        """Whether this instruction has such a fault already."""
        return (kind, instruction) in self._found

    def add_lanes(
        self,
        kind: FaultKind,
        message: str,
        warps: WarpSet,
        lanes: Any,
        *,
        instruction: int,
        other: int | None = None,
        is_fatal: bool = False,
        passed: PassedEnd | None = None,
    ) -> None:
        """Note a fault of some lanes.

        Args:
            kind: as of :class:`Fault`.
            message: as of :class:`Fault`; tells of the first lane.
            lanes: int[k] positions in the warp set; none is no fault.
            passed: as of :class:`Fault`.
        """
        if len(lanes) == 0:
            return
        block, thread = find_thread(warps, int(lanes[0]))
        self.add(
            kind,
            message,
            instruction=instruction,
            other=other,
            count=len(lanes),
            block=block,
            thread=thread,
            is_fatal=is_fatal,
            passed=passed,
        )

    def list_faults(self) -> tuple[Fault, ...]:
        """All of them: fatal ones first, then in the order of :class:`FaultKind`, then by instruction."""
        return tuple(
            sorted(
                self._found.values(),
                key=lambda fault: (
                    not fault.is_fatal,
                    _ORDER.index(fault.kind),
                    -1 if fault.instruction is None else fault.instruction,
                ),
            )
        )


def find_thread(warps: WarpSet, lane: int) -> tuple[int, tuple[int, int, int]]:
    """Linear index of the block, and the thread in it, of a position in a warp set."""
    blocks = warps.blocks
    number = int(warps.ids[lane // 32]) * 32 + lane % 32
    slot, linear = divmod(number, blocks.geometry.lanes_per_block)
    x, y, _ = blocks.geometry.block
    return int(blocks.numbers[slot]), (linear % x, linear // x % y, linear // (x * y))
