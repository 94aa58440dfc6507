"""What a compiled kernel needs of the GPU, with no profile: :func:`read_resources`."""

import re
from dataclasses import dataclass

from gpa_lsp.binary.compiled_limits import CompiledLimits, read_compiled_limits
from gpa_lsp.binary.cubin import read_cubin
from gpa_lsp.binary.model import Function
from gpa_lsp.compiler.model import AssemblerReport, CompiledUnit

_FIRST_WITH_RESERVED_SHARED = 90
_RESERVED_SHARED_BYTES = 1024
"""Of each block, from compute capability 9.0 on; the image's section counts them in.

Source: sections of cubins of CUDA 13 for sm_75 to sm_120 beside what ``ptxas -v`` says.
"""
_BLOCKS_PER_SM = re.compile(r"\.entry\s+([\w$.]+)[^{}]*?\.minnctapersm\s+(\d{1,4})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """What one kernel needs.

    Attributes:
        kernel: mangled name.
        registers: per thread; None when the image does not say.
        shared_static_bytes: declared by the kernel, per block, without what the driver keeps for itself.
        local_bytes: stack frame of a thread: local arrays and spilled registers; None when the image does not say.
        stack_bytes: of the whole call tree; None when the compiler cannot tell (recursion, calls through pointers).
        spill_store_bytes: stored by all spilling instructions, each counted once; None when the assembler's words are not at hand.
        spill_load_bytes: loaded likewise.
        spill_instructions: instructions that store or load a spilled register; None where none is marked and the
            assembler's words are not at hand.
        barriers: of a block; None when the image does not say.
        most_threads: of a block, by ``__launch_bounds__``; None without one.
        is_block_required: blocks must have exactly that many.
        fewest_blocks_per_sm: by ``__launch_bounds__``; None without one, and when there is no PTX.
        register_cap: registers the compiler was allowed; None when not stored.
    """

    kernel: str
    registers: int | None
    shared_static_bytes: int
    local_bytes: int | None
    stack_bytes: int | None
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    spill_instructions: int | None
    barriers: int | None
    most_threads: int | None
    is_block_required: bool
    fewest_blocks_per_sm: int | None
    register_cap: int | None


def read_resources(unit: CompiledUnit) -> tuple[KernelResources, ...]:
    """The resources of the kernels of a unit, in image order; empty without an image.

    Raises:
        InputError: the image is damaged (that of an existing build; a compiler's is sound).
    """
    if unit.cubin is None:
        return ()
    cubin = read_cubin(unit.cubin)
    limits = read_compiled_limits(cubin)
    reports = {one.function: one for one in unit.assembler_reports}
    blocks = {name: int(count) for name, count in _BLOCKS_PER_SM.findall(unit.ptx or "")}
    reserved = _RESERVED_SHARED_BYTES if cubin.sm >= _FIRST_WITH_RESERVED_SHARED else 0
    return tuple(
        _gather(function, limits.get(name, CompiledLimits()), reports.get(name), blocks.get(name), reserved)
        for name, function in cubin.functions.items()
        if function.is_entry
    )


def _gather(
    function: Function, limits: CompiledLimits, report: AssemblerReport | None, blocks: int | None, reserved_bytes: int
) -> KernelResources:
    marks = len(limits.spill_offsets)
    return KernelResources(
        kernel=function.name,
        registers=function.registers,
        shared_static_bytes=max(0, function.shared_static_bytes - reserved_bytes),
        local_bytes=function.frame_bytes,
        stack_bytes=function.stack_bytes,
        spill_store_bytes=report.spill_store_bytes if report is not None else None,
        spill_load_bytes=report.spill_load_bytes if report is not None else None,
        # No mark means no spill only where the assembler has a say, or marks at all.
        spill_instructions=marks if marks or (report is not None and report.spill_store_bytes == 0) else None,
        barriers=function.barriers,
        most_threads=limits.most_threads,
        is_block_required=limits.is_block_required,
        fewest_blocks_per_sm=blocks,
        register_cap=limits.register_cap,
    )
