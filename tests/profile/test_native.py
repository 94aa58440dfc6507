"""Our own JSON format: what it says, its addresses, its images, its errors."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import gpa_lsp.profile
from gpa_lsp.foundation.errors import InputError, ProblemSeverity, UnsupportedInputError
from gpa_lsp.profile.model import Metric, Profile
from gpa_lsp.profile.read import read_profile
from tests.profile.load_addresses import find_kernel_address

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


def _launch(**members: Any) -> dict[str, Any]:
    return {"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], **members}


def _document(*launches: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"format": "gpa-lsp/profile/1", "launches": list(launches), **members}


def _row(place: dict[str, Any], all_count: int = 1, latency: int = 1) -> dict[str, Any]:
    return {**place, "by_reason": {"wait": {"all": all_count, "latency": latency}}}


def _at(function: str, offset: int) -> dict[str, Any]:
    return {"function": function, "pc_offset": offset}


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_smallest_file(read_json: Read) -> None:
    profile = read_json(SMALLEST)
    launch = profile.launches[0]
    assert profile.format_name == "gpa-lsp/profile/1"
    assert profile.problems == ()
    assert (launch.mangled_name, launch.grid, launch.block) == ("saxpy", (128, 1, 1), (256, 1, 1))
    assert launch.read_number("gpu__time_duration.sum") == 12800
    assert launch.device.compute_capability == (8, 0)
    assert launch.module_id == 0
    assert profile.modules[0].image is None
    base = find_kernel_address(profile, launch)
    assert base == 0x5000_0000_0000
    assert launch.function_addresses == (base,)
    samples = launch.samples
    assert samples is not None
    assert (samples.addresses - np.uint64(base)).tolist() == [32, 48]
    assert samples.reasons == ("long_scoreboard", "selected")
    assert samples.all_samples.tolist() == [[90, 0], [0, 10]]
    assert samples.latency_samples.tolist() == [[85, 0], [0, 0]]


def test_it_is_recognised_by_content(read_json: Read) -> None:
    assert len(read_json(SMALLEST, "profile.txt").launches) == 1
    assert len(read_json("\ufeff" + SMALLEST, "bom.json").launches) == 1


def test_the_documentations_example_is_the_smallest_file() -> None:
    from gpa_lsp.profile import native

    assert native.__doc__ is not None
    text = native.__doc__.split("::\n\n", 1)[1].split("\n\n``native_schema", 1)[0]
    document = json.loads(text)
    VALIDATOR.validate(document)
    assert document["launches"][0]["kernel"] == "saxpy"


def test_synthetic_addresses(read_json: Read) -> None:
    modules = [
        {"id": 5, "functions": [{"name": "a", "size_bytes": 0x1000}, {"name": "b", "size_bytes": 16}]},
        {"id": 3},
    ]
    first = _launch(kernel="b", module=5, samples=[_row(_at("b", 0)), _row(_at("c", 0x2000)), _row(_at("d", 0))])
    second = _launch(kernel="k", module=3, samples=[_row(_at("callee", 16))])
    profile = read_json(_document(first, second, modules=modules))
    assert [(found.name, found.address) for found in profile.modules[5].functions] == [
        ("a", 0x5000_0000_0000),
        ("b", 0x5000_0000_2000),
        ("c", 0x5000_0000_3000),
        ("d", 0x5000_0000_6000),
    ]
    assert [(found.name, found.address) for found in profile.modules[3].functions] == [
        ("callee", 0x5001_0000_0000),
        ("k", 0x5001_0000_1000),
    ]
    assert profile.launches[0].function_addresses == (0x5000_0000_2000, 0x5000_0000_3000, 0x5000_0000_6000)
    assert profile.launches[1].function_addresses == (0x5001_0000_0000, 0x5001_0000_1000)


def test_given_addresses_and_foreign_ones(read_json: Read) -> None:
    functions = [{"name": "k", "address": "0x7f00", "symbol_index": 3}, {"name": "callee", "address": "0x7E00"}]
    rows = [_row(_at("k", 16)), _row({"address": "0xffffffffffff0000"}), _row(_at("callee", 0))]
    profile = read_json(_document(_launch(samples=rows), modules=[{"id": 1, "functions": functions}]))
    assert [function.name for function in profile.modules[1].functions] == ["callee", "k"]
    samples = profile.launches[0].samples
    assert samples is not None
    assert samples.addresses.tolist() == [0x7E00, 0x7F10, 0xFFFFFFFFFFFF0000]
    assert profile.problems == ()


def test_a_launch_without_a_module(read_json: Read) -> None:
    profile = read_json(_document(_launch(module=None, samples=[_row({"address": "0x10"})])))
    assert profile.modules == {}
    assert profile.launches[0].module_id is None
    assert profile.launches[0].function_addresses == ()


def test_metrics(read_json: Read) -> None:
    metrics = {
        "plain": 3,
        "half": 0.5,
        "text": "yes",
        "failed": {"number": "nan"},
        "endless": {"number": "-inf"},
        "inst_executed": {"value": 30, "instances": [[16, 10], [32, 20]]},
        "opcodes": {"instances": [["FFMA", 1.5]]},
        "series": {"over_time": True},
    }
    found = read_json(_document(_launch(metrics=metrics))).launches[0].metrics
    assert found["plain"] == Metric(name="plain", value=3)
    assert found["text"].value == "yes"
    assert str(found["failed"].value) == "nan"
    assert found["endless"].value == float("-inf")
    assert found["inst_executed"] == Metric(
        name="inst_executed", value=30, instance_ids=(16, 32), instance_values=(10, 20)
    )
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


@pytest.mark.parametrize(
    "name", ["../k.cubin", "/etc/passwd", "a/../../k.cubin", "C:/k.cubin", "C:k.cubin", "\\\\host\\k", "..", "", "a\0b"]
)
def test_images_elsewhere_are_not_read(read_json: Read, name: str) -> None:
    with pytest.raises(InputError, match="/modules/0/cubin/path: is not a relative path"):
        read_json(_document(modules=[{"id": 0, "cubin": {"path": name}}]))


def test_a_link_out_of_the_folder_is_not_followed(read_json: Read, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.cubin"
    outside.write_bytes(CUBIN)
    (tmp_path / "k.cubin").symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the profile's folder"):
        read_json(_document(modules=[{"id": 0, "cubin": {"path": "k.cubin"}}]))


@pytest.mark.parametrize(
    ("cubin", "message"),
    [
        ({"path": "none.cubin"}, "names a file that cannot be used: there is no such file"),
        ({"path": "text.txt"}, "does not hold an ELF image"),
        ({"path": "."}, "is not a relative path"),
        ({"base64": "AAAA"}, "does not hold an ELF image"),
        ({"base64": "A"}, "is not base64"),
        ({"base64": "\u00e4"}, "is not base64"),
        ({}, "needs exactly one of"),
        ({"base64": "AAAA", "path": "text.txt"}, "needs exactly one of"),
    ],
)
def test_broken_images(read_json: Read, tmp_path: Path, cubin: dict[str, str], message: str) -> None:
    (tmp_path / "text.txt").write_text("no image")
    with pytest.raises(InputError, match=message):
        read_json(_document(modules=[{"id": 0, "cubin": cubin}]))


def test_everything_else(read_json: Read) -> None:
    launch = _launch(
        comment="not kept",
        plain_name="k",
        demangled_name="k(int)",
        created_unix_s=5,
        context_id=1,
        stream_id=7.0,
        device={"name": "GPU", "sm_count": 2, "sm_clock_hz": 1.5e9, "attributes": {"a": 1, "b": "c"}},
        samples=[],
        stall_reasons=["wait", "drain"],
        samples_truncated=True,
        function_addresses=["0x20", "0x10"],
        nvtx_ranges=["a", "b"],
        call_stack=[{"function": "main", "module": "app", "file": "a.cu", "line": 3, "address": "0x1"}, {}],
        rules=[{"identifier": "R", "messages": [{"kind": "ok", "text": "fine"}]}],
        failure="broken",
    )
    problems = [{"severity": "warning", "message": "lost", "place": "here", "remedy": "none", "kernel": "k"}]
    profile = read_json(_document(launch, tool_version="3", problems=problems, comment=[1]))
    found = profile.launches[0]
    assert (found.plain_name, found.demangled_name) == ("k", "k(int)")
    assert (found.created_unix_s, found.context_id, found.stream_id) == (5, 1, 7)
    assert found.device.attributes == {"a": 1, "b": "c"}
    assert found.samples is not None
    assert found.samples.reasons == ("drain", "wait")
    assert found.samples.all_samples.shape == (0, 2)
    assert found.samples_truncated
    assert found.function_addresses == (0x10, 0x20)
    assert found.nvtx_ranges == ("a", "b")
    assert (found.call_stack[0].function, found.call_stack[0].line, found.call_stack[1].function) == ("main", 3, None)
    assert found.rules[0].messages[0].text == "fine"
    assert found.failure == "broken"
    assert profile.tool_version == "3"
    assert [(problem.severity, problem.message, problem.kernel) for problem in profile.problems] == [
        (ProblemSeverity.WARNING, "lost", "k")
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (_document(_launch(grid=[1, 1])), "/launches/0/grid: has 2 items, not 3"),
        (_document(_launch(grid=[1, 1, -1])), "/launches/0/grid/2: is not between 0 and"),
        (_document(_launch(grid=[1, 1, 1.5])), "/launches/0/grid/2: is a number, not an integer"),
        (_document(_launch(grid=[1, 1, True])), "/launches/0/grid/2: is true or false, not an integer"),
        (_document(_launch(kernal="k")), "/launches/0/kernal: is not a member this format has"),
        (_document({"kernel": "k", "grid": [1, 1, 1]}), "/launches/0: lacks the member 'block'"),
        (_document(_launch(module=4)), "/launches/0/module: is 4, which is not a module of this profile"),
        (_document(_launch(), modules=[{"id": 1}, {"id": 2}]), "/launches/0: needs a 'module'"),
        (_document(modules=[{"id": 1}, {"id": 1}]), "/modules/1: is a second module 1"),
        (_document(_launch(samples={})), "/launches/0/samples: is an object, not an array"),
        (_document(_launch(samples=[_row({"function": "k"})])), "/launches/0/samples/0: needs either"),
        (_document(_launch(samples=[_row({**_at("k", 0), "address": "0x1"})])), "/launches/0/samples/0: needs either"),
        (_document(_launch(samples=[_row({"address": "7f00"})])), "not a hexadecimal address"),
        (_document(_launch(samples=[_row(_at("k", 0), 1, 2)])), "counts 2 not-issued samples among 1 in all"),
        (
            _document(_launch(samples=[_row(_at("k", 0)), _row(_at("k", 0))])),
            "is about the same instruction as /launches/0/samples/0",
        ),
        (_document(_launch(module=None, samples=[_row(_at("k", 0))])), "a launch whose module is null"),
        (_document(_launch(stall_reasons=["wait"])), "is given without 'samples'"),
        (_document(_launch(duration_ns=1, metrics={"gpu__time_duration.sum": 1})), "is given a second time"),
        (_document(_launch(metrics={"a/b~c": None})), "/launches/0/metrics/a~1b~0c: is null, not a number"),
        (_document(_launch(metrics={"m": {"number": "NaN"}})), "/launches/0/metrics/m/number: is 'NaN', not one of"),
        (_document(_launch(metrics={"m": 10**30})), "is an integer of more than 64 bits"),
        (
            _document(_launch(metrics={"m": {"instances": [[1]]}})),
            "/launches/0/metrics/m/instances/0: has 1 items, not 2",
        ),
        (_document(_launch(device={"compute_capability": "80"})), "is '80', not a compute capability such as '8.0'"),
        (
            _document(_launch(rules=[{"identifier": "R", "messages": [{"kind": "bad", "text": ""}]}])),
            "is 'bad', not one of",
        ),
        (_document(_launch(demangled_name="\ud800")), "holds half a surrogate pair"),
        (_document(_launch(samples_truncated=1)), "is an integer, not true or false"),
        (
            _document(modules=[{"id": 0, "functions": [{"name": "a"}, {"name": "b", "address": "0x1"}]}]),
            "/modules/0/functions/1: breaks the rule that all functions of a module have an address or none has",
        ),
        (
            _document(
                _launch(samples=[_row(_at("other", 0))]),
                modules=[{"id": 0, "functions": [{"name": "k", "address": "0x1"}]}],
            ),
            "/launches/0/samples/0/function: is not a function of module 0",
        ),
        (
            _document(
                _launch(samples=[_row(_at("k", 32))]),
                modules=[{"id": 0, "functions": [{"name": "k", "size_bytes": 32}]}],
            ),
            "has 32 bytes; offset 32 lies behind its end",
        ),
        (
            _document(
                _launch(samples=[_row(_at("k", 32))]),
                modules=[{"id": 0, "functions": [{"name": "k", "address": "0xffffffffffffffff"}]}],
            ),
            "lies behind the end of the address space",
        ),
        ([], "not a profile in a known format"),
        ({"format": "gpa-lsp/profile/1", "launches": {}}, "/launches: is an object, not an array"),
        ({"format": "gpa-lsp/profile/1"}, "the whole document: lacks the member 'launches'"),
        ({"format": "other"}, "/format: does not say 'gpa-lsp/profile/2'"),
        ({"launches": []}, "/format: does not say 'gpa-lsp/profile/2'"),
        ('{"format": "gpa-lsp/profile/1", "launches": [1', r"line 1, column 47: is not JSON"),
        ('{"format": "gpa-lsp/profile/1", "launches": [], "launches": []}', "the member 'launches' occurs twice"),
        ('{"format": "gpa-lsp/profile/1", "launches": NaN}', "NaN is not a JSON number"),
        ('{"format": "gpa-lsp/profile/1", "launches": ' + "[" * 100_000, "is nested too deeply"),
        ('{"format": "gpa-lsp/profile/1", "launches": ' + "9" * 5000 + "}", "is not JSON this format allows"),
    ],
)
def test_what_is_wrong_is_named_by_its_pointer(read_json: Read, document: Any, message: str) -> None:
    import re

    with pytest.raises(InputError, match=re.escape(message) if "column" not in message else message) as caught:
        read_json(document)
    assert caught.value.path is not None
    assert caught.value.remedy


def test_another_version_is_not_read(read_json: Read) -> None:
    with pytest.raises(
        UnsupportedInputError,
        match=r"is of format 'gpa-lsp/profile/3'; this version reads 'gpa-lsp/profile/1' and 'gpa-lsp/profile/2'",
    ):
        read_json({"format": "gpa-lsp/profile/3"})


def test_text_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "latin.gpa-profile.json"
    path.write_bytes('{"format": "gpa-lsp/profile/1", "tool_version": "é"}'.encode("latin-1"))
    with pytest.raises(InputError, match=r"offset 0x31: is not UTF-8 text"):
        read_profile(path)


def test_a_file_too_large_is_refused_unread(read_json: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpa_lsp.profile.native import parse as document

    monkeypatch.setattr(document, "_MAX_BYTES", 100)
    with pytest.raises(InputError, match="is larger than 100 B"):
        read_json(SMALLEST)
