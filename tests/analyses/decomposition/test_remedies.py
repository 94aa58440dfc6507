"""Every suggestion can be reached: for each there is a kernel that gets it."""

import pytest

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import (
    KIND_REMEDIES,
    LEG_REMEDIES,
    LEVEL_REMEDIES,
    NOT_BUSY_REMEDY,
)
from gpa_lsp.diagnosis.analyses.decomposition.reason_notes import SOURCE_REMEDIES
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import MEMORY_UNITS, name_use
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import WARP_STATES
from gpa_lsp.diagnosis.analyses.questions import memory_latency, stall_sources, top_down
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind
from tests.analyses.decomposition.written_facts import write_facts

PRODUCERS = {
    InstructionKind.GLOBAL_LOAD: "LDG.E R4, [R2.64]",
    InstructionKind.LOCAL_LOAD: "LDL R4, [R2]",
    InstructionKind.GLOBAL_ATOMIC: "ATOMG.E.ADD R4, [R2.64], R6",
    InstructionKind.ASYNC_COPY: "LDGSTS.E [R8], [R2.64]",
    InstructionKind.BULK_COPY: "UBLKCP [UR4], [UR6], UR8",
    InstructionKind.TEXTURE: "TEX.B R4, R4, R6, 0x0, 0x0, 2D",
    InstructionKind.SURFACE: "SULD.D.BA.2D R4, [R2], UR4",
    InstructionKind.CONSTANT_LOAD: "LDC R4, c[0x0][R6]",
    InstructionKind.SHARED_LOAD: "LDS R4, [R9]",
    InstructionKind.SHARED_STORE: "STS [R9], R4",
    InstructionKind.SHARED_ATOMIC: "ATOMS.ADD R4, [R9], R6",
    InstructionKind.MATRIX_LOAD: "LDSM.16.M88.4 R4, [R9]",
    InstructionKind.SPECIAL_FUNCTION: "MUFU.RCP R4, R6",
    InstructionKind.CONVERSION: "F2I R4, R6",
    InstructionKind.SHUFFLE: "SHFL.IDX PT, R4, R6, R7, 0x1f",
    InstructionKind.WARP_OPERATION: "MATCH.ANY R4, R6",
    InstructionKind.SPECIAL_REGISTER: "S2R R4, SR_TID.X",
    InstructionKind.BIT_COUNT: "POPC R4, R6",
    InstructionKind.DIVISION_CHECK: "FCHK P0, R6, R7",
    InstructionKind.FP64: "DADD R4, R6, R8",
    InstructionKind.TENSOR: "HMMA.16816.F32 R4, R6, R8, R4",
    InstructionKind.INTEGER: "IADD3 R4, R6, R6, RZ",
    InstructionKind.MULTIPLY_ADD: "FFMA R4, R6, R6, R6",
    InstructionKind.FP16: "HADD2 R4, R6, R6",
    InstructionKind.UNIFORM: "UIADD3 UR4, UR5, UR6, URZ",
    InstructionKind.LOCAL_STORE: "STL [R2], R4",
    InstructionKind.GLOBAL_STORE: "STG.E [R2.64], R4",
    InstructionKind.GLOBAL_REDUCTION: "RED.E.ADD [R2.64], R4",
    InstructionKind.BLOCK_BARRIER: "BAR.SYNC 0x0",
    InstructionKind.BRANCH: "BRA `(.L)",
    InstructionKind.INDIRECT_BRANCH: "BRX R4 -0x10",
    InstructionKind.CALL: "CALL.REL.NOINC `(.L)",
    InstructionKind.RECONVERGENCE: "BSYNC B0",
    InstructionKind.EXIT: "@P0 EXIT",
}
SCOREBOARDS = ("long_scoreboard", "short_scoreboard")
WAITERS = ("math_pipe_throttle", "mio_throttle", "lg_throttle", "tex_throttle", "dispatch_stall")
PLAIN_KIND = {
    "long_scoreboard": InstructionKind.GLOBAL_LOAD,
    "short_scoreboard": InstructionKind.DIVISION_CHECK,
    "wait": InstructionKind.INTEGER,
    "math_pipe_throttle": InstructionKind.UNIFORM,
    "mio_throttle": InstructionKind.BLOCK_BARRIER,
    "lg_throttle": InstructionKind.GLOBAL_REDUCTION,
    "tex_throttle": InstructionKind.TEXTURE,
    "branch_resolving": InstructionKind.BRANCH,
    "misc": InstructionKind.BRANCH,
}
"""Kinds without words of their own, so that the reason's are given."""


def write_stall(reason, kind):
    """A kernel with one stall reason, caused by an instruction of a kind."""
    code = PRODUCERS[kind]
    if reason in WAITERS:
        return f"    B-:R-:W-:-:S02  {code}  # k.cu:4 | {reason}=100"
    if reason in SCOREBOARDS:
        barriers = "R0:W-" if kind is InstructionKind.SHARED_STORE else "R-:W0"
        return f"    B-:{barriers}:-:S02  {code}  # k.cu:4\n    B0:R-:W-:-:S02  MOV R4, R10  # k.cu:5 | {reason}=100"
    return f"    B-:R-:W-:-:S09  {code}  # k.cu:4\n.L:\n    B-:R-:W-:-:S02  FADD R5, R4, R4  # k.cu:5 | {reason}=100"


def list_remedies(answer: Answer) -> list[str]:
    return [finding.remedy for finding in answer.findings]


