"""Sources are believed only when they are what was compiled."""

import os
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.kernel.model import Kernel
from gpa_lsp.report.measured_files import ProfiledSources
from gpa_lsp.report.source_paths import SourceLocator
from tests.rows.builders import make_launch
from tests.rows.written import write_kernel


def kernel_measured_at(unix_s: int | None, sources: dict[str, str]) -> Kernel:
    kernel = write_kernel("EXIT # wait=1", sources=sources)
    return replace(kernel, launches=(make_launch("kernel", created_unix_s=unix_s),))


def make_file(folder: Path, text: str, modified_unix_s: int) -> Path:
    path = folder / "k.cu"
    path.write_text(text)
    os.utime(path, (modified_unix_s, modified_unix_s))
    return path


def test_embedded_sources_come_first(tmp_path: Path) -> None:
    path = make_file(tmp_path, "on disk", 100)
    read = ProfiledSources(SourceLocator([tmp_path])).reader_for(kernel_measured_at(200, {str(path): "embedded"}))
    assert read(str(path)) == "embedded"


def test_a_file_older_than_the_profile_is_read(tmp_path: Path) -> None:
    path = make_file(tmp_path, "on disk", 100)
    read = ProfiledSources(SourceLocator([tmp_path])).reader_for(kernel_measured_at(200, {}))
    assert read(str(path)) == "on disk"
    assert read("/nowhere/else.cu") is None


def test_a_file_changed_since_is_not(tmp_path: Path) -> None:
    path = make_file(tmp_path, "edited", 300)
    read = ProfiledSources(SourceLocator([tmp_path])).reader_for(kernel_measured_at(200, {}))
    assert read(str(path)) is None


def test_without_a_date_or_a_locator_no_file_is_read(tmp_path: Path) -> None:
    path = make_file(tmp_path, "on disk", 100)
    assert ProfiledSources(SourceLocator([tmp_path])).reader_for(kernel_measured_at(None, {}))(str(path)) is None
    assert ProfiledSources().reader_for(kernel_measured_at(200, {}))(str(path)) is None
