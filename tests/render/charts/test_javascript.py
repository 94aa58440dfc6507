"""The bundle of JavaScript and its place in the cache."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.basis.errors import MissingToolError
from gpa_lsp.basis.kept_files import FOLDER_VARIABLE, KeptFiles
from gpa_lsp.render.charts import javascript


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    javascript.read_javascript.cache_clear()
    yield tmp_path / "charts"
    javascript.read_javascript.cache_clear()


def test_the_bundle_is_kept_and_a_damaged_one_made_again(cache: Path) -> None:
    script = javascript.read_javascript()
    assert "window.vegaEmbed" in script
    assert "</script" not in script.lower()
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    for damaged in (b"", whole[:100], whole[:32] + zlib.compress(b"alert(1)")):
        kept.write_bytes(damaged)
        javascript.read_javascript.cache_clear()
        assert javascript.read_javascript() == script
        assert kept.read_bytes() == whole
    assert [path.name for path in cache.iterdir()] == [kept.name]


def test_an_entry_that_is_no_script_is_made_again(cache: Path) -> None:
    script = javascript.read_javascript()
    (kept,) = cache.iterdir()
    KeptFiles(cache, limit_bytes=1 << 30).store(kept.stem, b"no script")
    javascript.read_javascript.cache_clear()
    assert javascript.read_javascript() == script


def test_the_licences_of_the_libraries_stand_before_them() -> None:
    notices, _, script = javascript.read_javascript().partition("*/")
    assert notices.startswith("/*!")
    for holder in ("University of Washington Interactive Data Lab", "Mike Bostock", "Joachim Wester", "Simon Lydell"):
        assert holder in notices
    assert "Redistributions in binary form must reproduce the above copyright notice" in notices
    assert "window.vegaEmbed" in script


def test_a_folder_that_cannot_be_made_costs_only_time(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    assert "vegaEmbed" in javascript.read_javascript()


def test_without_vl_convert_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    with pytest.raises(MissingToolError, match="pip install vl-convert-python"):
        javascript.read_javascript()
