"""Screen of a user of Neovim: the grid its user interface is told to draw, and pictures of it."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

CELL_WIDTH, CELL_HEIGHT = 8.4, 19
"""Pixels of a cell in pictures, for a monospaced font of 14 pixels."""


class Screen:
    """One grid, kept in step with ``redraw`` notifications (``ext_linegrid``)."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cells: list[list[tuple[str, int]]] = []
        self._drawn: list[list[tuple[str, int]]] = []
        self.attributes: dict[int, Mapping[str, Any]] = {}
        self.foreground, self.background = 0xD0D0D0, 0x101010
        self.cursor = (0, 0)
        self._clear()
        self._on_flush()

    def take(self, events: Sequence[Any]) -> None:
        """Apply the events of one ``redraw`` notification."""
        for name, *calls in events:
            apply = getattr(self, f"_on_{name}", None)
            for call in calls if apply is not None else ():
                apply(*call)

    def line(self, row: int) -> str:
        return "".join(text for text, _ in self.cells[row]).rstrip()

    @property
    def text(self) -> str:
        return "\n".join(self.line(row) for row in range(len(self.cells)))

    def find(self, text: str) -> tuple[int, int] | None:
        """Row and column at which a text stands on the screen."""
        for row in range(len(self.cells)):
            # a wide character has an empty cell behind it, so columns of the text are not those of the grid
            column = self.line(row).find(text)
            if column >= 0:
                return row, column
        return None

    def find_line(self, *texts: str) -> str:
        """The first line that holds all of some texts; empty where none does."""
        lines = ("".join(text for text, _ in cells).rstrip() for cells in self.cells)  # of one moment
        return next((line for line in lines if all(text in line for text in texts)), "")

    def background_at(self, row: int, column: int) -> int:
        """Colour of a cell's background, 0xrrggbb."""
        return self._colours(self.cells[row][column][1])[1]

    def foreground_at(self, row: int, column: int) -> int:
        """Colour of a cell's letter, 0xrrggbb."""
        return self._colours(self.cells[row][column][1])[0]

    def _colours(self, attribute: int) -> tuple[int, int]:
        found = self.attributes.get(attribute, {})
        front, back = found.get("foreground", self.foreground), found.get("background", self.background)
        return (back, front) if found.get("reverse") else (front, back)

    def _clear(self) -> None:
        self._drawn = [[(" ", 0)] * self.columns for _ in range(self.rows)]

    def _on_grid_resize(self, grid: int, columns: int, rows: int) -> None:
        if grid == 1:
            self.columns, self.rows = columns, rows
            self._clear()

    def _on_grid_clear(self, grid: int) -> None:
        self._clear()

    def _on_default_colors_set(self, front: int, back: int, *rest: Any) -> None:
        self.foreground, self.background = (front if front >= 0 else 0xD0D0D0), (back if back >= 0 else 0x101010)

    def _on_hl_attr_define(self, number: int, colours: Mapping[str, Any], *rest: Any) -> None:
        self.attributes[number] = colours

    def _on_grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _on_flush(self) -> None:
        # what is drawn in several messages is seen when the last has come
        self.cells = [list(row) for row in self._drawn]

    def _on_grid_line(self, grid: int, row: int, column: int, cells: Sequence[Any], *rest: Any) -> None:
        attribute = 0
        for text, *more in cells:
            attribute = more[0] if more else attribute
            for _ in range(more[1] if len(more) > 1 else 1):
                self._drawn[row][column] = (text, attribute)
                column += 1

    def _on_grid_scroll(self, grid: int, *area: int) -> None:
        top, bottom, left, right, rows, _ = area
        moved = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in moved:
            self._drawn[row][left:right] = self._drawn[row + rows][left:right]

    def render_svg(self) -> str:
        """A picture of the screen."""
        width, height = self.columns * CELL_WIDTH + 16, self.rows * CELL_HEIGHT + 16
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans Mono, monospace" font-size="14">',
            f'<rect width="100%" height="100%" rx="6" fill="#{self.background:06x}"/>',
        ]
        for row, cells in enumerate(self.cells):
            column = 0
            while column < self.columns:
                attribute = cells[column][1]
                end = column
                while end < self.columns and cells[end][1] == attribute:
                    end += 1
                parts += self._render_run(row, column, "".join(text for text, _ in cells[column:end]), end, attribute)
                column = end
        row, column = self.cursor
        parts.append(
            f'<rect x="{8 + column * CELL_WIDTH:.1f}" y="{8 + row * CELL_HEIGHT}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" '
            f'fill="#{self.foreground:06x}" fill-opacity="0.55"/>'
        )
        return "\n".join([*parts, "</svg>", ""])

    def _render_run(self, row: int, column: int, text: str, end: int, attribute: int) -> list[str]:
        front, back = self._colours(attribute)
        found = self.attributes.get(attribute, {})
        x, y = 8 + column * CELL_WIDTH, 8 + row * CELL_HEIGHT
        width = (end - column) * CELL_WIDTH
        parts = []
        if back != self.background:
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{CELL_HEIGHT}" fill="#{back:06x}" shape-rendering="crispEdges"/>'
            )
        if text.strip():
            style = "".join(
                value
                for name, value in (("bold", ' font-weight="bold"'), ("italic", ' font-style="italic"'))
                if found.get(name)
            )
            parts.append(
                f'<text x="{x:.1f}" y="{y + 14}" textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs" xml:space="preserve" '
                f'fill="#{front:06x}"{style}>{escape(text)}</text>'
            )
        if any(found.get(name) for name in ("underline", "undercurl", "underdotted", "underdashed")):
            line = found.get("special", front)
            parts.append(
                f'<path d="M{x:.1f} {y + 17}h{width:.1f}" stroke="#{line:06x}" stroke-dasharray="2 2" fill="none"/>'
            )
        return parts

    def save(self, path: Path) -> None:
        """Write the picture, and the text beside it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.render_svg(), encoding="utf-8")
        path.with_suffix(".txt").write_text(self.text, encoding="utf-8")
