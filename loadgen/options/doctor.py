"""The options of `doctor`."""

from typing import Literal

from loadgen.options.fields import option
from loadgen.options.target import TargetOptions


class DoctorOptions(TargetOptions):
    """Which of this client's transports to check, and which target if any."""

    transport: Literal["native", "httpx", "both", "none"] = option(
        "native",
        "Transports of this client to check; native is what runs use unless told otherwise.",
        panel="Client",
        metavar="native|httpx|both|none",
    )
    json_output: bool = option(False, "Print the checks as JSON.", panel="Output", flags=("--json",))
