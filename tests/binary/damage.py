"""Ways to damage a file, for property tests of readers: whatever happens to the bytes, a reader answers or raises one of our errors."""

import struct
import tracemalloc
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from gpa_lsp.foundation.errors import GpaError
from tests.patience import in_bounded_time

MEMORY_PER_BYTE = 200
MEMORY_AT_LEAST = 24 << 20
WIDTHS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


def damage(image: bytes, spots: Sequence[range]) -> st.SearchStrategy[bytes]:
    """Copies of an image that are cut, bit-flipped, overwritten with numbers that lie, or have one piece copied over another.

    Args:
        image: a sound file.
        spots: where tables are; half of the changes hit these.
    """
    anywhere = st.integers(0, len(image) - 1)
    at_tables = st.sampled_from([spot for spot in spots if len(spot)]).flatmap(
        lambda spot: st.integers(spot.start, spot.stop - 1)
    )
    place = at_tables | anywhere
    number = (
        st.sampled_from([0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0xFFFF, 1 << 31, 0xFFFFFFFF, 1 << 40, 1 << 63, (1 << 64) - 1])
        | st.integers(0, 2 * len(image))
        | st.integers(0, 300)
    )
    flip = st.tuples(st.just("flip"), place, st.integers(0, 7), st.just(0))
    write = st.tuples(st.just("write"), place, st.sampled_from(sorted(WIDTHS)), number)
    copy = st.tuples(st.just("copy"), place, place, st.integers(1, 64))
    cut = st.tuples(st.just("cut"), anywhere, st.just(0), st.just(0))
    changes = st.lists(flip | write | write | copy, min_size=1, max_size=6) | st.lists(cut, min_size=1, max_size=1)
    return changes.map(lambda chosen: _apply(image, chosen))


def _apply(image: bytes, changes: Sequence[tuple[str, int, int, int]]) -> bytes:
    damaged = bytearray(image)
    for kind, place, second, third in changes:
        if kind == "cut":
            del damaged[place:]
        elif kind == "flip":
            damaged[place] ^= 1 << second
        elif kind == "copy":
            count = min(third, len(damaged) - place, len(damaged) - second)
            damaged[place : place + count] = damaged[second : second + count]
        else:
            start = min(place, len(damaged) - second)
            struct.pack_into(WIDTHS[second], damaged, start, third % (1 << 8 * second))
    return bytes(damaged)


def check_bounded(size: int, read: Callable[[], object]) -> bool:
    """Run a reader on a damaged input: no errors but ours, in bounded time and memory.

    Args:
        size: of the input, in bytes.
        read: reads it.

    Returns:
        Whether it was read, False when it was refused.
    """
    tracemalloc.start()
    try:
        with in_bounded_time():
            read()
        answered = True
    except GpaError as error:
        assert str(error)
        answered = False
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MEMORY_AT_LEAST + MEMORY_PER_BYTE * size
    return answered
