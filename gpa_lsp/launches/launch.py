"""A launch as somebody describes it: :class:`LaunchDescription`, from a TOML beside the source, a profile, or an editor."""

from enum import StrEnum
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.scalar_types import ScalarType


class Generator(StrEnum):
    """What fills an array; the values are those of the TOML. All are deterministic: the same description gives the same bytes."""

    ZEROS = "zeros"
    CONSTANT = "constant"
    """``value`` everywhere."""
    SEQUENCE = "sequence"
    """``low``, ``low + step`` …"""
    UNIFORM = "uniform"
    """Between ``low`` (included) and ``high`` (excluded)."""
    NORMAL = "normal"
    """Mean ``low``, standard deviation ``high``; no value is further from the mean than six deviations."""
    PERMUTATION = "permutation"
    """The numbers 0 … count-1, shuffled."""
    VALUES = "values"
    """Those that are listed, over and over."""
    FILE = "file"
    """From ``file``: ``.npy``, or raw bytes of the type, little-endian."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArgument:
    """A number.

    Attributes:
        name: for people.
        type: of the parameter.
        value: as given; checked against the type when read.
    """

    name: str
    type: ScalarType
    value: int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayArgument:
    """A pointer to an array in global memory.

    Attributes:
        name: for people, and for everything that names arrays.
        type: of an element.
        count: elements.
        generator: what fills it.
        value: for CONSTANT.
        low: see :class:`Generator`.
        high: see :class:`Generator`.
        step: see :class:`Generator`.
        seed: of the random generators.
        values: for VALUES.
        file: for FILE; resolved against the description's folder and never outside it.
        offset_elements: the pointer points to this element.
        alias_of: name of an earlier array this is the same memory as (in-place updates); then only the offset counts. None otherwise.
        base_address: where its first byte lies, for arrays whose address others hold; None for any place.
        is_guessed: nobody knows its size: what is touched beyond its end is no fault of the program.
    """

    name: str
    type: ScalarType
    count: int
    generator: Generator = Generator.ZEROS
    value: int | float = 0
    low: float = 0.0
    high: float = 1.0
    step: float = 1.0
    seed: int = 0
    values: tuple[int | float, ...] = ()
    file: Path | None = None
    offset_elements: int = 0
    alias_of: str | None = None
    base_address: int | None = None
    is_guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StructArgument:
    """A structure passed by value: members at their offsets.

    Attributes:
        name: for people.
        size_bytes: of the parameter.
        members: (offset in bytes, member), each a scalar, an array (its pointer) or a texture (its handle); what lies between is zero.
    """

    name: str
    size_bytes: int
    members: tuple[tuple[int, "ScalarArgument | ArrayArgument | TextureArgument"], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextureArgument:
    """A texture or surface object over an array.

    Attributes:
        name: of the parameter, of the ``.texref``, or of the variable that holds its handle.
        array: its texels; ``channels`` elements each.
        channels: 1, 2 or 4.
        width: texels.
        height: texels; 0 for one dimension.
        depth: texels; 0 below three dimensions.
        layers: of a layered texture, six for each cube of a cubemap; 0 for others.
        is_linear_filter: bilinear filtering, else the nearest texel.
        address_mode: ``clamp``, ``border``, ``wrap`` or ``mirror``.
        is_normalized: coordinates run from 0 to 1.
        reads_normalized: integer texels are read as fractions.
        handle: what the kernel knows it by, for textures whose handle memory holds; None for any.
    """

    name: str
    array: ArrayArgument
    channels: int
    width: int
    height: int = 0
    depth: int = 0
    layers: int = 0
    is_linear_filter: bool = False
    address_mode: str = "clamp"
    is_normalized: bool = False
    reads_normalized: bool = False
    handle: int | None = None


Argument = ScalarArgument | ArrayArgument | StructArgument | TextureArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchDescription:
    """One launch.

    Attributes:
        kernel: mangled, readable or bare name of the kernel.
        block: threads in x, y, z.
        grid: blocks in x, y, z; given, or ``threads`` divided by ``block`` and by ``fold``, rounded up.
        threads: elements in x, y, z that the launch covers; None when the grid was given. What an exploration keeps while it varies
            the block.
        shared_bytes: dynamic shared memory.
        arguments: in the order of the parameters.
        variables: arrays that fill variables of the module (``__device__``, ``__constant__``) by name before the launch.
        memory: arrays and textures that no argument names, but whose address or handle memory holds.
        guesses: what nobody knows: ``block``, ``grid``, ``threads``, names of numbers, and of arrays, textures and variables with made-up contents.
        title: for people; empty when there is none.
        path: the file it stands in; None when it came from elsewhere.
        line: 1-based line of its table there; None without a file.
    """

    kernel: str
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    threads: tuple[int, int, int] | None = None
    shared_bytes: int = 0
    arguments: tuple[Argument, ...] = ()
    variables: tuple[ArrayArgument, ...] = ()
    memory: tuple[ArrayArgument | TextureArgument, ...] = ()
    guesses: tuple[str, ...] = ()
    title: str = ""
    path: Path | None = None
    line: int | None = None

    @property
    def covered(self) -> tuple[int, int, int]:
        """Elements in x, y, z: ``threads``, or those of the grid's blocks."""
        if self.threads is not None:
            return self.threads
        x, y, z = (size * blocks for size, blocks in zip(self.block, self.grid, strict=True))
        return x, y, z
