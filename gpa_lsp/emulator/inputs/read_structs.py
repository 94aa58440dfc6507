"""Members of structures passed by value, laid out as C++ does."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpa_lsp.emulator.inputs.tables import Table
from gpa_lsp.emulator.inputs.type_names import ElementType, read_type
from gpa_lsp.emulator.launch import ArrayArgument, ScalarArgument
from gpa_lsp.emulator.ptx.layout import align_up
from gpa_lsp.emulator.ptx.scalar_types import ScalarType

if TYPE_CHECKING:
    from gpa_lsp.emulator.inputs.read_arguments import ArgumentReader

_DEEPEST = 8
_MOST_MEMBERS = 4096
_LARGEST_STRUCT = 32764
_POINTER = ElementType(scalar=ScalarType.B64)


@dataclass(slots=True, kw_only=True)
class StructReader:
    """Reads the members of one structure, those of structures in it included.

    Attributes:
        arguments: reads arrays and numbers.
        owner: the structure's name, for arrays without one.
        members: (offset in bytes, member).
        end_bytes: behind the last byte of a member.
        alignment_bytes: the largest of a member.
    """

    arguments: "ArgumentReader"
    owner: str
    members: list[tuple[int, ScalarArgument | ArrayArgument]] = field(default_factory=list)
    end_bytes: int = 0
    alignment_bytes: int = 1

    @property
    def size_bytes(self) -> int:
        """Of the whole, padding at its end included."""
        return align_up(self.end_bytes, self.alignment_bytes)

    def read_members(self, table: Table, start: int, depth: int) -> tuple[int, int]:
        """Read the members of a structure that begins at ``start``.

        Returns:
            The byte behind it, padding included, and its alignment.

        Raises:
            InputError: a member is none, or there are too many.
        """
        if depth > _DEEPEST:
            raise table.refuse("structures are nested too deeply", remedy=f"write at most {_DEEPEST} levels")
        place, alignment = start, 1
        for number, member in enumerate(table.read_tables("members", "members")):
            if len(self.members) > _MOST_MEMBERS:
                raise member.refuse(f"more than {_MOST_MEMBERS} members", remedy="write fewer")
            own = self._find_alignment(member, depth)
            at = member.read_integer(
                "at", self.arguments.names.find, align_up(place - start, own), most=_LARGEST_STRUCT
            )
            place = max(place, self._read_member(member, start + at, number, depth))
            alignment = max(alignment, own)
        self.end_bytes = max(self.end_bytes, place)
        self.alignment_bytes = max(self.alignment_bytes, alignment)
        return align_up(place - start, alignment) + start, alignment

    def _find_alignment(self, member: Table, depth: int) -> int:
        if depth > _DEEPEST:
            return 1
        if "members" in member.content:
            inner = member.read_tables("members", "members")
            return max((self._find_alignment(one, depth + 1) for one in inner), default=1)
        return self._find_element(member).alignment_bytes

    def _find_element(self, member: Table) -> ElementType:
        return read_type(member.read_text("type")) if _is_number(member) else _POINTER

    def _read_member(self, member: Table, at: int, number: int, depth: int) -> int:
        """Read one; returns the byte behind it."""
        content = {key: value for key, value in member.content.items() if key != "at"}
        inner = Table(content=content, place=member.place, lines=member.lines, path=member.path)
        if "members" in content:
            inner.check_keys({"name", "members"}, "a structure in a structure")
            return self.read_members(inner, at, depth + 1)[0]
        if not _is_number(inner):
            name = inner.read_text("name", f"{self.owner}.{number}")
            found = self.arguments.arrays.read(inner, name)
            self.members.append((at, found))
            return at + _POINTER.bytes
        scalars = self.arguments.read_number_member(inner, inner.read_text("name", f"{self.owner}.{number}"))
        for one in scalars:
            self.members.append((at, one))
            at += one.type.bytes
        return at


def _is_number(member: Table) -> bool:
    """Plain numbers, as opposed to a pointer to an array."""
    return not {"count", "shape", "fill", "values", "file", "alias_of"} & member.content.keys()
