"""Machine code as PTX: what is left out of it changes no answer."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.disassembler import disassemble
from gpa_lsp.code.binary.model import Instructions
from gpa_lsp.code.symbolic_accesses import machine_code
from gpa_lsp.code.symbolic_accesses.find import find_symbolic_accesses
from gpa_lsp.code.symbolic_accesses.machine_code import lift_machine_code
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccesses
from gpa_lsp.code.symbolic_accesses.statements import MachineBlock, slice_machine_code
from tests.conftest import ROOT

CUBINS = ROOT / "fixtures" / "cubins"
SM = 80


def read_code(path: Path) -> dict[str, Instructions]:
    cubin = read_cubin(path.read_bytes())
    return dict(disassemble(cubin, [name for name, one in cubin.functions.items() if one.is_entry]))


def follow(code: Instructions) -> SymbolicAccesses | None:
    lifted = lift_machine_code("k", code, lambda row: None, sm=SM)
    if lifted is None:
        return None
    module, sizes = lifted
    assert sum(sizes) == len(code)
    return find_symbolic_accesses(module, "k", shape=(32, 4, 1), sizes=sizes)


def keep_everything(code: Instructions) -> tuple[MachineBlock, ...]:
    """Every row that is executed, with all that it writes."""
    writes = code.writes.split()
    return tuple(
        MachineBlock(
            first=block.first,
            last=block.last,
            kept={
                row: sum(1 << number for number in writes[row] if number < 0x400)
                for row in range(block.first, block.last + 1)
                if not code.texts[row].startswith(("@!PT", "@!UPT"))
            },
        )
        for block in slice_machine_code(code)
    )


def describe(found: SymbolicAccesses | None) -> list[tuple[object, ...]] | None:
    if found is None:
        return None
    accesses = [
        (one.instruction.text, one.pattern, one.cost, one.most, one.ideal, one.least, one.stride, one.unknown)
        for one in found.accesses
    ]
    return [*accesses, *((one.instruction.text, one.division, one.lanes, one.sides) for one in found.branches)]


def test_rows_on_which_nothing_depends_are_left_out_and_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {
        (path.name, name): code
        for path in sorted(CUBINS.glob(f"sm_{SM}/*.cubin"))
        for name, code in read_code(path).items()
    }
    sliced = {name: describe(follow(code)) for name, code in codes.items()}
    kept = {name: sum(len(block.kept) for block in slice_machine_code(code)) for name, code in codes.items()}
    monkeypatch.setattr(machine_code, "slice_machine_code", keep_everything)
    for name, code in codes.items():
        assert describe(follow(code)) == sliced[name], name
    followed = [name for name, found in sliced.items() if found]
    assert len(followed) >= 30
    assert 2 * sum(kept[name] for name in followed) < sum(len(codes[name]) for name in followed)


def test_what_is_never_executed_is_left_out() -> None:
    """``@!PT LDS RZ, [RZ]``, which compilers write behind asynchronous copies."""
    (code,) = read_code(CUBINS / f"sm_{SM}" / "async_copy_improved.cubin").values()
    never = [row for row, text in enumerate(code.texts) if text.startswith("@!PT")]
    assert never
    assert not {row for block in slice_machine_code(code) for row in block.kept} & set(never)
    found = follow(code)
    assert found is not None and found.accesses
