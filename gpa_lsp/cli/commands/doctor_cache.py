"""``gpa-lsp doctor cache``: what is kept between runs, and how to remove it."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT
from gpa_lsp.cli.outputs import add_format_argument, write_json
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.document.blocks import Block, Paragraph, Table
from gpa_lsp.document.layout import Align, Column, Span, Style
from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.foundation.numbers import format_bytes, format_count, format_count_of


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clear", action="store_true", help="remove everything that is kept; it is rebuilt when needed"
    )
    add_format_argument(parser, "json")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.cli.installation import list_kept  # knows everything that is kept, and so imports a good deal

    kinds = list_kept()
    kept = [reason for files in kinds.values() for reason in files.clear()] if arguments.clear else []
    if arguments.format == "json":
        write_json(_describe(kinds), None, terminal)
    else:
        terminal.write_blocks(_build(kinds, find_cache_folder()))
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
    columns = (
        Column(title=str(folder), align=Align.LEFT, can_shrink=True, min_chars=24),
        Column(title="entries", align=Align.RIGHT),
        Column(title="size", align=Align.RIGHT),
        Column(title="limit", align=Align.RIGHT),
    )
    rows: list[list[Span]] = []
    for name, files in kinds.items():
        count, size_bytes = files.measure()
        cells = (format_count(count), format_bytes(size_bytes), format_bytes(files.limit_bytes))
        rows.append([(name, Style.PLAIN), *((cell, Style.PLAIN) for cell in cells)])
    is_kept = any(files.measure()[0] for files in kinds.values())
    hint = "gpa-lsp doctor cache --clear removes it; it is rebuilt when needed."
    return [Table(columns=columns, rows=rows), *([Paragraph(text=hint, style=Style.DIM)] if is_kept else [])]


COMMAND = Command(
    summary="say what is kept between runs, or remove it",
    description="Say how many analysed reports, disassembled functions and scripts are kept in the user's cache, and where; or remove them.",
    purpose=Purpose.USE,
    examples=(
        ("doctor cache", "what is kept between runs, and where"),
        ("doctor cache --clear", "remove it"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
