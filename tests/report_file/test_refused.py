"""A report that is not as it must be is refused with its place: never a guess, never another error."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.report.saved import SCHEMA_NAME, is_saved_report
from gpa_lsp.report.saved.store import read_report, write_report
from tests.conftest import examples
from tests.report_builder import build_kernel, build_report
from tests.report_file.json_documents import change, dump, write
from tests.report_file.known_reports import make_full_report, make_report, make_unknown_report

# A pointer, the value put there (Python; ... takes it away), what the error says, and the place it names where that is another.
WRONG = """
/schema | 'gpa-lsp/report/4' | format 'gpa-lsp/report/4'
/kernels | {} | an object, not an array
/kernels/0/name | 3 | a number, not a string
/kernels/0/launch/grid | [1, 2] | has 2 elements, not 3
/kernels/0/launch/grid/1 | -1 | is -1, outside
/kernels/0/device/compute_capability | '8,6' | is not a compute capability
/kernels/0/device/sm_clock_hz | 'fast' | a string, not a number
/kernels/0/samples/latency | 98 | is 98, outside 0 to 97
/kernels/0/samples/truncated | 1 | a number, not true or false
/kernels/0/samples/by_reason/wait/all | 90 | has 164 samples, more than 97 | /kernels/0/samples/by_reason
/kernels/0/samples/by_reason/wait/latency | 90 | is 90, outside 0 to 23
/kernels/0/lines/0/inclusive_samples | 98 | is 98, outside 0 to 97
/kernels/0/functions/0/role | 'guest' | not one of kernel, device_function
/kernels/0/lines/0/samples | True | a boolean, not a whole number
/kernels/0/lines/0/called_samples | -1 | is negative
/kernels/0/loops/0/depth | 0 | is 0, outside 1
/kernels/0/reasons | ['wait', 'wait'] | names a reason twice
/kernels/0/reasons | ['wait'] | which the kernel's reasons do not list | /kernels/0/instructions/0/by_reason
/kernels/0/reasons | [str(n) for n in range(99)] | has 99 reasons
/kernels/0/instructions/0/control/write_barrier | 7 | is 7, outside 0 to 6
/kernels/0/instructions/0/by_reason | {} | has 33 samples, not the kernel's 97 | /kernels/0/instructions
/kernels/0/instructions/0/pc_offset | 1 << 63 | outside
/kernels/0/duration_ns | 10 ** 400 | too large
/problems/0/severity | 'fatal' | not one of error, warning, note
/kernels/0/device/sm_count | ... | lacks the property 'sm_count' | /kernels/0/device
/kernels/0/instructions/0/function | 7 | is 7, but tables/functions has 7 elements
/kernels/0/instructions/0/inline | -1 | is -1, but tables/chains has 5 elements
/kernels/0/instructions/0/inline | 0.5 | a number, not an array
/kernels/0/lines/0/file | True | a boolean, not a string
/tables/chains/1/0 | 5 | is 5, but tables/frames has 5 elements
/tables/frames/0/file | 7 | is 7, but tables/files has 2 elements
/tables/frames/0 | None | is null, not an object
/tables/files/0 | 0 | a number, not a string
/tables/chains | {} | an object, not an array
/tables | [] | an array, not an object
/kernels/2/blame/edges/0/use_row | 4 | is 4, outside 0 to 3
/kernels/2/blame/edges/0/def_row | -1 | is -1, outside 0 to 3
/kernels/2/blame/edges/0/use_row | 3 | instruction 0 has 0 samples of selected in edges and unattributed, not the 4 | /kernels/2/blame
/kernels/2/blame/edges/0/all | 1e+300 | instruction 0 has 1e+300 samples of selected | /kernels/2/blame
/kernels/2/blame/edges/0/all | -1 | is negative
/kernels/2/blame/edges/0/latency | 9 | has more not-issued samples than samples in element 0 | /kernels/2/blame/edges
/kernels/2/blame/edges/2/latency | 29.5 | has 49.5 not-issued samples of long_scoreboard | /kernels/2/blame
/kernels/2/blame/edges/0/reason | 'naptime' | is 'naptime', not one of drain, long_scoreboard
/kernels/2/blame/edges/0/category | 'ISSUED' | is 'ISSUED', not one of memory_global
/kernels/2/blame/edges/0/dependency | 3 | is a number, not a string
/kernels/2/blame/edges/0/resource | 'R256' | is 'R256', no register
/kernels/2/blame/edges/0/resource | 2 | a number, not a string
/kernels/2/blame/edges/1/reason | None | is null, not a string
/kernels/2/blame/edges/1/use_row | None | is null, not a whole number
/kernels/2/blame/edges/1/use_row | 1 << 70 | outside 0 to 3
/kernels/2/blame/edges/1/use_row | 0.5 | a number, not a whole number
/kernels/2/blame/edges/1/all | 10 ** 400 | too large
/kernels/2/blame/edges/1 | [] | is an array, not an object
/kernels/2/blame/edges/0/distance_cycles | -1 | is -1, outside 0
/kernels/2/blame/edges/0/group | 1 << 31 | outside 0 to 2147483647
/kernels/2/blame/edges/0/distance_cycles | 1 << 40 | outside
/kernels/2/blame/edges/0/distance_instructions | ... | lacks the property 'distance_instructions' | /kernels/2/blame/edges/0
/kernels/2/blame/edges | {} | is an object, not an array
/kernels/2/blame/edges | [] | has 0 samples | /kernels/2/blame
/kernels/2/blame/unattributed_rows/0/cause | 'bad luck' | not one of no_code
/kernels/2/blame/unattributed_rows/0/row | 9 | outside 0 to 3
/kernels/2/blame/unattributed_rows/0/all | True | a boolean, not a number
/kernels/2/blame/issue_counts/counts | [1] | has 1 numbers for 4 instructions
/kernels/2/blame/issue_counts/counts/1 | -0.5 | is negative
/kernels/2/blame/issue_counts/counts/1 | 10 ** 400 | too large
/kernels/2/blame/issue_counts/is_exact | 1 | not true or false
/kernels/2/blame/single_dependency_coverage/after | 1.5 | is 1.5, outside 0 to 1
/kernels/2/blame/wait_check/predicted_samples | -3 | is negative
/kernels/2/blame/blamer | None | is null, not a string
/kernels/2/blame/problems/0/severity | 'odd' | not one of error
/kernels/2/instructions | [] |  | /kernels/2/blame/edges/0/use_row
/kernels/3/advice | {} | is an object, not an array
/kernels/3/advice/0 | 1 | is a number, not an object
/kernels/3/advice/0/optimizer | None | is null, not a string
/kernels/3/advice/0/category | 'magic' | not one of code, parallel, binary
/kernels/3/advice/0/speedup/estimate | None | is null, not a number
/kernels/3/advice/0/speedup/low | -1 | is negative
/kernels/3/advice/0/speedup/estimate | 50 | has low, estimate, high and bound in another order | /kernels/3/advice/0/speedup
/kernels/3/advice/0/speedup/low | 1e+308 | has low, estimate, high and bound in another order | /kernels/3/advice/0/speedup
/kernels/3/advice/0/speedup/bound_reason | ... | lacks the property 'bound_reason' | /kernels/3/advice/0/speedup
/kernels/3/advice/0/share/part_samples | 101 | is 101, outside 0 to 100
/kernels/3/advice/0/share/ratio | 1.1 | is 1.1, outside 0 to 1
/kernels/3/advice/0/matched_samples | -2 | is negative
/kernels/3/advice/0/scope/kind | 'galaxy' | not one of kernel, function
/kernels/3/advice/0/scope/row | 3 | is 3, outside 0 to 2
/kernels/3/advice/0/regions/1/density | 2 | outside 0 to 1
/kernels/3/advice/0/regions/0/scope/line | '4' | a string, not a whole number
/kernels/3/advice/0/regions/0/hotspots/0/def | None | is null, not an object
/kernels/3/advice/0/regions/0/hotspots/0/def/row | 3 | outside 0 to 2
/kernels/3/advice/0/regions/0/hotspots/0/use/row | -1 | outside 0 to 2
/kernels/3/advice/0/regions/0/hotspots/0/category | 'x' | not one of memory
/kernels/3/advice/0/regions/0/hotspots/0/operand | 'Q1' | no register
/kernels/3/advice/0/caveats | 'none' | a string, not an array
/kernels/3/advice_silences/0/stage | 'asleep' | not one of no_samples
/kernels/3/advice_silences/0 | [] | is an array, not an object
/kernels/4/places/rows/0/reason | 'wait' | has 20 samples of wait at instruction 0, which has 0 | /kernels/4/places/rows
/kernels/4/places/rows/0/samples | 1 << 62 | more samples than the kernel's 67 | /kernels/4/places/rows
/kernels/4/places/rows/0/samples | -1 | outside 0 to
/kernels/4/places/rows/0/place | 2 | outside 0 to 1
/kernels/4/places/rows/0/row | 3 | outside 0 to 2
/kernels/4/places/rows/0/reason | 'sleeping' | 'sleeping'
/kernels/4/places/call_stacks/0 | 'main' | not an array
/kernels/3/analyses/answers/0/findings/0/weight | 'heavy' | not one of
/kernels/3/analyses/answers/0/tables/0/rows/0/0 | {} | not a number
/kernels/3/analyses/answers/0/tables/0/rows/0/0 | True | not a number
/kernels/3/analyses/answers | None | not an array
/kernels/3/analyses/roofline/machine/compute_capability | [8] | has 1 elements, not 2
/kernels/3/analyses/roofline/machine/clocks/sm_hz | 'fast' | not a number
/kernels/3/analyses/roofline/launches/0/roofs/0/level | 'L9' | not one of
/kernels/3/analyses/answers/0/marks/0/line | 1.5 | not a whole number
"""


@cache
def _write_full_report() -> str:
    return json.dumps(dump(make_full_report()))


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_a_wrong_value_is_named_by_its_pointer(tmp_path: Path, line: str) -> None:
    pointer, value, words, *place = (part.strip() for part in line.split(" | "))
    document = change(json.loads(_write_full_report()), pointer, eval(value))
    path = write(tmp_path / "r.json", document)
    with pytest.raises(InputError) as caught:
        read_report(path)
    assert caught.value.path == path
    assert caught.value.remedy
    assert words in str(caught.value)
    assert [caught.value.place] == (place or [pointer])


_VALUES = [None, True, 0, 1, -1, 2, 99, 1 << 62, 1 << 70, 0.5, -0.5, 1e300, "", "1", "wait", [], {}, [0], [[]], {"a": 0}, ...]  # fmt: skip


@cache
def _write_documents() -> list[tuple[str, list[str]]]:
    reports = (make_report(), make_unknown_report())
    documents = [dump(report, is_expanded=expand) for report in reports for expand in (False, True)]
    return [(json.dumps(document), list(_walk(document, ""))) for document in documents]


def _walk(value: Any, pointer: str) -> Iterator[str]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if "/" not in str(key) and not (isinstance(value, dict) and str(key).isdigit()):
            yield f"{pointer}/{key}"
            yield from _walk(part, f"{pointer}/{key}")


@examples(300)
@given(number=st.integers(0, 3), place=st.integers(0, 1 << 30), value=st.sampled_from(_VALUES))
def test_a_replaced_value_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, number: int, place: int, value: Any
) -> None:
    text, pointers = _write_documents()[number]
    document = change(json.loads(text), pointers[place % len(pointers)], value)
    path = write(tmp_path_factory.getbasetemp() / "damaged.json", document)
    try:
        read_report(path)
    except InputError as error:
        assert error.path == path
        assert error.remedy
        at = document  # what the error names is there
        for step in (error.place or "").split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            at = at[int(key) if isinstance(at, list) else key]


def test_pointers_escape_slashes_and_tildes(tmp_path: Path) -> None:
    document = dump(make_report())
    document["kernels"][0]["embedded_sources"] = {"a/b~c": 1}
    with pytest.raises(InputError) as caught:
        read_report(write(tmp_path / "r.json", document))
    assert caught.value.place == "/kernels/0/embedded_sources/a~1b~0c"


def test_other_versions_are_unsupported(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", {"schema": "gpa-lsp/report/99"})
    assert is_saved_report(path)
    with pytest.raises(UnsupportedInputError):
        read_report(path)


BARE = f'{{"schema": "{SCHEMA_NAME}"}}'


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", '{"schema": NaN}', pytest.param("[" * 100_000, id="deep"), "1" * 10_000, BARE]
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_report(write(tmp_path / "r.json", text))


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"schema": "\xe9"}')
    for path in (tmp_path / "missing.json", tmp_path, tmp_path / "latin.json"):
        with pytest.raises(InputError):
            read_report(path)
    assert not is_saved_report(tmp_path / "missing.json")


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(2 << 30)
    with pytest.raises(InputError, match="too large for a report"):
        read_report(path)


def test_truncated_at_any_byte(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_report(build_report(build_kernel("k.cu:1  NOP  ; wait=1")), path)
    text = path.read_text().rstrip()
    for end in range(0, len(text), 31):
        with pytest.raises(InputError):
            read_report(write(path, text[:end]))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", "old")
    with pytest.raises(AttributeError):
        write_report(replace(make_report(), problems=(object(),)), path)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["r.json"]
