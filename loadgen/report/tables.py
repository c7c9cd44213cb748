"""A table as text, for a terminal and a page alike."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """Cells as they are shown. The first column names the row; a title that begins with `<` heads words, not numbers.

    `marked` rows stand out. `spare` columns go first, in that order, where there is no room for all.
    """

    caption: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: tuple[int, ...] = ()
    spare: tuple[int, ...] = ()
