"""Known traps of CUPTI: a made-up one springs each, and complains when misused.

What goes wrong, and the test that does it (of this file, or FILE.TEST beside it):

* Before 12.4 records are shorter, without a correlation: test_every_sample_arrives_whatever_the_version
* Headers that lay records out otherwise: test_library.test_headers_with_other_layouts_are_refused
* Reasons are none before sampling is enabled: test_every_sample_arrives_whatever_the_version
* A period that is set takes the samples of some GPUs: test_no_period_is_set_unless_it_was_asked_for
* 12.0 has no memory where the hardware's buffer is given a size: test_every_sample_arrives_whatever_the_version
* A full buffer (OUT_OF_MEMORY) stays full until sampling is disabled: test_after_a_full_buffer_sampling_begins_anew
* A call gives a limited number of PCs: test_more_records_than_one_call_gives_are_fetched_in_parts
* The buffer that was configured is CUPTI's own: test_every_sample_arrives_whatever_the_version
* Sampling begins on an idle GPU only: test_a_duty_cycle_starts_on_an_idle_gpu
* Names of functions are to be given back, or not: test_more_records_than_one_call_gives_are_fetched_in_parts
* Among the reasons are totals and dropped samples: test_lost_and_foreign_samples_are_counted
* Samples of others' kernels come as a total: test_lost_and_foreign_samples_are_counted
* PCs without a sample are not reported: test_profiles.test_what_was_measured_is_advised_on
* Serialized samples name their launch, continuous ones none: test_every_sample_arrives_whatever_the_version
* A process has one subscriber: test_a_second_profiler_is_refused_and_the_program_goes_on
* A process has one CUPTI: test_the_cupti_that_a_program_has_loaded_is_used
* Without CUPTI, or without a GPU: test_nvidias_own_library_has_every_function_and_says_that_there_is_no_gpu, test_without_cupti_the_program_goes_on
* Without permission, under MPS, MIG, WSL or a virtual GPU: test_without_permission_kernels_are_timed
* Programs fork and start others: test_a_forked_child_writes_nothing_and_another_program_its_own
* Graphs are captured, also by other threads: test_a_launch_that_fails_or_is_captured_is_none, test_what_another_thread_captures_is_not_spoiled
* Modules come back, contexts end: test_modules_that_come_back_are_written_once, test_a_context_that_ends_early_loses_nothing
* The program is killed at any write: test_kill.test_killed_at_every_write
* Ten million samples: test_profiles.test_ten_million_samples_take_bounded_memory
"""

import importlib
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.profile.collector.choosing import add_up
from gpa_lsp.profile.collector.records import FLAG_GRAPH, FLAG_SAMPLED, Mode, TroubleKind, describe_troubles
from gpa_lsp.profile.collector.run import CollectorSettings, find_cupti
from tests.collector.built import KERNEL, SAMPLES_OF_AN_INSTRUCTION, Run, build, require_cupti, run

CONTINUOUS = CollectorSettings(mode=Mode.CONTINUOUS)


def _count(found: Run) -> int:
    """Samples of all processes, each once."""
    total = 0
    for process in found.processes:
        totals = add_up(process, None)
        plain = [number for number, (_, is_latency) in enumerate(totals.reasons) if not is_latency]
        total += int(totals.rows["samples"][np.isin(totals.rows["reason"], plain)].sum())
        assert totals.missing == 0
    return total


@pytest.mark.parametrize("settings", [CollectorSettings(), CONTINUOUS], ids=["serialized", "continuous"])
@pytest.mark.parametrize("version", [18, 21, 22, 26, 130001, 130401])
def test_every_sample_arrives_whatever_the_version(tmp_path: Path, settings: CollectorSettings, version: int) -> None:
    found = run(tmp_path, fake=f"version={version},pcs=5", settings=settings)
    assert (found.status, found.complaints) == (0, ())
    assert found.process.api_version == version
    assert (found.process.is_complete, found.process.lost_bytes, found.process.troubles) == (True, 0, [])
    assert _count(found) == 4 * 5 * SAMPLES_OF_AN_INSTRUCTION
    correlations = set(add_up(found.process, None).rows["correlation"].tolist())
    launched = set(found.process.launches["correlation"].tolist())
    assert correlations == (launched if settings.mode is Mode.SERIALIZED else {0})


def test_a_launch_has_its_shape_and_its_time(tmp_path: Path) -> None:
    process = run(tmp_path, fake="duration=12345").process
    assert process.launches["grid"][:, 0].tolist() == [8, 16, 8, 16]
    assert process.launches["block"][:, 0].tolist() == [128, 256, 128, 256]
    assert process.launches["shared_bytes"].tolist() == [256, 0, 256, 0]
    assert {process.texts[number] for number in process.launches["kernel"].tolist()} == {KERNEL}
    assert (process.kernels["end_ns"] - process.kernels["start_ns"]).tolist() == [12345] * 4
    assert process.kernels["correlation"].tolist() == process.launches["correlation"].tolist()


