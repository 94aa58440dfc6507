"""What an analysis looks at: :class:`KernelFacts`, one kernel with its blame, its roofline and its longest launch."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.answers import Missing
from gpa_lsp.analyses.roofline_model import KernelRoofline
from gpa_lsp.arch.model import Architecture
from gpa_lsp.binary.opcodes import Opcode, describe_mnemonic
from gpa_lsp.blame.model import KernelBlame
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.locations import SourceLine
from gpa_lsp.profile.model import Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """One kernel to ask about; n rows over all its functions.

    Attributes:
        kernel: the joined kernel.
        blame: None for code without samples.
        roofline: None when there is none.
        longest: the longest launch that has numbers; None for code without a profile.
        opcodes: mnemonic → its facts, for every mnemonic of the kernel.
        first_rows: int64[f + 1], first row of each function, and n.
    """

    kernel: Kernel
    blame: KernelBlame | None
    roofline: KernelRoofline | None
    longest: Launch | None
    opcodes: dict[str, Opcode] = field(repr=False)
    first_rows: npt.NDArray[np.int64] = field(repr=False)

    @property
    def architecture(self) -> Architecture | None:
        """The GPU's table; None when there is none."""
        return self.kernel.architecture

    def metric(self, *names: str) -> float | None:
        """The first of these aggregates that the longest launch has; None when it has none of them."""
        if self.longest is None:
            return None
        found = (self.longest.read_number(name) for name in names)
        return next((value for value in found if value is not None), None)

    def counter(self, name: str) -> npt.NDArray[np.int64] | None:
        """int64[n] of a per-instruction counter (:mod:`gpa_lsp.kernel.counters`), -1 where a row has none; None when not collected."""
        functions = self.kernel.functions
        if not any(name in function.counters for function in functions):
            return None
        parts = [
            function.counters.get(name, np.full(len(function.pc_offsets), -1, dtype=np.int64)) for function in functions
        ]
        return np.concatenate(parts)

    @property
    def executions(self) -> npt.NDArray[np.int64]:
        """int64[n], warp-level executions over all launches; -1 where not collected."""
        return np.concatenate([function.executions for function in self.kernel.functions])

    @property
    def all_samples(self) -> npt.NDArray[np.int64]:
        """int64[n, k], by row and stall reason (``kernel.reasons``)."""
        return np.concatenate([function.all_samples for function in self.kernel.functions])

    def count_reason(self, reason: str) -> int:
        """Samples of one stall reason in the whole kernel."""
        if reason not in self.kernel.reasons:
            return 0
        return int(self.all_samples[:, self.kernel.reasons.index(reason)].sum())

    def function_of(self, row: int) -> FunctionSamples:
        """The function a row is in."""
        return self.kernel.functions[int(np.searchsorted(self.first_rows, row, side="right")) - 1]

    def index_of(self, row: int) -> int:
        """The instruction number of a row in its function."""
        return row - int(self.first_rows[int(np.searchsorted(self.first_rows, row, side="right")) - 1])

    def list_disassembled(self) -> Iterator[tuple[FunctionSamples, int]]:
        """Functions that are disassembled, with their first row."""
        for number, function in enumerate(self.kernel.functions):
            if function.instructions is not None:
                yield function, int(self.first_rows[number])

    def mnemonic(self, row: int) -> str:
        """Opcode with modifiers; empty without a disassembly."""
        instructions = self.function_of(row).instructions
        return (
            "" if instructions is None else instructions.mnemonics[int(instructions.mnemonic_index[self.index_of(row)])]
        )

    def place(self, row: int) -> SourceLine | None:
        """The source line of a row, innermost frame; None without a line."""
        function = self.function_of(row)
        chain = int(function.chain_index[self.index_of(row)])
        if function.lines is None or chain < 0:
            return None
        return function.lines.chains[chain][0].source_line


def build_facts(kernel: Kernel, blame: KernelBlame | None, roofline: KernelRoofline | None) -> KernelFacts:
    """The facts of a kernel."""
    functions = kernel.functions
    mnemonics = {name for function in functions if function.instructions for name in function.instructions.mnemonics}
    sizes = [len(function.pc_offsets) for function in functions]
    return KernelFacts(
        kernel=kernel,
        blame=blame,
        roofline=roofline,
        longest=find_longest(kernel.launches),
        opcodes={name: describe_mnemonic(name) for name in mnemonics},
        first_rows=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )


def find_longest(launches: tuple[Launch, ...]) -> Launch | None:
    """The longest launch that has numbers; of those without a time, the first. None without any."""
    usable = [launch for launch in launches if launch.failure is None]
    return max(usable, key=lambda launch: launch.read_number("gpu__time_duration.sum") or 0.0, default=None)


def lack(what: str, *metrics: str, section: str = "", needs_all: bool = False) -> Missing:
    """What is unknown because metrics were not collected."""
    return Missing(what=what, metrics=metrics, section=section, needs_all=needs_all)
