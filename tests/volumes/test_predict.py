"""Predictions beyond the published ones: other kernels, other devices, limits, bad launches, and what the answer says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.diagnosis.analyses.answers import Weight
from gpa_lsp.execution.volumes.answer import answer_volumes
from gpa_lsp.execution.volumes.devices import find_device, find_paper_device
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    KernelAccesses,
    LaunchShape,
    LoopTerm,
    cover_updates,
    fold_accesses,
)
from gpa_lsp.execution.volumes.model import Limiter, VolumeMode, VolumePrediction
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.foundation.errors import InputError
from tests.conftest import examples
from tests.volumes.written_kernels import find_bound, write_star

_A100 = find_device("A100 SXM4 40GB")


def write_copy(width: int = 8, kind: AccessKind = AccessKind.STORE) -> KernelAccesses:
    """``b[i] = a[i]``, or an atomic on b."""
    steps = (width, 0, 0)
    load = AccessExpression(array=0, kind=AccessKind.LOAD, element_bytes=width, constant_bytes=0, global_bytes=steps)
    store = AccessExpression(array=1, kind=kind, element_bytes=width, constant_bytes=0, global_bytes=steps)
    arrays = (AccessedArray(name="a"), AccessedArray(name="b"))
    return KernelAccesses(name="copy", arrays=arrays, accesses=(load, store))


def write_product(n: int, tile: int = 16) -> KernelAccesses:
    """The tiled product of two matrices of floats: loads of two tiles in a loop, one store."""
    trips = n // tile
    first = AccessExpression(
        array=0, kind=AccessKind.LOAD, element_bytes=4, constant_bytes=0, global_bytes=(0, 4 * n, 0), thread_bytes=(4, 0, 0),
        loops=(LoopTerm(step_bytes=4 * tile, trips=trips),),
    )  # fmt: skip
    second = replace(
        first, array=1, global_bytes=(4, 0, 0), thread_bytes=(0, 4 * n, 0),
        loops=(LoopTerm(step_bytes=4 * n * tile, trips=trips),),
    )  # fmt: skip
    store = AccessExpression(
        array=2, kind=AccessKind.STORE, element_bytes=4, constant_bytes=0, global_bytes=(4, 4 * n, 0)
    )
    return KernelAccesses(
        name="product",
        arrays=tuple(AccessedArray(name=name, size_bytes=4 * n * n) for name in "abc"),
        accesses=(first, second, store),
        flops_per_thread=2.0 * n,
        flops_are_double=False,
    )


def predict(kernel: KernelAccesses, launch: LaunchShape, **options: object) -> VolumePrediction:
    return predict_volumes(kernel, launch, _A100, registers=32, **options)  # type: ignore[arg-type]


def test_copy_moves_what_it_names() -> None:
    launch = cover_updates((1 << 24, 1, 1), (256, 1, 1))
    found = predict(write_copy(), launch)
    volumes = found.volumes
    assert (volumes.l1_load, volumes.l2_load, volumes.l2_store) == pytest.approx((8.0, 8.0, 8.0))
    assert (volumes.dram_load, volumes.dram_store) == pytest.approx((8.0, 8.0))
    assert found.limiter is Limiter.DRAM
    assert found.bounds[0].updates_per_s == pytest.approx(1400e9 / 16)
    assert found.scale_to_launch(volumes.dram_load) == 8 << 24
    assert found.duration_ns == pytest.approx((1 << 24) / found.updates_per_s * 1e9)


def test_atomics_pass_l1_by_and_are_read_from_dram() -> None:
    launch = cover_updates((1 << 24, 1, 1), (256, 1, 1))
    volumes = predict(write_copy(kind=AccessKind.REDUCTION), launch).volumes
    assert (volumes.l2_load, volumes.l2_store) == pytest.approx((8.0, 8.0))
    assert (volumes.dram_load, volumes.dram_store) == pytest.approx((16.0, 8.0))


def test_only_the_corrected_model_looks_at_cache_operators() -> None:
    kernel = write_star(1, (640, 512, 100))
    launch = cover_updates((632, 504, 98), (32, 4, 4))
    loads = [replace(access, bypasses_l1=not access.is_store) for access in kernel.accesses]
    bypassing = replace(kernel, accesses=tuple(loads))
    kept, passed = (predict(one, launch) for one in (kernel, bypassing))
    assert passed.volumes.l2_load == passed.volumes.l1_load == pytest.approx(kept.volumes.l1_load)
    assert passed.volumes.l2_load > 2 * kept.volumes.l2_load
    assert passed.volumes.dram_load == kept.volumes.dram_load
    assert (passed.l1_oversubscription, passed.reuse) == (0.0, kept.reuse)
    rows = [[row[1] for row in answer_volumes(one, kernel).tables[0].rows] for one in (kept, passed)]
    assert ["loads that L1 does not keep" in row for row in rows] == [False, True]
    device = find_paper_device("A100")
    paper = [
        predict_volumes(one, launch, device, registers=32, mode=VolumeMode.PAPER).counts for one in (kernel, bypassing)
    ]
    assert paper[0] == paper[1]


def test_tiled_product() -> None:
    """Each block loads 2·16 rows and columns of n floats for 256 results; L2 hands them out, DRAM each matrix about once per wave."""
    n = 4096
    launch = cover_updates((n, n, 1), (16, 16, 1))
    found = predict(write_product(n), launch)
    assert found.volumes.l2_load_compulsory == pytest.approx(2 * 16 * n * 4 / 256)
    # n / 16 trips of two loads, each of 4 bytes in whole sectors.
    assert found.volumes.l1_load == pytest.approx(2 * 4 * n / 16)
    # Blocks run in step, a wave at a time: 3.375 rows of them read all of b once, and nothing of it is left for the next wave; a is read once.
    assert found.wave.blocks / 256 == 3.375
    assert found.volumes.dram_load_footprint == found.volumes.l2_load_compulsory
    assert found.volumes.dram_load == pytest.approx(2 * n * 4 / 8 / 3.375 / 4 + 4, rel=0.02)
    assert found.volumes.dram_store == pytest.approx(4.0)
    assert find_bound(found, Limiter.FLOPS) is not None


def test_long_loops_are_bounded_and_exact() -> None:
    """A loop of a million iterations is never enumerated."""
    n = 1 << 20
    access = AccessExpression(
        array=0, kind=AccessKind.LOAD, element_bytes=8, constant_bytes=0, global_bytes=(8 * n, 0, 0),
        loops=(LoopTerm(step_bytes=8, trips=n),),
    )  # fmt: skip
    kernel = KernelAccesses(name="rows", arrays=(AccessedArray(name="a"),), accesses=(access,))
    found = predict(kernel, cover_updates((4096, 1, 1), (128, 1, 1)))
    assert found.volumes.l2_load_compulsory == pytest.approx(8.0 * n)
    assert found.volumes.dram_load == pytest.approx(8.0 * n)
    # Every lane has a line of its own: 32 sectors for each warp's load.
    assert found.volumes.l1_load == pytest.approx(32.0 * n)


def write_sum(*loops: LoopTerm) -> KernelAccesses:
    """Each thread adds up a column of a matrix of float, its sum in memory all the while."""
    column = AccessExpression(
        array=0, kind=AccessKind.LOAD, element_bytes=4, constant_bytes=0, global_bytes=(4, 0, 0),
        loops=tuple(LoopTerm(step_bytes=4 << 20, trips=loop.trips) for loop in loops),
    )  # fmt: skip
    total = AccessExpression(
        array=1, kind=AccessKind.STORE, element_bytes=4, constant_bytes=0, global_bytes=(4, 0, 0), loops=loops
    )
    arrays = (AccessedArray(name="a"), AccessedArray(name="sums"))
    return KernelAccesses(name="sum", arrays=arrays, accesses=(column, total))


def test_a_sum_kept_in_memory_reaches_dram_once() -> None:
    launch = cover_updates((1 << 20, 1, 1), (256, 1, 1))
    volumes = predict(write_sum(LoopTerm(step_bytes=0, trips=100)), launch).volumes
    assert volumes.l2_store == pytest.approx(400.0)
    assert (volumes.dram_load, volumes.dram_store) == pytest.approx((400.0, 4.0), rel=1e-3)
    published = predict(write_sum(LoopTerm(step_bytes=0, trips=100)), launch, mode=VolumeMode.PAPER).volumes
    assert published.dram_store > 10 * volumes.dram_store


def test_what_is_written_again_after_more_than_l2_holds_is_stored_again() -> None:
    """Ten passes over an array of a gibibyte, and of one that stays in L2."""
    for size, stored in ((1 << 28, 40.0), (1 << 17, 4.0)):
        passes = (LoopTerm(step_bytes=size // 64 * 4, trips=64), LoopTerm(step_bytes=0, trips=10))
        store = AccessExpression(
            array=0, kind=AccessKind.STORE, element_bytes=4, constant_bytes=0, global_bytes=(4, 0, 0), loops=passes
        )
        kernel = KernelAccesses(name="passes", arrays=(AccessedArray(name="a"),), accesses=(store,))
        found = predict(kernel, cover_updates((size // 64, 1, 1), (256, 1, 1)))
        assert found.volumes.dram_store / 64 == pytest.approx(stored, rel=1e-3), size
        answer = answer_volumes(found, kernel)
        rows = [row[1] for row in answer.tables[0].rows]
        assert ("stores: sectors written again later" in rows) is (stored > 4.0)
        assert any("are stored again: threads" in str(one.text) for one in answer.findings) is (stored > 4.0)


def test_what_a_block_writes_in_parts_is_put_together_in_l2() -> None:
    """Eight stores of a thread fill a sector: a T4 wrote 4.42 MB where L1 had sent 32 MB for an array of 4 MB."""
    stores = tuple(
        AccessExpression(
            array=0, kind=AccessKind.STORE, element_bytes=4, constant_bytes=4 * part, global_bytes=(32, 0, 0)
        )
        for part in range(8)
    )
    kernel = KernelAccesses(name="parts", arrays=(AccessedArray(name="c"),), accesses=stores)
    volumes = predict_volumes(
        kernel, cover_updates((125_000, 1, 1), (256, 1, 1)), find_device("T4"), registers=18
    ).volumes
    assert volumes.l2_store == pytest.approx(8 * 32.0)
    assert (volumes.dram_load, volumes.dram_store) == pytest.approx((0.0, 32.0), abs=1e-3)


@pytest.mark.parametrize(("device", "read"), [("V100 PCIe", 1.5), ("RTX 5090", 1.0)])
def test_lone_sectors_bring_their_neighbours(device: str, read: float) -> None:
    """The halo of rows of 9,196 doubles: a V100 reads 1.50 times the sectors, since of every second row both lie in 64 bytes."""
    pitch, rows = 9196 * 8, 16_384
    loads = tuple(
        AccessExpression(
            array=0, kind=AccessKind.LOAD, element_bytes=8, constant_bytes=8 * place, global_bytes=(pitch, 0, 0)
        )
        for place in (2, 3, 9192, 9193)
    )
    kernel = KernelAccesses(name="halo", arrays=(AccessedArray(name="state"),), accesses=loads)
    found = predict_volumes(kernel, cover_updates((rows, 1, 1), (128, 1, 1)), find_device(device), registers=16)
    assert found.volumes.dram_load == pytest.approx(2 * 32 * read, rel=1e-3)
    assert not found.contradictions
    told = [str(one.text) for one in answer_volumes(found, kernel).findings]
    assert any("come along and are not used" in text for text in told) is (read > 1)


@pytest.mark.parametrize(
    ("launch", "least", "most"),
    [
        (LaunchShape(block=(128, 1, 1), grid=(1024, 1, 1), updates=(64 * 1024, 1, 1)), 0.99, 1.01),
        (LaunchShape(block=(128, 1, 2), grid=(1024, 1, 1), updates=(128 * 1024, 1, 1)), 1.5, 2.01),
    ],
    ids=["half of the blocks", "half of each block"],
)
def test_threads_without_work_cost_no_volume_but_the_cycles_of_blocks_with_work(
    launch: LaunchShape, least: float, most: float
) -> None:
    whole = predict(write_copy(), cover_updates((96 * 1024, 1, 1), (128, 1, 1)))
    cut = predict(write_copy(), launch)
    assert cut.volumes.l2_load == pytest.approx(whole.volumes.l2_load)
    l1 = [find_bound(found, Limiter.L1) for found in (whole, cut)]
    assert l1[0] is not None and l1[1] is not None
    assert least < l1[1].load / l1[0].load < most


def test_sms_that_no_block_is_left_for_do_nothing() -> None:
    """An SM takes 64 bytes from L2 in a cycle, however idle the others are; the published model looks at no launch that is too small."""
    few, many = (predict(write_copy(), cover_updates((blocks * 128, 1, 1), (128, 1, 1))) for blocks in (2, 4096))
    l1, l2 = ([find_bound(found, one) for found in (few, many)] for one in (Limiter.L1, Limiter.L2))
    assert l1[0] and l1[1] and l2[0] and l2[1]
    sms = few.device.sm_count
    assert l1[0].updates_per_s == pytest.approx(l1[1].updates_per_s * 2 / sms)
    read = few.volumes.l2_load
    assert l2[0].updates_per_s == pytest.approx(2 * 64 * few.device.sm_hz / max(read, few.volumes.l2_store))
    assert any("hardly hidden" in note for note in few.notes) and not any("hardly" in note for note in many.notes)


def test_shared_memory_limits_blocks_in_the_corrected_model_only() -> None:
    launch = cover_updates((1 << 24, 1, 1), (128, 1, 1))
    assert predict(write_copy(), launch, shared_bytes=80 << 10).blocks_per_sm == 2
    paper = predict_volumes(
        write_copy(), launch, find_paper_device("A100"), registers=32, shared_bytes=80 << 10, mode=VolumeMode.PAPER
    )
    assert paper.blocks_per_sm == 16


def test_layer_conditions_turn_with_the_plane() -> None:
    """Section 5.7: with larger planes, reuse from the layer before is lost; nine layers are spanned."""
    held = []
    for side in (200, 400, 800, 1600):
        kernel = write_star(4, (side + 8, side + 8, 200))
        found = predict(kernel, cover_updates((side, side, 192), (64, 16, 1)))
        layers = found.reuse[1]
        assert (layers.axis, layers.layers_needed) == ("z", 9)
        assert layers.transition_updates == pytest.approx(side / layers.oversubscription**0.5)
        held.append(layers.holds)
        if not layers.holds:
            assert found.volumes.dram_load > 40
    assert held == [True, True, False, False]


def test_folded_kernels_span_more_rows() -> None:
    kernel = fold_accesses(write_star(4, (640, 512, 1000)), (1, 2, 1))
    found = predict(kernel, cover_updates((632, 504, 992), (32, 4, 8), (1, 2, 1)))
    assert (found.reuse[0].layers_needed, found.reuse[1].layers_needed) == (10, 9)
    assert found.scale_to_thread(found.volumes.dram_store) == pytest.approx(16.0)


def test_answer_says_predicted_limiter_and_conditions() -> None:
    kernel = write_star(4, (640, 512, 1000))
    launch = cover_updates((632, 504, 992), (32, 32, 1))
    found = predict_volumes(kernel, launch, find_device("V100 PCIe"), registers=32)
    answer = answer_volumes(found, kernel)
    assert "predicted" in answer.title
    assert answer.summary.startswith("Predicted for the V100 PCIe: limited by DRAM")
    assert answer.bars[0].ratio == pytest.approx(found.updates_per_s / found.bounds[0].updates_per_s)
    assert [bar.ratio for bar in answer.bars] == sorted((bar.ratio for bar in answer.bars), reverse=True)
    assert any(f.weight is Weight.HIGH and "layer condition along z fails" in f.text for f in answer.findings)
    assert all(len(row) == len(table.columns) for table in answer.tables for row in table.rows)
    moved = sum(float(row[2] or 0) for row in answer.tables[0].rows if row[0] == "DRAM → L2")
    assert moved == pytest.approx(found.volumes.dram_load)


def test_launches_that_do_not_fill_the_gpu_are_said_to_take_longer() -> None:
    kernel = write_copy()
    small, large = (predict(kernel, cover_updates((count, 1, 1), (128, 1, 1))) for count in (128, 1 << 24))
    assert any("has 1 of the" in note and "takes longer than predicted" in note for note in small.notes)
    assert not any("takes longer than predicted" in note for note in large.notes)
    answer = answer_volumes(small, kernel)
    assert " at least " in answer.summary
    assert not any("layer condition" in finding.text for finding in answer.findings)


def test_answer_without_global_memory() -> None:
    kernel = KernelAccesses(name="empty", arrays=(), accesses=())
    found = predict(kernel, cover_updates((1024, 1, 1), (128, 1, 1)))
    assert answer_volumes(found, kernel).is_known == bool(found.bounds)
    assert found.volumes.dram_load == 0.0


@pytest.mark.parametrize(
    ("launch", "registers", "shared_bytes", "message"),
    [
        (LaunchShape(block=(0, 1, 1), grid=(1, 1, 1), updates=(1, 1, 1)), 32, 0, "block"),
        (LaunchShape(block=(1, 1, 1), grid=(1, 0, 1), updates=(1, 1, 1)), 32, 0, "grid"),
        (LaunchShape(block=(1024, 2, 1), grid=(1, 1, 1), updates=(1, 1, 1)), 32, 0, "2,048 threads"),
        (LaunchShape(block=(32, 1, 1), grid=(1 << 31, 1, 1), updates=(1, 1, 1)), 32, 0, "grid"),
        (cover_updates((1024, 1, 1), (1024, 1, 1)), 255, 0, "can hold a block"),
        (cover_updates((1024, 1, 1), (64, 1, 1)), 32, 1 << 20, "can hold a block"),
        (cover_updates((1024, 1, 1), (64, 1, 1)), -1, 0, "registers"),
    ],
)
@pytest.mark.parametrize("mode", list(VolumeMode))
def test_impossible_launches_are_errors(
    launch: LaunchShape, registers: int, shared_bytes: int, message: str, mode: VolumeMode
) -> None:
    if mode is VolumeMode.PAPER and shared_bytes:
        pytest.skip("the published model does not look at shared memory")
    with pytest.raises(InputError, match=message):
        predict_volumes(write_copy(), launch, _A100, registers=registers, shared_bytes=shared_bytes, mode=mode)


def test_addresses_beyond_any_memory_are_an_error() -> None:
    kernel = write_copy()
    wild = replace(kernel, accesses=(replace(kernel.accesses[0], global_bytes=(1 << 45, 0, 0)),))
    with pytest.raises(InputError, match=r"spans .* TiB"):
        predict(wild, cover_updates((1 << 24, 1, 1), (256, 1, 1)))


def test_unknown_devices_are_errors_that_list_the_known() -> None:
    with pytest.raises(InputError, match="A100"):
        find_device("A1000 SXM9")
    with pytest.raises(InputError, match="V100, A100"):
        find_paper_device("H100")


@pytest.mark.parametrize(
    "name", ["V100 PCIe", "A100 SXM4 80GB", "H100 SXM5", "GH200 96GB", "H200", "A40", "L40", "RTX 3090", "RTX 4090"]
)
def test_devices(name: str) -> None:
    device = find_device(name)
    assert 1e11 < device.dram_bytes_per_s < device.l2_bytes_per_s < 2e13
    assert device.fp32_flops_per_s is not None and device.fp32_flops_per_s > 1e13
    assert device.source


@examples(40)
@given(
    st.tuples(*[st.sampled_from([1, 2, 4, 8, 16, 32])] * 2, st.sampled_from([1, 2, 4])),
    st.tuples(st.integers(1, 700), st.integers(1, 300), st.integers(1, 64)),
    st.sampled_from([(1, 1, 1), (1, 2, 1), (2, 1, 2)]),
)
def test_volumes_are_ordered(
    block: tuple[int, int, int], updates: tuple[int, int, int], fold: tuple[int, int, int]
) -> None:
    """Levels nearer to the threads move at least as much as what is compulsory below them, and nothing is negative."""
    if block[0] * block[1] * block[2] > 1024:
        block = (block[0], block[1], 1)
    kernel = fold_accesses(write_star(2, (704, 304, 72)), fold)
    volumes = predict(kernel, cover_updates(updates, block, fold)).volumes
    assert volumes.l1_load >= volumes.l2_load * (1 - 1e-9) or volumes.l2_load_capacity == 0
    assert volumes.l2_load_compulsory >= 8.0 / 2
    assert volumes.dram_load_footprint >= volumes.dram_load_reused >= 0
    assert min(volumes.dram_load_partial, volumes.dram_store_partial, volumes.l2_load_capacity) >= 0
    assert volumes.dram_store_compulsory >= 8.0 * (1 - 1e-9)
