"""The heaviest launch of each kernel, or a chosen one, kept with its data as a description that the emulator reads: :class:`Recorder`."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_bytes, format_count_of
from gpa_lsp.basis.whole_files import atomic_write
from gpa_lsp.binary.linkage_names import find_bare_name
from gpa_lsp.emulator.resident import ResidentMemory
from gpa_lsp.launches.model import TextureInput
from gpa_lsp.launches.pointer_uses import find_pointer_uses
from gpa_lsp.launches.write_recording import Recording, write_recording
from gpa_lsp.programs.loaded_code import find_source
from gpa_lsp.programs.messages import LaunchRequest
from gpa_lsp.programs.model import RecordedLaunch
from gpa_lsp.programs.reached_memory import find_reached_memory
from gpa_lsp.programs.session import KernelTally

_TIME_SHARE = 0.1
"""Copies of data may take this part of the time a program runs."""
_MOST_HELD = 4
"""Launches of the largest size that are held at once, of all kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """The launch and what its memory held before it."""

    request: LaunchRequest
    number: int
    arrays: dict[int, npt.NDArray[np.uint8]]
    """Base of the allocation or variable → its bytes."""
    names: dict[int, str]
    """Of variables."""
    textures: dict[int, TextureInput]
    """Handle → the texture, with texels of its own."""
    has_addresses: bool
    """Arrays hold addresses or handles: everything has to lie where it lay."""

    @property
    def size_bytes(self) -> int:
        """Of all arrays and texels."""
        return sum(data.nbytes for data in self.arrays.values()) + sum(
            one.texels.nbytes for one in self.textures.values()
        )


@dataclass(slots=True, kw_only=True)
class _Kept:
    snapshot: _Snapshot
    warp_instructions: int


class Recorder:
    """Copies what launches read, and keeps that of the heaviest.

    Args:
        limit_bytes: of the data of one launch.
        chosen: the launch of each kernel to keep instead, from 1; None for the heaviest.
    """

    def __init__(self, limit_bytes: int, chosen: int | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._chosen = chosen
        self._started = time.process_time()
        self._spent_s = 0.0
        self._kept: dict[int, _Kept] = {}
        self._refused: dict[int, str] = {}
        self._stems: set[str] = set()

    def watch(self, tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> Callable[[int], None] | None:
        """Copy what a launch reads, where there is time for it; gives what is to be told of its cost."""
        key = id(tally)
        if self._chosen not in (None, tally.launches):
            return None
        begun = time.process_time()
        if key in self._kept and self._spent_s > _TIME_SHARE * (begun - self._started):
            return None
        snapshot = self._take(tally, request, memory)
        self._spent_s += time.process_time() - begun
        if snapshot is None:
            return None

        def judge(warp_instructions: int) -> None:
            before = self._kept.get(key)
            if before is None and self._count_held_bytes() + snapshot.size_bytes > _MOST_HELD * self._limit_bytes:
                self._refused.setdefault(key, "too much is kept of other kernels")
            elif before is None or warp_instructions > before.warp_instructions:
                self._kept[key] = _Kept(snapshot=snapshot, warp_instructions=warp_instructions)
                self._refused.pop(key, None)

        return judge

    def _take(self, tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> _Snapshot | None:
        memory.refresh_textures()
        reached = find_reached_memory(tally, request, memory)
        held = reached.size_bytes
        if held > self._limit_bytes:
            limit = format_bytes(self._limit_bytes)
            self._refused.setdefault(id(tally), f"its arrays have {format_bytes(held)}; up to {limit} are kept")
            return None
        return _Snapshot(
            request=request,
            number=tally.launches,
            arrays={base: memory.bytes_at(base, size).copy() for base, size in reached.arrays.items()},
            names=reached.names,
            textures={handle: replace(one, texels=one.texels.copy()) for handle, one in reached.textures.items()},
            has_addresses=reached.has_addresses,
        )

    def explain(self, tally: KernelTally) -> str:
        """Why no launch of a kernel was kept; empty where one was."""
        if id(tally) in self._kept:
            return ""
        is_short = self._chosen is not None and tally.launches < self._chosen
        otherwise = f"it was launched {format_count_of(tally.launches, 'time')}" if is_short else "none ran to its end"
        return self._refused.get(id(tally), otherwise)

    def write(self, tally: KernelTally, folder: Path) -> RecordedLaunch | None:
        """Write the description of a kernel's heaviest launch and its data into a folder; None where none was kept.

        Raises:
            OSError: it cannot be written.
        """
        kept = self._kept.get(id(tally))
        if kept is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        module = folder / tally.module.path.name
        with atomic_write(module, encoding=None) as stream:
            stream.write(tally.module.path.read_bytes())
        stem = self._choose_stem(find_bare_name(tally.facts.kernel.name))
        return RecordedLaunch(
            description=write_recording(_make_recording(tally, kept.snapshot), folder, stem),
            module=module,
            warp_instructions=kept.warp_instructions,
            number=kept.snapshot.number,
            source=find_source(tally.facts.kernel),
            is_heaviest=self._chosen is None,
        )

    def _count_held_bytes(self) -> int:
        return sum(one.snapshot.size_bytes for one in self._kept.values())

    def _choose_stem(self, name: str) -> str:
        """A name that no other kernel of this run has; files of earlier runs are replaced."""
        wanted = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)[:80] or "kernel"
        stem, number = wanted, 1
        while stem in self._stems:
            number += 1
            stem = f"{wanted}_{number}"
        self._stems.add(stem)
        return stem


def _make_recording(tally: KernelTally, snapshot: _Snapshot) -> Recording:
    kernel, request = tally.facts.kernel, snapshot.request
    return Recording(
        kernel=kernel.name,
        heading=f"Launch {snapshot.number} of this kernel, recorded while the program ran.",
        grid=request.grid,
        block=request.block,
        shared_bytes=request.shared_bytes,
        parameters=kernel.parameters,
        content=request.parameters,
        arrays=snapshot.arrays,
        variables=snapshot.names,
        sources=tally.facts.sources,
        uses=find_pointer_uses(kernel),
        textures=snapshot.textures,
        has_addresses=snapshot.has_addresses,
    )
