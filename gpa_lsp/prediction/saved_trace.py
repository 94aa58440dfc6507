"""A trace that was kept in a folder, analysed: :func:`analyse_saved`. Nothing is compiled and nothing executed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.analyses.traces.analyse import TraceAnalyser
from gpa_lsp.analyses.traces.ask import answer_questions
from gpa_lsp.analyses.traces.context import build_trace_context
from gpa_lsp.analyses.traces.line_facts import AccessLineFact, BranchLineFact, list_branch_facts, list_line_facts
from gpa_lsp.analyses.traces.paper_answer import PaperCollector
from gpa_lsp.analyses.volumes.answer import answer_volumes
from gpa_lsp.analyses.volumes.from_trace import find_launch_shape, list_probe_blocks, recover_expressions
from gpa_lsp.analyses.volumes.model import VolumeMode
from gpa_lsp.analyses.volumes.predict import predict_volumes
from gpa_lsp.compiler.settings import DEFAULT_COMPUTE_CAPABILITY
from gpa_lsp.emulator.trace import Trace
from gpa_lsp.emulator.trace_pieces import join_pieces, keep_blocks
from gpa_lsp.errors import GpaError, Problem, ProblemSeverity
from gpa_lsp.machine.products import Product
from gpa_lsp.prediction.machines import choose_product, choose_volume_device
from gpa_lsp.prediction.targets import Capability
from gpa_lsp.prediction.trace_files.head import TraceHead, read_head
from gpa_lsp.prediction.trace_files.read import read_pieces
from gpa_lsp.report.names import demangle, shorten_name

_NOTE = (
    "a trace keeps neither registers nor shared memory of a block: residency is thought to be limited by threads alone"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTrace:
    """What a kept trace shows.

    Attributes:
        folder: it is in.
        mangled_name: of the kernel.
        name: for people.
        grid: blocks of the launch.
        block: threads of a block.
        traced_blocks: of the grid.
        origin: what wrote the trace.
        is_complete: it has all rows of its blocks.
        machine: the GPU that caches and volumes are predicted for; empty for none.
        answers: in the order to be read.
        accesses: what each line does to memory, by file and line.
        branches: conditional branches by file and line.
        problems: what could not be done, and why.
    """

    folder: Path
    mangled_name: str
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    traced_blocks: int
    origin: str
    is_complete: bool
    machine: str
    answers: tuple[Answer, ...] = field(repr=False)
    accesses: tuple[AccessLineFact, ...] = field(repr=False)
    branches: tuple[BranchLineFact, ...] = field(repr=False)
    problems: tuple[Problem, ...] = ()

    @property
    def short_name(self) -> str:
        """Without result and parameters, and short enough for a line."""
        return shorten_name(self.name)


def analyse_saved(
    folder: Path,
    *,
    machine: str | None = None,
    compute_capability: Capability | None = None,
    mode: VolumeMode = VolumeMode.CORRECTED,
    is_paper: bool = False,
) -> SavedTrace:
    """Ask every question about a trace, one piece in memory at a time.

    Args:
        folder: what ``gpa-lsp trace`` wrote.
        machine: name of the GPU; None for the first known of the compute capability.
        compute_capability: where no GPU is named; None for 8.0.
        mode: of the volume model.
        is_paper: count by CUDAAdvisor's own definitions as well.

    Raises:
        InputError: it is no trace, damaged, without any piece, or no GPU has the name.
        MissingToolError: pyarrow is not installed.
    """
    head = read_head(folder)
    product = choose_product(machine, compute_capability or DEFAULT_COMPUTE_CAPABILITY)
    capability = compute_capability or DEFAULT_COMPUTE_CAPABILITY if product is None else product.compute_capability
    context = build_trace_context(capability, block_threads=head.block_threads, product=product)
    analyser, paper = TraceAnalyser(context), PaperCollector()
    kept: list[Trace] = []
    blocks = list_probe_blocks(head.grid)
    for piece in read_pieces(folder):
        analyser.add(piece)
        if is_paper:
            paper.add(piece)
        part = keep_blocks(piece, blocks)
        kept += [] if part is None else [part]
    analyses = analyser.finish()
    answers, met = answer_questions(analyses)
    problems = [Problem(severity=ProblemSeverity.NOTE, message=_NOTE), *met]
    volumes = tuple(_answer_volumes(head, join_pieces(kept), product, mode, problems)) if kept else ()
    return SavedTrace(
        folder=folder,
        mangled_name=head.kernel,
        name=demangle(head.kernel),
        grid=head.grid,
        block=head.block_threads,
        traced_blocks=analyses.traced_blocks,
        origin=head.origin,
        is_complete=analyses.is_complete,
        machine=context.gpu,
        answers=(*volumes, *answers, *((paper.answer(context),) if is_paper else ())),
        accesses=list_line_facts(analyses),
        branches=list_branch_facts(analyses),
        problems=tuple(problems),
    )


def _answer_volumes(
    head: TraceHead, probe: Trace, product: Product | None, mode: VolumeMode, problems: list[Problem]
) -> Iterator[Answer]:
    """From the addresses of a few blocks; a trace keeps no arithmetic, so that none limits."""
    device = choose_volume_device(product, mode)
    if isinstance(device, Problem):
        problems.append(device)
        return
    try:
        recovered = recover_expressions(probe)
        shape = find_launch_shape(recovered, head.block_threads, head.grid)
        yield answer_volumes(predict_volumes(recovered, shape, device, registers=0, mode=mode), recovered)
    except GpaError as error:
        problems.append(Problem.from_error(error))