@pytest.mark.parametrize(("reason", "kind"), SOURCE_REMEDIES, ids=lambda one: str(getattr(one, "name", one)))
def test_every_kind_behind_a_reason_gets_its_own_words(reason, kind):
    facts = write_facts(write_stall(reason, kind))
    assert list_remedies(stall_sources.ANALYSIS.ask(facts)) == [SOURCE_REMEDIES[reason, kind]]
    assert list_remedies(top_down.ANALYSIS.ask(facts)) == [SOURCE_REMEDIES[reason, kind]]


@pytest.mark.parametrize("reason", [name for name, state in WARP_STATES.items() if state.is_stall])
def test_every_reason_gets_its_words(reason):
    facts = write_facts(write_stall(reason, PLAIN_KIND.get(reason, InstructionKind.INTEGER)))
    assert list_remedies(stall_sources.ANALYSIS.ask(facts)) == [WARP_STATES[reason].remedy]
    (finding,) = top_down.ANALYSIS.ask(facts).findings
    assert finding.remedy == WARP_STATES[reason].remedy
    assert finding.share_ratio == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KIND_REMEDIES, ids=lambda kind: kind.name)
def test_every_kind_of_load_gets_its_words(kind):
    remedies = list_remedies(memory_latency.ANALYSIS.ask(write_facts(write_stall("long_scoreboard", kind))))
    assert KIND_REMEDIES[kind] in remedies


LD = "pipe_lsu_mem_global_op_ld"


def write_loads(*, samples, hit, dram=0.0, fabric=None, sectors=4.0, metrics=()):
    """A kernel of 1,000 loads; a sample stands for 10 warp-cycles, so that they wait ``samples / 100`` cycles each."""
    counted = {
        f"l1tex__t_requests_{LD}.sum": 1000.0,
        f"l1tex__t_sectors_{LD}.sum": 1000.0 * sectors,
        f"l1tex__t_sectors_{LD}_lookup_hit.sum": 1000.0 * sectors * hit,
        "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum": 0.0 if fabric else 1000.0 - dram,
        "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum": 1000.0 if fabric else dram,
        **dict(metrics),
    }
    if fabric:
        counted |= {
            "lts__t_sectors_srcunit_ltcfabric.sum": fabric,
            "lts__t_sectors_srcunit_tex_op_read.sum": 1000.0,
            "dram__sectors_read.sum": 0.0,
        }
    text = f"""
        B-:R-:W2:-:S02  LDG.E R4, [R2.64]     # k.cu:4 | selected=100 | x=1000
        B2:R-:W-:-:S02  FADD R5, R4, R4       # k.cu:6 | long_scoreboard={samples} selected=100 | x=1000
    """
    return write_facts(text, counted, compute_capability=(8, 0))


@pytest.mark.parametrize(
    ("leg", "loads"),
    [
        ("L1", {"samples": 3400, "hit": 1.0}),
        ("L1 to L2", {"samples": 20000, "hit": 0.0}),
        ("L2 to DRAM", {"samples": 50000, "hit": 0.0, "dram": 1000.0}),
        ("to the far partition of L2", {"samples": 30000, "hit": 0.0, "fabric": 1000.0}),
        ("several lines per request", {"samples": 9000, "hit": 1.0, "sectors": 128.0}),
        ("queueing", {"samples": 90000, "hit": 1.0}),
    ],
)
def test_every_leg_gets_its_words(leg, loads):
    remedies = list_remedies(memory_latency.ANALYSIS.ask(write_loads(**loads)))
    if leg == "to the far partition of L2":  # 166 of 377 cycles: L1 to L2 takes 175
        assert LEG_REMEDIES["L1 to L2"] in remedies
        nodes = [row[6] for row in top_down.ANALYSIS.ask(write_loads(**loads)).tables[0].rows if row[1] == leg]
        assert nodes == [LEG_REMEDIES[leg]]
    else:
        assert LEG_REMEDIES[leg] in remedies


def test_operands_get_their_words():
    both = write_facts(
        """
        B-:R-:W2:-:S02  LDG.E R4, [R2.64]     # k.cu:4 | selected=100 | x=1000
        B2:R0:W-:-:S02  STG.E [R2.64], R4     # k.cu:6 | long_scoreboard=2000 selected=100 | x=1000
        B0:R-:W-:-:S02  MOV R4, R6            # k.cu:6 | long_scoreboard=2000 selected=100 | x=1000
        """,
        {f"l1tex__t_requests_{LD}.sum": 1000.0, f"l1tex__t_sector_{LD}_hit_rate.pct": 100.0},
    )
    assert LEG_REMEDIES["operands not yet read"] in list_remedies(memory_latency.ANALYSIS.ask(both))


@pytest.mark.parametrize("unit", MEMORY_UNITS, ids=lambda unit: f"{unit[0]} {unit[1]}")
def test_queueing_is_set_down_to_the_busiest_unit(unit):
    busy = write_loads(samples=90000, hit=1.0, metrics=[(name_use(unit), 90.0)])
    answer = memory_latency.ANALYSIS.ask(busy)
    assert LEVEL_REMEDIES[unit[0]] in list_remedies(answer)
    assert f"at {unit[0]} ({unit[1]}, 90 % of its peak)" in answer.summary
    idle = write_loads(samples=90000, hit=1.0, metrics=[(name_use(unit), 20.0)])
    assert NOT_BUSY_REMEDY in list_remedies(memory_latency.ANALYSIS.ask(idle))
