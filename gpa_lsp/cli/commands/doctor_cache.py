"""``gpa-lsp doctor cache``: what is kept between runs, and how to remove it."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT
from gpa_lsp.cli.options import add_format_argument, declare
from gpa_lsp.cli.outputs import write_answer
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.document.blocks import Block, Paragraph, tabulate
from gpa_lsp.document.layout import Style, flexible, right
from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.foundation.numbers import format_bytes, format_count, format_count_of


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, "--clear  remove everything in the cache; it is rebuilt when needed")
    add_format_argument(parser, "json")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.cli.installation import list_kept  # knows everything that is kept, and so imports a good deal

    kinds = list_kept()
    kept = [reason for files in kinds.values() for reason in files.clear()] if arguments.clear else []
    write_answer(
        arguments,
        terminal,
        text=lambda: _build(kinds, find_cache_folder()),
        json=lambda: _describe(kinds),
    )
    if not kept:
        return 0
    count = format_count_of(len(kept), "file")
    terminal.complain(f"gpa-lsp: {count} could not be removed: {kept[0]}; check the permissions of the folder")
    return EXIT_BAD_INPUT


def _describe(kinds: Mapping[str, KeptFiles]) -> dict[str, object]:
    rows = []
    for name, files in kinds.items():
        count, size_bytes = files.measure()
        limits = {"entries": count, "size_bytes": size_bytes, "limit_bytes": files.limit_bytes}
        rows.append({"name": name, "folder": str(files.folder), **limits})
    return {"folder": str(find_cache_folder()), "kinds": rows}


def _build(kinds: Mapping[str, KeptFiles], folder: Path) -> list[Block]:
    rows = [(name, *files.measure(), files.limit_bytes) for name, files in kinds.items()]
    table = tabulate(
        rows,
        [
            (flexible(str(folder), 24), lambda row: row[0]),
            (right("entries"), lambda row: format_count(row[1])),
            (right("size"), lambda row: format_bytes(row[2])),
            (right("limit"), lambda row: format_bytes(row[3])),
        ],
    )
    hint = "gpa-lsp doctor cache --clear empties the cache; it is rebuilt when needed."
    return [table, *([Paragraph(text=hint, style=Style.DIM)] if any(row[1] for row in rows) else [])]


COMMAND = Command(
    summary="show what is cached between runs, or remove it",
    description="Show how many analysed reports, disassembled functions and compiled libraries are in the user's cache, and where; or remove them.",
    purpose=Purpose.USE,
    examples=(
        ("doctor cache", "what is cached between runs, and where"),
        ("doctor cache --clear", "remove it"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
