"""Lines out of bytes: the same whatever the pieces they come in, clean, and bounded."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.profile.collect.command_run import OutputLines, clean_line, find_profiled_kernel

LONG = b"x" * 5_000

SPECIAL = st.sampled_from(
    [b"\n", b"\r", b"\r\n", b"\x1b[1m", b"\x1b]0;t\x07", b"\xff", "é".encode(), b"==ERROR== no", LONG]
)
OUTPUT = st.lists(st.one_of(SPECIAL, st.binary(max_size=6)), max_size=30).map(b"".join)


def read_all(pieces: list[bytes]) -> tuple[list[str], tuple[str, ...]]:
    lines = OutputLines()
    found = [line for piece in pieces for line in lines.take(piece)[0]]
    return found + lines.finish(), lines.tail


@given(OUTPUT, st.lists(st.integers(0, 20_000), max_size=8))
def test_lines_do_not_depend_on_the_pieces_they_come_in(output: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(output), *(cut for cut in cuts if cut < len(output))})
    pieces = [output[start:end] for start, end in pairwise(places)]
    assert read_all(pieces) == read_all([output])


@given(OUTPUT)
def test_lines_hold_nothing_that_moves_a_cursor(output: bytes) -> None:
    found, tail = read_all([output])
    for line in (*found, *tail):
        assert not re.search(r"[\x00-\x08\n-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line)
        assert len(line) <= 2_002


@given(OUTPUT)
def test_every_line_is_given_once(output: bytes) -> None:
    found, _ = read_all([output])
    ends_open = output.rpartition(b"\n")[2] != b""
    assert len(found) == output.count(b"\n") + ends_open


def test_only_so_many_lines_are_made_when_only_so_many_are_wanted() -> None:
    lines = OutputLines(tail_lines=3)
    shown, more = lines.take(b"".join(b"%d\n" % number for number in range(1_000)), limit=2)
    assert (shown, more) == (["0", "1"], 998)
    assert lines.tail == ("997", "998", "999")


def test_a_line_that_never_ends_takes_little_memory() -> None:
    lines = OutputLines()
    for _ in range(1_000):
        assert lines.take(b"=" * 65_536) == ([], 0)
    assert lines.finish() == ["=" * 2_000 + " …"]


def test_errors_of_the_profiler_are_kept_however_much_comes_after_them() -> None:
    lines = OutputLines(tail_lines=2)
    lines.take(b"start\n==ERR")
    lines.take(b"OR== ERR_NVGPUCTRPERM - no permission\n" + b"step\n" * 5_000)
    lines.take(b"done\n")
    assert lines.tail == ("==ERROR== ERR_NVGPUCTRPERM - no permission", "step", "done")


def test_what_a_screen_would_show_of_a_progress_bar() -> None:
    assert read_all([b" 10 %\r 50 %\r100 %\n"])[0] == ["100 %"]
    assert read_all([b"first\r\nsecond\r\r\n"])[0] == ["first", "second"]


def test_text_cannot_be_reordered() -> None:
    assert clean_line("rm \u202eelif\u202c x".encode()) == "rm elif x"


def test_the_kernel_being_measured() -> None:
    line = '==PROF== Profiling "void foo<(int)3>(float *)" - 12: 0%....50%....100% - 40 passes'
    assert find_profiled_kernel(line) == "void foo<(int)3>(float *)"
    assert find_profiled_kernel("==PROF== Connected to process 1 (/a)") is None
