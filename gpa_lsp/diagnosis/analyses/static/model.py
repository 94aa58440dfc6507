"""Facts of a kernel as compiled (:class:`KernelStatics`), and their wording in every view."""

from enum import Enum

from msgspec import Struct

from gpa_lsp.foundation.prose import NOTHING, Sentence, count, join, percent, say, size
from gpa_lsp.gpu.arch.occupancy import Occupancy


class BlockOrigin(Enum):
    """Source of a block size, the surest first; the values are words for people."""

    REQUIRED = "the size the kernel requires"  # ``__block_size__``: no other can be launched
    PROFILE = "a measured launch"
    DESCRIPTION = "a launch description"  # The TOML beside the source
    SOURCE = "a launch in the source"  # ``<<<…>>>`` with numbers
    BOUND = "the launch bound"  # ``__launch_bounds__``: the most there can be; launches may have less


class KnownBlock(Struct, frozen=True, kw_only=True):
    """A size of block that a kernel is, or can be, launched with."""

    threads: int  # of one block, at least 1
    origin: BlockOrigin  # how it is known
    dynamic_shared_bytes: int | None = None  # given at launch; None when unknown, and then none is reckoned with
    line: int | None = None  # of the source that says so, 1-based; None where no line does
    shape: tuple[int, int, int] | None = None  # threads in x, y, z; None where only their number is known


class KernelStatics(Struct, frozen=True, kw_only=True):
    """The resources of a kernel as compiled, and the occupancy they allow."""

    mangled_name: str  # linkage name
    compute_capability: tuple[int, int] | None  # it was compiled for; None when the image does not say
    registers: int | None  # per thread; None when not stored
    register_cap: int | None  # per thread, what the compiler was allowed; None when not stored
    shared_static_bytes: int  # per block, without the driver's part
    local_bytes: int | None  # of a thread's stack frame: arrays, spilled and saved registers; None when not stored
    spill_bytes: int  # of that, places of spilled registers; 0 where nothing is spilled
    barriers: int | None  # of a block; None when not stored
    most_threads: int | None  # of a block, by ``__launch_bounds__``; None without one
    block: KnownBlock | None  # the size that occupancy is told for; None where none is known
    occupancy: Occupancy | None  # for that size; None where no size is known, or the architecture has no table
    # the smallest change with which more warps fit, a sentence; empty when there is none or no occupancy
    next_step: Sentence
    next_step_remedy: Sentence  # how that is done and what it may cost; empty where ``next_step`` is
    # (threads of a block, what one SM holds of blocks of that size), ascending, up to ``most_threads``; empty without a table of the architecture
    by_block: tuple[tuple[int, Occupancy], ...]


_ORIGIN_WORDS = {
    BlockOrigin.REQUIRED: "the size the kernel requires",
    BlockOrigin.PROFILE: "as measured",
    BlockOrigin.DESCRIPTION: "from the launch description",
    BlockOrigin.SOURCE: "as launched in the source",
    BlockOrigin.BOUND: "the launch bound",
}


def describe_resources(statics: KernelStatics) -> Sentence:
    """``64 registers · 2 KiB shared · occupancy 50 % (registers)``: what a lens says.

    Without a block size the best occupancy that any size reaches stands there, with that size.
    """
    parts = []
    if statics.registers is not None:
        parts.append(say("{registers}", registers=count(statics.registers, "register")))
    if statics.shared_static_bytes:
        parts.append(say("{shared} shared", shared=size(statics.shared_static_bytes)))
    if statics.spill_bytes:
        parts.append(say("{spilled} spilled", spilled=size(statics.spill_bytes)))
    if statics.occupancy is not None:
        parts.append(_say_occupancy(statics.occupancy, "occupancy {ratio}{limits}", "no block fits{limits}"))
    elif statics.by_block:
        threads, best = max(statics.by_block, key=lambda one: (one[1].ratio, -one[0]))
        parts.append(
            say("occupancy up to {ratio} (blocks of {threads})", ratio=percent(best.ratio), threads=count(threads))
        )
    return join(parts, " · ")


def describe_occupancy(statics: KernelStatics) -> Sentence:
    """``Occupancy 50 % (registers)``; empty where no block size is known."""
    if statics.occupancy is None:
        return NOTHING
    return _say_occupancy(statics.occupancy, "Occupancy {ratio}{limits}", "No block fits{limits}")


def _say_occupancy(occupancy: Occupancy, fitting: str, failing: str) -> Sentence:
    limiters = join(occupancy.limiters, ", ")
    limits = say(" ({limiters})", limiters=limiters) if limiters else NOTHING
    if not occupancy.blocks_per_sm:
        return say(failing, limits=limits)
    return say(fitting, ratio=percent(occupancy.ratio), limits=limits)


def describe_block(block: KnownBlock) -> Sentence:
    """``blocks of 256 threads (as launched in line 40)``."""
    origin = say(_ORIGIN_WORDS[block.origin])
    if block.origin is BlockOrigin.SOURCE and block.line is not None:
        origin = say("as launched in line {line}", line=str(block.line))
    shared = NOTHING
    if block.dynamic_shared_bytes:
        shared = say(" with {shared} of shared memory", shared=size(block.dynamic_shared_bytes))
    return say(
        "blocks of {threads}{shared} ({origin})", threads=count(block.threads, "thread"), shared=shared, origin=origin
    )
