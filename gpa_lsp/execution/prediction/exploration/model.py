"""Launch configurations (:class:`Configuration`), their predictions (:class:`RankedConfiguration`), and spaces of them (:func:`build_space`)."""

import re
from collections.abc import Iterable
from itertools import product
from math import prod

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count

Definition = tuple[str, str]  # A macro and its value

Unroll = tuple[int, int]  # The line of a loop, and its unroll factor


class Configuration(Struct, frozen=True, kw_only=True, order=True):
    """One way to launch a kernel over its elements, and to compile it."""

    block: tuple[int, int, int]  # threads of a block in x, y, z
    fold: tuple[int, int, int] = (1, 1, 1)  # neighbouring elements one thread serves in x, y, z; (1, 1, 1) for one
    definitions: tuple[Definition, ...] = ()  # macros that are not as the source has them
    unrolls: tuple[Unroll, ...] = ()  # the same for loops

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.block)

    def __str__(self) -> str:
        """The configuration as people write it: ``32x8``, ``16x2x32 fold 2y``, ``256 TILE=16 unroll 12=4``."""
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
    """Prediction of a configuration. Times and volumes are predictions, never measurements."""

    configuration: Configuration  # which
    seconds: float | None = None  # of one launch; None when the configuration cannot be launched or predicted
    # ``L1``, ``L2``, ``DRAM`` or ``arithmetic``, or the limiter of a simulated profile; empty in the same case
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
        """Bytes of loads and stores; None when unknown."""
        if self.dram_load_bytes is None or self.dram_store_bytes is None:
            return None
        return self.dram_load_bytes + self.dram_store_bytes


def rank(found: "list[RankedConfiguration]") -> "tuple[RankedConfiguration, ...]":
    """Configurations, fastest first; equal ones by DRAM traffic, then by configuration; those without a prediction last."""

    def order(one: RankedConfiguration) -> tuple[bool, float, float, Configuration]:
        unknown = one.seconds is None
        return (unknown, one.seconds or 0.0, one.dram_bytes or 0.0, one.configuration)

    return tuple(sorted(found, key=order))


MOST_CONFIGURATIONS = 1_000_000  # Larger spaces are refused: their table is too long to read

_MOST_THREADS = 1024
_AXIS_LIMITS = (1024, 1024, 64)
_NUMBER = re.compile(r"[1-9][0-9]{0,6}")
_RANGE = re.compile(r"([1-9][0-9]{0,6})\.\.([1-9][0-9]{0,6})")
_FOLD = re.compile(r"([1-9][0-9]{0,3})([xyz])")
_ALL = "all"
_BLOCK_REMEDY = "write sizes such as 32x8, lists such as 16,32,64x1,2,4, powers of two such as 1..1024x1..8, or all"
_FOLD_REMEDY = "write folds such as 1,2y,2z or 2x2y"


def build_space(
    blocks: Iterable[str], folds: Iterable[str], *, threads: range = range(64, _MOST_THREADS + 1), dimensions: int = 3
) -> tuple[Configuration, ...]:
    """Every configuration the texts name, once, in ascending order.

    Args:
        blocks: each one block or several, see :func:`parse_blocks`; none means ``all``.
        folds: each a list, see :func:`parse_folds`; none means no folding.
        threads: block sizes that are kept of lists, ranges and ``all``; a single block is kept whatever its size.
        dimensions: of the launch, 1 to 3: ``all`` varies no more axes than these.

    Raises:
        InputError: a text means nothing, or the space is empty or has more than :data:`MOST_CONFIGURATIONS`.
    """
    shapes = {shape for text in (tuple(blocks) or (_ALL,)) for shape in parse_blocks(text, threads, dimensions)}
    foldings = {fold for text in (tuple(folds) or ("1",)) for fold in parse_folds(text)}
    if len(shapes) * len(foldings) > MOST_CONFIGURATIONS:
        message = f"the space has {format_count(len(shapes) * len(foldings))} configurations, more than {format_count(MOST_CONFIGURATIONS)}"
        raise InputError(message, remedy="name fewer blocks or folds")
    if not shapes:
        message = f"no block has between {threads.start} and {threads.stop - 1} threads"
        raise InputError(message, place="--block", remedy=_BLOCK_REMEDY)
    return tuple(sorted(Configuration(block=shape, fold=fold) for shape, fold in product(shapes, foldings)))


