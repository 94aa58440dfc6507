"""Protocol between the runtime library and the emulator; ``runtime/runtime.h`` has the same numbers and layouts.

A request is its number, its size and that many bytes; an answer is a ``cudaError_t``, its size and that many bytes. All of it is little-endian, as
every machine is that CUDA runs on.
"""

import mmap
import struct
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.launches.model import TextureInput
from gpa_lsp.foundation.errors import GpaError

REQUEST_HEAD = struct.Struct("<II")
ANSWER_HEAD = struct.Struct("<iI")
MOST_REQUEST_BYTES = 1 << 30
_HELLO = struct.Struct("<II")
_DEVICE = struct.Struct("<5Q13i128s4x")
_LAUNCH = struct.Struct("<17I")
_ALLOCATION = struct.Struct("<QQi4x")
_COMPUTE = struct.Struct("<5I")
_ARGUMENT = struct.Struct("<qI4x16s")
_LAST_WORDS = struct.Struct("<QI60s")
LAST_WORDS_BYTES = mmap.PAGESIZE  # Behind the arena, in a page of their own
_EVENT = np.dtype(
    [
        ("kind", "<u4"),
        ("path", "<u4"),
        ("to", "<u8"),
        ("from", "<u8"),
        ("size", "<u8"),
        ("is_gapped", "<u4"),
        ("host_path", "<u4"),
    ]
)
_EVENTS = np.dtype([("count", "<u4"), ("", "<u4"), ("listed", _EVENT, (1600,))])
EVENTS_BYTES = -(-_EVENTS.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE  # Behind the last words
_TEXTURE = struct.Struct("<4Q12I")
_ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")  # by ``cudaTextureAddressMode``
_TEXEL_ELEMENTS = {  # by ``cudaChannelFormatKind`` and bytes of a channel
    (0, 1): ScalarType.S8, (0, 2): ScalarType.S16, (0, 4): ScalarType.S32,
    (1, 1): ScalarType.U8, (1, 2): ScalarType.U16, (1, 4): ScalarType.U32,
    (2, 2): ScalarType.F16, (2, 4): ScalarType.F32,
}  # fmt: skip
_OCCUPANCY = struct.Struct("<III")
_MOST_ALLOCATIONS = 1 << 22
_LARGEST_PARAMETERS = 32764
_LONGEST_FUNCTION = 64


class Request(IntEnum):
    """Kinds of request."""

    HELLO = 1
    MODULE = 2
    FUNCTION = 3
    VARIABLE = 4
    LAUNCH = 5
    TEXTURE = 6
    OCCUPANCY = 7
    NOTE = 8
    DROP_TEXTURE = 9
    EVENTS = 10
    PATH = 11
    COMPUTE = 12


class EventKind(IntEnum):
    """Kinds of memory event."""

    ALLOCATE = 1
    RELEASE = 2
    COPY = 3
    FILL = 4
    LAUNCH = 5
    # a library on the CPU is about to access an allocation
    LOCATE = 6


class AllocationKind(IntEnum):
    """Ways to allocate memory."""

    ON_DEVICE = 0
    ON_HOST = 1
    MANAGED = 2
    # by cudaMallocAsync
    POOLED = 3
    REGISTERED = 4
    OF_ARRAY = 5
    # in padded rows
    PITCHED = 6


class NoteKind(IntEnum):
    """Subjects of notes."""

    UNSUPPORTED = 1
    EVENT_TIME = 2
    OWN_RUNTIME = 3
    OUT_OF_REACH = 4


class CudaError(IntEnum):
    """The errors a program can get from here; the values are those of ``cudaError_t``.

    Source: CUDA Runtime API, data types.
    """

    SUCCESS = 0
    INVALID_VALUE = 1
    MEMORY_ALLOCATION = 2
    INVALID_CONFIGURATION = 9
    INVALID_SYMBOL = 13
    INVALID_DEVICE_FUNCTION = 98
    INVALID_KERNEL_IMAGE = 200
    NO_KERNEL_IMAGE = 209
    ILLEGAL_ADDRESS = 700
    LAUNCH_OUT_OF_RESOURCES = 701
    LAUNCH_TIMEOUT = 702
    ASSERT = 710
    MISALIGNED_ADDRESS = 716
    INVALID_PC = 718
    LAUNCH_FAILURE = 719
    COOPERATIVE_TOO_LARGE = 720
    NOT_SUPPORTED = 801
    INVALID_CLUSTER_SIZE = 912


class MalformedMessage(GpaError):  # noqa: N818  (it is an error by its root)
    """A program sent what the runtime library does not send."""


class DeviceFacts(Struct, frozen=True, kw_only=True):
    """The device as the program sees it; sizes in bytes, clocks in kHz."""

    arena_base: int  # address of the first byte of device memory, in both processes
    arena_bytes: int  # of the mapping
    client_base: int  # where the program's own part begins
    host_base: int  # where the part of it begins that the host has access to
    memory_bytes: int  # that it may allocate
    major: int
    minor: int
    sm_count: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    l2_bytes: int
    shared_per_block: int
    shared_per_block_optin: int
    shared_per_sm: int
    registers_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    name: str

    def pack(self) -> bytes:
        """Encode as ``struct device``."""
        return _DEVICE.pack(
            self.arena_base, self.arena_bytes, self.client_base, self.host_base, self.memory_bytes, self.major, self.minor,
            self.sm_count, self.clock_khz, self.memory_clock_khz, self.bus_bits, self.l2_bytes, self.shared_per_block,
            self.shared_per_block_optin, self.shared_per_sm, self.registers_per_sm, self.threads_per_sm,
            self.blocks_per_sm, self.name.encode()[:127],
        )  # fmt: skip


class LaunchRequest(Struct, frozen=True, kw_only=True):
    """A launch."""

    function: int  # its number
    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    shared_bytes: int  # dynamic shared memory
    is_cooperative: bool  # its blocks wait for each other
    # blocks of a cluster in x, y, z; None as the kernel was compiled for
    cluster: tuple[int, int, int] | None = None
    has_large_clusters: bool = False  # clusters may have more blocks than is portable
    generation: int  # of the allocations
    # addresses and sizes of what was allocated since the last launch, and addresses with 0 of what was released, in order
    allocations: tuple[tuple[int, int], ...]
    is_whole: bool  # they are all there are
    parameters: bytes  # bytes of all of them


class Argument(Struct, frozen=True, kw_only=True):
    """An argument of a library's function."""

    word: int  # a number, or an address; 0 for a null pointer
    # what a pointer of the host leads to, zeros of a result, which is answered; None where the word is all there is
    value: bytes | None


class ComputeRequest(Struct, frozen=True, kw_only=True):
    """A call of a library's function."""

    function: str
    arguments: tuple[Argument, ...]
    path: int  # number of the host's call path; 0 where it is not known
    # as of a launch
    generation: int
    allocations: tuple[tuple[int, int], ...]
    is_whole: bool


class TextureRequest(Struct, frozen=True, kw_only=True):
    """A texture or surface object."""

    texture: TextureInput | None  # with zeros for texels; None if its format is not emulated
    base: int  # address of its first texel
    row_bytes: int  # from row to row
    held: tuple[int, int]  # address and size of the allocation it lies in


class MemoryEvent(Struct, frozen=True, kw_only=True):
    """An allocation, release, copy, fill or access of memory, or a launch."""

    kind: EventKind
    path: int  # number of the host's call path; 0 where it is not known
    target: int  # address of what was allocated, released, written or accessed; 0 for launches
    source: int  # address of what was copied; of allocations their kind
    size_bytes: int  # from the first to the last byte
    is_gapped: bool  # rows were copied with gaps between them
    host_path: int = 0  # of a copy: number of the path that allocated the host's side of it; 0 where it is not known


class LastWords(Struct, frozen=True, kw_only=True):
    """Last state of a process, which its fault handler wrote."""

    address: int  # that its host code could not access
    signal: int  # that this raised; 0 where nothing did
    call: str  # the function of CUDA it called last; empty where it is not known


def parse_last_words(content: bytes) -> LastWords:
    """Decode the page behind the arena."""
    address, number, call = _LAST_WORDS.unpack_from(content)
    return LastWords(address=address, signal=number, call=call.partition(b"\0")[0].decode("ascii", "replace"))


def take_events(place: npt.NDArray[np.uint8]) -> list[MemoryEvent]:
    """Remove and decode the queued events behind the last words.

    Raises:
        MalformedMessage: it says something else than events.
    """
    held = place[: _EVENTS.itemsize].view(_EVENTS)[0]
    count = min(int(held["count"]), len(held["listed"]))
    rows = held["listed"][:count].tolist()
    held["count"] = 0
    try:
        return [
            MemoryEvent(
                kind=EventKind(kind),
                path=path,
                target=to,
                source=source,
                size_bytes=size,
                is_gapped=bool(gapped),
                host_path=host_path,
            )
            for kind, path, to, source, size, gapped, host_path in rows
        ]
    except ValueError as error:
        raise MalformedMessage(str(error)) from None


def parse_path(payload: bytes) -> tuple[int, tuple[int, ...]]:
    """Decode a call path of the host: its number and its return addresses, innermost first."""
    number, content = parse_number(payload)
    return number, tuple(np.frombuffer(content, "<u8", len(content) // 8).tolist())


def parse_hello(payload: bytes) -> tuple[int, int]:
    """Decode process number and ``CUDART_VERSION``."""
    process, version = _unpack(_HELLO, payload)
    return process, version


def parse_launch(payload: bytes) -> LaunchRequest:
    """Decode a launch.

    Raises:
        MalformedMessage: sizes do not agree.
    """
    head = _unpack(_LAUNCH, payload[: _LAUNCH.size])
    count, size = head[14], head[16]
    middle = _LAUNCH.size + count * _ALLOCATION.size
    if count > _MOST_ALLOCATIONS or size > _LARGEST_PARAMETERS or len(payload) != middle + size:
        raise MalformedMessage("a launch of another size than it says")
    return LaunchRequest(
        function=head[0],
        grid=(head[1], head[2], head[3]),
        block=(head[4], head[5], head[6]),
        shared_bytes=head[7],
        is_cooperative=bool(head[8]),
        cluster=(head[9], head[10], head[11]) if any(head[9:12]) else None,
        has_large_clusters=bool(head[12]),
        generation=head[13],
        allocations=_parse_allocations(payload[_LAUNCH.size : middle]),
        is_whole=bool(head[15]),
        parameters=payload[middle:],
    )


def parse_compute(payload: bytes) -> ComputeRequest:
    """Decode a call of a library's function.

    Raises:
        MalformedMessage: sizes do not agree.
    """
    generation, count, is_whole, path, argument_count = _unpack(_COMPUTE, payload[: _COMPUTE.size])
    middle = _COMPUTE.size + count * _ALLOCATION.size
    end = middle + argument_count * _ARGUMENT.size
    if count > _MOST_ALLOCATIONS or not end < len(payload) <= end + _LONGEST_FUNCTION:
        raise MalformedMessage("a call of another size than it says")
    return ComputeRequest(
        function=payload[end:].decode("ascii", "replace"),
        arguments=tuple(
            Argument(word=word, value=value if is_here else None)
            for word, is_here, value in _ARGUMENT.iter_unpack(payload[middle:end])
        ),
        path=path,
        generation=generation,
        allocations=_parse_allocations(payload[_COMPUTE.size : middle]),
        is_whole=bool(is_whole),
    )


def _parse_allocations(content: bytes) -> tuple[tuple[int, int], ...]:
    return tuple((base, size) for base, size, _ in _ALLOCATION.iter_unpack(content))


def parse_texture(payload: bytes, name: str) -> TextureRequest:
    """Decode a texture or surface object, to be named *name*."""
    base, row_bytes, held_base, held_bytes, width, height, depth, *rest = _unpack(_TEXTURE, payload)
    channels, channel_bytes, channel_kind, is_linear, mode, is_normalized, reads_normalized, _, is_layered = rest
    element = _TEXEL_ELEMENTS.get((channel_kind, channel_bytes))
    texture = None
    if element is not None and 1 <= channels <= 4 and width >= 1 and mode < len(_ADDRESS_MODES):
        shape = max(depth, 1), max(height, 1), width, channels
        texture = TextureInput(
            name=name,
            buffer=0,
            texels=np.broadcast_to(np.zeros(1, element.natural_dtype), shape),
            element=element,
            dimensions=3 if depth and not is_layered else 2 if height else 1,
            is_linear_filter=bool(is_linear),
            address_mode=_ADDRESS_MODES[mode],
            is_normalized=bool(is_normalized),
            reads_normalized=bool(reads_normalized),
            parameter_offset_bytes=None,
        )
    return TextureRequest(texture=texture, base=base, row_bytes=row_bytes, held=(held_base, held_bytes))


def parse_occupancy(payload: bytes) -> tuple[int, int, int]:
    """Function, threads of a block, dynamic shared memory."""
    function, threads, shared = _unpack(_OCCUPANCY, payload)
    return function, threads, shared


def parse_number(payload: bytes) -> tuple[int, bytes]:
    """Split off a leading number of four bytes."""
    if len(payload) < 4:
        raise MalformedMessage("a message without its number")
    return int.from_bytes(payload[:4], "little"), payload[4:]


def _unpack(layout: struct.Struct, payload: bytes) -> tuple[int, ...]:
    if len(payload) != layout.size:
        raise MalformedMessage(f"{len(payload)} bytes where {layout.size} are due")
    return layout.unpack(payload)
