"""A table as text, for a terminal and a page alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """Cells as they are shown. The first column names the row; a title that begins with `<` heads words, not numbers.

    `marked` rows stand out. `spare` columns go first, in that order, where there is no room for all. `about` says what
    is under a title, where the title alone does not; it is shown with its column.
    """

    caption: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: tuple[int, ...] = ()
    spare: tuple[int, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def told(self, left_out: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Titles with what is under them, in the order of the columns, without those that had to go."""
        titles = [title.removeprefix("<") for title in self.titles]
        return [(title, self.about[title]) for title in titles if title in self.about and title not in left_out]
