"""What all sections of an experiment file are made of."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, ValidationInfo

from loadgen.adapters.yaml_file import YamlModel


class Section(YamlModel):
    """A part of the file; a field that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def folder_of(info: ValidationInfo) -> Path:
    """The folder of the file, from which its paths are seen."""
    folder: Path = (info.context or {}).get("folder", Path())
    return folder


def _beside_the_file(path: Path, info: ValidationInfo) -> Path:
    return folder_of(info) / path


def nothing(value: Any) -> Any:
    """None for the word `none`."""
    return None if value == "none" else value


def _text(value: Any) -> Any:
    """Numbers of YAML as the text they were; a truth value has several spellings, so it has to be quoted."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError("expected a text without NUL, which no command can be given")
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


DataFile = Annotated[Path, AfterValidator(_beside_the_file)]
Text = Annotated[str, BeforeValidator(_text)]
