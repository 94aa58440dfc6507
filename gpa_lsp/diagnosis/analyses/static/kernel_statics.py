"""Static facts of a compiled kernel (:class:`~gpa_lsp.diagnosis.analyses.static.model.KernelStatics`)."""

from collections.abc import Sequence

from gpa_lsp.code.binary.cubin import CompiledLimits
from gpa_lsp.diagnosis.analyses.answers import Weight
from gpa_lsp.diagnosis.analyses.occupancy import read_code_shape
from gpa_lsp.diagnosis.analyses.occupancy_tables import BLOCK_SIZES, describe_steps_up
from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin, KernelStatics, KnownBlock
from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, Occupancy, find_occupancy
from gpa_lsp.kernel.model import Kernel

_ORIGINS = tuple(BlockOrigin)
_FEWEST_THREADS = 32
_NO_LIMITS = CompiledLimits()


def find_kernel_statics(
    kernel: Kernel,
    *,
    limits: CompiledLimits | None = None,
    blocks: Sequence[KnownBlock] = (),
    spill_bytes: int = 0,
) -> KernelStatics:
    """The resources and the occupancy of a kernel.

    Args:
        kernel: with its code; nothing needs to be measured.
        limits: the bounds it was compiled under; None when unknown.
        blocks: known sizes it is launched with. Of several, the surest origin counts, then the first; occupancy is exact
            for that size only, and for a mere bound it is that of the largest block.
        spill_bytes: places of spilled registers in its frame.
    """
    limits = limits or _NO_LIMITS
    function = kernel.functions[0].function
    architecture = kernel.architecture
    shape = None if architecture is None else read_code_shape(architecture, function)
    block = _choose_block(limits, blocks)
    whole = _put_block(shape, block)
    occupancy = find_occupancy(architecture, whole) if architecture is not None and whole is not None else None
    step = (NOTHING, NOTHING)
    if architecture is not None and whole is not None and occupancy is not None and occupancy.ratio < 1.0:
        step = _find_step(architecture, whole, limits.is_block_required)
    return KernelStatics(
        mangled_name=kernel.mangled_name,
        compute_capability=kernel.device.compute_capability,
        registers=None if function is None else function.registers,
        register_cap=limits.register_cap,
        shared_static_bytes=_read_shared(shape, kernel),
        local_bytes=None if function is None else function.frame_bytes,
        spill_bytes=spill_bytes,
        barriers=None if function is None else function.barriers,
        most_threads=limits.most_threads,
        block=block,
        occupancy=occupancy,
        next_step=step[0],
        next_step_remedy=step[1],
        by_block=() if architecture is None or shape is None else _list_by_block(architecture, shape, limits, block),
    )


def _choose_block(limits: CompiledLimits, blocks: Sequence[KnownBlock]) -> KnownBlock | None:
    known = list(blocks)
    if limits.most_threads is not None:
        origin = BlockOrigin.REQUIRED if limits.is_block_required else BlockOrigin.BOUND
        known.append(KnownBlock(threads=limits.most_threads, origin=origin))
    return min(known, key=lambda one: _ORIGINS.index(one.origin), default=None)


def _put_block(shape: BlockShape | None, block: KnownBlock | None) -> BlockShape | None:
    """The shape of a whole block; None where its size is unknown or makes no sense."""
    if shape is None or block is None or block.threads < 1:
        return None
    return BlockShape(
        threads=block.threads,
        registers_per_thread=shape.registers_per_thread,
        shared_bytes=shape.shared_bytes + max(0, block.dynamic_shared_bytes or 0),
        barriers=shape.barriers,
    )


def _read_shared(shape: BlockShape | None, kernel: Kernel) -> int:
    """Static shared memory without the driver's part; that part needs the architecture's table to be told from the rest."""
    function = kernel.functions[0].function
    if shape is not None:
        return shape.shared_bytes
    return 0 if function is None else function.shared_static_bytes


def _find_step(architecture: Architecture, block: BlockShape, is_block_required: bool) -> tuple[Sentence, Sentence]:
    """The first of the smallest changes and its remedy; another block size is none where the kernel requires this one."""
    now = find_occupancy(architecture, block)
    steps = describe_steps_up(architecture, block, now, Weight.PLAIN, keeps_size=is_block_required)
    return (steps[0].text, steps[0].remedy) if steps else (NOTHING, NOTHING)


def _list_by_block(
    architecture: Architecture, shape: BlockShape, limits: CompiledLimits, block: KnownBlock | None
) -> tuple[tuple[int, Occupancy], ...]:
    most = limits.most_threads or architecture.occupancy.max_threads_per_block.value
    sizes = {size for size in BLOCK_SIZES if _FEWEST_THREADS <= size <= most}
    if limits.is_block_required:
        sizes = {most}
    if block is not None and 1 <= block.threads <= architecture.occupancy.max_threads_per_block.value:
        sizes.add(block.threads)
    dynamic = None if block is None else block.dynamic_shared_bytes
    found = []
    for threads in sorted(sizes):
        known = KnownBlock(threads=threads, origin=BlockOrigin.SOURCE, dynamic_shared_bytes=dynamic)
        whole = _put_block(shape, known)
        if whole is not None:
            found.append((threads, find_occupancy(architecture, whole)))
    return tuple(found)
