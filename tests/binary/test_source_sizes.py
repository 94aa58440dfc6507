"""Sizes of sources, as line tables state them."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.line_table import read_source_sizes


def test_a_source_compiled_from_a_file_has_its_length(fixtures: Path) -> None:
    cubin = read_cubin((fixtures / "containers" / "built" / "jump_table_nvrtc12.sm_70.cubin").read_bytes())
    path = "/build/gpa_lsp/fixtures/kernels/jump_table/original.cu"
    assert read_source_sizes(cubin) == {path: 1318}
    assert (fixtures / "kernels" / "jump_table" / "original.cu").stat().st_size == 1318


def test_a_source_compiled_from_memory_has_none(fixtures: Path) -> None:
    cubin = read_cubin((fixtures / "cubins" / "sm_90" / "bank_conflict_improved.cubin").read_bytes())
    assert read_source_sizes(cubin) == {}


@pytest.mark.corpus
def test_lengths_are_those_of_the_texts_in_real_reports(corpus: Path) -> None:
    from gpa_lsp.kernel.join import join_profile
    from gpa_lsp.profile.read import read_profile

    profile = read_profile(corpus / "ncu" / "v100_miniweather_baseline_2022.2.ncu-rep")
    kernels, _ = join_profile(profile, with_text=False)
    sources = kernels[0].module.sources if kernels[0].module else {}
    assert kernels[0].cubin is not None and sources
    sizes = read_source_sizes(kernels[0].cubin)
    assert {path: sizes[path] for path in sources} == {path: len(text.encode()) for path, text in sources.items()}
