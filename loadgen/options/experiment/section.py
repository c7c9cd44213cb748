"""What all sections of an experiment file are made of."""

from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo, field_validator


class Section(BaseModel):
    """A part of the file; a field that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _a_truth_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """`yes` and `on`, too, are truth values of YAML, and Python takes one for a number."""
        given = value if isinstance(value, list) else [value]
        field = cls.model_fields[str(info.field_name)]
        if any(isinstance(each, bool) for each in given) and _holds_numbers(field.annotation):
            raise ValueError(f"expected a number, got {value!r}")
        return value


def folder_of(info: ValidationInfo) -> Path:
    """The folder of the file, from which its paths are seen."""
    folder: Path = (info.context or {}).get("folder", Path())
    return folder


def _beside_the_file(path: Path, info: ValidationInfo) -> Path:
    return folder_of(info) / path


def _holds_numbers(annotation: Any) -> bool:
    return annotation in (int, float) or any(map(_holds_numbers, get_args(annotation)))


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
