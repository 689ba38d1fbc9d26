"""The flags and segments that the tokens of one scope see at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from flagadmin.core.db.transactions import consistent_reads
from sdk.delta.scope import Scope
from sdk.features.cache import find_compressed_chunks
from sdk.features.chunks import Chunk
from sdk.features.pieces import Piece, Place, read_pieces


@dataclass(frozen=True, slots=True)
class Content:
    """The pieces of a scope's projects by id."""

    place: Place
    pieces: Mapping[str, Piece]

    @property
    def revisions(self) -> dict[str, int]:
        return {project: piece.revision for project, piece in self.pieces.items()}

    @property
    def nbytes(self) -> int:
        return sum(piece.nbytes for piece in self.pieces.values())

    @property
    def flags(self) -> list[tuple[str, bytes]]:
        """All flags with their names, in the order of the names."""
        flags: list[tuple[str, bytes]] = []
        for piece in self.pieces.values():
            flags.extend(piece.flags.items())
        return sorted(flags)

    @property
    def segments(self) -> dict[int, bytes]:
        """All segments by id, in order."""
        segments: dict[int, bytes] = {}
        for piece in self.pieces.values():
            segments.update(piece.segments)
        return dict(sorted(segments.items()))

    def get_flag(self, name: str, project: str) -> bytes | None:
        piece = self.pieces.get(project)
        return piece.flags.get(name) if piece else None

    def find_changed_flags(self, before: "Content") -> dict[str, str]:
        """The names of the flags that differ, each with the project in which it is, or was before it went."""
        removed: dict[str, str] = {}
        changed: dict[str, str] = {}
        for project in before.pieces.keys() | self.pieces.keys():
            old, new = before.pieces.get(project), self.pieces.get(project)
            if old is None or new is None or old.revision != new.revision:
                was, now = old.flags if old else {}, new.flags if new else {}
                removed |= dict.fromkeys(was.keys() - now.keys(), project)
                changed |= {name: project for name, text in now.items() if was.get(name) != text}
        return removed | changed  # a flag that moved is in its new project

    def find_compressed_chunks(self) -> list[Chunk]:
        return find_compressed_chunks(self.place.environment, self.pieces)


def read_content(scope: Scope, *, using: str) -> Content:
    """The content in one database snapshot. Reads only projects of which no piece has their revision."""
    with consistent_reads(using):
        revisions = scope.read_revisions(using=using)
        place = Place(scope.environment, inline_segments=False)
        return Content(place, read_pieces(revisions, place, using=using))
