"""What an optimizer looks at: one kernel, its blame, its scopes, its launch and its sources, with the usual questions answered once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.launch_facts import LaunchFacts, find_longest_launch, gather_launch_facts
from gpa_lsp.advice.scopes import ScopeTree, build_scopes
from gpa_lsp.analyses.roofline_model import KernelRoofline
from gpa_lsp.binary.opcodes import Opcode, describe_mnemonic
from gpa_lsp.blame.model import KernelBlame
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.locations import InlineChain
from gpa_lsp.profile.model import Launch

SourceReader = Callable[[str], str | None]
"""Path as compiled → the text of that source, None when it is not at hand."""

_MOST_PERCENT = 200.0
"""Counters taken in several passes can exceed 100 % of a peak by a little; what is far above it is damaged or made up."""

UNKNOWN_OPCODE = Opcode(name="", description="", is_known=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One kernel to advise on; n rows over all its functions, k reasons.

    Attributes:
        kernel: the joined kernel.
        blame: its blame.
        scopes: kernel, functions, loops.
        launch: the longest launch; None for code without a profile.
        read_source: gives the text of a source where it is at hand.
        function_index: int32[n], index into ``kernel.functions``.
        first_rows: int64[f + 1], first row of each function, and n.
        all_samples: int64[n, k].
        latency_samples: int64[n, k].
        executions: int64[n], -1 unknown.
        total_samples: T, every sample of the kernel, whatever became of it.
        roofline: where the kernel stands; None when there is none.
    """

    kernel: Kernel
    blame: KernelBlame
    scopes: ScopeTree
    launch: LaunchFacts | None
    read_source: SourceReader
    function_index: npt.NDArray[np.int32]
    first_rows: npt.NDArray[np.int64]
    all_samples: npt.NDArray[np.int64]
    latency_samples: npt.NDArray[np.int64]
    executions: npt.NDArray[np.int64]
    total_samples: int
    roofline: KernelRoofline | None = None
    _longest: Launch | None = field(repr=False)
    _opcodes: Mapping[str, Opcode] = field(repr=False)

    @property
    def row_count(self) -> int:
        """n."""
        return len(self.function_index)

    def reason_index(self, reason: str) -> int | None:
        """Column of a stall reason; None when the kernel has no sample of it."""
        return self.kernel.reasons.index(reason) if reason in self.kernel.reasons else None

    def count_reason(self, reason: str) -> int:
        """Samples of one reason in the whole kernel."""
        index = self.reason_index(reason)
        return 0 if index is None else int(self.all_samples[:, index].sum())

    def function_of(self, row: int) -> FunctionSamples:
        """The function a row is in."""
        return self.kernel.functions[int(self.function_index[row])]

    def index_of(self, row: int) -> int:
        """The instruction number of a row in its function."""
        return row - int(self.first_rows[self.function_index[row]])

    def mnemonic(self, row: int) -> str:
        """Opcode with modifiers; empty without a disassembly."""
        instructions = self.function_of(row).instructions
        if instructions is None:
            return ""
        return instructions.mnemonics[int(instructions.mnemonic_index[self.index_of(row)])]

    def opcode(self, row: int) -> Opcode:
        """Facts of the row's opcode; an unknown one without a disassembly."""
        return self._opcodes.get(self.mnemonic(row), UNKNOWN_OPCODE)

    def text(self, row: int) -> str:
        """The instruction as disassembled; empty without a disassembly."""
        instructions = self.function_of(row).instructions
        return "" if instructions is None else instructions.texts[self.index_of(row)]

    def chain(self, row: int) -> InlineChain | None:
        """The row's inline chain, innermost first; None without a line."""
        function = self.function_of(row)
        index = int(function.chain_index[self.index_of(row)])
        return None if function.lines is None or index < 0 else function.lines.chains[index]

    def has_counter(self, name: str) -> bool:
        """Whether a per-instruction counter was collected."""
        return any(name in function.counters for function in self.kernel.functions)

    def counter(self, name: str) -> npt.NDArray[np.int64] | None:
        """int64[n] of a per-instruction counter (:mod:`gpa_lsp.kernel.counters`), -1 where a row has none; None when not collected."""
        if not self.has_counter(name):
            return None
        parts = [
            function.counters.get(name, np.full(len(function.pc_offsets), -1, dtype=np.int64))
            for function in self.kernel.functions
        ]
        return np.concatenate(parts)

    def metric(self, name: str) -> float | None:
        """An aggregate of the longest launch; None when not collected, and where no counter can have that value."""
        value = None if self._longest is None else self._longest.read_number(name)
        is_percent = "pct_of_peak" in name
        return None if value is None or value < 0 or (is_percent and value > _MOST_PERCENT) else value

    def source_line(self, file: str, line: int) -> str | None:
        """The text of one source line, stripped; None when the source is not at hand or has no such line."""
        text = self.read_source(file)
        if text is None:
            return None
        lines = text.splitlines()
        return lines[line - 1].strip() if 0 < line <= len(lines) else None


def build_subject(
    kernel: Kernel,
    blame: KernelBlame,
    read_source: SourceReader | None = None,
    roofline: KernelRoofline | None = None,
) -> Subject:
    """The subject of a kernel.

    Args:
        kernel: joined.
        blame: of the same kernel.
        read_source: where sources come from; None takes those embedded in the profile.
        roofline: of the same kernel; None when there is none.
    """
    functions = kernel.functions
    sizes = [len(function.pc_offsets) for function in functions]
    mnemonics = {name for function in functions if function.instructions for name in function.instructions.mnemonics}
    embedded = kernel.module.sources if kernel.module is not None else {}
    return Subject(
        kernel=kernel,
        blame=blame,
        scopes=build_scopes(kernel),
        launch=gather_launch_facts(kernel),
        read_source=read_source or embedded.get,
        function_index=np.repeat(np.arange(len(functions), dtype=np.int32), sizes),
        first_rows=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        all_samples=np.concatenate([function.all_samples for function in functions]),
        latency_samples=np.concatenate([function.latency_samples for function in functions]),
        executions=np.concatenate([function.executions for function in functions]),
        total_samples=kernel.total_samples,
        roofline=roofline,
        _longest=find_longest_launch(kernel),
        _opcodes={name: describe_mnemonic(name) for name in mnemonics},
    )
