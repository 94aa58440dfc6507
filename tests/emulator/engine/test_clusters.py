"""Blocks of clusters: places, shared memory of each other, barriers, and what is wrong with their use."""

import numpy as np
import pytest

from gpa_lsp.execution.emulator.model import FaultKind, Sampling, SamplingKind, TraceSettings
from tests.emulator.engine.running import run_text, zeros

_SHARED = ".shared .align 4 .b8 held[8];\n"
_RANK = "mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0; xor.b32 %r3, %r1, 1; mov.u32 %r4, held;\n"
_FAR = "mapa.shared::cluster.u32 %r5, %r4, %r3;\n"
_SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
_KEEP = "mov.u32 %r20, %ctaid.x; mul.wide.u32 %d2, %r20, 4; add.u64 %d3, %d0, %d2;\n"


def _find_faults(body: str, *, grid: int = 4) -> list[tuple[FaultKind, str]]:
    emulation = run_text(_SHARED + _RANK + body, {"out": zeros(8)}, grid=grid, block=64, cluster=(2, 1, 1))
    return [(fault.kind, fault.message) for fault in emulation.faults]


def test_special_registers_tell_places_in_clusters_of_several_axes() -> None:
    names = (
        "clusterid.x", "clusterid.y", "cluster_ctaid.x", "cluster_ctaid.y", "cluster_ctarank", "nclusterid.x", "nclusterid.y", "cluster_nctaid.y",
        "cluster_nctarank",
    )  # fmt: skip
    stores = "".join(
        f"mov.u32 %r9, %{name}; st.global.u32 [%d3 + {4 * place}], %r9;\n" for place, name in enumerate(names)
    )
    linear = "mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mad.lo.u32 %r8, %r7, 6, %r6; mul.wide.u32 %d2, %r8, 36; add.u64 %d3, %d0, %d2;\n"
    emulation = run_text(linear + stores, {"out": zeros(24 * 9)}, grid=(6, 4, 1), cluster=(3, 2, 1))
    y, x = np.divmod(np.arange(24), 6)
    expected = np.stack(
        [x // 3, y // 2, x % 3, y % 2, x % 3 + 3 * (y % 2), *(0 * x + one for one in (2, 2, 2, 6))], axis=1
    )
    assert emulation.faults == ()
    assert emulation.arrays["out"].reshape(24, 9).tolist() == expected.tolist()


@pytest.mark.parametrize("cluster", [None, (1, 1, 1)])
def test_a_block_without_others_is_a_cluster(cluster: tuple[int, int, int] | None) -> None:
    body = f"""{_SHARED}{_RANK}{_SYNC}mapa.shared::cluster.u32 %r5, %r4, %r1; st.shared::cluster.u32 [%r5], 7; {_SYNC}
    ld.shared.u32 %r6, [%r4]; getctarank.shared::cluster.u32 %r7, %r5; mov.pred %p2, %is_explicit_cluster; selp.u32 %r8, 1, 0, %p2;
    mad.lo.u32 %r9, %r7, 100, %r6; st.global.u32 [%d0], %r9; st.global.u32 [%d0 + 4], %r8;"""
    emulation = run_text(body, {"out": zeros(2)}, cluster=cluster)
    assert emulation.arrays["out"].tolist() == [7, int(cluster is not None)]


def test_atomics_and_vectors_reach_other_blocks() -> None:
    body = f"""{_SHARED}{_RANK}@%p1 st.shared.v2.u32 [%r4], {{%r1, 40}}; {_SYNC}{_FAR}atom.shared::cluster.add.u32 %r6, [%r5 + 4], 1;
    {_SYNC}ld.shared::cluster.v2.u32 {{%r7, %r8}}, [%r5]; {_SYNC}mad.lo.u32 %r9, %r7, 1000, %r8; {_KEEP}st.global.u32 [%d3], %r9;"""
    emulation = run_text(body, {"out": zeros(4)}, grid=4, block=64, cluster=(2, 1, 1))
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [1104, 104, 1104, 104]


def test_windows_of_the_block_and_of_the_cluster_differ() -> None:
    body = f"""{_SHARED}{_RANK}cvta.shared.u64 %d4, %d5; mov.u64 %d5, held; cvta.shared.u64 %d4, %d5; mapa.u64 %d6, %d4, %r3; mapa.u64 %d7, %d4, %r1;
    isspacep.shared::cta %p2, %d6; isspacep.shared::cluster %p3, %d6; isspacep.shared %p4, %d7; selp.u32 %r6, 1, 0, %p2; selp.u32 %r7, 10, 0, %p3;
    selp.u32 %r8, 100, 0, %p4; add.u32 %r9, %r6, %r7; add.u32 %r9, %r9, %r8; getctarank.u64 %r10, %d6; getctarank.u64 %r11, %d4;
    mad.lo.u32 %r9, %r10, 1000, %r9; mad.lo.u32 %r9, %r11, 10000, %r9; {_KEEP}st.global.u32 [%d3], %r9;"""
    emulation = run_text(body, {"out": zeros(2)}, grid=2, cluster=(2, 1, 1))
    assert emulation.arrays["out"].tolist() == [1110, 10110]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{_FAR}@%p1 st.shared::cluster.u32 [%r5], 3; {_SYNC}", "block 0 of the cluster, whose shared memory this accesses, may not have started"),
        (f"{_SYNC}{_FAR}@%p1 st.shared::cluster.u32 [%r5], 3;", "block 0 of the cluster, whose shared memory this accesses, may have ended"),
        (
            f"{_SYNC}{_FAR}@%p1 st.shared::cluster.u32 [%r5], 3; bar.sync 0; ld.shared.u32 %r6, [%r4]; {_SYNC}",
            "thread 0 reads what thread 0 of block 1 of the cluster accessed before, with no barrier of the cluster between",
        ),
    ],
)  # fmt: skip
def test_accesses_of_other_blocks_need_barriers_of_the_cluster(body: str, message: str) -> None:
    assert [(kind, found.partition(": no")[0]) for kind, found in _find_faults(body)] == [
        (FaultKind.CLUSTER_RACE, message)
    ]


