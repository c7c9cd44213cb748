"""SVG as PNG, for where no SVG can go. Needs resvg, which the `png` extra installs."""

from functools import cache
from typing import Any

from loadgen.core.errors import ConfigError

_ZOOM = 2.0
"""Pixels for each of the SVG's, so that letters are sharp on dense screens."""

_LETTER = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    '<text y="15" font-family="sans-serif">{word}</text></svg>'
)
_FAMILIES = (
    *(
        "Arial",
        "Helvetica",
        "DejaVu Sans",
        "Liberation Sans",
        "Noto Sans",
        "Open Sans",
        "Roboto",
        "Ubuntu",
        "Cantarell",
    ),
    *("Cantarell", "Segoe UI", "Verdana", "FreeSans", "Nimbus Sans"),
)
"""What may be there for `sans-serif`. resvg knows Arial alone by that name, and does not ask fontconfig."""


def png_of(svg: str) -> bytes:
    """The picture. Raises ConfigError without resvg, and without any usual font: it would leave out all words."""
    resvg, family = _resvg()
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=_ZOOM, sans_serif_family=family))


@cache
def _resvg() -> tuple[Any, str]:
    try:
        import resvg_py
    except ImportError as fault:
        raise ConfigError(
            "--png needs resvg-py, which is missing: pip install '.[png]' in a clone of Loadgen adds it"
        ) from fault
    for family in _FAMILIES:
        with_a_word, without = (
            resvg_py.svg_to_bytes(svg_string=_LETTER.format(word=word), sans_serif_family=family) for word in ("M", "")
        )
        if with_a_word != without:
            return resvg_py, family
    raise ConfigError(
        "--png: words would be missing, since no usual font is installed here (such as DejaVu Sans: Debian's package"
        " fonts-dejavu-core); install one, or take --svg"
    )
