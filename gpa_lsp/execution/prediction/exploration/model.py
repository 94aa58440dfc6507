"""A launch configuration, and what is predicted of it: :class:`Configuration`, :class:`RankedConfiguration`."""

from math import prod

from msgspec import Struct

Definition = tuple[str, str]  # A macro and its value

Unroll = tuple[int, int]  # The line of a loop, and how many of its turns are written out


class Configuration(Struct, frozen=True, kw_only=True, order=True):
    """One way to launch a kernel over its elements, and to compile it."""

    block: tuple[int, int, int]  # threads of a block in x, y, z
    fold: tuple[int, int, int] = (1, 1, 1)  # neighbouring elements one thread serves in x, y, z; (1, 1, 1) for one
    definitions: tuple[Definition, ...] = ()  # macros that are not as the source has them
    unrolls: tuple[Unroll, ...] = ()  # the same for loops

    @property
    def threads(self) -> int:
        """Of a block."""
        return prod(self.block)

    def __str__(self) -> str:
        """As people write it: ``32x8``, ``16x2x32 fold 2y``, ``256 TILE=16 unroll 12=4``."""
        words = [f" {name}={value}" for name, value in self.definitions]
        words += [f" unroll {line}={factor}" for line, factor in self.unrolls]
        return f"{write_block(self.block)}{write_fold(self.fold)}{''.join(words)}"


def write_block(block: tuple[int, int, int]) -> str:
    """``32x8``: trailing ones are left out, but never the first number.

    >>> write_block((32, 8, 1)), write_block((256, 1, 1)), write_block((1, 1, 4))
    ('32x8', '256', '1x1x4')
    """
    last = max((index for index, size in enumerate(block) if size != 1), default=0)
    return "x".join(str(size) for size in block[: last + 1])


def write_fold(fold: tuple[int, int, int]) -> str:
    """`` fold 2y``; empty where nothing is folded.

    >>> write_fold((1, 2, 1)), write_fold((1, 1, 1))
    (' fold 2y', '')
    """
    parts = [f"{count}{axis}" for count, axis in zip(fold, "xyz", strict=True) if count != 1]
    return f" fold {' '.join(parts)}" if parts else ""


class RankedConfiguration(Struct, frozen=True, kw_only=True):
    """What is predicted of a configuration. Times and volumes are predictions, never measurements."""

    configuration: Configuration  # which
    seconds: float | None = None  # of one launch; None when the configuration cannot be launched or predicted
    # what bounds it: ``L1``, ``L2``, ``DRAM`` or ``arithmetic``, or what a simulated profile says; empty in the same case
    limiter: str = ""
    dram_load_bytes: float | None = None  # of the launch
    dram_store_bytes: float | None = None  # of the launch
    l2_load_bytes: float | None = None  # from L2 to the L1s
    l2_store_bytes: float | None = None  # from the L1s to L2
    warps_per_sm: int | None = None  # resident
    cycles: float | None = None  # of the SM's clock, where the launch was simulated; None else
    executed_blocks: int | None = None  # that the simulation executed; None in the same case
    grid_blocks: int | None = None  # of the launch; None in the same case
    why_not: str = ""  # why nothing is predicted, one sentence; empty when something is

    @property
    def dram_bytes(self) -> float | None:
        """Loads and stores; None when unknown."""
        if self.dram_load_bytes is None or self.dram_store_bytes is None:
            return None
        return self.dram_load_bytes + self.dram_store_bytes


def rank(found: "list[RankedConfiguration]") -> "tuple[RankedConfiguration, ...]":
    """Fastest first; equals in the order of less DRAM traffic, then of the configuration; what was not predicted last."""

    def order(one: RankedConfiguration) -> tuple[bool, float, float, Configuration]:
        unknown = one.seconds is None
        return (unknown, one.seconds or 0.0, one.dram_bytes or 0.0, one.configuration)

    return tuple(sorted(found, key=order))
