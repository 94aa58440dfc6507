"""Native JSON format: content, unknown values, addresses, images, errors; round trips."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import gpa_lsp.profile
from gpa_lsp.foundation.errors import InputError, Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.profile import native
from gpa_lsp.profile.model import Aggregate, Metric, Profile, Sampling
from gpa_lsp.profile.native import parse
from gpa_lsp.profile.native.parse import read_native
from gpa_lsp.profile.read import read_profile
from tests.conftest import examples
from tests.damage import damage
from tests.profile.native_writing import render_native, write_native
from tests.profile.profile_strategies import build_profile, describe
from tests.profile.report_builder import build_small_report

SCHEMA = json.loads((Path(gpa_lsp.profile.__file__).parent / "native_schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CUBIN = b"\x7fELF and more"
SMALLEST = """
{
  "format": "gpa-lsp/profile/1",
  "launches": [
    {"kernel": "saxpy", "grid": [128, 1, 1], "block": [256, 1, 1], "duration_ns": 12800,
     "device": {"compute_capability": "8.0"},
     "samples": [
       {"function": "saxpy", "pc_offset": 48, "by_reason": {"selected": {"all": 10, "latency": 0}}},
       {"function": "saxpy", "pc_offset": 32, "by_reason": {"long_scoreboard": {"all": 90, "latency": 85}}}
     ]}
  ]
}
"""
# The smallest file in which everything that can be unknown is: what continuous sampling with CUPTI can say.
LEAST_KNOWN = """
{
  "format": "gpa-lsp/profile/2",
  "modules": [{"id": 1, "functions": [{"name": "saxpy"}]}, {"id": 2}],
  "sampling": {"period_cycles": 2048, "dropped_samples": 7, "foreign_samples": 20, "total_samples": 140},
  "samples_truncated": true,
  "launches": [
    {"kernel": "saxpy", "module": 1, "aggregate": {}, "sampling": {"dropped_samples": 3},
     "samples": [
       {"function": "saxpy", "pc_offset": 32, "by_reason": {"long_scoreboard": {"all": 90}}},
       {"function": "saxpy", "pc_offset": 48, "by_reason": {"selected": {"all": 10}}},
       {"module": 2, "function": "vprintf", "pc_offset": 0, "by_reason": {"wait": {"all": 10}}}
     ]}
  ]
}
"""

Read = Callable[..., Profile]


@pytest.fixture
def read_json(tmp_path: Path) -> Read:
    """Write a document (or text) and read it; what is read must be allowed by the schema."""

    def read(document: Any, name: str = "test.gpa-profile.json") -> Profile:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        profile = read_profile(path)
        VALIDATOR.validate(json.loads(path.read_text(encoding="utf-8-sig")))
        return profile

    return read


def _document(*launches: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A document of version 1 with some launches, which need not say their kernel, grid and block."""
    usual = {"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1]}
    return {"format": "gpa-lsp/profile/1", "launches": [{**usual, **launch} for launch in launches], **members}


def _change(**members: Any) -> dict[str, Any]:
    """The least known file with other members of its launch; None takes one away."""
    document: dict[str, Any] = json.loads(LEAST_KNOWN)
    launch = {**document["launches"][0], **members}
    document["launches"] = [{name: value for name, value in launch.items() if value is not None}]
    return document


def _row(place: dict[str, Any], all_count: int = 1, latency: int = 1) -> dict[str, Any]:
    return {**place, "by_reason": {"wait": {"all": all_count, "latency": latency}}}


def _at(function: str, offset: int) -> dict[str, Any]:
    return _row({"function": function, "pc_offset": offset})


def test_the_schema_is_one_and_the_documentations_example_keeps_to_it() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    text = native.__doc__.split("::\n\n", 1)[1].split("\n\n``native_schema", 1)[0]
    document = json.loads(text)
    VALIDATOR.validate(document)
    assert document["launches"][0]["kernel"] == "saxpy"


@pytest.mark.parametrize(("name", "mark"), [("test.gpa-profile.json", ""), ("profile.txt", ""), ("bom.json", "\ufeff")])
def test_the_smallest_file_is_recognised_by_content(read_json: Read, name: str, mark: str) -> None:
    profile = read_json(mark + SMALLEST, name)
    launch = profile.launches[0]
    assert (profile.format_name, profile.problems) == ("gpa-lsp/profile/1", ())
    assert (launch.mangled_name, launch.grid, launch.block) == ("saxpy", (128, 1, 1), (256, 1, 1))
    assert launch.read_number("gpu__time_duration.sum") == 12800
    assert (launch.device.compute_capability, launch.module_id, profile.modules[0].image) == ((8, 0), 0, None)
    base = 0x5000_0000_0000
    assert [(function.name, function.address) for function in profile.modules[0].functions] == [("saxpy", base)]
    assert launch.function_addresses == (base,)
    samples = launch.samples
    assert (samples.addresses - np.uint64(base)).tolist() == [32, 48]
    assert samples.reasons == ("long_scoreboard", "selected")
    assert samples.all_samples.tolist() == [[90, 0], [0, 10]]
    assert samples.latency_samples.tolist() == [[85, 0], [0, 0]]


def test_synthetic_addresses(read_json: Read) -> None:
    modules = [
        {"id": 5, "functions": [{"name": "a", "size_bytes": 0x1000}, {"name": "b", "size_bytes": 16}]},
        {"id": 3},
    ]
    first = {"kernel": "b", "module": 5, "samples": [_at("b", 0), _at("c", 0x2000), _at("d", 0)]}
    second = {"kernel": "k", "module": 3, "samples": [_at("callee", 16)]}
    profile = read_json(_document(first, second, modules=modules))
    addresses = {module: {f.name: f.address for f in profile.modules[module].functions} for module in (5, 3)}
    assert addresses == {
        5: {"a": 0x5000_0000_0000, "b": 0x5000_0000_2000, "c": 0x5000_0000_3000, "d": 0x5000_0000_6000},
        3: {"callee": 0x5001_0000_0000, "k": 0x5001_0000_1000},
    }
    assert profile.launches[0].function_addresses == (0x5000_0000_2000, 0x5000_0000_3000, 0x5000_0000_6000)
    assert profile.launches[1].function_addresses == (0x5001_0000_0000, 0x5001_0000_1000)


def test_given_addresses_and_foreign_ones(read_json: Read) -> None:
    functions = [{"name": "k", "address": "0x7f00", "symbol_index": 3}, {"name": "callee", "address": "0x7E00"}]
    rows = [_at("k", 16), _row({"address": "0xffffffffffff0000"}), _at("callee", 0)]
    profile = read_json(_document({"samples": rows}, modules=[{"id": 1, "functions": functions}]))
    assert [function.name for function in profile.modules[1].functions] == ["callee", "k"]
    assert profile.launches[0].samples.addresses.tolist() == [0x7E00, 0x7F10, 0xFFFFFFFFFFFF0000]
    assert profile.problems == ()


def test_a_launch_without_a_module(read_json: Read) -> None:
    profile = read_json(_document({"module": None, "samples": [_row({"address": "0x10"})]}))
    assert profile.modules == {}
    assert (profile.launches[0].module_id, profile.launches[0].function_addresses) == (None, ())


def test_metrics(read_json: Read) -> None:
    metrics = {
        "plain": 3,
        "text": "yes",
        "failed": {"number": "nan"},
        "endless": {"number": "-inf"},
        "inst_executed": {"value": 30, "instances": [[16, 10], [32, 20]]},
        "opcodes": {"instances": [["FFMA", 1.5]]},
        "series": {"over_time": True},
    }
    found = read_json(_document({"metrics": metrics})).launches[0].metrics
    assert found["plain"] == Metric(name="plain", value=3)
    assert found["text"].value == "yes"
    assert str(found["failed"].value) == "nan"
    assert found["endless"].value == float("-inf")
    pairs = {"instance_ids": (16, 32), "instance_values": (10, 20)}
    assert found["inst_executed"] == Metric(name="inst_executed", value=30, **pairs)
    assert found["opcodes"] == Metric(name="opcodes", value=None, instance_ids=("FFMA",), instance_values=(1.5,))
    assert found["series"].over_time


def test_images_embedded_and_beside(read_json: Read, tmp_path: Path) -> None:
    (tmp_path / "cubins").mkdir()
    (tmp_path / "cubins" / "k.cubin").write_bytes(CUBIN)
    modules = [
        {"id": 0, "cubin": {"base64": base64.b64encode(CUBIN).decode()}, "sources": {"a.cu": "int x;"}},
        {"id": 1, "cubin": {"path": "cubins/k.cubin"}, "compute_capability": "9.0"},
    ]
    profile = read_json(_document(modules=modules))
    assert profile.modules[0].image == profile.modules[1].image == CUBIN
    assert profile.modules[0].sources == {"a.cu": "int x;"}
    assert profile.modules[1].compute_capability == (9, 0)


PATHS = [
    "../k.cubin",
    "/etc/passwd",
    "a/../../k.cubin",
    "C:/k.cubin",
    "C:k.cubin",
    "\\\\host\\k",
    "..",
    ".",
    "",
    "a\0b",
]


@pytest.mark.parametrize(
    ("cubin", "message"),
    [
        *(({"path": name}, "/modules/0/cubin/path: is not a relative path") for name in PATHS),
        ({"path": "link.cubin"}, "leads out of the profile's folder"),
        ({"path": "none.cubin"}, "names none.cubin, which cannot be read: there is no such file"),
        ({"path": "text.txt"}, "does not hold an ELF image"),
        ({"base64": "AAAA"}, "does not hold an ELF image"),
        ({"base64": "A"}, "is not base64"),
        ({"base64": "\u00e4"}, "is not base64"),
        ({}, "needs exactly one of"),
        ({"base64": "AAAA", "path": "text.txt"}, "needs exactly one of"),
    ],
)
def test_broken_images_and_those_elsewhere(
    read_json: Read, tmp_path: Path, cubin: dict[str, str], message: str
) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.cubin"
    outside.write_bytes(CUBIN)
    (tmp_path / "link.cubin").symlink_to(outside)
    (tmp_path / "text.txt").write_text("no image")
    with pytest.raises(InputError, match=message):
        read_json(_document(modules=[{"id": 0, "cubin": cubin}]))


def test_everything_else(read_json: Read) -> None:
    launch = {
        "comment": "not kept",
        "plain_name": "k",
        "demangled_name": "k(int)",
        "created_unix_s": 5,
        "context_id": 1,
        "stream_id": 7.0,
        "device": {"name": "GPU", "sm_count": 2, "sm_clock_hz": 1.5e9, "attributes": {"a": 1, "b": "c"}},
        "samples": [],
        "stall_reasons": ["wait", "drain"],
        "samples_truncated": True,
        "function_addresses": ["0x20", "0x10"],
        "nvtx_ranges": ["a", "b"],
        "call_stack": [{"function": "main", "module": "app", "file": "a.cu", "line": 3, "address": "0x1"}, {}],
        "rules": [{"identifier": "R", "messages": [{"kind": "ok", "text": "fine"}]}],
        "failure": "broken",
    }
    problems = [{"severity": "warning", "message": "lost", "place": "here", "remedy": "none", "kernel": "k"}]
    profile = read_json(_document(launch, tool_version="3", problems=problems, comment=[1]))
    found = profile.launches[0]
    assert (found.plain_name, found.demangled_name, found.failure) == ("k", "k(int)", "broken")
    assert (found.created_unix_s, found.context_id, found.stream_id) == (5, 1, 7)
    assert found.device.attributes == {"a": 1, "b": "c"}
    assert (found.samples.reasons, found.samples.all_samples.shape) == (("drain", "wait"), (0, 2))
    assert found.samples_truncated
    assert (found.function_addresses, found.nvtx_ranges) == ((0x10, 0x20), ("a", "b"))
    assert (found.call_stack[0].function, found.call_stack[0].line, found.call_stack[1].function) == ("main", 3, None)
    assert found.rules[0].messages[0].text == "fine"
    assert profile.tool_version == "3"
    lost = Problem(severity=ProblemSeverity.WARNING, message="lost", place="here", remedy="none", kernel="k")
    assert [replace(problem, path=None) for problem in profile.problems] == [lost]


# Version 2: what a collector need not know.


def test_what_is_absent_is_unknown(read_json: Read) -> None:
    profile = read_json(LEAST_KNOWN)
    (launch,) = profile.launches
    assert profile.format_name == "gpa-lsp/profile/2"
    assert (launch.grid, launch.block, launch.launch_count) == (None, None, None)
    assert launch.aggregate == Aggregate(launches=None)
    assert launch.samples.latency_samples is None
    assert launch.samples.all_samples.sum() == 110
    assert launch.sampling == Sampling(dropped_samples=3)
    assert profile.sampling == Sampling(period_cycles=2048, dropped_samples=7, foreign_samples=20, total_samples=140)
    assert profile.samples_truncated
    # A function of another module has its place outside of the launch's.
    assert [function.name for function in profile.modules[2].functions] == ["vprintf"]
    assert launch.samples.addresses[-1] == profile.modules[2].functions[0].address
    assert launch.function_addresses == (profile.modules[1].functions[0].address,)
    # What belongs to no launch is said.
    run = "samples of the run are of code outside all launches of the profile; no kernel counts them"
    assert {problem.message: problem.severity for problem in profile.problems} == {
        "a sampling buffer overflowed; later code was sampled less, or not at all": ProblemSeverity.WARNING,
        "7 samples of the run were dropped, of which kernels is unknown; all shares are less certain": ProblemSeverity.WARNING,
        f"20 {run}": ProblemSeverity.NOTE,
    }


@pytest.mark.parametrize(
    ("total", "sampling", "complaint"),
    [
        (140, {"dropped_samples": 3}, None),
        (139, {"dropped_samples": 3}, "add up to 140, the collector counted 139"),
        (200, {"dropped_samples": 3}, "add up to 140, the collector counted 200"),
        (137, None, None),
        # What is not known of the parts of a launch's own total may be of any size, but not negative.
        (137, {"total_samples": 150}, None),
        (137, {"total_samples": 100}, "the collector counted 100"),
    ],
)
def test_everything_that_was_sampled_is_somewhere(read_json: Read, total: int, sampling, complaint: str | None) -> None:
    document = _change(sampling=sampling)
    document["sampling"]["total_samples"] = total
    wrong = [problem for problem in read_json(document).problems if problem.severity is ProblemSeverity.ERROR]
    assert len(wrong) == (complaint is not None)
    if complaint:
        assert wrong[0].message.endswith(complaint)
        assert (wrong[0].place == "launch 0") == ("total_samples" in sampling)


@pytest.mark.parametrize(
    ("members", "cycles"),
    [
        ({"sampling": {"period_cycles": 1024}}, 1024),
        ({"metrics": {"smsp__pcsamp_interval_cycles": 4096}}, 4096),
        ({"metrics": {"smsp__pcsamp_interval": 6}}, 2048),
        ({"metrics": {"smsp__pcsamp_interval": 1e9}}, None),
        ({}, None),
    ],
)
def test_the_sampling_period_is_read_from_either_place(read_json: Read, members, cycles: int | None) -> None:
    assert read_json(_change(**members)).launches[0].sampling_period_cycles == cycles


def test_an_aggregate_has_the_mean_of_its_launches(read_json: Read) -> None:
    launch = read_json(_change(aggregate={"launches": 1200}, duration_ns=12800, grid=[4, 1, 1])).launches[0]
    assert (launch.launch_count, launch.read_number("gpu__time_duration.sum")) == (1200, 12800)


# Errors: members of a launch, of its document where there are some, and what is said of them.
WRONG_1 = """
{"grid": [1, 1]}                        |/launches/0/grid: has 2 items, not 3
{"grid": [1, 1, -1]}                    |/launches/0/grid/2: is not between 0 and
{"grid": [1, 1, 1.5]}                   |/launches/0/grid/2: is a number, not an integer
{"grid": [1, 1, true]}                  |/launches/0/grid/2: is true or false, not an integer
{"kernal": "k"}                         |/launches/0/kernal: is not a member this format has
{"grid": "-"}                           |/launches/0: lacks the member 'grid'
{"block": "-"}                          |/launches/0: lacks the member 'block'
{"aggregate": {"launches": 2}}          |/launches/0/aggregate: is not a member this format has
{"sampling": {}}                        |/launches/0/sampling: is not a member this format has
{"module": 4}                           |/launches/0/module: is 4, which is not a module of this profile
{}|{"modules": [{"id": 1}, {"id": 2}]}  |/launches/0: needs a 'module'
{}|{"modules": [{"id": 1}, {"id": 1}]}  |/modules/1: is a second module 1
{}|{"sampling": {}}                     |/sampling: is not a member this format has
{}|{"samples_truncated": true}          |/samples_truncated: is not a member this format has
{"samples": {}}                         |/launches/0/samples: is an object, not an array
{"samples": [{"function": "k", "by_reason": {}}]}                                   |/launches/0/samples/0: needs either
{"samples": [{"function": "k", "pc_offset": 0, "address": "0x1", "by_reason": {}}]} |/launches/0/samples/0: needs either
{"samples": [{"address": "7f00", "by_reason": {}}]}                                 |not a hexadecimal address
{"samples": [{"function": "k", "pc_offset": 0, "by_reason": {"wait": {"all": 1, "latency": 2}}}]}|counts 2 not-issued samples among 1 in all
{"samples": [{"function": "k", "pc_offset": 0, "by_reason": {"wait": {"all": 2}}}]} |/samples/0/by_reason/wait: lacks the member 'latency'
{"samples": [K0, K0]}|is about the same instruction as /launches/0/samples/0
{"samples": [{"module": 0, "function": "k", "pc_offset": 0, "by_reason": {}}]}      |/samples/0/module: is not a member this format has
{"module": null, "samples": [K0]}   |a launch whose module is null
{"stall_reasons": ["wait"]}             |is given without 'samples'
{"duration_ns": 1, "metrics": {"gpu__time_duration.sum": 1}}|is given a second time
{"metrics": {"a/b~c": null}}            |/launches/0/metrics/a~1b~0c: is null, not a number
{"metrics": {"m": {"number": "NaN"}}}   |/launches/0/metrics/m/number: is 'NaN', not one of
{"metrics": {"m": 1000000000000000000000000000000}}         |is an integer of more than 64 bits
{"metrics": {"m": {"instances": [[1]]}}}                    |/launches/0/metrics/m/instances/0: has 1 items, not 2
{"device": {"compute_capability": "80"}}                    |is '80', not a compute capability such as '8.0'
{"rules": [{"identifier": "R", "messages": [{"kind": "bad", "text": ""}]}]}|is 'bad', not one of
{"demangled_name": "\\ud800"}           |holds half a surrogate pair
{"samples_truncated": 1}                |is an integer, not true or false
{}|{"modules": [KMOD"address": "0x1"}, {"name": "b"}]}]}|/modules/0/functions/1: breaks the rule that all functions of a module
{"samples": [KOTHER]}|{"modules": [KMOD"address": "0x1"}]}]}|/launches/0/samples/0/function: is not a function of module 0
{"samples": [K32]}|{"modules": [KMOD"size_bytes": 32}]}]}|has 32 bytes; offset 32 lies behind its end
{"samples": [K32]}|{"modules": [KMOD"address": "0xffffffffffffffff"}]}]}|lies behind the end of the address space
"""
WRONG_2 = """
{"aggregate": {"launches": 0}}              |/launches/0/aggregate/launches: is not between 1 and
{"aggregate": {"launches": -3}}             |/launches/0/aggregate/launches: is not between 1 and
{"aggregate": {"count": 3}}                 |/launches/0/aggregate/count: is not a member this format has
{"aggregate": 3}                            |/launches/0/aggregate: is an integer, not an object
{"duration_ns": 5}                          |/launches/0/aggregate: lacks 'launches', though a duration is given
{"grid": "unknown"}                         |/launches/0/grid: is a string, not an array
{"sampling": {"period_cycles": 0}}          |/launches/0/sampling/period_cycles: is not between 1 and
{"sampling": {"dropped_samples": 1.5}}      |/launches/0/sampling/dropped_samples: is a number, not an integer
{"sampling": {"dropped_samples": 1e18}}     |/launches/0/sampling/dropped_samples: is not between 0 and
{"sampling": []}                            |/launches/0/sampling: is an array, not an object
{"samples": [SAXPY0, SAXPY16]}|/launches/0/samples/1/by_reason/wait: lacks the member 'latency', which other counts
{"samples": [{"module": 9, "function": "f", "pc_offset": 0, "by_reason": {}}]}   |/samples/0/module: is 9, which is not a module
{"samples": [{"module": 2, "address": "0x10", "by_reason": {}}]}                 |/launches/0/samples/0: needs either
{"samples": [{"module": null, "function": "f", "pc_offset": 0, "by_reason": {}}]}|/samples/0/module: is null, not an integer
"""


SHORT = {
    "KMOD": '{"id": 0, "functions": [{"name": "k", ',
    "K0": '{"function": "k", "pc_offset": 0, "by_reason": {}}',
    "K32": '{"function": "k", "pc_offset": 32, "by_reason": {}}',
    "KOTHER": '{"function": "other", "pc_offset": 0, "by_reason": {}}',
    "SAXPY16": '{"function": "saxpy", "pc_offset": 16, "by_reason": {"wait": {"all": 2}}}',
    "SAXPY0": '{"function": "saxpy", "pc_offset": 0, "by_reason": {"wait": {"all": 2, "latency": 1}}}',
}


@pytest.mark.parametrize(
    ("version", "line"),
    [(one, line) for one, text in enumerate((WRONG_1, WRONG_2), 1) for line in text.strip().splitlines()],
)
def test_what_is_wrong_is_named_by_its_pointer(read_json: Read, version: int, line: str) -> None:
    for short, full in SHORT.items():
        line = line.replace(short, full)
    launch, *members, message = (part.strip() for part in line.split("|"))
    document = _change(**json.loads(launch)) if version == 2 else _document(json.loads(launch))
    document |= json.loads(*members) if members else {}
    document["launches"] = [{k: v for k, v in one.items() if v != "-"} for one in document["launches"]]
    if "not a member this format has" in message:
        assert not VALIDATOR.is_valid(document)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_json(document)
    assert caught.value.path is not None
    assert caught.value.remedy


FORMAT = '"format": "gpa-lsp/profile/1"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not a profile in a known format"),
        (f'{{{FORMAT}, "launches": {{}}}}', "/launches: is an object, not an array"),
        (f"{{{FORMAT}}}", "the whole document: lacks the member 'launches'"),
        ('{"format": "other"}', "/format: does not say 'gpa-lsp/profile/2'"),
        ('{"launches": []}', "/format: does not say 'gpa-lsp/profile/2'"),
        (f'{{{FORMAT}, "launches": [1', "line 1, column 47: is not JSON"),
        (f'{{{FORMAT}, "launches": [], "launches": []}}', "the member 'launches' occurs twice"),
        (f'{{{FORMAT}, "launches": NaN}}', "NaN is not a JSON number"),
        pytest.param(f'{{{FORMAT}, "launches": ' + "[" * 100_000, "is nested too deeply", id="deep"),
        pytest.param(f'{{{FORMAT}, "launches": {"9" * 5000}}}', "is not JSON this format allows", id="digits"),
        (f'{{{FORMAT}, "tool_version": "\udce9"}}', "offset 0x31: is not UTF-8 text"),
        (
            '{"format": "gpa-lsp/profile/3"}',
            "is of format 'gpa-lsp/profile/3'; this version reads 'gpa-lsp/profile/1' and 'gpa-lsp/profile/2'",
        ),
    ],
)
def test_what_is_no_document_of_the_format(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "test.gpa-profile.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_profile(path)
    assert caught.value.path == path
    assert caught.value.remedy
    assert isinstance(caught.value, UnsupportedInputError) or "this version reads" not in message


def test_a_file_too_large_is_refused_unread(read_json: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "_MAX_BYTES", 100)
    with pytest.raises(InputError, match="is larger than 100 B"):
        read_json(SMALLEST)


# What is written is read back, whatever the profile; the schema and the reader agree on what is allowed.


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("native") / "test.gpa-profile.json"


@examples(60)  # drawing a profile takes far longer than writing and reading it
@given(profile=build_profile())
def test_what_is_written_is_read_back(target: Path, profile: Profile) -> None:
    write_native(profile, target)
    VALIDATOR.validate(json.loads(target.read_text(encoding="utf-8")))
    assert describe(read_native(target)) == describe(profile)


def _check_conversion(source: Path, target: Path) -> None:
    report = read_profile(source)
    write_native(report, target)
    assert describe(read_profile(target)).replace("gpa-lsp/profile/2", "ncu-report") == describe(report)


def test_a_report_survives_the_conversion(target: Path, tmp_path: Path) -> None:
    (tmp_path / "small.ncu-rep").write_bytes(build_small_report())
    _check_conversion(tmp_path / "small.ncu-rep", target)


@pytest.mark.corpus
@pytest.mark.parametrize("prefix", ["rtx3070", "rtx5090", "v100_miniweather_baseline"])
def test_real_reports_survive_the_conversion(corpus: Path, prefix: str, target: Path) -> None:
    for path in (corpus / "ncu").glob(f"{prefix}*"):
        _check_conversion(path, target)


COUNTS = st.dictionaries(
    st.sampled_from(["wait", "selected", "long_scoreboard"]),
    st.integers(0, 1000).flatmap(
        lambda most: st.fixed_dictionaries({"all": st.just(most), "latency": st.integers(0, most)})
    ),
)


@given(rows=st.lists(COUNTS, max_size=4))
def test_a_profile_of_version_1_is_the_same_in_version_2(target: Path, rows: list[Any]) -> None:
    samples = [{"function": "k", "pc_offset": 16 * row, "by_reason": counts} for row, counts in enumerate(rows)]
    target.write_text(json.dumps(_document({"duration_ns": 5.0, "samples": samples})))
    before = read_profile(target)
    write_native(before, target)
    after = read_profile(target)
    assert (before.format_name, after.format_name) == ("gpa-lsp/profile/1", "gpa-lsp/profile/2")
    assert describe(after).replace("profile/2", "profile/1") == describe(before)
    assert (after.launches[0].aggregate, after.launches[0].sampling) == (None, Sampling())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["0x10", "8.0", "nan", "warning"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NEW_IN_2 = ("aggregate", "sampling", "samples_truncated", "launches", "dropped_samples", "latency")
MEMBERS = st.sampled_from([*NEW_IN_2, "comment", "module", "samples", "address", "x"])


def _list_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, child in children for found in _list_places(child, (*place, key)))]


