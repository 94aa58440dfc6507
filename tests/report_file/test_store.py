"""Reports survive their JSON form, the form keeps to its schema, and broken files are refused with a place."""

import io
import json
import math
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError, Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.report.model import DeviceReport, LoopRow, Report, RuleNote
from gpa_lsp.report.saved.schema import SCHEMA_NAME, is_saved_report
from gpa_lsp.report.saved.store import read_report, write_report
from tests.conftest import examples
from tests.report_builder import OUTSIDE, Row, build_kernel, build_report
from tests.report_file.json_documents import change, dump, expand, refuse, strict_schema, write
from tests.report_file.record_schema import SCHEMA_FILE, make_report_schema, show_schema

LISTING = """
    k.cu:4                          LDG.E R2, [R4.64]          ; long_scoreboard=60/50 selected=4
    square@m.h:9 < k.cu:5           @!P0 FMUL R3, R2, R2       ; wait=20/10 math_pipe_throttle=1
    k.cu:5                          FFMA R2, R2, R3, R6        ; wait=3
    -                               EXIT                       ;
    [helper!]
    -                               RET.REL.NODEC R20 0x0      ; short_scoreboard=7/7
    [<outside this module>]
    -                               ?                          ; misc=2
"""


def make_report() -> Report:
    kernel = build_kernel(
        LISTING,
        name="void kernel<float>(float *)",
        mangled_name="_Z6kernelIfEvPT_",
        durations_ns=(10.5, None, 12.25),
        called_samples={("k.cu", 5): 7.25},
        loops=[
            LoopRow(
                function="_Z6kernelIfEvPT_",
                header_pc_offset=0,
                last_pc_offset=32,
                depth=1,
                file="k.cu",
                first_line=4,
                last_line=5,
                samples=0,
                latency_samples=0,
            )
        ],
        rules=[
            RuleNote(rule="SOLBottleneck", kind="warning", text="„µ“", speedup_percent=12.5, speedup_is_global=True)
        ],
        sources={"k.cu": "int a;\nµ\n"},
    )
    problem = Problem(
        severity=ProblemSeverity.NOTE, message="m", path=Path("a/b"), place="/x", remedy="r", kernel="_Z6kernelIfEvPT_"
    )
    return build_report(kernel, build_kernel(name="empty", durations_ns=()), problems=[problem])


def test_the_schema_file_is_what_the_code_says() -> None:
    text = show_schema(make_report_schema())
    if os.environ.get("UPDATE_GOLDEN"):
        SCHEMA_FILE.write_text(text, encoding="utf-8", newline="\n")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text, "UPDATE_GOLDEN=1 writes it again"


def test_schema_is_a_schema_and_describes_every_property() -> None:
    schema = make_report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    missing = [
        f"{name}.{key}"
        for name, part in schema["$defs"].items()
        for key, value in part["properties"].items()
        if "description" not in value and "properties" not in value
    ]
    assert missing == []
    assert all(part["description"] for part in schema["$defs"].values())


