"""Predictions contradict neither themselves nor the trace, whatever a kernel does; one that would is shown as a defect."""

import random
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.diagnosis.analyses.answers import Weight
from gpa_lsp.execution.volumes.answer import answer_volumes
from gpa_lsp.execution.volumes.devices import VolumeDevice, find_device
from gpa_lsp.execution.volumes.expressions import Triple
from gpa_lsp.execution.volumes.from_trace import (
    find_launch_shape,
    find_miscounts,
    find_shortfalls,
    list_probe_blocks,
    recover_expressions,
)
from gpa_lsp.execution.volumes.model import Rule, VolumePrediction, find_contradictions
from gpa_lsp.execution.volumes.predict import predict_volumes
from tests.conftest import examples
from tests.volumes.written_traces import SIZE, WrittenAccess, write_trace

DEVICES = tuple(find_device(name) for name in ("V100 PCIe", "A100 SXM4 40GB"))
MIDDLE = SIZE // 2

steps = st.integers(-40, 40) | st.sampled_from([-4096, 100, 404, 1024, 4000, 100_000])
triples = st.tuples(steps, steps, steps)


@st.composite
def written(draw, block: Triple, grid: Triple) -> WrittenAccess:  # type: ignore[no-untyped-def]
    """Affine or not: with loops, guards, gathers, scattered lanes and trips that differ."""
    of_all, own, of_block = draw(triples), draw(st.just((0, 0, 0)) | triples), draw(st.just((0, 0, 0)) | triples)
    constant, width = draw(st.integers(0, 64)), draw(st.sampled_from([1, 4, 8, 16]))
    extent = tuple(b * g for b, g in zip(block, grid, strict=True))
    low = tuple(draw(st.integers(0, max(0, size // 3))) for size in extent)
    high = tuple(draw(st.integers(max(1, size // 2), size)) for size in extent)
    trips, loop_step = draw(st.integers(1, 4)), draw(steps)
    form = draw(st.sampled_from(["affine", "affine", "guarded", "gather", "scattered", "uneven"]))
    table = [random.Random(index).randrange(0, 1 << 12) for index in range(97)]

    def addresses(thread: Triple, at: Triple) -> list[int]:
        place = [b * size + t for b, size, t in zip(at, block, thread, strict=True)]
        if form == "guarded" and any(not a <= p < b for p, a, b in zip(place, low, high, strict=True)):
            return []
        if form == "scattered" and sum(thread) % 3:
            return []
        if form == "gather":
            return [MIDDLE + width * table[(place[0] * 7 + place[1] * 3 + place[2]) % len(table)]]
        parts = ((of_all, place), (own, thread), (of_block, at))
        start = MIDDLE + width * (constant + sum(a * b for one, two in parts for a, b in zip(one, two, strict=True)))
        count = 1 + thread[0] % 3 if form == "uneven" else trips
        return [start + width * loop_step * index for index in range(count)]

    return WrittenAccess(
        addresses=addresses,
        kind=draw(st.sampled_from([AccessKind.LOAD, AccessKind.LOAD, AccessKind.STORE, AccessKind.ATOMIC])),
        array=draw(st.integers(0, 1)),
        width=width,
        cache_operator=draw(st.sampled_from(["", "", "cg"])),
    )


@st.composite
def kernels(draw):  # type: ignore[no-untyped-def]
    """Accesses with the block and grid they are made by."""
    block = draw(st.sampled_from([(32, 1, 1), (16, 4, 1), (20, 3, 1), (8, 4, 2), (64, 1, 1)]))
    grid = draw(st.sampled_from([(3, 1, 1), (4, 3, 1), (2, 2, 3), (40, 1, 1), (5, 30, 1)]))
    return draw(st.lists(written(block, grid), min_size=1, max_size=4)), block, grid


@given(kernel=kernels(), device=st.sampled_from(DEVICES))
@examples(40)
def test_no_kernel_is_predicted_against_itself(
    kernel: tuple[list[WrittenAccess], Triple, Triple], device: object
) -> None:
    accesses, block, grid = kernel
    trace = write_trace(accesses, block=block, grid=grid, traced=list_probe_blocks(grid))
    found = recover_expressions(trace)
    launch = find_launch_shape(found, block, grid)
    prediction = predict_volumes(found, launch, device, registers=32)  # type: ignore[arg-type]
    assert prediction.contradictions == ()
    assert find_miscounts(found, trace) == ()
    assert find_shortfalls(prediction, trace) == ()


@given(kernel=kernels())
@examples(15)
def test_affine_kernels_ask_l2_for_what_is_counted_over_the_whole_grid(
    kernel: tuple[list[WrittenAccess], Triple, Triple],
) -> None:
    """All blocks traced: what few blocks said of the whole launch was true, to the sector."""
    accesses, block, grid = kernel
    few = write_trace(accesses, block=block, grid=grid, traced=list_probe_blocks(grid))
    every = write_trace(accesses, block=block, grid=grid, traced=range(prod(grid)))
    found = recover_expressions(few)
    regions = [one.region for one in found.accesses]
    # What only threads far from the traced blocks leave out was not seen to be.
    if not found.sampled and all(region is None for region in regions):
        assert find_miscounts(found, every) == ()
        prediction = predict_volumes(found, find_launch_shape(found, block, grid), DEVICES[0], registers=32)
        assert find_shortfalls(prediction, every) == ()


@given(
    shape=st.tuples(st.integers(1, 6), st.integers(0, 5)),
    pitch=st.sampled_from([64, 100, 129]),
    block=st.sampled_from([(32, 2, 1), (8, 8, 1), (64, 1, 1)]),
    order=st.randoms(use_true_random=False),
    device=st.builds(replace, st.sampled_from(DEVICES), l2_bytes=st.sampled_from([1 << 12, 1 << 16, 1 << 22])),
)
@examples(25)
def test_long_programs_are_not_predicted_against_themselves(
    shape: tuple[int, int],
    pitch: int,
    block: Triple,
    order: random.Random,
    device: VolumeDevice,
) -> None:
    """Boxes of up to 143 loads, in their order or in any, with any L2: all they touch is loaded, and no more than is asked for."""
    offsets = [pitch * y + x for y in range(2 * shape[1] + 1) for x in range(2 * shape[0] + 1)]
    order.shuffle(offsets)
    accesses = [_write_offset(offset, pitch, block) for offset in offsets]
    grid = (2, 4, 1)
    every = write_trace(accesses, block=block, grid=grid, traced=range(8))
    found = recover_expressions(every)
    launch = find_launch_shape(found, block, grid)
    prediction = predict_volumes(found, launch, device, registers=32)
    assert prediction.contradictions == ()
    assert find_miscounts(found, every) == ()
    assert find_shortfalls(prediction, every) == ()


def _write_offset(offset: int, pitch: int, block: Triple) -> WrittenAccess:
    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y = at[0] * block[0] + thread[0], at[1] * block[1] + thread[1]
        return [8 * (pitch * y + x + offset)]

    return WrittenAccess(addresses=addresses, width=8)


def predict_rows(pitch: int) -> VolumePrediction:
    """A copy of rows whose pitch is no whole number of sectors."""

    def addresses(thread: Triple, at: Triple) -> list[int]:
        x, y = at[0] * 8 + thread[0], at[1] * 8 + thread[1]
        return [pitch * y + 4 * x] if x < pitch // 4 else []

    accesses = [
        WrittenAccess(addresses=addresses, width=4, array=n, kind=kind) for n, kind in enumerate(AccessKind) if n < 2
    ]
    grid = (-(-pitch // 32), 40, 1)
    trace = write_trace(accesses, block=(8, 8, 1), grid=grid, traced=list_probe_blocks(grid))
    found = recover_expressions(trace)
    return predict_volumes(found, find_launch_shape(found, (8, 8, 1), grid), DEVICES[1], registers=32)


@pytest.mark.parametrize("pitch", [36, 60, 100, 404, 1028])
def test_rows_of_unaligned_pitch_load_no_more_from_dram_than_from_l2(pitch: int) -> None:
    prediction = predict_rows(pitch)
    volumes = prediction.volumes
    assert volumes.dram_load <= volumes.l2_load + 1e-9
    assert volumes.dram_load >= 4.0 * (1 - 1e-9)
    assert prediction.contradictions == ()


def test_a_store_of_one_lane_is_a_request_of_its_own() -> None:
    """The kernel is ``if (threadIdx.x == 0) out[blockIdx.x] = …``: a sector for each block, not a 64th of one."""
    store = WrittenAccess(addresses=lambda t, at: [] if t[0] else [4 * at[0]], kind=AccessKind.STORE, width=4)
    load = WrittenAccess(addresses=lambda t, at: [4 * (64 * at[0] + t[0])], width=4, array=1)
    trace = write_trace([load, store], block=(64, 1, 1), grid=(40, 1, 1), traced=list_probe_blocks((40, 1, 1)))
    found = recover_expressions(trace)
    launch = find_launch_shape(found, (64, 1, 1), (40, 1, 1))
    prediction = predict_volumes(found, launch, DEVICES[1], registers=32)
    assert prediction.scale_to_launch(prediction.volumes.l2_store) == pytest.approx(40 * 32)
    assert prediction.scale_to_launch(prediction.volumes.l2_load) == pytest.approx(40 * 256)


def test_threads_that_only_load_are_counted() -> None:
    """``v = in[i]; if (i < 48) *out = v;`` in blocks of 32 threads: three sectors are loaded, whoever stores."""
    load = WrittenAccess(addresses=lambda t, at: [32 * at[0] + t[0]], width=1)
    store = WrittenAccess(
        addresses=lambda t, at: [0] if 32 * at[0] + t[0] < 48 else [], kind=AccessKind.STORE, width=1, array=1
    )
    trace = write_trace([load, store], block=(32, 1, 1), grid=(3, 1, 1), traced=(0, 1, 2))
    found = recover_expressions(trace)
    launch = find_launch_shape(found, (32, 1, 1), (3, 1, 1))
    prediction = predict_volumes(found, launch, DEVICES[0], registers=32)
    volumes = prediction.volumes
    assert prediction.scale_to_launch(volumes.dram_load - volumes.dram_load_fetched) == pytest.approx(3 * 32)
    assert prediction.scale_to_launch(volumes.dram_load) == pytest.approx(4 * 32)  # DRAM gives two sectors at once
    assert find_shortfalls(prediction, trace) == ()


def test_what_is_sampled_is_written_beside_what_follows_a_formula() -> None:
    """A flag that few blocks set, in a sector of its own, beside pairs of doubles that share sectors between rows of blocks."""

    def flag(thread: Triple, at: Triple) -> list[int]:
        return [MIDDLE] if at[0] < 2 and at[1] == 0 else []

    def pair(thread: Triple, at: Triple) -> list[int]:
        return [MIDDLE + 8 * (5 + 6 * at[1]), MIDDLE + 8 * (6 + 6 * at[1])]

    block, grid = (32, 1, 1), (4, 3, 1)
    written = [
        WrittenAccess(addresses=flag, kind=AccessKind.STORE, width=1),
        WrittenAccess(addresses=pair, kind=AccessKind.STORE),
    ]
    trace = write_trace(written, block=block, grid=grid, traced=list_probe_blocks(grid))
    found = recover_expressions(trace)
    assert len(found.sampled) == 1
    prediction = predict_volumes(found, find_launch_shape(found, block, grid), DEVICES[0], registers=32)
    assert prediction.scale_to_launch(prediction.volumes.dram_store) >= 5 * 32
    assert find_shortfalls(prediction, trace) == ()


def test_a_contradiction_is_shown_in_place_of_the_numbers() -> None:
    good = predict_rows(404)
    kernel = recover_expressions(
        write_trace([WrittenAccess(addresses=lambda t, at: [8 * t[0]])], block=(8, 1, 1), grid=(1, 1, 1), traced=(0,))
    )
    bad = replace(
        good, volumes=replace(good.volumes, dram_load_footprint=2 * good.volumes.l2_load, dram_load_reused=0.0)
    )
    (found,) = find_contradictions(bad)
    assert (found.rule, found.low_name) == (Rule.LEVELS, "loads from DRAM")
    assert found.low_bytes > found.high_bytes
    answer = answer_volumes(replace(bad, contradictions=(found,)), kernel)
    assert not answer.is_known and answer.tables == () and answer.bars == ()
    assert "a defect of gpa-lsp" in answer.summary
    assert [finding.weight for finding in answer.findings] == [Weight.HIGH]
    assert "loads from DRAM" in answer.findings[0].text and "are more than" in answer.findings[0].text
    for changed, rule in (
        ({"dram_load_reused": good.volumes.dram_load_footprint}, Rule.COMPULSORY),
        ({"l2_load_capacity": 100.0}, Rule.LEVELS),
        ({"dram_store_compulsory": 0.0}, Rule.COMPULSORY),
        ({"l1_load": float("nan")}, Rule.NOTHING_NEGATIVE),
    ):
        broken = find_contradictions(replace(good, volumes=replace(good.volumes, **changed)))
        assert rule in {one.rule for one in broken}


def test_an_expression_that_the_trace_does_not_bear_out_is_a_miscount() -> None:
    access = WrittenAccess(addresses=lambda t, at: [8 * (32 * at[0] + t[0])])
    trace = write_trace([access], block=(32, 1, 1), grid=(4, 1, 1), traced=(0, 1, 2, 3))
    found = recover_expressions(trace)
    assert find_miscounts(found, trace) == ()
    (wrong,) = (replace(one, global_bytes=(4, 0, 0)) for one in found.accesses)
    (miscount,) = find_miscounts(replace(found, accesses=(wrong,)), trace)
    assert (miscount.rule, miscount.low_bytes, miscount.high_bytes) == (Rule.COUNTED, 4 * 256, 4 * 160)
    assert (miscount.low_name, miscount.high_name) == ("loads as emulated", "loads by expressions")