@pytest.fixture(scope="module")
def documents(target: Path) -> list[str]:
    """The smallest file, one with everything a report has, and one of a collector that knows little."""
    source = target.with_name("small.ncu-rep")
    source.write_bytes(build_small_report())
    return [SMALLEST, render_native(read_profile(source)), LEAST_KNOWN]


@st.composite
def mutate_document(draw: st.DrawFn, text: str) -> Any:
    """A document with one to three members replaced, removed or added."""
    document = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _list_places(document) if place]
        if not places:
            break
        *parents, last = draw(st.sampled_from(places))
        container = document
        for key in parents:
            container = container[key]
        kind = draw(st.sampled_from(["replace", "remove", "add"]))
        if kind == "remove":
            del container[last]
        elif kind == "add" and isinstance(container, list):
            container.append(draw(JSON))
        else:
            container[last if kind == "replace" else draw(MEMBERS)] = draw(JSON)
    return document


def _check_strict(path: Path) -> None:
    """The reader is at least as strict as the schema."""
    try:
        read_profile(path)
    except InputError as error:
        assert error.path == path
        assert error.remedy
    else:
        VALIDATOR.validate(json.loads(path.read_text(encoding="utf-8-sig")))


@given(data=st.data())
def test_changed_documents(target: Path, documents: list[str], data: st.DataObject) -> None:
    document = data.draw(mutate_document(data.draw(st.sampled_from(documents))))
    target.write_text(json.dumps(document), encoding="utf-8")
    _check_strict(target)


@given(damage(SMALLEST.encode(), resizes=True))
def test_damaged_text(target: Path, text: bytes) -> None:
    target.write_bytes(text)
    _check_strict(target)
