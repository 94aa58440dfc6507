"""What is known of a kernel as soon as it is compiled: :class:`KernelStatics`."""

from enum import Enum

from gpa_lsp.arch.occupancy import Occupancy
from gpa_lsp.basis.lazy_dataclass import dataclass


class BlockOrigin(Enum):
    """How the size of a block came to be known, the surest first; the values are words for people."""

    REQUIRED = "the size the kernel requires"
    """``__block_size__``: no other can be launched."""
    PROFILE = "a measured launch"
    DESCRIPTION = "a launch description"
    """The TOML beside the source."""
    SOURCE = "a launch in the source"
    """``<<<…>>>`` with numbers."""
    BOUND = "the launch bound"
    """``__launch_bounds__``: the most there can be; launches may have less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBlock:
    """A size of block that a kernel is, or can be, launched with.

    Attributes:
        threads: of one block, at least 1.
        origin: how it is known.
        dynamic_shared_bytes: given at launch; None when nobody says, and then none is reckoned with.
        line: of the source that says so, 1-based; None where no line does.
    """

    threads: int
    origin: BlockOrigin
    dynamic_shared_bytes: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOccupancy:
    """What one SM holds of a kernel for one size of block.

    Attributes:
        threads: of a block.
        occupancy: for that size.
    """

    threads: int
    occupancy: Occupancy


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStatics:
    """The resources of a kernel as compiled, and the occupancy they allow.

    Attributes:
        mangled_name: linkage name.
        compute_capability: it was compiled for; None when the image does not say.
        registers: per thread; None when not stored.
        register_cap: per thread, what the compiler was allowed; None when not stored.
        shared_static_bytes: per block, without the driver's part.
        local_bytes: of a thread's stack frame: arrays, spilled and saved registers; None when not stored.
        spill_bytes: of that, places of spilled registers; 0 where nothing is spilled.
        barriers: of a block; None when not stored.
        most_threads: of a block, by ``__launch_bounds__``; None without one.
        block: the size that occupancy is told for; None where none is known.
        occupancy: for that size; None where no size is known, or the architecture has no table.
        next_step: the smallest change with which more warps fit, a sentence; empty when there is none or no occupancy.
        next_step_remedy: how that is done and what it may cost; empty likewise.
        by_block: occupancy over the size of a block, ascending, up to ``most_threads``; empty without a table of the architecture.
    """

    mangled_name: str
    compute_capability: tuple[int, int] | None
    registers: int | None
    register_cap: int | None
    shared_static_bytes: int
    local_bytes: int | None
    spill_bytes: int
    barriers: int | None
    most_threads: int | None
    block: KnownBlock | None
    occupancy: Occupancy | None
    next_step: str
    next_step_remedy: str
    by_block: tuple[BlockOccupancy, ...]
