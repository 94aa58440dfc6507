"""Addresses inside the page: fragments that name a kernel, a part of it, a line or an instruction."""

from msgspec import Struct, field

from gpa_lsp.foundation.prose import Place


class KernelAddresses(Struct, kw_only=True):
    """Fragments of one kernel's places. Files are numbered as they are met, so that no path stands in an address."""

    kernel: int  # number of the kernel in the report
    files: dict[str, int] = field(default_factory=dict)  # path as compiled → its number
    coded_files: frozenset[str] = frozenset()  # those the page can show

    @property
    def whole(self) -> str:
        """The kernel's section."""
        return f"#k{self.kernel}"

    def part(self, name: str) -> str:
        """A part of the section: ``advice``, ``code``.

        >>> KernelAddresses(kernel=3).part("advice")
        '#k3/advice'
        """
        return f"{self.whole}/{name}"

    def number_file(self, file: str) -> int:
        """The number of a file."""
        return self.files.setdefault(file, len(self.files))

    def line(self, file: str | None, line: int | None) -> str:
        """A source line; empty for code without one.

        >>> KernelAddresses(kernel=3).line("k.cu", 8)
        '#k3/line/0/8'
        """
        return f"{self.whole}/line/{self.number_file(file)}/{line}" if file is not None and line else ""

    def place(self, place: Place) -> str:
        """A line that a sentence names; empty for a file without code of this kernel."""
        return self.line(place.file, place.line) if place.file in self.coded_files else ""

    def link(self, at: Place | int) -> str:
        """A line, or an instruction by its row."""
        return self.row(at) if isinstance(at, int) else self.place(at)

    def row(self, row: int) -> str:
        """An instruction, by its row in the report's columns."""
        return f"{self.whole}/row/{row}"
