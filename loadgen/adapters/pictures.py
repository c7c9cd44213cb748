"""SVG as PNG, for where no SVG can go. Needs resvg, which the `png` extra installs."""

from functools import cache
from typing import Any

from loadgen.core.errors import ConfigError

_ZOOM = 2.0
"""Pixels for each of the SVG's, so that letters are sharp on dense screens."""

_WITHOUT, _WITH = (
    f'<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="15">{word}</text></svg>'
    for word in ("", "M")
)


def png_of(svg: str) -> bytes:
    """The picture. Raises ConfigError without resvg, and where no font is installed: it would leave out all words."""
    return bytes(_resvg().svg_to_bytes(svg_string=svg, zoom=_ZOOM))


@cache
def _resvg() -> Any:
    try:
        import resvg_py
    except ImportError as fault:
        raise ConfigError(
            "--png needs resvg-py, which is missing: pip install '.[png]' in a clone of Loadgen adds it"
        ) from fault
    if resvg_py.svg_to_bytes(svg_string=_WITH) == resvg_py.svg_to_bytes(svg_string=_WITHOUT):
        raise ConfigError("--png: no font is installed here, and words would be missing; install one, or take --svg")
    return resvg_py
