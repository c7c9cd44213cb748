"""Our form fields in Locust's page, which makes its form from the arguments of its command line."""

from argparse import Namespace
from collections.abc import Sequence

from locust import events
from locust.argument_parser import LocustArgumentParser, get_parser

from loadgen.locustio.form import FormField


def parsed_options(fields: Sequence[FormField]) -> Namespace:
    """Locust's own options, at their defaults, with the fields of our form."""

    def add(parser: LocustArgumentParser, **_: object) -> None:
        for field in fields:
            parser.add_argument(
                f"--{field.name.replace('_', '-')}",
                dest=field.name,
                default=field.value,
                choices=field.choices,
                help=field.about,
            )

    events.init_command_line_parser.add_listener(add)
    found: Namespace = get_parser(default_config_files=[]).parse_args([])
    return found
