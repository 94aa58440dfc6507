"""Which pipe of the SM executes each instruction, and how busy the pipes are."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tomli
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Pipe, describe_mnemonic
from gpa_lsp.code.binary.sass import split_operands
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.foundation.prose import Sentence, say
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.opcodes import find_longest_entry

_TABLE = "pipes.toml"
_SPECIAL = "S2R"
_PERCENT = 100.0
_NAMES = {Pipe.TEXTURE: "tex", Pipe.CONTROL: "cbu"}  # Pipes whose name here is not that of the opcode table


class PipeFacts(Struct, frozen=True, kw_only=True):
    """One pipe."""

    name: str  # e.g. ``alu``.
    title: str  # for people
    says: str  # what it executes
    counters: tuple[str, ...]  # metrics with its use in percent, best first
    rates: Mapping[str, float]  # architecture → warp instructions per cycle and SM
    throughput: str  # the figure of the architecture's table that holds the rate instead, per sub-partition; empty where ``rates`` do
    assumed: tuple[str, ...]  # architectures whose rate was not measured
    remedy: Sentence  # what helps when it is busy

    def find_rate(self, architecture: Architecture) -> float | None:
        """Warp instructions per cycle and SM; None when unknown."""
        if not self.throughput:
            return self.rates.get(architecture.name)
        figure = getattr(architecture.throughput, self.throughput).value
        return None if figure is None else float(figure) * architecture.sm.sub_partitions_per_sm.value


class PipeUse(Struct, frozen=True, kw_only=True):
    """How busy a pipe is."""

    pipe: PipeFacts  # which
    # executed warp instructions, over all launches; None for a pipe that only its counter knows
    instructions: int | None
    counted_ratio: float | None  # its use by its counter, of the longest launch, 0..1; None when not collected
    # instructions over rate, SMs and active cycles, 0..1; None without a rate or cycles. Instructions that hold a pipe for more than one slot make it
    # less than what is counted.
    computed_ratio: float | None

    @property
    def use_ratio(self) -> float | None:
        """What is counted, else what is computed."""
        return self.counted_ratio if self.counted_ratio is not None else self.computed_ratio


@cache
def list_pipes() -> tuple[PipeFacts, ...]:
    """All pipes, in the order of their numbers in a column."""
    return tuple(
        PipeFacts(
            name=name,
            title=entry["title"],
            says=entry["says"],
            counters=tuple(entry["counters"]),
            rates={key: float(rate) for key, rate in entry["rates"].items()},
            throughput=entry.get("throughput", ""),
            assumed=tuple(entry["assumed"]),
            remedy=say(entry["remedy"]),
        )
        for name, entry in _read_table()["pipes"].items()
    )


def find_pipe(mnemonic: str, architecture: str) -> str:
    """The pipe of an opcode on an architecture; ``none`` for what no pipe is known to execute.

    >>> find_pipe("VIADD", "sm_90"), find_pipe("HFMA2.MMA", "sm_80"), find_pipe("HFMA2", "sm_86"), find_pipe("BRA", "sm_70")
    ('fma', 'tensor', 'fma', 'cbu')
    """
    named = find_longest_entry(_read_opcodes(architecture), mnemonic)
    if named is not None:
        return named
    pipe = describe_mnemonic(mnemonic).pipe
    return "none" if pipe is None else _NAMES.get(pipe, pipe.value)


def assign_pipes(facts: KernelFacts, architecture: str) -> npt.NDArray[np.int64]:
    """int64[n], the number in :func:`list_pipes` of each instruction; -1 where nothing is disassembled."""
    number_of = {pipe.name: number for number, pipe in enumerate(list_pipes())}
    column = facts.rows.spread_by_mnemonic(lambda name: number_of[find_pipe(name, architecture)])
    other_pipes = {
        register: number_of[name]
        for name, registers in _read_table()["special_registers"].items()
        for register in registers
    }
    for row in np.flatnonzero(facts.rows.spread_by_mnemonic(_SPECIAL.__eq__, unknown=0)).tolist():
        register = split_operands(facts.rows.texts[row].rpartition(f"{_SPECIAL} ")[2])[-1]
        column[row] = other_pipes.get(register, column[row])
    return column


def measure_pipes(facts: KernelFacts, executions: npt.NDArray[np.int64] | None) -> tuple[PipeUse, ...]:
    """Every pipe that executed something or has a counter that says so, busiest first.

    Args:
        executions: int64[n], warp-level; None when not collected.
    """
    architecture = facts.architecture
    counts: npt.NDArray[np.int64] | None = None
    if architecture is not None and executions is not None:
        pipes = assign_pipes(facts, architecture.name)
        known = pipes >= 0
        counts = np.bincount(pipes[known], weights=executions[known], minlength=len(list_pipes())).astype(np.int64)
    cycles = count_active_cycles(facts)
    uses = []
    for number, pipe in enumerate(list_pipes()):
        instructions = None if counts is None or not _executes(pipe) else int(counts[number])
        percent = facts.metric(*pipe.counters)
        rate = None if architecture is None else pipe.find_rate(architecture)
        computed = instructions / (rate * cycles) if instructions is not None and rate and cycles else None
        use = PipeUse(
            pipe=pipe,
            instructions=instructions,
            counted_ratio=None if percent is None else percent / _PERCENT,
            computed_ratio=computed,
        )
        if instructions or use.use_ratio:
            uses.append(use)
    return tuple(sorted(uses, key=lambda use: -(use.use_ratio or 0.0)))


def count_active_cycles(facts: KernelFacts) -> float | None:
    """Cycles in which SMs had work, over all SMs and launches; None when a launch does not tell, or aggregates stand beside other launches."""
    if facts.kernel.has_mixed_launches:
        return None
    sm_count = facts.kernel.device.sm_count
    launches = [launch for launch in facts.kernel.launches if launch.failure is None]
    cycles = [launch.read_number("sm__cycles_active.avg") for launch in launches]
    if sm_count is None or not cycles or None in cycles:
        return None
    return sm_count * sum(one for one in cycles if one is not None)


def _executes(pipe: PipeFacts) -> bool:
    """Opcodes can be assigned to it; part of a pipe has none of its own."""
    return pipe.name != "fmaheavy"


@cache
def _read_opcodes(architecture: str) -> Mapping[str, str]:
    """Entry → pipe, on one architecture."""
    return {
        entry: group["pipe"]
        for group in _read_table()["opcodes"]
        if architecture in group.get("architectures", (architecture,))
        for entry in group["of"]
    }


@cache
def _read_table() -> dict[str, Any]:
    return tomli.loads(Path(__file__).with_name(_TABLE).read_text(encoding="utf-8"))
