"""Files of PC samples: as CUPTI's own library writes them, and as they are when something is wrong with them."""

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.processes.search_paths import find_program
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.read import read_profile
from tests.patience import LIMIT_S
from tests.profile.flat_buffers import REASONS, Buffer, Pc, write_dump

FIRST = Pc(crc=0xC0FFEE, offset=0x20, index=4, name="_Z6kernelPf", reasons=((7, 30), (9, 20), (11, 3)))
SECOND = Pc(crc=0xC0FFEE, offset=0x1010, index=5, name="_Z5otherv", reasons=((11, 4),))
BUFFERS = (Buffer(total=57, records=(FIRST, SECOND)), Buffer(total=65, records=(FIRST,), dropped=5, foreign=7))


def read(folder: Path, content: bytes, name: str = "1_pcsampling.dat") -> Profile:
    (folder / name).write_bytes(content)
    return read_profile(folder / name)


def count(profile: Profile) -> dict[tuple[str, int], dict[str, tuple[int, int]]]:
    """Samples and those without issue, by function, offset and reason."""
    found: dict[tuple[str, int], dict[str, tuple[int, int]]] = {}
    for launch in profile.launches:
        samples = launch.samples
        for row, address in enumerate(samples.addresses.tolist()):
            pairs = zip(
                samples.reasons, samples.all_samples[row].tolist(), samples.latency_samples[row].tolist(), strict=True
            )
            key = (launch.mangled_name, address - launch.function_addresses[0])
            found[key] = {reason: (every, latency) for reason, every, latency in pairs if every}
    return found


def test_buffers_are_added_up(tmp_path: Path) -> None:
    profile = read(tmp_path, write_dump(BUFFERS))
    assert count(profile) == {
        ("_Z6kernelPf", 0x20): {"long_scoreboard": (60, 40), "selected": (6, 0)},
        ("_Z5otherv", 0x1010): {"selected": (4, 0)},
    }
    assert (profile.sampling.dropped_samples, profile.sampling.foreign_samples) == (5, 7)
    assert [launch.sampling_period_cycles for launch in profile.launches] == [2048, 2048]
    assert all(launch.aggregate is not None and launch.aggregate.launches is None for launch in profile.launches)
    assert not [problem for problem in profile.problems if "counted" in problem.message]


def test_launches_are_told_apart_where_samples_know_theirs(tmp_path: Path) -> None:
    records = tuple(
        Pc(crc=1, offset=16, index=2, name="k", reasons=((11, number),), correlation=number) for number in (7, 8)
    )
    profile = read(tmp_path, write_dump([Buffer(total=15, records=records)]))
    assert [launch.samples and launch.samples.total_samples for launch in profile.launches] == [7, 8]
    assert [launch.aggregate for launch in profile.launches] == [None, None]


def test_counts_under_one_of_both_names_are_added(tmp_path: Path) -> None:
    """The first has fewer samples than samples without issue, which cannot be a part of them; known versions do not count so."""
    apart = Pc(crc=1, offset=16, index=2, name="k", reasons=((7, 2), (9, 5)))
    assert count(read(tmp_path, write_dump([Buffer(total=7, records=(apart,))]))) == {
        ("k", 16): {"long_scoreboard": (7, 5)}
    }


def test_what_is_counted_and_in_no_row_is_said(tmp_path: Path) -> None:
    profile = read(tmp_path, write_dump([Buffer(total=1057, records=(FIRST,))]))
    assert "1,004 samples are counted, but at no instruction" in [problem.message for problem in profile.problems]


def test_a_file_that_is_cut_off_has_its_whole_buffers(tmp_path: Path) -> None:
    whole = write_dump(BUFFERS)
    first = len(write_dump(BUFFERS[:1]))
    for size in range(first, len(whole), 17):
        profile = read(tmp_path, whole[:size])
        assert count(profile)[("_Z6kernelPf", 0x20)]["selected"] == (3, 0)
        assert any("cut off or damaged" in problem.message for problem in profile.problems)
    for size in range(8, first, 31):
        with pytest.raises(InputError):
            read(tmp_path, whole[:size])


@settings(max_examples=150, deadline=None)
@given(place=st.integers(min_value=40), value=st.integers(min_value=0, max_value=255))
def test_damage_is_told_or_does_not_matter(tmp_path_factory: pytest.TempPathFactory, place: int, value: int) -> None:
    content = bytearray(write_dump(BUFFERS))
    content[40 + place % (len(content) - 40)] = value
    folder = tmp_path_factory.getbasetemp()
    try:
        profile = read(folder, bytes(content))
    except InputError:
        return
    for launch in profile.launches:
        assert np.all(launch.samples.addresses[1:] > launch.samples.addresses[:-1])


def test_lists_that_share_their_bytes_take_no_more_than_the_file(tmp_path: Path) -> None:
    many = tuple(FIRST for _ in range(2000))
    content = bytearray(write_dump([Buffer(total=0, records=many)]))
    at = content.index(struct.pack("<I", 2000), 40)
    target = at + 4 + struct.unpack_from("<I", content, at + 4)[0]
    for number in range(2000):
        place = at + 4 + 4 * number
        struct.pack_into("<I", content, place, target - place)
    assert count(read(tmp_path, bytes(content))) != {}  # as many as there are bytes for


def test_files_that_the_library_of_nvidia_writes(tmp_path: Path) -> None:
    """The same records, written by it and by us, are read alike."""
    headers = Path("/usr/local/cuda/include")
    library = next((path for path in Path("/usr/local/cuda").glob("**/libpcsamplingutil.so")), None)
    compiler = find_program("g++")
    if compiler is None or library is None or not (headers / "cupti_pcsampling_util.h").is_file():
        pytest.skip("CUPTI's utility library is not installed")
    program = tmp_path / "dump"
    command = [
        str(compiler),
        f"-I{headers}",
        str(Path(__file__).with_name("pc_sampling_dump.cpp")),
        str(library),
        f"-Wl,-rpath,{library.parent}",
    ]
    subprocess.run([*command, "-Wl,--allow-shlib-undefined", "-o", str(program)], check=True, timeout=LIMIT_S)
    lines = [f"reason {index} {name}" for index, name in REASONS.items()]
    for buffer in BUFFERS:
        lines.append(f"buffer {buffer.total} {buffer.dropped} {buffer.foreign}")
        for pc in buffer.records:
            reasons = " ".join(f"{index} {samples}" for index, samples in pc.reasons)
            lines.append(f"pc {pc.crc} {pc.offset} {pc.index} {pc.name} {pc.correlation} {len(pc.reasons)} {reasons}")
    written = tmp_path / "written.dat"
    subprocess.run([program, written], input="\n".join(lines), text=True, check=True, timeout=LIMIT_S)
    theirs, ours = read_profile(written), read(tmp_path, write_dump(BUFFERS))
    assert count(theirs) == count(ours)
    assert theirs.sampling == ours.sampling
    assert [launch.sampling for launch in theirs.launches] == [launch.sampling for launch in ours.launches]
    assert theirs.modules == ours.modules
