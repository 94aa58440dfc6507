"""Disassembling sections: batches, cache, broken code, broken tools."""

import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary import disassembler
from gpa_lsp.code.binary.disassembler import DisassemblyCache, decode_words, disassemble
from gpa_lsp.code.binary.model import Cubin, Flow
from gpa_lsp.code.binary.opcodes import UNDECODED
from gpa_lsp.code.binary.sass import decode_instructions
from gpa_lsp.code.binary.tool_location import find_tool, name_override
from gpa_lsp.foundation.errors import GpaError, MissingToolError, ToolError, UnsupportedInputError
from gpa_lsp.foundation.processes import watched_command
from gpa_lsp.foundation.processes.watched_command import read_processor_time
from tests.binary.seeds import FIXTURES, read_fixture
from tests.binary.test_sass import check_columns
from tests.patience import LIMIT_S

EXIT = bytes.fromhex("4d79000000000000" + "0000800300ea0f00")
posix_only = pytest.mark.skipif(os.name == "nt", reason="the stand-in tool is a script")


@pytest.fixture
def tool() -> Path:
    found = find_tool("nvdisasm")
    if found is None:
        pytest.skip("nvdisasm is not installed")
    return found


@pytest.fixture
def cache(tmp_path: Path) -> DisassemblyCache:
    return DisassemblyCache(tmp_path / "cache")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches handed to nvdisasm."""
    sizes: list[int] = []
    run: Callable[[Path, bytes, int], list[str]] = disassembler.decode_words

    def count(tool: Path, code: bytes, sm: int) -> list[str]:
        sizes.append(len(code))
        return run(tool, code, sm)

    monkeypatch.setattr(disassembler, "decode_words", count)
    return sizes


def read(name: str, sm: int = 80) -> Cubin:
    return read_fixture(FIXTURES / "cubins" / f"sm_{sm}" / f"{name}.cubin")


def count_distinct(codes: Iterable[bytes]) -> int:
    """Bytes of the distinct instructions of some functions."""
    return 16 * len({code[start : start + 16] for code in codes for start in range(0, len(code), 16)})


def make_cubin(code: bytes, sm: int = 80) -> Cubin:
    """An image with one function."""
    cubin = read("tiny_blocks_original")
    function = replace(
        next(iter(cubin.functions.values())), image=code, code_start=0, size_bytes=len(code), call_symbols={}
    )
    return replace(cubin, sm=sm, path=None, functions={"f": function})


@pytest.mark.oracle
@pytest.mark.parametrize("sm", [75, 80, 90, 120])
def test_functions_read_together_as_they_do_alone(tool: Path, sm: int) -> None:
    names = [
        "device_calls_original",
        "recursion_original",
        "branch_divergence_original",
        "indirect_call_original",
        "jump_table_original",
    ]
    codes = [function.code for name in names for function in read(name, sm).functions.values()]
    decoded = disassembler._decode_distinct(codes, lambda words: decode_words(tool, words, sm))
    assert 16 * len(decoded) < sum(map(len, codes))
    for code in codes:
        assert disassembler._place(code, decoded) == decode_words(tool, code, sm)


@pytest.mark.oracle
def test_only_what_is_asked_for_is_disassembled_and_only_once(
    tool: Path, cache: DisassemblyCache, runs: list[int]
) -> None:
    cubin = read("device_calls_original")
    first = next(iter(cubin.functions))
    found = disassemble(cubin, [first], cache=cache)
    assert list(found) == [first]
    assert runs == [count_distinct([cubin.functions[first].code])]
    everything = disassemble(cubin, cubin.functions, cache=cache)
    assert list(everything) == list(cubin.functions)
    again = disassemble(cubin, cubin.functions, cache=cache)
    others = [one.code for name, one in cubin.functions.items() if name != first]
    assert sum(runs[1:]) == count_distinct(others)
    assert [one.texts for one in again.values()] == [one.texts for one in everything.values()]
    assert all(len(one) * 16 == cubin.functions[name].size_bytes for name, one in everything.items())


@pytest.mark.oracle
def test_functions_with_the_same_code_share_a_run(tool: Path, cache: DisassemblyCache, runs: list[int]) -> None:
    cubin = make_cubin(EXIT * 4)
    cubin = replace(cubin, functions=dict.fromkeys("abc", cubin.functions["f"]))
    assert {one.texts for one in disassemble(cubin, "abc", cache=cache).values()} == {("EXIT",) * 4}
    assert runs == [16]


@pytest.mark.oracle
def test_much_code_is_shared_out_between_runs(
    tool: Path, cache: DisassemblyCache, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disassembler, "_LARGEST_RUN", 256)
    cubin = read("huge_body_original")
    function = next(iter(cubin.functions.values()))
    starts = {f"part{start}": function.code_start + start for start in range(0, 16_000, 1600)}
    parts = {name: replace(function, code_start=start, size_bytes=1600) for name, start in starts.items()}
    found = disassemble(replace(cubin, functions=parts), parts, cache=cache)
    assert len(runs) > 1 and max(runs) <= 4096
    assert sum(runs) == count_distinct([part.code for part in parts.values()])
    whole = disassemble(cubin, [function.name], cache=cache)[function.name]
    for position, instructions in enumerate(found.values()):
        start = position * 100
        theirs = whole.texts[start : start + 100]
        assert [text for text in instructions.texts if "BRA" not in text] == [
            text for text in theirs if "BRA" not in text
        ]


@pytest.mark.parametrize("count", [0, 1, 7, 100_000, 1_000_001])
def test_batches_are_balanced_and_complete(count: int) -> None:
    words = [number.to_bytes(16, "little") for number in range(count)]
    batches = disassembler._make_batches(words)
    assert [word for batch in batches for word in batch] == words
    sizes = [len(batch) for batch in batches]
    assert not sizes or (min(sizes) > 0 and max(sizes) - min(sizes) <= len(sizes))
    assert max(sizes, default=0) <= disassembler._LARGEST_RUN


def test_no_code_needs_no_tool(monkeypatch: pytest.MonkeyPatch, cache: DisassemblyCache) -> None:
    monkeypatch.setenv(name_override("nvdisasm"), "nothing here")
    assert len(disassemble(make_cubin(b""), ["f"], cache=cache)["f"]) == 0
    assert disassemble(make_cubin(EXIT), [], cache=cache) == {}


def test_a_function_that_is_not_there(cache: DisassemblyCache) -> None:
    with pytest.raises(KeyError):
        disassemble(make_cubin(EXIT), ["g"], cache=cache)


def test_a_missing_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch, cache: DisassemblyCache) -> None:
    monkeypatch.setenv(name_override("nvdisasm"), "nothing here")
    with pytest.raises(MissingToolError):
        disassemble(make_cubin(EXIT), ["f"], cache=cache)


@pytest.mark.oracle
@pytest.mark.parametrize("sm", [0, 61, 999])
def test_an_architecture_the_tool_does_not_know(tool: Path, cache: DisassemblyCache, sm: int) -> None:
    cubin = replace(make_cubin(EXIT, sm), path=Path("kernel.cubin"))
    with pytest.raises(UnsupportedInputError, match=rf"kernel\.cubin: nvdisasm does not know sm_{sm}; install"):
        disassemble(cubin, ["f"], cache=cache)


@pytest.mark.oracle
def test_volta_is_read(tool: Path, cache: DisassemblyCache) -> None:
    assert disassemble(make_cubin(EXIT, 70), ["f"], cache=cache)["f"].texts == ("EXIT",)


@pytest.mark.oracle
@pytest.mark.parametrize("sm", [75, 80, 86, 90, 100, 120])
def test_what_cannot_be_decoded_stays_in_its_place(tool: Path, sm: int) -> None:
    """nvdisasm names some illegal encodings by address, counts others, and leaves others out of the listing without a word."""
    named, counted = b"\xff" * 16, bytes(16)
    left_out = bytes.fromhex("0e729d82ef35843280955c04c7c80f00")
    words = [EXIT, named, EXIT, counted, counted, named, left_out, EXIT, counted]
    texts = decode_words(tool, b"".join(words), sm)
    assert len(texts) == len(words)
    assert [text == "EXIT" for text in texts] == [word == EXIT for word in words]
    assert texts[1] == f"{UNDECODED} 0xffffffffffffffff, 0xffffffffffffffff"
    assert texts[3] == f"{UNDECODED} 0x0000000000000000, 0x0000000000000000"


@pytest.mark.oracle
@pytest.mark.parametrize(("sm", "seed"), [(75, 1), (80, 2), (90, 3), (120, 4)])
def test_mutated_instructions(tool: Path, sm: int, seed: int) -> None:
    """Four hundred instructions of a real kernel with bits flipped, and a hundred of noise."""
    rng = random.Random(seed)
    code = bytearray(next(iter(read("math_functions_original", sm).functions.values())).code[: 400 * 16])
    for start in range(0, len(code), 16):
        for _ in range(rng.randint(1, 3)):
            bit = rng.randrange(128)
            code[start + bit // 8] ^= 1 << bit % 8
    noise = bytes(code) + rng.randbytes(100 * 16)
    texts = decode_words(tool, noise, sm)
    assert len(texts) == len(noise) // 16
    assert 100 <= sum(text.startswith(UNDECODED) for text in texts) < len(texts)
    check_columns(decode_instructions(texts, noise), len(texts))


@pytest.mark.oracle
def test_a_ragged_tail_is_cut_off(tool: Path, cache: DisassemblyCache) -> None:
    assert disassemble(make_cubin(EXIT + EXIT[:7]), ["f"], cache=cache)["f"].texts == ("EXIT",)


@pytest.mark.oracle
def test_a_damaged_cache_is_repaired(tool: Path, cache: DisassemblyCache, runs: list[int]) -> None:
    cubin = make_cubin(EXIT)
    disassemble(cubin, ["f"], cache=cache)
    for path in cache.files.folder.iterdir():
        path.write_bytes(b"junk")
    assert disassemble(cubin, ["f"], cache=cache)["f"].texts == ("EXIT",)
    assert disassemble(cubin, ["f"], cache=cache)["f"].texts == ("EXIT",)
    assert runs == [16, 16]


@pytest.mark.oracle
def test_targets_given_by_relocations_are_elsewhere(tool: Path, cache: DisassemblyCache) -> None:
    cubin = read("device_calls_original")
    name, function = next((name, one) for name, one in cubin.functions.items() if one.is_entry)
    plain = disassemble(cubin, [name], cache=cache)[name]
    calls = [index for index, flow in enumerate(plain.flow) if flow == Flow.CALL]
    assert calls and all(plain.target[index] >= 0 for index in calls)
    relocated = replace(function, call_symbols={calls[0] * 16: "_Z5otherf"})
    found = disassemble(replace(cubin, functions={name: relocated}), [name], cache=cache)[name]
    assert found.target[calls[0]] == -1
    assert [found.target[index] for index in calls[1:]] == [plain.target[index] for index in calls[1:]]


def make_tool(folder: Path, body: str) -> Path:
    """A stand-in for nvdisasm, in Python."""
    path = folder / "stand-in"
    path.write_text(f"#!{sys.executable}\nimport os, sys, time\nimage = sys.argv[3]\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@posix_only
def test_a_tool_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_command, "CLOCK_PER_PROCESSOR", 0.5 / LIMIT_S)
    monkeypatch.setattr(disassembler, "_START_SECONDS", LIMIT_S)
    hanging = make_tool(tmp_path, "print('working', file=sys.stderr, flush=True)\ntime.sleep(3600)")
    with pytest.raises(ToolError, match=r"timed out after .* \(0(\.\d+)? s of processor time\)"):
        decode_words(hanging, EXIT, 80)


@posix_only
def test_a_tool_that_works_for_ever_is_stopped_by_its_processor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disassembler, "_START_SECONDS", 1.0)  # to start takes a fiftieth of it
    monkeypatch.setattr(watched_command, "CLOCK_PER_PROCESSOR", 1e6)
    busy = make_tool(tmp_path, "print('working', file=sys.stderr, flush=True)\nwhile True: pass")
    with pytest.raises(ToolError, match="timed out after 1 s of processor time") as caught:
        decode_words(busy, EXIT, 80)
    assert "working" in caught.value.output


@posix_only
def test_a_tool_that_gets_no_processor_for_minutes_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at it is a minute after the one before; after the third it is let go on, and has all the time it needs."""
    looks = count()
    monkeypatch.setattr(watched_command, "_LOOK_S", 0.01)
    minutes = count()
    monkeypatch.setattr(watched_command, "monotonic", lambda: 60.0 * min(next(minutes), 4))
    go_on = tmp_path / "go_on"

    def look(process: "subprocess.Popen[bytes]") -> float | None:
        if next(looks) == 3:
            go_on.touch()
        return read_processor_time(process)

    monkeypatch.setattr(watched_command, "read_processor_time", look)
    starved = make_tool(
        tmp_path,
        f"while not os.path.exists({str(go_on)!r}): time.sleep(0.01)\nprint('        /*0000*/ EXIT ;')",
    )
    assert decode_words(starved, EXIT, 80) == ["EXIT"]
    assert next(looks) > 3