def test_a_launch_of_the_runtime_is_known_by_both_numbers(tmp_path: Path) -> None:
    process = run(tmp_path, fake="inner_first=1").process
    assert process.launches["outer"].tolist() == process.kernels["correlation"].tolist()
    assert set(add_up(process, None).rows["correlation"].tolist()) == set(process.launches["outer"].tolist())


def test_each_trap_has_its_test() -> None:
    words = re.findall(r"(?:(test_\w+)\.)?(test_\w+)", __doc__ or "")
    assert len(words) > 20
    for module, name in words:
        own = importlib.import_module(f"tests.collector.{module}" if module else __name__)
        assert callable(getattr(own, name)), (module, name)


def test_the_cupti_that_a_program_has_loaded_is_used(tmp_path: Path) -> None:
    """Never a second one beside it, although another is named."""
    built = build()
    loaded = tmp_path / "torch" / "libcupti.so.12"
    loaded.parent.mkdir()
    shutil.copy(built.folder / "libcupti.so.13", loaded)
    found = run(tmp_path, variables={"LD_PRELOAD": str(loaded)})
    assert (found.status, found.complaints, found.process.cupti) == (0, (), str(loaded))
    assert _count(found) == 4 * 4 * SAMPLES_OF_AN_INSTRUCTION


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (35, "only administrators"),
        (40, "only administrators"),
        (27, "MPS, MIG, WSL"),
        (33, "virtual GPUs"),
        (38, "older profiling"),
    ],
)
def test_without_permission_kernels_are_timed(tmp_path: Path, number: int, words: str) -> None:
    found = run(tmp_path, fake=f"enable={number}")
    assert (found.status, found.complaints) == (0, ())
    (trouble,) = found.process.troubles
    (problem,) = describe_troubles(found.processes)
    assert words in f"{problem.message} {problem.remedy}"
    assert (trouble.kind, trouble.number) == (TroubleKind.ENABLE, number)
    assert found.process.contexts[1].mode is Mode.TIMING
    assert (len(found.process.launches), len(found.process.kernels), _count(found)) == (4, 4, 0)
    assert not (found.process.launches["flags"] & FLAG_SAMPLED).any()


def test_a_second_profiler_is_refused_and_the_program_goes_on(tmp_path: Path) -> None:
    found = run(tmp_path, fake="subscribed=1")
    assert (found.status, "done" in found.output) == (0, True)
    (trouble,) = found.process.troubles
    assert (trouble.kind, trouble.number) == (TroubleKind.SUBSCRIBER, 39)
    assert len(found.process.launches) == 0


def test_nvidias_own_library_has_every_function_and_says_that_there_is_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPA_LSP_CUPTI", raising=False)
    library = find_cupti().library if require_cupti() else None
    if library is None:
        pytest.skip("only CUPTI's headers are installed")
    found = run(tmp_path, variables={"GPA_LSP_COLLECTOR_CUPTI": str(library)})
    assert (found.status, found.process.cupti) == (0, str(library))
    (trouble,) = found.process.troubles
    (problem,) = describe_troubles(found.processes)
    if trouble.kind is TroubleKind.NO_CUPTI:  # since 13.5 it does not even say its version without a driver
        assert trouble.where == "cuptiGetVersion"
        assert "CUPTI" in problem.message
    else:
        assert trouble.kind is TroubleKind.SUBSCRIBER
        assert f"CUPTI did not start (its error {trouble.number})" in problem.message


def test_without_cupti_the_program_goes_on(tmp_path: Path) -> None:
    found = run(tmp_path, variables={"GPA_LSP_COLLECTOR_CUPTI": str(tmp_path / "libcupti.so.13")})
    assert (found.status, [one.kind for one in found.process.troubles]) == (0, [TroubleKind.NO_CUPTI])


@pytest.mark.parametrize("settings", [CollectorSettings(), CONTINUOUS], ids=["serialized", "continuous"])
def test_after_a_full_buffer_sampling_begins_anew(tmp_path: Path, settings: CollectorSettings) -> None:
    """Continuous: at the first launch after it was seen."""
    found = run(tmp_path, "pause", fake="full_at=3", launches=30, settings=settings)
    assert (found.status, found.complaints) == (0, ())
    assert [one.kind for one in found.process.troubles] == [TroubleKind.BUFFER_FULL]
    assert 0 < _count(found) < 30 * 4 * SAMPLES_OF_AN_INSTRUCTION
    if settings.mode is Mode.SERIALIZED:  # nothing but that one launch is lost
        assert _count(found) == 29 * 4 * SAMPLES_OF_AN_INSTRUCTION


def test_no_period_is_set_unless_it_was_asked_for(tmp_path: Path) -> None:
    fake = "period_works=0"
    assert _count(run(tmp_path, fake=fake)) > 0
    other = tmp_path / "asked"
    other.mkdir()
    asked = run(other, fake=fake, settings=CollectorSettings(period_exponent=9))
    assert (_count(asked), asked.process.contexts[1].period_exponent) == (0, 9)


