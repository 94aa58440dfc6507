"""A trace that was kept in a folder, analysed: :func:`analyse_saved`. Nothing is compiled and nothing executed."""

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.compiler.model import DEFAULT_COMPUTE_CAPABILITY
from gpa_lsp.execution.emulator.trace import Trace, join_pieces, keep_blocks
from gpa_lsp.execution.prediction.targets import Capability, choose_product, choose_volume_device
from gpa_lsp.execution.prediction.trace_answers import TraceAnswerer
from gpa_lsp.execution.prediction.trace_files import TraceHead, read_head, read_pieces
from gpa_lsp.execution.traces.lane_addresses import check_trace
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.execution.traces.model import AnalysisSettings, build_trace_context
from gpa_lsp.execution.volumes.answer import answer_volumes
from gpa_lsp.execution.volumes.from_trace import find_launch_shape, list_probe_blocks, recover_expressions
from gpa_lsp.execution.volumes.miscounts import find_miscounts, find_shortfalls
from gpa_lsp.execution.volumes.model import VolumeMode
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.foundation.errors import InputError, Problem, spare_others
from gpa_lsp.gpu.device.products import Product
from gpa_lsp.kernel.names import demangle, shorten_name

_NOTE = "a trace keeps neither the registers nor the shared memory of a block: occupancy is assumed to be limited by threads alone"


class SavedTrace(Struct, frozen=True, kw_only=True):
    """What a kept trace shows."""

    folder: Path  # it is in
    mangled_name: str  # of the kernel
    name: str  # for people
    grid: tuple[int, int, int]  # blocks of the launch
    block: tuple[int, int, int]  # threads of a block
    traced_blocks: int  # of the grid
    origin: str  # what wrote the trace
    is_complete: bool  # it has all rows of its blocks
    machine: str  # the GPU that caches and volumes are predicted for; empty for none
    answers: tuple[Answer, ...]  # in the order to be read
    accesses: tuple[AccessLineFact, ...]  # what each line does to memory, by file and line
    branches: tuple[BranchLineFact, ...]  # conditional branches by file and line
    problems: tuple[Problem, ...] = ()  # what could not be done, and why

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
        folder: what ``gpa-lsp predict trace`` wrote.
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
    problems = [Problem.note(_NOTE)]
    answerer = TraceAnswerer(context, AnalysisSettings(), problems, is_paper=is_paper)
    kept: list[Trace] = []
    blocks = list_probe_blocks(head.grid)
    traced_blocks, is_complete = 0, True
    for piece in read_pieces(folder):
        check_trace(piece)
        answerer.add(piece)
        traced_blocks += len(piece.traced_blocks)
        is_complete &= piece.is_complete
        part = keep_blocks(piece, blocks)
        kept += [] if part is None else [part]
    if not head.pieces:
        raise InputError("there is no trace to analyse", path=folder, remedy="trace at least one block")
    shown = answerer.finish()
    volumes = _answer_volumes(head, join_pieces(kept), product, mode, problems) if kept else ()
    return SavedTrace(
        folder=folder,
        mangled_name=head.kernel,
        name=demangle(head.kernel),
        grid=head.grid,
        block=head.block_threads,
        traced_blocks=traced_blocks,
        origin=head.origin,
        is_complete=is_complete,
        machine=context.gpu,
        answers=(*volumes, *shown.answers),
        accesses=shown.accesses,
        branches=shown.branches,
        problems=tuple(problems),
    )


def _answer_volumes(
    head: TraceHead, probe: Trace, product: Product | None, mode: VolumeMode, problems: list[Problem]
) -> tuple[Answer, ...]:
    """From the addresses of a few blocks; a trace keeps no arithmetic, so that none limits."""
    device = choose_volume_device(product, mode)
    if isinstance(device, Problem):
        problems.append(device)
        return ()
    with spare_others("predicting data volumes", problems, kernel=head.kernel):
        recovered = recover_expressions(probe)
        shape = find_launch_shape(recovered, head.block_threads, head.grid)
        predicted = predict_volumes(recovered, shape, device, registers=0, mode=mode)
        if mode is VolumeMode.CORRECTED:
            counted = (*find_miscounts(recovered, probe), *find_shortfalls(predicted, probe))
            predicted = replace(predicted, contradictions=(*predicted.contradictions, *counted))
        return (answer_volumes(predicted, recovered),)
    return ()
