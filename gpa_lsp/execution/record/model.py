"""What was recorded: :class:`Recorded`."""

from pathlib import Path

from msgspec import Struct


class RecordSettings(Struct, frozen=True, kw_only=True):
    """What is kept."""

    limit_bytes: int = 256 << 20  # of the data of one launch; larger ones are not kept
    number: int = 0  # the launch of each kernel that is kept, from 1; 0 for the first with the most threads


class Recorded(Struct, frozen=True, kw_only=True):
    """One launch."""

    kernel: str  # mangled name
    number: int  # of the launch among those of its kernel, from 1
    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    module: Path  # its code, a file of the folder; PTX where it is known
    description: Path | None  # the TOML beside it; None where there is none, see ``problem``
    has_ptx: bool  # the code can be emulated and traced; machine code alone can be simulated and launched
    problem: str = ""  # why it is not described; empty where it is
    # of the module that the kernel uses and that are not kept: compressed code does not tell names, and the program asked for none
    variables: tuple[str, ...] = ()
    # CUDA C++ it was compiled from while the program ran, a file beside the description; None where there is none
    source: Path | None = None
    # the library of Python that made the kernel, with its place and constants; empty where it was none
    origin: str = ""