@pytest.mark.parametrize("shared", [0, 1])
def test_more_records_than_one_call_gives_are_fetched_in_parts(tmp_path: Path, shared: int) -> None:
    """Names are released once, or more of them would stay than a program has functions."""
    found = run(tmp_path, fake=f"pcs=30000,reasons=3,shared_names={shared}", launches=5)
    assert (found.status, found.complaints) == (0, ())
    assert _count(found) == 5 * 30000 * 6


def test_lost_and_foreign_samples_are_counted(tmp_path: Path) -> None:
    totals = add_up(run(tmp_path, fake="dropped=3,foreign=5").process, None)
    assert (totals.dropped, totals.foreign, totals.missing) == (3 * 4 + 3, 5 * 4 + 5, 0)  # the last visit has some, too


def test_a_duty_cycle_starts_on_an_idle_gpu(tmp_path: Path) -> None:
    """The made-up CUPTI complains where it is not."""
    found = run(
        tmp_path, "pause", launches=60, settings=CollectorSettings(mode=Mode.CONTINUOUS, duty_percent=20),
        variables={"GPA_LSP_COLLECTOR_CYCLE_MS": "100"},
    )  # fmt: skip
    assert (found.status, found.complaints) == (0, ())
    sampled = int(((found.process.launches["flags"] & FLAG_SAMPLED) != 0).sum())
    assert 0 < sampled < 60
    assert _count(found) == sampled * 4 * SAMPLES_OF_AN_INSTRUCTION


@pytest.mark.parametrize("settings", [CollectorSettings(), CONTINUOUS], ids=["serialized", "continuous"])
def test_modules_that_come_back_are_written_once(tmp_path: Path, settings: CollectorSettings) -> None:
    found = run(tmp_path, "unload", settings=settings)
    assert found.complaints == ()
    assert _count(found) == 8 * 4 * SAMPLES_OF_AN_INSTRUCTION
    (cubin,) = found.folder.glob("*.cubin")
    (digest,) = found.process.modules
    assert cubin.name == f"{digest:016x}.cubin"
    assert cubin.stat().st_size == found.process.modules[digest]


def test_a_launch_that_fails_or_is_captured_is_none(tmp_path: Path) -> None:
    found = run(tmp_path, "failing", "capture")
    assert found.complaints == ()
    flags = found.process.launches["flags"]
    assert (len(flags), int(((flags & FLAG_GRAPH) != 0).sum())) == (5, 1)
    assert len(found.process.kernels) == 5


@pytest.mark.parametrize("settings", [CollectorSettings(), CollectorSettings(mode=Mode.CONTINUOUS, duty_percent=50)])
def test_what_another_thread_captures_is_not_spoiled(tmp_path: Path, settings: CollectorSettings) -> None:
    found = run(tmp_path, "meanwhile", settings=settings)
    assert (found.status, found.complaints, len(found.process.launches)) == (0, (), 5)
    assert len(set(found.process.launches["thread"].tolist())) == 2


def test_a_forked_child_writes_nothing_and_another_program_its_own(tmp_path: Path) -> None:
    found = run(tmp_path, "fork", "exec")
    assert (found.status, found.complaints) == (0, ())
    assert [len(process.launches) for process in found.processes] == [4, 4]
    assert all(process.is_complete for process in found.processes)


def test_a_context_that_ends_early_loses_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, "destroy", settings=CONTINUOUS)
    assert (found.complaints, _count(found)) == ((), 4 * 4 * SAMPLES_OF_AN_INSTRUCTION)


def test_contexts_that_come_and_go_leave_room_for_the_next(tmp_path: Path) -> None:
    found = run(tmp_path, "contexts")
    assert (found.status, found.complaints, list(found.process.troubles)) == (0, (), [])
    assert _count(found) == 2 * 4 * 4 * SAMPLES_OF_AN_INSTRUCTION


def test_more_contexts_than_are_sampled_are_said(tmp_path: Path) -> None:
    found = run(tmp_path, "contexts", "stay")
    assert found.status == 0
    assert _count(found) == 4 * 4 * SAMPLES_OF_AN_INSTRUCTION, "of the first context"
    (trouble,) = found.process.troubles
    assert trouble.where == "contexts"
    assert any("of more than 64 contexts at once" in one.message for one in describe_troubles([found.process]))


def test_rows_end_where_they_must_not_grow(tmp_path: Path) -> None:
    found = run(tmp_path, launches=200, variables={"GPA_LSP_COLLECTOR_LIMIT_BYTES": "20000"})
    assert found.status == 0
    assert TroubleKind.ROWS in [one.kind for one in found.process.troubles]
    assert found.process.path.stat().st_size < 21000
    assert 0 < len(found.process.launches) < 200


def test_files_are_for_nobody_else(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in found.folder.iterdir()} == {0o600}
