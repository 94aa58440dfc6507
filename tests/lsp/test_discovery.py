import os
import time
from pathlib import Path

import pytest

from gpa_lsp.editor.protocol import discovery
from gpa_lsp.editor.protocol.discovery import ProfileFinder, compile_globs, split_glob
from gpa_lsp.editor.protocol.loader import SETTLED_NS, ProfileWatch
from gpa_lsp.editor.settings import Settings
from gpa_lsp.foundation.files import Stamp

GLOBS = Settings().profile_globs


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def look(finder: ProfileFinder, folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in finder.look()}


def test_profiles_are_found_wherever_they_lie(tmp_path: Path) -> None:
    put(tmp_path, "a.ncu-rep", "x/y/b.ncu-repz", "x/c.gpa-profile.json", "x/other.json", "k.cu")
    put(tmp_path, ".git/d.ncu-rep", "node_modules/p/e.ncu-rep", ".venv/f.ncu-rep")
    assert look(ProfileFinder([tmp_path], GLOBS), tmp_path) == {"a.ncu-rep", "x/y/b.ncu-repz", "x/c.gpa-profile.json"}


def test_changes_are_seen_at_the_next_look(tmp_path: Path) -> None:
    put(tmp_path, "a.ncu-rep", "x/b.ncu-rep")
    finder = ProfileFinder([tmp_path], GLOBS)
    before = finder.look()
    put(tmp_path, "x/new/c.ncu-rep")
    (tmp_path / "a.ncu-rep").unlink()
    (tmp_path / "x/b.ncu-rep").write_text("longer")
    after = finder.look()
    assert {path.name for path in after} == {"b.ncu-rep", "c.ncu-rep"}
    assert after[tmp_path / "x/b.ncu-rep"] != before[tmp_path / "x/b.ncu-rep"]


def test_quiet_folders_are_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, *(f"d{number}/a.ncu-rep" for number in range(20)))
    long_ago = time.time() - 3600
    for folder in (*tmp_path.iterdir(), tmp_path):
        os.utime(folder, (long_ago, long_ago))
    finder = ProfileFinder([tmp_path], GLOBS)
    assert len(finder.look()) == 20
    listed: list[str] = []
    scandir = os.scandir

    def count(path: str) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(discovery.os, "scandir", count)
    put(tmp_path, "d3/b.ncu-rep")
    assert len(finder.look()) == 21
    assert listed == [str(tmp_path / "d3")]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "x/a.ncu-rep")
    (tmp_path / "x/loop").symlink_to(tmp_path, target_is_directory=True)
    assert look(ProfileFinder([tmp_path], GLOBS), tmp_path) == {"x/a.ncu-rep"}


def test_pipes_and_folders_named_like_profiles_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ncu-rep")
    (tmp_path / "folder.ncu-rep").mkdir()
    (tmp_path / "dangling.ncu-rep").symlink_to(tmp_path / "nothing")
    assert ProfileFinder([tmp_path], GLOBS).look() == {}


def test_missing_roots_and_depth_do_no_harm(tmp_path: Path) -> None:
    put(tmp_path, "a/b/c/d/deep.ncu-rep", "a/flat.ncu-rep")
    finder = ProfileFinder([tmp_path, tmp_path / "missing"], GLOBS, max_depth=2)
    assert look(finder, tmp_path) == {"a/flat.ncu-rep"}


def test_a_huge_tree_is_searched_in_part_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, *(f"d{number}/a.ncu-rep" for number in range(9)))
    monkeypatch.setattr(discovery, "MAX_FOLDERS", 5)
    finder = ProfileFinder([tmp_path], GLOBS)
    assert 0 < len(finder.look()) < 9
    assert finder.unsearched == (str(tmp_path),)


def test_globs_may_name_places_outside_the_workspace(tmp_path: Path) -> None:
    put(tmp_path, "work/a.ncu-rep", "scratch/run1/b.ncu-rep", "scratch/other/c.ncu-rep")
    finder = ProfileFinder([tmp_path / "work"], ["*.ncu-rep", f"{tmp_path}/scratch/run*/*.ncu-rep"])
    assert look(finder, tmp_path) == {"work/a.ncu-rep", "scratch/run1/b.ncu-rep"}


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("**/*.ncu-rep", "a.ncu-rep", True),
        ("**/*.ncu-rep", "a.ncu-repz", False),
        ("*.ncu-rep", "x/a.ncu-rep", False),
        ("**/out/**", "x/out/y/z", True),
        ("run[0-9]/a?.rep", "run7/ab.rep", True),
        ("run[!0-9]/a.rep", "run7/a.rep", False),
        ("a.(b)+", "a.(b)+", True),
        ("./a.rep", "a.rep", True),
    ],
)
def test_globs(glob: str, path: str, fits: bool) -> None:
    assert bool(compile_globs([glob]).fullmatch(path)) == fits