@posix_only
def test_a_tool_that_fails_is_quoted(tmp_path: Path) -> None:
    failing = make_tool(tmp_path, "print('out of luck', file=sys.stderr)\nsys.exit(3)")
    with pytest.raises(ToolError, match="status 3") as caught:
        decode_words(failing, EXIT, 80)
    assert "out of luck" in caught.value.output


@posix_only
@pytest.mark.parametrize(
    "body",
    [
        "print('x' * 10_000_000)",
        "print('        /*zz*/ EXIT ;\\n        /*0008*/ EXIT ;\\n        /*fffffff0*/ EXIT ;\\n        /*-010*/ EXIT ;')",
        "sys.stdout.buffer.write(bytes(range(256)) * 1000)",
        "sys.exit(0)",
        "[print('        /*0000*/ EXIT ;') for _ in range(100_000)]",
        "print('nvdisasm error   : Illegal instruction found', file=sys.stderr)\nsys.exit(1)",
        "print('error at address 0xffffffffffffffffff\\nIllegal instruction\\n' * 1000, file=sys.stderr)\nsys.exit(1)",
        "os.kill(os.getpid(), 9)",
        "os.remove(image)",
    ],
)
def test_a_tool_that_prints_nonsense(tmp_path: Path, body: str) -> None:
    """One text per instruction, or an error of ours."""
    try:
        texts = decode_words(make_tool(tmp_path, body), EXIT * 2, 80)
    except GpaError as error:
        assert str(error).startswith("nvdisasm")
        return
    assert len(texts) == 2


@posix_only
def test_a_tool_that_cannot_be_started(tmp_path: Path) -> None:
    path = tmp_path / "nvdisasm"
    path.write_bytes(b"\x7fELF not really")
    path.chmod(0o700)
    with pytest.raises(ToolError, match="cannot be started"):
        decode_words(path, EXIT, 80)


@posix_only
def test_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    bodies: Sequence[str] = ("sys.exit(0)", "sys.exit(3)")
    for body in bodies:
        try:
            decode_words(make_tool(tmp_path, body), EXIT, 80)
        except ToolError:
            assert body == bodies[1]
    assert list(scratch.iterdir()) == []