def test_a_barrier_of_the_block_parts_accesses_of_its_own() -> None:
    own = f"@%p1 st.shared.u32 [%r4], 1; bar.sync 0; ld.shared.u32 %r6, [%r4]; bar.sync 0; @%p1 st.shared.u32 [%r4], 2; {_SYNC}"
    assert _find_faults(f"{own}{_FAR}ld.shared::cluster.u32 %r7, [%r5]; {_SYNC}@%p1 st.shared.u32 [%r4], 3;") == []
    read = f"{own}{_FAR}ld.shared::cluster.u32 %r7, [%r5]; bar.sync 0; ld.shared.u32 %r6, [%r4]; bar.sync 0; @%p1 st.shared.u32 [%r4], 3; {_SYNC}"
    assert [kind for kind, _ in _find_faults(read)] == [FaultKind.CLUSTER_RACE]


def test_words_of_other_blocks_that_were_never_written_are_found() -> None:
    assert [kind for kind, _ in _find_faults(f"{_SYNC}{_FAR}ld.shared::cluster.u32 %r6, [%r5]; {_SYNC}")] == [
        FaultKind.UNINITIALISED
    ]


@pytest.mark.parametrize(
    ("access", "message"),
    [
        ("[%r5 + 8]", "store of 4 bytes at byte 8 of block 0 of the cluster: its shared memory has 8 bytes"),
        ("[%r5 + 2]", "store of 4 bytes at byte 2 of block 0 of the cluster: not a multiple of 4"),
        ("[%r5 + 0x3000004]", "store of 4 bytes at byte 4 of block 3 of the cluster: it has 2 blocks"),
    ],
)
def test_addresses_beyond_the_memory_of_other_blocks_are_named(access: str, message: str) -> None:
    assert [
        found
        for _, found in _find_faults(
            f"{_SYNC}{_FAR}setp.eq.u32 %p2, %r1, 1; @%p2 st.shared::cluster.u32 {access}, 3; {_SYNC}"
        )
    ] == [message]


