"""Records handed to the system before a kill are read, and nothing half written."""

from pathlib import Path

import pytest

from gpa_lsp.profile.collector.records import read_process
from tests.collector.built import build, run

_LAUNCHES = 3


@pytest.mark.parametrize("kept_bytes", [0, 7, 40, 200, 1 << 20])
def test_killed_at_every_write(tmp_path: Path, kept_bytes: int) -> None:
    built = build()
    launches, samples = [], []
    for number in range(1, 40):
        folder = tmp_path / str(number)
        folder.mkdir()
        killed = {"LD_PRELOAD": str(built.folder / "killer.so"), "KILL_AT": str(number), "KILL_BYTES": str(kept_bytes)}
        found = run(folder, launches=_LAUNCHES, variables=killed)
        if found.status == 0:
            break
        assert found.status == -9
        process = found.process
        assert not process.is_complete or kept_bytes > 200  # the last write may have been whole
        launches.append(len(process.launches))
        samples.append(len(process.samples))
        for _, _, rows in process.read_batches():
            assert len(rows) > 0
    assert found.process.is_complete
    assert launches == sorted(launches)
    assert launches[-1] == _LAUNCHES
    assert len(launches) > _LAUNCHES  # at the beginning, at each launch, at the end
    assert samples[-1] >= _LAUNCHES - 1


def test_a_file_cut_anywhere_is_read_to_there(tmp_path: Path) -> None:
    whole = run(tmp_path, launches=2).process
    content = whole.path.read_bytes()
    cut = tmp_path / "process-1-1.rows"
    seen = []
    for size in [*range(8, len(content), 13), len(content)]:
        cut.write_bytes(content[:size])
        process = read_process(cut)
        seen.append((len(process.texts), len(process.launches), len(process.samples), process.is_complete))
    assert seen == sorted(seen)
    assert seen[-1] == (len(whole.texts), len(whole.launches), len(whole.samples), True)


def test_damage_ends_the_reading_where_it_is(tmp_path: Path) -> None:
    whole = run(tmp_path, launches=2).process
    content = bytearray(whole.path.read_bytes())
    damaged = tmp_path / "process-1-1.rows"
    for place in range(8, len(content), 29):
        content[place] ^= 0x55
        damaged.write_bytes(content)
        process = read_process(damaged)
        assert process.lost_bytes > 0
        assert len(process.launches) <= len(whole.launches)
        content[place] ^= 0x55
