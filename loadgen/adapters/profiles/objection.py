"""Something to say against a profile, and where it stands."""

from dataclasses import dataclass

from loadgen.adapters.profiles.files import ProfileFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Something about a profile. `fatal`: it would not start, or what it measures would not be what it claims."""

    where: str
    text: str
    fatal: bool = True


def at(found: ProfileFile, text: str, *keys: str, fatal: bool = True) -> Objection:
    """What there is to say of the field that `keys` lead to."""
    return Objection(where=found.where(*keys), text=text, fatal=fatal)
