"""Ways to damage a file, for property tests of readers: whatever happens to the bytes, a reader answers or raises one of our errors."""

import struct
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hypothesis import strategies as st

from gpa_lsp.foundation.errors import GpaError
from tests.patience import in_bounded_time

MEMORY_PER_BYTE = 200
MEMORY_AT_LEAST = 24 << 20
WIDTHS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
_LIES = [0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 1 << 31, 0xFFFFFFFF, 1 << 40, 1 << 63, (1 << 64) - 1]


def damage(image: bytes, spots: Sequence[range] = (), *, resizes: bool = False) -> st.SearchStrategy[bytes]:
    """Copies of an image that are cut, bit-flipped, overwritten with numbers that lie, or have one piece copied over another.

    Args:
        image: a sound file.
        spots: where tables are; half of the changes hit these.
        resizes: pieces are also taken out, put in and repeated.
    """
    place = anywhere = st.integers(0, len(image) - 1)
    if spots := [spot for spot in spots if len(spot)]:
        place = anywhere | st.sampled_from(spots).flatmap(lambda spot: st.integers(spot.start, spot.stop - 1))
    number = st.sampled_from(_LIES) | st.integers(0, 2 * len(image)) | st.integers(0, 300)
    size, none = st.integers(1, 64), st.just(0)
    write = st.tuples(st.just("write"), place, st.sampled_from(sorted(WIDTHS)), number)
    kinds = [
        st.tuples(st.just("flip"), place, st.integers(0, 7), none),
        *(write, write),
        st.tuples(st.just("copy"), place, place, size),
    ]
    if resizes:
        kinds += [
            st.tuples(st.just("delete"), place, size, none),
            st.tuples(st.just("repeat"), place, size, st.integers(2, 50)),
            st.tuples(st.just("insert"), place, size, st.integers(0, 255)),
        ]
    cut = st.tuples(st.just("cut"), anywhere, none, none)
    changes = st.lists(st.one_of(kinds), min_size=1, max_size=6) | st.lists(cut, min_size=1, max_size=1)
    return changes.map(lambda chosen: _apply(image, chosen))


def _apply(image: bytes, changes: Sequence[tuple[str, int, int, int]]) -> bytes:
    damaged = bytearray(image)
    for kind, asked, second, third in changes:
        place = min(asked, max(len(damaged) - 1, 0))
        if kind == "cut":
            del damaged[place:]
        elif kind == "delete":
            del damaged[place : place + second]
        elif kind == "repeat":
            damaged[place : place + second] = damaged[place : place + second] * third
        elif kind == "insert":
            damaged[place:place] = bytes([third]) * second
        elif kind == "flip" and damaged:
            damaged[place] ^= 1 << second
        elif kind == "copy":
            count = max(0, min(third, len(damaged) - place, len(damaged) - second))
            damaged[place : place + count] = damaged[second : second + count]
        elif kind == "write" and len(damaged) >= second:
            start = min(place, len(damaged) - second)
            struct.pack_into(WIDTHS[second], damaged, start, third % (1 << 8 * second))
    return bytes(damaged)


@contextmanager
def bounded_memory(most_bytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < most_bytes


def check_bounded(size: int, read: Callable[[], object]) -> bool:
    """Run a reader on a damaged input of some bytes: no errors but ours, in bounded time and memory. Return whether it was read."""
    with bounded_memory(MEMORY_AT_LEAST + MEMORY_PER_BYTE * size), in_bounded_time():
        try:
            read()
        except GpaError as error:
            assert str(error)
            return False
    return True