def parse_blocks(text: str, threads: range, dimensions: int = 3) -> tuple[tuple[int, int, int], ...]:
    """The blocks a text names.

    ``32x8`` is one; ``16,32x1..8`` all pairs of 16 and 32 with 1, 2, 4, 8; ``all`` every shape of powers of two.

    Raises:
        InputError: it means nothing, or names a size no GPU launches.

    >>> parse_blocks("16,32x1..4", range(1, 1025))
    ((16, 1, 1), (16, 2, 1), (16, 4, 1), (32, 1, 1), (32, 2, 1), (32, 4, 1))
    >>> parse_blocks("100x3", range(64, 65))
    ((100, 3, 1),)
    """
    if text == _ALL:
        axes = [_list_powers(1, limit) if axis < dimensions else (1,) for axis, limit in enumerate(_AXIS_LIMITS)]
        return _keep((sizes for sizes in product(*axes)), threads)
    parts = text.lower().split("x")
    if not 1 <= len(parts) <= len(_AXIS_LIMITS):
        raise InputError(f"{text!r} names no block", place="--block", remedy=_BLOCK_REMEDY)
    sizes = [_parse_sizes(part, text, axis) for axis, part in enumerate(parts)]
    sizes += [(1,)] * (len(_AXIS_LIMITS) - len(sizes))
    if all(len(some) == 1 for some in sizes):
        (one,) = product(*sizes)
        if prod(one) > _MOST_THREADS:
            message = (
                f"{text!r} has {format_count(prod(one))} threads; a block has at most {format_count(_MOST_THREADS)}"
            )
            raise InputError(message, place="--block", remedy="name a smaller block")
        return ((one[0], one[1], one[2]),)
    if prod(len(some) for some in sizes) > MOST_CONFIGURATIONS:
        raise InputError(f"{text[:80]!r} names too many blocks", place="--block", remedy="name fewer")
    return _keep(product(*sizes), threads)


def _keep(shapes: Iterable[tuple[int, ...]], threads: range) -> tuple[tuple[int, int, int], ...]:
    return tuple((x, y, z) for x, y, z in shapes if prod((x, y, z)) in threads)


def _parse_sizes(part: str, text: str, axis: int) -> tuple[int, ...]:
    sizes: set[int] = set()
    for one in part.split(","):
        bounds = _RANGE.fullmatch(one.strip())
        if bounds:
            sizes.update(_list_powers(int(bounds[1]), min(int(bounds[2]), _AXIS_LIMITS[axis])))
        elif _NUMBER.fullmatch(one.strip()):
            sizes.add(int(one))
        else:
            raise InputError(f"{text!r} names no block", place="--block", remedy=_BLOCK_REMEDY)
    if not sizes or max(sizes) > _AXIS_LIMITS[axis]:
        message = f"{text!r} is longer in {'xyz'[axis]} than a block can be ({format_count(_AXIS_LIMITS[axis])})"
        raise InputError(message, place="--block", remedy=_BLOCK_REMEDY)
    return tuple(sorted(sizes))


def _list_powers(low: int, high: int) -> tuple[int, ...]:
    """Powers of two from ``low`` to ``high``, both included."""
    return tuple(1 << bit for bit in range(high.bit_length()) if low <= 1 << bit <= high)


def parse_folds(text: str) -> tuple[tuple[int, int, int], ...]:
    """The foldings a list names.

    Raises:
        InputError: it means nothing.

    >>> parse_folds("1,2y,2x4z")
    ((1, 1, 1), (1, 2, 1), (2, 1, 4))
    """
    found = []
    for one in text.lower().split(","):
        word = one.strip()
        parts = _FOLD.findall(word)
        axes = [axis for _, axis in parts]
        if word != "1" and (
            not word or "".join(count + axis for count, axis in parts) != word or len(set(axes)) != len(axes)
        ):
            raise InputError(f"{one!r} is not a fold", place="--fold", remedy=_FOLD_REMEDY)
        sizes = {axis: int(count) for count, axis in parts}
        found.append((sizes.get("x", 1), sizes.get("y", 1), sizes.get("z", 1)))
    return tuple(found)
