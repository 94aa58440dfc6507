"""Reads, writes and jump targets of every instruction of the fixtures and of the corpus, against nvdisasm's life ranges and labels.

The same comparison on 14,947,147 instructions of public libraries and generated kernels for sm_75 to sm_120 (and 7,239 for sm_70, with
nvdisasm 12.8) left the same differences and no other; they are listed below with their reasons.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.binary.model import Cubin, Flow, Instructions, ResourceKind, name_resource
from gpa_lsp.code.binary.sass import Parts, take_apart
from tests.binary.life_ranges import ListedFunction, has_new_layout, read_life_ranges, wrap_functions
from tests.binary.opcode_table import find_unknown_opcodes
from tests.binary.seeds import find_fixture_cubins, read_fixture
from tests.binary.test_corpus_images import REPORTS
from tests.binary.test_corpus_images import find_images as find_images_in_report
from tests.binary.together import disassemble_together

pytestmark = pytest.mark.oracle

BLACKWELL = range(100, 122)
CONSUMER_BLACKWELL = range(120, 122)
ALL = range(70, 122)
TARGET = re.compile(r"`\((\.L_x_\d+)\)")
REUSE = ".reuse"
NAME = re.compile(r"`\(|\d@(?:lo|hi|srel|fdesc)|@\(")
TEXTURES = ("TEX", "TLD", "TLD4", "TXD", "TXQ")


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """A place at which the life ranges are not the truth, and the reason.

    Attributes:
        opcodes: bare opcodes.
        architectures: SM numbers.
        reason: why ours is right.
        explains: whether a resource number is one this is about, in ours or in theirs but not in both.
        is_in_fixtures: it occurs there; the others only in public libraries or generated kernels.
    """

    opcodes: tuple[str, ...]
    architectures: range
    reason: str
    explains: Callable[[Parts, int], bool]
    is_in_fixtures: bool


def is_predicate(_: Parts, number: int) -> bool:
    return number >> 8 in (ResourceKind.PREDICATE, ResourceKind.UNIFORM_PREDICATE)


def is_last_predicate(parts: Parts, number: int) -> bool:
    return bool(parts.operands) and parts.operands[-1].lstrip("!") == name_resource(number)


def is_second_of_an_operand(parts: Parts, number: int) -> bool:
    return name_resource(number - 1) in parts.operands


DIFFERENCES = (
    KnownDifference(
        ("CALL",),
        ALL,
        "life ranges show all that the callee may use under the calling convention; the instruction itself uses its operands only",
        lambda _, number: True,
        is_in_fixtures=True,
    ),
    KnownDifference(
        ("P2R", "R2P", "UP2UR", "UR2UP"),
        ALL,
        "the predicates packed or unpacked as a mask says are not marked, though they are in use before or after",
        is_predicate,
        is_in_fixtures=True,
    ),
    KnownDifference(
        ("LDGSTS", "LDG", "LD"),
        ALL,
        "the predicate behind the address, which is read, is marked as written too (even negated, and instead of the predicate result when "
        "there is one); later instructions rely on its old value",
        is_last_predicate,
        is_in_fixtures=False,
    ),
    KnownDifference(
        ("TEX", "TLD", "TLD4", "TXD"),
        BLACKWELL,
        "the second register of the upper result, and of the further arguments, is not marked, though it is stored or was written for it",
        is_second_of_an_operand,
        is_in_fixtures=True,
    ),
    KnownDifference(
        ("TLD",),
        CONSUMER_BLACKWELL,
        "the second register of the uniform handle is not marked, though the compiler writes it for this instruction",
        is_second_of_an_operand,
        is_in_fixtures=False,
    ),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A function with what nvdisasm says about it."""

    place: str
    sm: int
    instructions: Instructions
    code: bytes
    listed: ListedFunction

    def rows(self) -> Iterator[tuple[str, int, Parts]]:
        """Place, number and parts of each listed instruction.

        What only an indirect call reaches has no marks and is left out.
        """
        has_hidden_code = has_flow(self.instructions, Flow.INDIRECT_CALL)
        for pc_offset, reads in self.listed.reads.items():
            text = self.instructions.texts[pc_offset // 16]
            if reads or self.listed.writes[pc_offset] or not has_hidden_code:
                yield f"{self.place}+{pc_offset:#x} {text}", pc_offset // 16, take_apart(text)

    def find_differing(self, row: int) -> frozenset[int]:
        """Resources only one side says are read, or written; life ranges have no convergence barriers."""
        reads = self.listed.reads[16 * row] ^ frozenset(self.instructions.reads.of(row))
        writes = self.listed.writes[16 * row] ^ frozenset(self.instructions.writes.of(row))
        return frozenset(one for one in reads | writes if one >> 8 != ResourceKind.CONVERGENCE_BARRIER)


FOLDERS = {folder: list(paths) for folder, paths in groupby(find_fixture_cubins(), key=lambda path: path.parent.name)}
GROUPS = [*FOLDERS, "corpus"]
per_group = pytest.mark.parametrize(
    "group", [pytest.param(one, marks=[pytest.mark.corpus] if one == "corpus" else []) for one in GROUPS]
)


def find_images(group: str) -> list[Cubin]:
    if group != "corpus":
        return [read_fixture(path) for path in FOLDERS[group]]
    if not REPORTS:
        pytest.skip("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    return [cubin for report in REPORTS for cubin in find_images_in_report(report)]


def has_flow(instructions: Instructions, *flows: Flow) -> bool:
    return bool(np.isin(instructions.flow, [int(flow) for flow in flows]).any())


@cache
def compare(group: str, folder: Path) -> tuple[Compared, ...]:
    """All functions of a group with their life ranges; those of most images come from one listing per architecture."""
    found: list[Compared] = []
    together: dict[int, list[Compared]] = {}
    cubins = find_images(group)
    for cubin, functions in zip(cubins, disassemble_together(cubins), strict=True):
        is_file = cubin.path is not None and cubin.path.suffix == ".cubin"
        for name, instructions in functions.items():
            compared = Compared(
                f"{cubin.path} {name}", cubin.sm, instructions, cubin.functions[name].code, ListedFunction()
            )
            if not has_flow(instructions, Flow.INDIRECT_BRANCH):
                together.setdefault(cubin.sm, []).append(compared)
            elif is_file and cubin.path is not None and has_new_layout(cubin.path):
                found.append(replace(compared, listed=read_life_ranges(cubin.path)[name]))
    for sm, members in together.items():
        image = folder / f"{group}.{sm}.cubin"
        image.write_bytes(wrap_functions({f"f{index}": one.code for index, one in enumerate(members)}, sm))
        listing = read_life_ranges(image)
        assert len(listing) == len(members)
        found += [replace(one, listed=listing[f"f{index}"]) for index, one in enumerate(members)]
    return tuple(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the images in which functions are listed together."""
    return tmp_path_factory.mktemp("life_ranges")


def explain(parts: Parts, sm: int, numbers: frozenset[int]) -> list[KnownDifference | None]:
    """The known difference that explains each number; None where there is none."""
    fitting = [one for one in DIFFERENCES if parts.opcode in one.opcodes and sm in one.architectures]
    return [next((one for one in fitting if one.explains(parts, number)), None) for number in sorted(numbers)]


@per_group
def test_reads_and_writes(group: str, folder: Path) -> None:
    compared = 0
    for function in compare(group, folder):
        assert find_unknown_opcodes(function.instructions) == ()
        assert function.listed.texts
        for place, row, parts in function.rows():
            differing = function.find_differing(row)
            assert None not in explain(parts, function.sm, differing), (
                f"{place}: {[name_resource(one) for one in sorted(differing)]}"
            )
            compared += 1
    assert compared > 100


def test_every_difference_listed_for_the_fixtures_is_there(folder: Path) -> None:
    seen: set[KnownDifference | None] = set()
    for function in (function for group in FOLDERS for function in compare(group, folder)):
        for _, row, parts in function.rows():
            seen.update(explain(parts, function.sm, function.find_differing(row)))
    assert seen == {one for one in DIFFERENCES if one.is_in_fixtures}


@per_group
def test_a_call_uses_its_own_operands_there_too(group: str, folder: Path) -> None:
    for function in compare(group, folder):
        for place, row, _ in function.rows():
            if function.instructions.flow[row] in (Flow.CALL, Flow.INDIRECT_CALL):
                assert set(function.instructions.reads.of(row)) <= function.listed.reads[16 * row], place


@per_group
def test_targets(group: str, folder: Path) -> None:
    """Branches, calls within the section and reconvergence points, against the labels of ELF mode."""
    compared = 0
    for function in compare(group, folder):
        for place, row, _ in function.rows():
            label = TARGET.search(function.listed.texts[16 * row])
            if label is not None and function.instructions.flow[row] in (Flow.BRANCH, Flow.CALL, Flow.BARRIER_SET):
                assert function.instructions.target[row] == function.listed.labels[label[1]], place
                compared += 1
    assert compared > 0


@per_group
def test_texts_and_reuse_flags(group: str, folder: Path) -> None:
    """Raw mode prints what ELF mode does, but for names in the place of numbers; a reuse flag is set per ``.reuse`` shown.

    In texture instructions of sm_80 and before the bits mean something else.
    """
    for function in compare(group, folder):
        for place, row, parts in function.rows():
            text = function.listed.texts[16 * row]
            shown = " ".join(text.partition("(*")[0].split()).replace(" ,", ",")
            if not NAME.search(shown):
                assert function.instructions.texts[row] == shown, place
            if parts.opcode not in TEXTURES or function.sm > 89:
                assert int(function.instructions.control.reuse[row]).bit_count() == text.count(REUSE), place
