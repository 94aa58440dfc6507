"""What goes over the pipe between this process and the one that holds NVRTC: :class:`NvrtcJob` there, :class:`NvrtcAnswer` back.

Both ends are this package, started by the same interpreter, so the frames are pickled: a length of eight bytes, then the object.
"""

import pickle
import struct
from dataclasses import dataclass
from typing import IO

FRAME_HEADER = struct.Struct("<Q")
LARGEST_FRAME_BYTES = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class NvrtcJob:
    """One compilation.

    Attributes:
        source: the text; no NUL in it.
        name: the file the line table names.
        options: as for ``nvrtcCompileProgram``.
        headers: (name in the ``#include``, text) of headers that are on no disk.
        expressions: kernel templates to instantiate, e.g. ``scale<float>``.
        limit_s: seconds after which the process ends itself, whatever became of the one that asked.
    """

    source: bytes
    name: str
    options: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()
    expressions: tuple[str, ...] = ()
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NvrtcAnswer:
    """What NVRTC made of it.

    Attributes:
        error: name of its error, e.g. ``NVRTC_ERROR_COMPILATION``; None when all went well.
        log: its own words and the assembler's.
        ptx: the PTX; None when there is none.
        cubin: the image; None when there is none.
        seconds: wall time.
    """

    error: str | None
    log: str
    ptx: bytes | None
    cubin: bytes | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NvrtcGreeting:
    """The first frame of a process that has begun.

    Attributes:
        version: of NVRTC; None when it cannot be loaded.
        architectures: numbers it compiles for, ascending, e.g. 75, 80.
        reason: why it cannot be loaded; empty when it can.
    """

    version: tuple[int, int] | None
    architectures: tuple[int, ...] = ()
    reason: str = ""


def write_frame(stream: IO[bytes], content: object) -> None:
    """Send one object.

    Raises:
        OSError: the other end is gone.
    """
    body = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(FRAME_HEADER.pack(len(body)) + body)
    stream.flush()


def read_frame(stream: IO[bytes]) -> object | None:
    """Receive one object; None when the other end is gone."""
    header = stream.read(FRAME_HEADER.size)
    if len(header) < FRAME_HEADER.size:
        return None
    (length,) = FRAME_HEADER.unpack(header)
    if length > LARGEST_FRAME_BYTES:
        return None
    body = stream.read(length)
    return pickle.loads(body) if len(body) == length else None
