"""Framing: what is sound is walked, what is not is one error that names the offset."""

import struct
from collections.abc import Callable

import pytest

from gpa_lsp.foundation.errors import InputError, ProblemSeverity, UnsupportedInputError
from gpa_lsp.profile.model import Profile
from tests.profile.report_builder import ReportBuilder, build_small_report, frame_entry

Read = Callable[..., Profile]


def test_a_whole_report_is_read(read_bytes: Read) -> None:
    profile = read_bytes(build_small_report())
    assert profile.format_name == "ncu-report"
    assert profile.tool_version == "2025.1.0.0 (build 1) (public-release)"
    assert [launch.display_name for launch in profile.launches] == ["axpy(float *)"]
    assert list(profile.modules) == [1]
    assert profile.problems == ()


def test_the_old_extension_is_the_same_format(read_bytes: Read) -> None:
    assert len(read_bytes(build_small_report(), "old.nsight-cuprof-report").launches) == 1


def test_strings_of_a_later_block_name_earlier_metrics(read_bytes: Read) -> None:
    builder = ReportBuilder(strings_last=True)
    builder.add_result(builder.make_result(metrics=[builder.encode_metric("a__metric", 5)], source_id=None))
    builder.add_session()
    assert read_bytes(builder.build()).launches[0].metrics["a__metric"].value == 5


def test_every_truncation_is_an_error_that_names_the_place(read_bytes: Read) -> None:
    data = build_small_report()
    whole_blocks = 0
    for length in range(len(data)):
        try:
            read_bytes(data[:length])
        except InputError as error:
            assert error.path is not None
            assert length == 0 or error.place is not None
            assert error.remedy is not None
        else:
            whole_blocks += 1
    # Only a cut exactly between two blocks cannot be told from a shorter report: behind the header, the source, the result.
    assert whole_blocks == 3


def test_wrong_magic(read_bytes: Read) -> None:
    with pytest.raises(InputError, match=r"offset 0x0: does not start with the bytes of an Nsight Compute report"):
        read_bytes(b"MZ\x90\x00" * 10)


def test_another_container_version_says_how_to_convert(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_session()
    with pytest.raises(UnsupportedInputError, match=r"container version 8 is not read, only 7.*ncu --import"):
        read_bytes(builder.build(container_version=8))


def test_a_block_header_of_size_zero_is_an_error_at_once(read_bytes: Read) -> None:
    with pytest.raises(InputError, match="a block header has size 0"):
        read_bytes(b"NVR\0" + struct.pack("<I", 2) + b"\x08\x07" + bytes(1000))


def test_a_block_header_of_zeros_is_not_a_message(read_bytes: Read) -> None:
    with pytest.raises(InputError, match=r"offset 0xe: a block header cannot be decoded"):
        read_bytes(b"NVR\0" + struct.pack("<I", 2) + b"\x08\x07" + struct.pack("<I", 900) + bytes(1000))


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 1000])
def test_a_block_header_longer_than_the_file(read_bytes: Read, size: int) -> None:
    with pytest.raises(
        InputError, match=rf"offset 0xa: a block header of {size} bytes does not fit into the 3 bytes left"
    ):
        read_bytes(b"NVR\0" + struct.pack("<I", 2) + b"\x08\x07" + struct.pack("<I", size) + b"abc")


def test_a_payload_longer_than_the_file(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_session()
    builder.blocks[0][0].payload_bytes = 1 << 60
    with pytest.raises(InputError, match="a payload of 1152921504606846976 bytes is longer than the rest of the file"):
        read_bytes(builder.build())


def test_more_entries_declared_than_held(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_source()
    builder.blocks[0][0].result_count = 1 << 40
    with pytest.raises(InputError, match="declares 1 sources and 1099511627776 results, but holds 1 entries"):
        read_bytes(builder.build())


def test_an_entry_longer_than_its_payload(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_source()
    header, payload = builder.blocks[0]
    builder.blocks[0] = header, struct.pack("<I", len(payload)) + payload[4:]
    with pytest.raises(InputError, match="an entry of"):
        read_bytes(builder.build())


def test_one_broken_result_costs_only_itself(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_block(results=[builder.make_result("first"), b"\x0a\xff\xff broken", builder.make_result("third")])
    profile = read_bytes(builder.build())
    assert [(launch.index, launch.mangled_name) for launch in profile.launches] == [(0, "first"), (1, "third")]
    broken = [problem for problem in profile.problems if problem.severity is ProblemSeverity.ERROR]
    assert [problem.message for problem in broken] == ["launch 1 cannot be decoded and is left out"]
    assert broken[0].place is not None
    assert broken[0].place.startswith("offset 0x")


def test_an_entry_of_zeros_is_not_read_into_memory(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_block(results=[bytes(5000)])
    assert read_bytes(builder.build()).problems[0].message == "launch 0 cannot be decoded and is left out"


def test_a_broken_source_leaves_the_launch(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_block(sources=[b"\x0a\xff\xff"])
    builder.add_result(builder.make_result())
    profile = read_bytes(builder.build())
    assert profile.launches[0].module_id is None
    assert [problem.message for problem in profile.problems] == [
        "module 0 cannot be decoded and is left out",
        "the launch's module (1) is not in the report",
    ]


def test_unknown_entries_are_passed_over_with_a_word(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_result(builder.make_result(source_id=None))
    header, payload = builder.blocks[0]
    payload += frame_entry(b"\x08\x01")
    header.payload_bytes = len(payload)
    builder.blocks[0] = header, payload
    profile = read_bytes(builder.build())
    assert len(profile.launches) == 1
    assert "1 entries of an unknown kind are skipped" in profile.problems[0].message


def test_unknown_fields_are_skipped(read_bytes: Read) -> None:
    builder = ReportBuilder()
    unknown = b"\xfa\x3f\x03abc" + b"\x90\x40\x05"  # field 1023, text; field 1026, varint
    builder.add_block(results=[builder.make_result(source_id=None).SerializeToString() + unknown])
    profile = read_bytes(builder.build())
    assert profile.launches[0].grid == (128, 2, 1)
    assert profile.problems == ()


def test_text_that_is_not_utf8_costs_nothing(read_bytes: Read) -> None:
    builder = ReportBuilder()
    result = builder.make_result(source_id=None)
    result.demangled_name = b"caf\xe9(int)"
    builder.add_result(result)
    assert read_bytes(builder.build()).launches[0].display_name == "caf\ufffd(int)"


def test_a_payload_of_empty_entries_is_refused(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_block(results=[b"\x08"] * 1000)
    with pytest.raises(InputError, match="more than 172 entries in a payload of this size"):
        read_bytes(builder.build())
