"""Line tables written opcode by opcode, and what must come out of them."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.elf import SYMBOL_DTYPE, read_elf
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.binary.model import LineTable
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.locations import Frame
from tests.binary.line_program_builder import (
    COPY,
    END,
    Code,
    advance,
    file,
    image_with_lines,
    inline,
    line,
    set_address,
    special,
    unit,
)
from tests.binary.seeds import CONTAINERS, FIXTURES, find_fixture_cubins, name_of, read_fixture

NAMES = b"_Z6squaref\0_Z4normff\0"
SQUARE, NORM = 0, 11


def decode(section: bytes, function: str = "k", **image: object) -> LineTable:
    image.setdefault("functions", {"k": Code()})
    return read_line_table(read_cubin(image_with_lines(section, **image)), function)  # type: ignore[arg-type]


def listing(table: LineTable) -> list[tuple[int, list[str]]]:
    """Each row as (pc offset, frames as ``file:line function``); no frames where no line is known."""
    rows = []
    for offset, number in zip(table.row_offsets.tolist(), table.row_chain.tolist(), strict=True):
        chain = table.chains[number] if number >= 0 else ()
        rows.append((offset, [f"{frame.file}:{frame.line} {frame.function}" for frame in chain]))
    return rows


def test_rows_by_address() -> None:
    program = set_address() + line(9) + COPY + special(1, 0) + advance(16) + line(-3) + COPY + advance(31) + END
    assert listing(decode(unit(program))) == [
        (0, ["/src/a.cu:10 k"]),
        (17, ["/src/a.cu:7 k"]),
        (48, []),
    ]


def test_other_ways_to_move_the_address() -> None:
    fixed = b"\x09" + struct.pack("<H", 16)
    program = (
        set_address() + special(0, 1) + b"\x08" + line(1) + COPY + fixed + b"\x05\x07\x06\x07" + special(0, 1) + END
    )
    assert [offset for offset, _ in listing(decode(unit(program)))] == [0, 17, 33]


def test_last_row_at_an_address_counts_and_callers_come_after_it() -> None:
    program = (
        set_address()
        + line(20)  # row 1: the call of norm in k
        + COPY
        + inline(1, NORM)  # row 2: norm calls square
        + file(2)
        + line(-10)
        + COPY
        + inline(2, SQUARE)  # row 3: the body of square, at the same address
        + line(-5)
        + COPY
        + advance(16)  # row 4: back in norm
        + inline(1, NORM)
        + line(6)
        + COPY
        + advance(16)  # row 5: back in k
        + inline(0)
        + file(1)
        + line(10)
        + COPY
        + advance(16)
        + END
    )
    assert listing(decode(unit(program), names=NAMES)) == [
        (0, ["/src/b.cuh:6 _Z6squaref", "/src/b.cuh:11 _Z4normff", "/src/a.cu:21 k"]),
        (16, ["/src/b.cuh:12 _Z4normff", "/src/a.cu:21 k"]),
        (32, ["/src/a.cu:22 k"]),
        (48, []),
    ]


def test_equal_chains_are_one() -> None:
    program = (
        set_address() + b"".join(special(16, 1) + special(1, -1) for _ in range(5)) + END
    )  # ends where its last row starts
    table = decode(unit(program))
    assert len(table.chains) == 2
    assert listing(table)[-1] == (85, [])
    assert len(table.row_offsets) == 10
    assert table.chains[0][0] == Frame(file="/src/a.cu", line=2, function="k")


def test_rows_without_news_are_dropped() -> None:
    program = set_address() + COPY + special(16, 0) + special(16, 0) + advance(16) + END
    assert listing(decode(unit(program))) == [(0, ["/src/a.cu:1 k"]), (48, [])]


def test_units_of_a_linked_image_have_their_own_files_and_names() -> None:
    program = set_address() + COPY + inline(1, 0) + line(4) + COPY + advance(64) + END
    section = unit(program, names_base=SQUARE) + unit(program, files=[("c.cu", 1)], names_base=NORM, version=3)
    image = {"functions": {"k": Code(), "m": Code()}, "names": NAMES}
    assert listing(decode(section, "k", **image))[0] == (0, ["/src/a.cu:5 _Z6squaref", "/src/a.cu:1 k"])
    assert listing(decode(section, "m", **image))[0] == (0, ["/src/c.cu:5 _Z4normff", "/src/c.cu:1 m"])


def test_other_functions_are_not_run() -> None:
    good = set_address() + COPY + advance(16) + END
    bad = set_address() + file(99) + COPY + advance(16) + END
    section = unit(bad + good + bad)
    image = {"functions": {"bad": Code(), "k": Code(), "worse": Code()}}
    assert listing(decode(section, "k", **image)) == [(0, ["/src/a.cu:1 k"]), (16, [])]
    with pytest.raises(InputError, match="file 99"):
        decode(section, "bad", **image)


@pytest.mark.parametrize("addends", [False, True], ids=["rel", "rela"])
def test_addresses_of_an_image_dumped_after_loading(addends: bool) -> None:
    loaded_at = 0x7F5E16FB2900
    program = set_address(loaded_at) + COPY + special(16, 1) + advance(16) + END
    table = decode(unit(program), functions={"k": Code(value=loaded_at)}, addends=addends)
    assert [offset for offset, _ in listing(table)] == [0, 16, 32]


def test_code_of_a_local_function_carries_its_name() -> None:
    program = set_address() + COPY + special(16, 5) + special(16, 5) + advance(16) + END
    table = decode(unit(program), functions={"k": Code(subs=[("$k$_Z3recfi", 16, 16)])})
    assert [frames for _, frames in listing(table)] == [
        ["/src/a.cu:1 k"],
        ["/src/a.cu:6 _Z3recfi"],
        ["/src/a.cu:11 k"],
        [],
    ]


def test_sequence_of_a_local_function() -> None:
    main, sub = (set_address() + line(delta) + COPY + advance(32) + END for delta in (1, 5))
    section = unit(main + sub)
    first, second = (section.index(main) + 3, section.index(main) + len(main) + 3)
    table = decode(
        section,
        functions={"k": Code(subs=[("$k$sub", 32, 32)])},
        operands=[(first, "k"), (second, "$k$sub")],
    )
    assert listing(table) == [(0, ["/src/a.cu:2 k"]), (32, ["/src/a.cu:6 sub"]), (64, [])]


def test_sequence_that_does_not_start_with_its_address() -> None:
    first = b"\x05\x03" + set_address() + COPY + advance(16) + END
    second = b"\x05\x03" + set_address() + line(6) + COPY + advance(16) + END
    image = {"functions": {"j": Code(), "k": Code()}}
    assert listing(decode(unit(first + second), "k", **image)) == [(0, ["/src/a.cu:7 k"]), (16, [])]


def test_no_names_of_inlined_functions() -> None:
    program = set_address() + COPY + inline(1, 0) + line(1) + COPY + advance(16) + END
    assert listing(decode(unit(program, names_base=None)))[0] == (0, ["/src/a.cu:2 None", "/src/a.cu:1 k"])


def test_paths_are_folded() -> None:
    section = unit(
        set_address() + COPY + special(16, 1) + file(2) + special(16, 1) + advance(1) + END,
        directories=["/opt/bin/../include"],
        files=[("./x/../y.hpp", 1), ("here.py", 0)],
    )
    assert [frames[:1] for _, frames in listing(decode(section))] == [
        ["/opt/include/y.hpp:1 k"],
        ["/opt/include/y.hpp:2 k"],
        ["here.py:3 k"],
        [],
    ]


def test_function_without_lines() -> None:
    section = unit(set_address() + COPY + advance(16) + END)
    table = decode(section, "other", functions={"k": Code(), "other": Code()})
    assert listing(table) == []
    assert table.chain_index(np.array([0, 16])).tolist() == [-1, -1]


def test_unknown_function() -> None:
    with pytest.raises(InputError, match="no function nobody"):
        decode(unit(set_address() + END), "nobody")


def test_version_4() -> None:
    assert listing(decode(unit(set_address() + COPY + END, version=4)))[0][1] == []
    assert listing(decode(unit(set_address() + COPY + advance(4) + END, version=4)))[0] == (0, ["/src/a.cu:1 k"])


def test_other_versions() -> None:
    with pytest.raises(UnsupportedInputError, match="version 5"):
        decode(unit(set_address() + COPY + END, version=5))
    section = bytearray(unit(set_address() + COPY + END))
    section[:4] = b"\xff\xff\xff\xff"
    with pytest.raises(UnsupportedInputError, match="64-bit"):
        decode(bytes(section))


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (inline(1) + COPY, "row 1 is inlined into row 1"),
        (COPY + inline(7) + COPY, "row 2 is inlined into row 7"),
        (file(3) + COPY, "file 3 is not in the table of 2"),
        (file(0) + COPY, "file 0 is not"),
        (advance(272) + COPY, "outside the function"),
        (advance(1 << 60) + COPY, "cannot be"),
        (line(-2) + COPY, "cannot be"),
        (line(1 << 40) + COPY, "cannot be"),
        (inline(1 << 40) + COPY, "cannot be"),
        (COPY + inline(1, 4000) + COPY, "string offset 0xfa0 is outside"),
        (b"\x02" + b"\xff" * 30, "does not end"),
        (b"\x00\x7f\x90", "past the end"),
        (b"\x00\x00", "without a code"),
        (b"\x09\x01", "in the middle of an entry"),
        (set_address() + COPY, "belongs to another function"),
    ],
)
def test_lying_programs(program: bytes, complaint: str) -> None:
    section = unit(set_address() + program)
    operands = [(section.index(b"\x00\x09\x02") + 3, "k")]
    with pytest.raises(InputError, match=complaint) as caught:
        decode(section, names=NAMES, operands=operands)
    assert caught.value.place is not None
    assert caught.value.place.startswith("section .debug_")
    assert caught.value.remedy


@pytest.mark.parametrize(("value", "code"), [(512, Code()), (0x7F0000000000, Code(value=0x7E0000000000))])
def test_address_operand_outside_the_function(value: int, code: Code) -> None:
    with pytest.raises(InputError, match="outside the function"):
        decode(unit(set_address(value) + COPY + END), functions={"k": code})


@pytest.mark.parametrize("section", [unit(set_address() + COPY + END), b""], ids=["in the header", "no unit"])
def test_operand_outside_every_program(section: bytes) -> None:
    with pytest.raises(InputError, match="outside every program"):
        decode(section, operands=[(8, "k")])


@pytest.mark.parametrize(
    ("offset", "value", "complaint"),
    [(0, 1 << 20, "longer than its section"), (6, 1 << 20, "longer than its section"), (13, 0, "divides by zero")],
    ids=["unit length", "header length", "line range"],
)
def test_lying_headers(offset: int, value: int, complaint: str) -> None:
    section = bytearray(unit(set_address() + COPY + END))
    section[offset : offset + (1 if offset == 13 else 4)] = value.to_bytes(1 if offset == 13 else 4, "little")
    with pytest.raises(InputError, match=complaint):
        decode(bytes(section))


def test_every_row_inlined_into_the_one_before() -> None:
    """Chains of 1, 2, 3, … frames: 100 kB would make billions of frames."""
    count = 20_000
    rows = b"".join(inline(number) + special(1, 1) for number in range(1, count))
    with pytest.raises(InputError, match="many times its own size"):
        decode(unit(set_address() + special(0, 1) + rows + END), functions={"k": Code(size=count + 16)}, names=NAMES)


def test_long_directory_named_by_every_row() -> None:
    files = [(f"{number}", 1) for number in range(2000)]
    rows = b"".join(file(number) + special(1, 1) for number in range(1, 2001))
    section = unit(set_address() + rows + END, directories=["/" + "d" * 60_000], files=files)
    with pytest.raises(InputError, match="many times its own size"):
        decode(section, functions={"k": Code(size=4096)})


def test_overlapping_sequences_are_run_once() -> None:
    """Each step is hidden in the payload of an unknown opcode and is also a sequence of its own: quadratic if each were run to its end."""
    step = b"\x00\x0f\x77" + END + set_address()
    program = set_address() + COPY + step * 20_000 + END
    section = unit(program)
    start = section.index(program)
    operands = [(start + 3, "k")] + [(start + 12 + 17 * number + 9, "k") for number in range(20_000)]
    assert section[operands[5][0] - 3 : operands[5][0]] == b"\x00\x09\x02"
    assert listing(decode(section, operands=operands)) == [(0, [])]


row_lists = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(-400, 400),
        st.integers(1, 3),
        st.integers(0, 1 << 30),
        st.sampled_from([0, 0, 1]),
    ),
    min_size=1,
    max_size=60,
)


@given(row_lists)
def test_rows_come_back(steps: list[tuple[int, int, int, int, int]]) -> None:
    """Encode random rows the shortest way there is, decode them, and compare with a direct simulation."""
    program, address, at_line = bytearray(set_address()), 0, 1
    rows: list[tuple[int, int, int, int]] = []
    for address_delta, line_delta, file_number, seed, is_inlined in steps:
        delta = line_delta if at_line + line_delta > 0 else 1
        context = 1 + seed % len(rows) if is_inlined and rows else 0
        address, at_line = address + address_delta, at_line + delta
        program += file(file_number) + inline(context, NORM if context else 0)
        if -5 <= delta < 9 and address_delta < 17:
            program += special(address_delta, delta)
        else:
            program += advance(address_delta) + line(delta) + COPY
        rows.append((address, file_number, at_line, context))
    program += advance(1) + END
    section = unit(bytes(program), files=[("a.cu", 1), ("b.cu", 1), ("c.cu", 0)])
    table = decode(section, functions={"k": Code(size=4096)}, names=NAMES)
    winners = {row[0]: number for number, row in enumerate(rows)}

    def frames(number: int) -> tuple[Frame, ...]:
        _, file_number, at, context = rows[number]
        path = ("/src/a.cu", "/src/b.cu", "c.cu")[file_number - 1]
        if not context:
            return (Frame(file=path, line=at, function="k"),)
        return (Frame(file=path, line=at, function="_Z4normff"), *frames(context - 1))

    for offset, number in winners.items():
        index = table.chain_index(np.array([offset]))[0]
        assert table.chains[index] == frames(number)
    assert table.chain_index(np.array([address + 1])).tolist() == [-1]


LOADED_AT = 0x7F5E16FB2900


@pytest.mark.parametrize(
    "path",
    [
        CONTAINERS / "inline_chain_nvrtc12.sm_70.cubin",
        CONTAINERS / "two_units_linked.sm_90.cubin",
        FIXTURES / "cubins" / "sm_120" / "inline_chain_original.cubin",
    ],
    ids=name_of,
)
def test_a_dumped_fixture_has_the_same_lines(path: Path) -> None:
    before, after = read_fixture(path), read_cubin(dump_after_loading(path.read_bytes()))
    assert before.functions.keys() == after.functions.keys()
    for name in before.functions:
        assert listing(read_line_table(after, name)) == listing(read_line_table(before, name))


def dump_after_loading(image: bytes) -> bytes:
    """Make an image as Nsight Compute up to 2022.1 stored it: run-time addresses as values of the functions and as operands of their sequences."""
    elf = read_elf(image)
    loaded = bytearray(image)
    table = int(elf.sections["offset"][elf.sections["type"] == 2][0])
    section = elf.find_section(".debug_line")
    assert section is not None
    start = int(elf.sections[section]["offset"])
    for number, symbol in enumerate(elf.read_symbols()):
        if symbol["info"] & 0xF == 2 and symbol["section"]:
            struct.pack_into("<Q", loaded, table + SYMBOL_DTYPE.itemsize * number + 8, LOADED_AT + (number << 16))
    for entry in elf.read_relocations(section):
        struct.pack_into("<Q", loaded, start + int(entry["offset"]), LOADED_AT + (int(entry["symbol"]) << 16))
    return bytes(loaded)


def test_every_instruction_of_a_kernel_has_a_line() -> None:
    functions = [(path, name) for path in find_fixture_cubins() for name in read_fixture(path).functions]
    for path, name in functions:
        cubin = read_fixture(path)
        function, table = cubin.functions[name], read_line_table(cubin, name)
        found = table.chain_index(np.arange(0, function.size_bytes, 16))
        assert (found >= 0).all(), (path, name)
        assert all(frame.line > 0 and frame.file.startswith("/") for chain in table.chains for frame in chain)
        assert {chain[-1].function for chain in table.chains} <= {
            name,
            *_local_names(name, cubin.functions[name].sub_functions),
        }


def _local_names(kernel: str, subs: tuple[object, ...]) -> set[str]:
    return {str(getattr(sub, "name", "")).removeprefix(f"${kernel}$").rpartition("_$")[2] for sub in subs}
