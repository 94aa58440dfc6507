"""Reading profiles and architecture tables in a warm interpreter.

Usage: ``python -m tests.bench.loading [--times N]``; profiles are those of the corpus (GPA_LSP_CORPUS) and the bundled example.
"""

import argparse
from pathlib import Path

import gpa_lsp.gpu.arch
from gpa_lsp.gpu.arch.lookup import load_opcode_classes, read_architecture
from gpa_lsp.profile.read import read_profile
from tests.bench import time_work
from tests.conftest import ROOT, find_corpus


def main() -> None:
    """Print one row per file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    corpus = find_corpus()
    profiles = [ROOT / "fixtures" / "example.gpa-profile.json", *sorted((corpus / "ncu").glob("*") if corpus else ())]
    print(f"{'file':42} {'min ms':>8} {'median ms':>10} {'KiB':>8}")
    for path in profiles:
        _print_row(path, *time_work(lambda path=path: read_profile(path), options.times))
    opcodes = load_opcode_classes()
    for table in sorted((Path(gpa_lsp.gpu.arch.__file__).parent / "tables").glob("sm_*.toml")):
        number = int(table.stem.removeprefix("sm_"))
        capability = divmod(number, 10)
        _print_row(table, *time_work(lambda t=table, c=capability: read_architecture(t, opcodes, c), options.times))


def _print_row(path: Path, smallest: float, median: float) -> None:
    print(f"{path.name:42} {1000 * smallest:8.1f} {1000 * median:10.1f} {path.stat().st_size / 1024:8.0f}")


if __name__ == "__main__":
    main()