def test_no_glob_fits_nothing() -> None:
    assert compile_globs([]).fullmatch("") is None


def test_the_root_of_a_glob() -> None:
    assert split_glob("/a/b/c.ncu-rep") == ("/a/b", "c.ncu-rep")
    assert split_glob("/*.ncu-rep") == ("/", "*.ncu-rep")


A, B = Path("a"), Path("b")
NOW_NS = 1_000 * 10**9
OLD = Stamp(size_bytes=1, modified_ns=NOW_NS - SETTLED_NS, inode=1)
FRESH = Stamp(size_bytes=1, modified_ns=NOW_NS - 1, inode=1)
GROWN = Stamp(size_bytes=2, modified_ns=NOW_NS, inode=1)


def test_old_profiles_are_read_at_once_newest_first() -> None:
    older = Stamp(size_bytes=1, modified_ns=1, inode=2)
    assert ProfileWatch().observe({A: older, B: OLD}, NOW_NS) == (B, A)


def test_a_fresh_profile_is_read_when_it_stands_still() -> None:
    watch = ProfileWatch()
    assert watch.observe({A: FRESH}, NOW_NS) == ()
    assert watch.observe({A: GROWN}, NOW_NS) == ()
    assert watch.observe({A: GROWN}, NOW_NS) == (A,)


def test_a_loaded_profile_is_read_again_only_when_it_changes() -> None:
    watch = ProfileWatch()
    watch.mark_loaded(A, OLD)
    assert watch.observe({A: OLD}, NOW_NS) == ()
    changed = Stamp(size_bytes=1, modified_ns=OLD.modified_ns, inode=9)
    assert watch.observe({A: changed}, NOW_NS) == (A,)


def test_a_profile_that_came_back_is_read_again() -> None:
    watch = ProfileWatch()
    watch.mark_loaded(A, OLD)
    assert watch.observe({}, NOW_NS) == ()
    assert watch.observe({A: OLD}, NOW_NS) == (A,)


def test_an_incomplete_profile_is_tried_again_and_the_last_failure_told() -> None:
    watch = ProfileWatch()
    assert not watch.mark_failed(A, FRESH, NOW_NS)
    assert watch.observe({A: FRESH}, NOW_NS) == ()
    assert watch.observe({A: FRESH}, NOW_NS) == ()
    later = NOW_NS + SETTLED_NS
    assert watch.observe({A: FRESH}, later) == (A,)
    assert watch.mark_failed(A, FRESH, later)
    assert watch.observe({A: FRESH}, later) == ()


def test_a_failed_profile_is_tried_again_when_it_changes() -> None:
    watch = ProfileWatch()
    assert watch.mark_failed(A, OLD, NOW_NS)
    assert watch.observe({A: GROWN}, NOW_NS) == ()
    assert watch.observe({A: GROWN}, NOW_NS) == (A,)


def test_a_time_in_the_future_does_not_keep_a_profile_from_being_read() -> None:
    future = Stamp(size_bytes=1, modified_ns=NOW_NS * 2, inode=1)
    assert ProfileWatch().observe({A: future}, NOW_NS) == (A,)


def test_reloading_reads_everything() -> None:
    watch = ProfileWatch()
    watch.mark_loaded(A, OLD)
    watch.mark_failed(B, OLD, NOW_NS)
    watch.forget_all()
    assert set(watch.observe({A: OLD, B: OLD}, NOW_NS)) == {A, B}


def test_a_link_out_of_the_folder_is_no_profile_of_it(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/secret.ncu-rep", "work/own.ncu-rep")
    (tmp_path / "work" / "out.ncu-rep").symlink_to(tmp_path / "elsewhere" / "secret.ncu-rep")
    (tmp_path / "work" / "in.ncu-rep").symlink_to("own.ncu-rep")
    assert look(ProfileFinder([tmp_path / "work"], GLOBS), tmp_path / "work") == {"own.ncu-rep", "in.ncu-rep"}
    (tmp_path / "linked").symlink_to(tmp_path / "work", target_is_directory=True)
    assert look(ProfileFinder([tmp_path / "linked"], GLOBS), tmp_path / "linked") == {"own.ncu-rep", "in.ncu-rep"}