def test_memory_of_blocks_that_have_exited_is_gone() -> None:
    body = f"{_SHARED}{_RANK}setp.eq.u32 %p2, %r1, 0; {_SYNC}@!%p2 ret; bar.sync 0; {_FAR}@%p1 st.shared::cluster.u32 [%r5], 1;"
    emulation = run_text(body, {"out": zeros(2)}, grid=2, block=64, cluster=(2, 1, 1), check_races=False)
    (fault,) = emulation.faults
    assert fault.message == "store of 4 bytes at byte 0 of block 1 of the cluster: that block has exited"


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("barrier.cluster.wait;", FaultKind.CLUSTER_BARRIER, "a thread waits at the barrier of its cluster without having arrived"),
        (f"barrier.cluster.arrive; {_SYNC}", FaultKind.CLUSTER_BARRIER, "a thread arrives twice without waiting"),
        (
            "setp.gt.u32 %p2, %r1, 0; setp.gt.u32 %p3, %r2, 31; and.pred %p2, %p2, %p3; @!%p2 barrier.cluster.arrive; barrier.cluster.wait;",
            FaultKind.DEADLOCK, "32 of 128 threads of the cluster never arrive at its barrier",
        ),
    ],
)  # fmt: skip
def test_misuse_of_the_barrier_is_named(body: str, kind: FaultKind, message: str) -> None:
    assert (kind, message) in _find_faults(body)


def test_threads_that_exited_are_not_waited_for() -> None:
    assert _find_faults(f"setp.gt.u32 %p2, %r2, 40; @%p2 ret; {_SYNC}") == []
    assert _find_faults(f"setp.gt.u32 %p2, %r1, 0; @%p2 ret; {_SYNC}") == []


@pytest.mark.parametrize(
    ("grid", "cluster", "message"),
    [
        ((6, 3, 1), (2, 2, 1), "the grid has 3 in y, which is no multiple of the 2 of a cluster"),
        ((32, 1, 1), (32, 1, 1), "a cluster has 32 x 1 x 1 blocks; it must have 1 to 16"),
    ],
)
def test_launches_with_clusters_that_no_gpu_has_are_refused(
    grid: tuple[int, int, int], cluster: tuple[int, int, int], message: str
) -> None:
    emulation = run_text("", {"out": zeros(1)}, grid=grid, cluster=cluster)
    assert [(fault.kind, fault.message) for fault in emulation.faults] == [(FaultKind.BAD_LAUNCH, message)]


@pytest.mark.parametrize("blocks", [(5,), (0, 13)])
def test_whole_clusters_are_sampled(blocks: tuple[int, ...]) -> None:
    linear = "mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mad.lo.u32 %r8, %r7, 4, %r6; mul.wide.u32 %d2, %r8, 4; add.u64 %d3, %d0, %d2;"
    body = f"{_SHARED}{_RANK}{_SYNC}{linear} st.global.u32 [%d3], 1;"
    emulation = run_text(
        body,
        {"out": zeros(16)},
        grid=(4, 4, 1),
        cluster=(2, 2, 1),
        sampling=Sampling(kind=SamplingKind.CHOSEN, blocks=blocks),
        trace=TraceSettings(),
    )
    expected = sorted(
        {part + other for one in blocks for part in (0, 1, 4, 5) for other in ((one // 8) * 8 + one % 4 // 2 * 2,)}
    )
    assert emulation.executed_blocks.tolist() == expected == np.flatnonzero(emulation.arrays["out"]).tolist()
    assert emulation.trace is not None
    assert emulation.trace.traced_blocks.tolist() == expected