def test_each_description_can_be_read_by_itself() -> None:
    assert "likewise" not in SCHEMA_FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize("is_expanded", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
def test_written_reports_keep_to_the_schema(indent: int | None, is_expanded: bool) -> None:
    written = dump(make_report(), indent=indent, is_expanded=is_expanded)
    jsonschema.Draft202012Validator(strict_schema()).validate(written)


def test_indent_changes_white_space_only() -> None:
    assert dump(make_report(), indent=3) == dump(make_report())


def test_example_has_the_promised_fields() -> None:
    kernel = dump(make_report(), is_expanded=True)["kernels"][0]
    assert kernel["device"]["compute_capability"] == "8.6"
    assert kernel["samples"]["total"] == 97
    assert list(kernel["samples"]["by_reason"]) == [
        "long_scoreboard", "wait", "short_scoreboard", "selected", "misc", "math_pipe_throttle",
    ]  # fmt: skip
    assert kernel["samples"]["by_reason"]["long_scoreboard"] == {"all": 60, "latency": 50}
    instruction = kernel["instructions"][1]
    assert instruction["opcode"] == "FMUL"
    assert (instruction["file"], instruction["line"]) == ("m.h", 9)
    assert instruction["inline"] == [
        {"file": "m.h", "line": 9, "function": "square"},
        {"file": "k.cu", "line": 5, "function": None},
    ]
    assert instruction["control"] == {
        "stall_cycles": 1, "yield": False, "write_barrier": None, "read_barrier": None, "wait_mask": 0,
    }  # fmt: skip
    line = next(row for row in kernel["lines"] if row["line"] == 5)
    assert (line["samples"], line["inclusive_samples"], line["called_samples"]) == (3, 24, 7.25)
    assert line["inclusive_share"]["low_ratio"] < line["inclusive_share"]["ratio"] == 24 / 97


def test_what_many_rows_have_stands_in_tables() -> None:
    document = dump(make_report())
    tables, kernel = document["tables"], document["kernels"][0]
    row = kernel["instructions"][1]
    assert tables["functions"][row["function"]] == "_Z6kernelIfEvPT_"
    assert tables["files"][row["file"]] == "m.h"
    frames = [tables["frames"][number] for number in tables["chains"][row["inline"]]]
    assert [(tables["files"][frame["file"]], frame["line"]) for frame in frames] == [("m.h", 9), ("k.cu", 5)]
    assert tables["functions"][frames[0]["function"]] == "square"
    assert all(len(set(map(str, rows))) == len(rows) for rows in tables.values())
    assert "tables" not in dump(make_report(), is_expanded=True)


@pytest.mark.parametrize(
    ("pointer", "value", "words"),
    [
        ("/kernels/0/instructions/0/file", "k.cu", None),
        ("/kernels/0/instructions/0/function", 9, "is 9, but tables/functions has 5 elements"),
        ("/kernels/0/instructions/0/inline", -1, "is -1, but tables/chains has 4 elements"),
        ("/kernels/0/instructions/0/inline", 0.5, "a number, not an array"),
        ("/kernels/0/lines/0/file", True, "a boolean, not a string"),
        ("/tables/chains/1/0", 7, "is 7, but tables/frames has 3 elements"),
        ("/tables/frames/0/file", 7, "is 7, but tables/files has 2 elements"),
        ("/tables/frames/0", None, "is null, not an object"),
        ("/tables/files/0", 0, "a number, not a string"),
        ("/tables/chains", {}, "an object, not an array"),
        ("/tables", [], "an array, not an object"),
    ],
)
def test_positions_in_tables_are_checked(tmp_path: Path, pointer: str, value: Any, words: str | None) -> None:
    if words is None:  # in place, or not read back
        document = dump(make_report())
        change(document, pointer, value)
        assert expand(read_report(write(tmp_path / "r.json", document))) == expand(make_report())
        return
    error = refuse(tmp_path, make_report(), [(pointer, value)])
    assert words in str(error)
    assert error.place == pointer


def test_every_number_that_is_not_finite_becomes_null() -> None:
    report = build_report(
        replace(
            build_kernel(durations_ns=(math.nan, math.inf)),
            duration_ns=math.nan,
            device=DeviceReport(name=None, compute_capability=None, sm_count=None, sm_clock_hz=math.inf),
        )
    )
    kernel = dump(report)["kernels"][0]
    assert kernel["duration_ns"] is None
    assert [launch["duration_ns"] for launch in kernel["launches"]] == [None, None]
    assert kernel["device"]["sm_clock_hz"] is None


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_report(make_report(), path)
    assert expand(read_report(path)) == expand(make_report())
    assert is_saved_report(path)
    assert [found.name for found in tmp_path.iterdir()] == ["report.json"]


def test_reports_of_older_writers_are_read(tmp_path: Path) -> None:
    document = dump(make_report())
    for kernel in document["kernels"]:
        del kernel["blame"], kernel["advice"]
        for launch in kernel["launches"]:
            del launch["elapsed_cycles"]
    kernel = read_report(write(tmp_path / "r.json", document)).kernels[0]
    assert (kernel.blame, kernel.advice, kernel.launches[0].elapsed_cycles) == (None, None, None)
    assert expand(kernel) == expand(make_report().kernels[0])


def test_elapsed_cycles_survive(tmp_path: Path) -> None:
    kernel = build_kernel("k.cu:1  NOP  ; wait=1")
    launch = replace(kernel.launches[0], elapsed_cycles=1234.5)
    path = tmp_path / "r.json"
    write_report(build_report(replace(kernel, launches=(launch,))), path)
    assert read_report(path).kernels[0].launches == (launch,)


def test_sources_can_be_left_out() -> None:
    assert dump(make_report(), with_sources=False)["kernels"][0]["embedded_sources"] == {}


def test_integers_of_other_writers_are_read_as_numbers(tmp_path: Path) -> None:
    value = dump(make_report())
    value["kernels"][0]["duration_ns"] = 11
    value["kernels"][0]["samples"]["total"] = 97.0
    kernel = read_report(write(tmp_path / "r.json", value)).kernels[0]
    assert (kernel.duration_ns, kernel.total_samples) == (11.0, 97)


def test_unknown_properties_are_passed_over(tmp_path: Path) -> None:
    value = dump(make_report())
    value["later"] = value["kernels"][0]["later"] = value["kernels"][0]["lines"][0]["later"] = {"x": 1}
    assert expand(read_report(write(tmp_path / "r.json", value))) == expand(make_report())


# Hypothesis: any report of this shape survives.

_texts = st.text(max_size=12)
_reasons = st.sampled_from(["long_scoreboard", "wait", "selected", "barrier", "flux_capacitor"])
_frames = st.builds(Frame, file=_texts.filter(bool), line=st.integers(0, 1 << 31), function=st.none() | _texts)
_samples = st.dictionaries(
    _reasons,
    st.integers(1, 1 << 40).flatmap(lambda every: st.tuples(st.just(every), st.integers(0, every))),
    max_size=4,
)


@st.composite
def _rows(draw: st.DrawFn) -> list[Row]:
    functions = draw(st.lists(st.sampled_from(["k", "helper", OUTSIDE]), unique=True, max_size=3))
    return [
        Row(
            function=function,
            pc_offset=16 * position,
            text=draw(_texts),
            chain=draw(st.none() | st.lists(_frames, min_size=1, max_size=3).map(tuple)),
            samples=draw(_samples),
            control=draw(
                st.none()
                | st.tuples(
                    st.integers(0, 15), st.integers(0, 1), st.integers(0, 7), st.integers(0, 7), st.integers(0, 63)
                )
            ),
            executions=draw(st.integers(-1, 1 << 50)),
        )
        for function in functions
        for position in range(draw(st.integers(1, 3)))
    ]


_kernels = st.builds(
    build_kernel,
    _rows(),
    name=_texts,
    mangled_name=_texts.filter(bool),
    profile_path=st.none() | st.sampled_from(["a.ncu-rep", "folder/b c.ncu-rep"]),
    durations_ns=st.lists(st.none() | st.floats(0, 1e15), max_size=3),
    truncated=st.booleans(),
    failure=st.none() | _texts,
    sources=st.dictionaries(_texts, _texts, max_size=2),
    measured_unix_s=st.none() | st.integers(0, 1 << 40),
    device=st.builds(
        DeviceReport,
        name=st.none() | _texts,
        compute_capability=st.none() | st.tuples(st.integers(0, 20), st.integers(0, 20)),
        sm_count=st.none() | st.integers(0, 1000),
        sm_clock_hz=st.none() | st.floats(0, 1e10),
    ),
)
_problems = st.builds(
    Problem,
    severity=st.sampled_from(ProblemSeverity),
    message=_texts,
    path=st.none() | st.just(Path("x/y")),
    place=st.none() | _texts,
    remedy=st.none() | _texts,
    kernel=st.none() | _texts,
)


@examples(30)
@given(kernels=st.lists(_kernels, max_size=2), problems=st.lists(_problems, max_size=2), is_expanded=st.booleans())
def test_any_report_survives(
    tmp_path_factory: pytest.TempPathFactory, kernels: Any, problems: Any, is_expanded: bool
) -> None:
    report = build_report(*kernels, problems=problems)
    path = tmp_path_factory.getbasetemp() / "any.json"
    write_report(report, path, is_expanded=is_expanded)
    first = path.read_bytes()
    back = read_report(path)
    assert expand(back) == expand(report)
    write_report(back, path, is_expanded=is_expanded)
    assert path.read_bytes() == first
    jsonschema.Draft202012Validator(strict_schema()).validate(json.loads(first))


# Broken files.


@pytest.mark.parametrize(
    ("pointer", "value", "words"),
    [
        ("/schema", "gpa-lsp/report/4", "format 'gpa-lsp/report/4'"),
        ("/kernels", {}, "an object, not an array"),
        ("/kernels/0/name", 3, "a number, not a string"),
        ("/kernels/0/launch/grid", [1, 2], "has 2 elements, not 3"),
        ("/kernels/0/launch/grid/1", -1, "is -1, outside"),
        ("/kernels/0/device/compute_capability", "8,6", "is not a compute capability"),
        ("/kernels/0/device/sm_clock_hz", "fast", "a string, not a number"),
        ("/kernels/0/samples/latency", 98, "is 98, outside 0 to 97"),
        ("/kernels/0/samples/truncated", 1, "a number, not true or false"),
        ("/kernels/0/samples/by_reason/wait/all", 90, "has 164 samples, more than 97"),
        ("/kernels/0/samples/by_reason/wait/latency", 90, "is 90, outside 0 to 23"),
        ("/kernels/0/lines/0/inclusive_samples", 98, "is 98, outside 0 to 97"),
        ("/kernels/0/functions/0/role", "guest", "not one of kernel, device_function"),
        ("/kernels/0/lines/0/samples", True, "a boolean, not a whole number"),
        ("/kernels/0/lines/0/called_samples", -1, "is negative"),
        ("/kernels/0/loops/0/depth", 0, "is 0, outside 1"),
        ("/kernels/0/reasons", ["wait", "wait"], "names a reason twice"),
        ("/kernels/0/reasons", ["wait"], "which the kernel's reasons do not list"),
        ("/kernels/0/reasons", [str(n) for n in range(99)], "has 99 reasons"),
        ("/kernels/0/instructions/0/control/write_barrier", 7, "is 7, outside 0 to 6"),
        ("/kernels/0/instructions/0/by_reason", {}, "has 33 samples, not the kernel's 97"),
        ("/kernels/0/instructions/0/pc_offset", 1 << 63, "outside"),
        ("/kernels/0/duration_ns", 10**400, "too large"),
        ("/problems/0/severity", "fatal", "not one of error, warning, note"),
    ],
)
def test_a_wrong_value_is_named_by_its_pointer(tmp_path: Path, pointer: str, value: Any, words: str) -> None:
    error = refuse(tmp_path, make_report(), [(pointer, value)])
    assert words in str(error)
    assert (error.place or "").startswith("/" + pointer.split("/")[1])


def test_a_missing_property_is_named(tmp_path: Path) -> None:
    document = dump(make_report())
    del document["kernels"][0]["device"]["sm_count"]
    with pytest.raises(InputError, match=r"/kernels/0/device: lacks the property 'sm_count'"):
        read_report(write(tmp_path / "r.json", document))


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '{"schema": NaN}',
        "[" * 100_000,
        "1" * 10_000,
        f'{{"schema": "{SCHEMA_NAME}"}}',
    ],
    ids=["empty", "cut", "null", "array", "nan", "deep", "digits", "bare"],
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
    stream = io.StringIO()
    write_report(build_report(build_kernel("k.cu:1  NOP  ; wait=1")), stream)
    text = stream.getvalue().rstrip()
    path = tmp_path / "r.json"
    for end in range(0, len(text), 31):
        with pytest.raises(InputError):
            read_report(write(path, text[:end]))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", "old")
    broken = replace(make_report(), problems=(object(),))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        write_report(broken, path)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["r.json"]
