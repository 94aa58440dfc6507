"""Symbolic requests, compared with the sectors that reports counted."""

import json
from collections import Counter
from math import prod
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import PtxFunction, Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.find import count_sectors, find_symbolic_accesses
from gpa_lsp.code.symbolic_accesses.forms import SymbolTable
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess
from gpa_lsp.diagnosis.advice.find_statics import find_static_findings
from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin, KnownBlock
from gpa_lsp.execution.launches.launch import LaunchDescription, ScalarArgument
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.read import read_profile
from tests.traces.test_wavefronts_in_reports import parse_own_ptx

LANES = 32
SLACK = 0.02  # Requests at the edge of an array may have fewer sectors


def count_small(table: SymbolTable, access: SymbolicAccess, launch: LaunchDescription, function: PtxFunction) -> float:
    """Sectors of a request whose cost is reached from a value on, with the launch's own value."""
    (unknown,) = access.unknown
    offsets = [one.offset_bytes for one in function.parameters]
    argument = launch.arguments[offsets.index(unknown.parameter)]
    assert isinstance(argument, ScalarArgument)
    addresses = np.zeros(table.threads, dtype=np.int64)
    for monomial, lanes in table.group(access.address).items():
        symbols = [table.symbols[number] for number in monomial]
        if [one.parameter for one in symbols] == [unknown.parameter]:
            addresses += lanes * int(argument.value)
        elif not monomial:
            addresses += lanes
    addresses -= addresses.min()
    return float(count_sectors(addresses.reshape(-1, 32), access.active.reshape(-1, 32), access.bytes_each).mean())


def hold(case: Path, reports: list[Path]) -> Counter[tuple[str, str]]:
    """Pattern and verdict → accesses of global memory whose executions had all threads of their warps."""
    truth = json.loads(case.read_text())
    report = next((folder / truth["report"] for folder in reports if (folder / truth["report"]).is_file()), None)
    if report is None:
        return Counter()
    kernels, _ = join_profile(read_profile(report))
    launch = read_launches(case.with_suffix(".launch.toml"))[0]
    kernel = next((one for one in kernels if one.mangled_name == truth["kernel"]), None)
    if kernel is None:
        return Counter()
    module = parse_own_ptx(kernel)
    found = find_symbolic_accesses(module, truth["kernel"], shape=launch.block)
    by_line = {one.instruction.text_line: one for one in found.accesses if one.space == Space.GLOBAL}
    verdicts: Counter[tuple[str, str]] = Counter()
    for row in truth["instructions"]:
        access = by_line.get(row.get("ptx_line"))
        sectors, executed = row.get("l2_sectors_global"), row.get("inst_executed")
        is_whole = executed and row.get("thread_inst_executed_true") == executed * LANES
        if access is None or not sectors or not is_whole or access.kind in (AccessKind.ATOMIC, AccessKind.REDUCTION):
            continue
        if access.cost is None or access.most is None:
            verdicts[access.pattern.value, "not told"] += 1
            continue
        measured = sectors / executed
        slack = SLACK * measured
        least = (
            access.cost
            if access.least is None
            else count_small(found.table, access, launch, module.functions[truth["kernel"]])
        )
        agrees = least - slack <= measured <= access.most + slack
        verdicts[access.pattern.value, "agrees" if agrees else "differs"] += 1
    return verdicts


def test_sectors_by_the_code_alone_are_the_counted_ones(corpus: Path) -> None:
    folder = corpus / "simulation"
    cases = sorted(folder.glob("*.json"))
    if not cases:
        pytest.skip("no measured launches are at hand")
    total: Counter[tuple[str, str]] = Counter()
    for case in cases:
        own = hold(case, [folder, corpus / "ncu"])
        print(case.stem, dict(own))
        total += own
    print(total)
    agreeing = sum(number for (_, verdict), number in total.items() if verdict == "agrees")
    differing = sum(number for (_, verdict), number in total.items() if verdict == "differs")
    assert agreeing >= 300
    assert differing == 0


def test_what_machine_code_alone_says_is_costly_was_counted_to_be(corpus: Path) -> None:
    """All reports that count sectors, kernels of Triton among them; rows that were not executed are unknown."""
    checks = {"uncoalesced-accesses": "global_sectors", "bank-conflicts": "shared_wavefronts"}
    told, followed = 0, set()
    for path in sorted(corpus.rglob("*.ncu-rep")):
        kernels, _ = join_profile(read_profile(path))
        for kernel in kernels:
            shape = None if kernel.longest_launch is None else kernel.longest_launch.block
            assert shape is not None
            block = KnownBlock(threads=prod(shape), origin=BlockOrigin.PROFILE, shape=shape)
            found = find_static_findings(kernel, blocks=[block], read_source=lambda file: "\n")
            if found.warps is not None and any(one.cost is not None for one in found.warps.found.accesses):
                followed.add(kernel.name)
            place = {
                (
                    kernel.rows.function_of(row).name,
                    int(kernel.rows.function_of(row).pc_offsets[kernel.rows.index_of(row)]),
                ): row
                for row in range(len(kernel.rows))
            }
            for one in found.findings:
                counter = checks.get(one.check)
                actual = None if counter is None else kernel.rows.counter(counter)
                ideal = None if counter is None else kernel.rows.counter(f"{counter}_ideal")
                rows = [place[instruction.function, instruction.pc_offset] for instruction in one.instructions]
                if actual is None or ideal is None or ideal[rows].sum() <= 0:
                    continue
                told += 1
                assert actual[rows].sum() > 1.15 * ideal[rows].sum(), (path.name, one.line, str(one.message))
    assert told >= 1
    assert any("silu_kernel" in name for name in followed)
