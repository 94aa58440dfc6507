"""Launch descriptions: :class:`LaunchDescription`, from a TOML beside the source, a profile, or an editor."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.code.ptx.scalar_types import ScalarType


class Generator(StrEnum):
    """Generator of an array's content; the values are those of the TOML. All are deterministic."""

    ZEROS = "zeros"
    CONSTANT = "constant"  # ``value`` everywhere
    SEQUENCE = "sequence"  # ``low``, ``low + step`` …
    UNIFORM = "uniform"  # Between ``low`` (included) and ``high`` (excluded)
    # Mean ``low``, standard deviation ``high``; no value is further from the mean than six deviations
    NORMAL = "normal"
    PERMUTATION = "permutation"  # The numbers 0 … count-1, shuffled
    VALUES = "values"  # Those that are listed, over and over
    FILE = "file"  # From ``file``: ``.npy``, or raw bytes of the type, little-endian


class ScalarArgument(Struct, frozen=True, kw_only=True):
    """A number."""

    name: str  # for people
    type: ScalarType  # of the parameter
    value: int | float  # as given; checked against the type when read


class ArrayArgument(Struct, frozen=True, kw_only=True):
    """A pointer to an array in global memory."""

    name: str  # for people, and for everything that names arrays
    type: ScalarType  # of an element
    count: int  # elements
    generator: Generator = Generator.ZEROS  # what fills it
    value: int | float = 0  # for CONSTANT
    low: float = 0.0  # see :class:`Generator`
    high: float = 1.0  # see :class:`Generator`
    step: float = 1.0  # see :class:`Generator`
    seed: int = 0  # of the random generators
    values: tuple[int | float, ...] = ()  # for VALUES
    file: Path | None = None  # for FILE; resolved against the description's folder and never outside it
    offset_elements: int = 0  # the pointer points to this element
    # name of an earlier array this is the same memory as (in-place updates); then only the offset counts. None otherwise.
    alias_of: str | None = None
    # where its first byte lies, for arrays whose address others hold; None for any place
    base_address: int | None = None
    is_guessed: bool = False  # nobody knows its size: what is touched beyond its end is no fault of the program


class StructArgument(Struct, frozen=True, kw_only=True):
    """A structure passed by value: members at their offsets."""

    name: str  # for people
    size_bytes: int  # of the parameter
    # (offset in bytes, member), each a scalar, an array (its pointer) or a texture (its handle); what lies between is zero
    members: tuple[tuple[int, "Member"], ...]


class TextureArgument(Struct, frozen=True, kw_only=True):
    """A texture or surface object over an array."""

    name: str  # of the parameter, of the ``.texref``, or of the variable that holds its handle
    array: ArrayArgument  # its texels; ``channels`` elements each
    channels: int  # 1, 2 or 4
    width: int  # texels
    height: int = 0  # texels; 0 for one dimension
    depth: int = 0  # texels; 0 below three dimensions
    layers: int = 0  # of a layered texture, six for each cube of a cubemap; 0 for others
    is_linear_filter: bool = False  # bilinear filtering, else the nearest texel
    address_mode: str = "clamp"  # ``clamp``, ``border``, ``wrap`` or ``mirror``
    is_normalized: bool = False  # coordinates run from 0 to 1
    reads_normalized: bool = False  # integer texels are read as fractions
    handle: int | None = None  # what the kernel knows it by, for textures whose handle memory holds; None for any


Member = ScalarArgument | ArrayArgument | TextureArgument
Argument = Member | StructArgument


class LaunchDescription(Struct, frozen=True, kw_only=True):
    """One launch."""

    kernel: str  # mangled, readable or bare name of the kernel
    block: tuple[int, int, int]  # threads in x, y, z
    # blocks in x, y, z; given, or ``threads`` divided by ``block`` and by ``fold``, rounded up
    grid: tuple[int, int, int]
    # elements in x, y, z that the launch covers; None when the grid was given. What an exploration keeps while it varies the block.
    threads: tuple[int, int, int] | None = None
    fold: tuple[int, int, int] = (1, 1, 1)  # elements in x, y, z that a thread covers; 1 where the grid was given
    shared_bytes: int = 0  # dynamic shared memory
    cluster: tuple[int, int, int] | None = None  # blocks of a cluster in x, y, z; None as the kernel was compiled for
    arguments: tuple[Argument, ...] = ()  # in the order of the parameters
    # arrays that fill variables of the module (``__device__``, ``__constant__``) by name before the launch
    variables: tuple[ArrayArgument, ...] = ()
    # arrays and textures that no argument names, but whose address or handle memory holds
    memory: tuple[ArrayArgument | TextureArgument, ...] = ()
    # what nobody knows: ``block``, ``grid``, ``threads``, names of numbers, and of arrays, textures and variables with made-up contents
    guesses: tuple[str, ...] = ()
    title: str = ""  # for people; empty when there is none
    path: Path | None = None  # the file it stands in; None when it came from elsewhere
    line: int | None = None  # 1-based line of its table there; None without a file

    @property
    def place(self) -> str | None:
        """Line of the file, for people."""
        return None if self.line is None else f"line {self.line}"

    @property
    def covered(self) -> tuple[int, int, int]:
        """Elements in x, y, z: ``threads``, or those of the grid's blocks."""
        if self.threads is not None:
            return self.threads
        x, y, z = (size * blocks for size, blocks in zip(self.block, self.grid, strict=True))
        return x, y, z


def list_members(argument: Argument) -> Sequence[tuple[int, Member]]:
    """Members of a structure with the bytes in front of them; any other argument by itself."""
    return argument.members if isinstance(argument, StructArgument) else ((0, argument),)


def list_passed(launch: LaunchDescription) -> list[Member]:
    """Arguments, and members of those that are structures."""
    return [member for one in launch.arguments for _, member in list_members(one)]


def find_cluster(kernel: PtxFunction, launch: LaunchDescription) -> tuple[int, int, int] | None:
    """Blocks of a cluster in x, y, z, as the launch says or the kernel was compiled for; None where neither says it."""
    return launch.cluster or kernel.cluster


def list_arrays(launch: LaunchDescription) -> list[ArrayArgument]:
    """Arrays of arguments and their members, of variables, and of memory."""
    return [one for one in (*list_passed(launch), *launch.variables, *launch.memory) if isinstance(one, ArrayArgument)]


def replace_arrays(launch: LaunchDescription, arrays: Mapping[str, ArrayArgument]) -> LaunchDescription:
    """The launch with some of its arrays replaced."""

    def change(one: Argument) -> Argument:
        if isinstance(one, StructArgument):
            members = ((at, arrays.get(inner.name, inner) if _is_array(inner) else inner) for at, inner in one.members)
            return replace(one, members=tuple(members))
        return arrays.get(one.name, one) if _is_array(one) else one

    return replace(
        launch,
        arguments=tuple(change(one) for one in launch.arguments),
        variables=tuple(arrays.get(one.name, one) for one in launch.variables),
        memory=tuple(arrays.get(one.name, one) if isinstance(one, ArrayArgument) else one for one in launch.memory),
    )


def _is_array(argument: Argument) -> bool:
    return isinstance(argument, ArrayArgument)
