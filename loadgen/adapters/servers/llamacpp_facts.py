"""What llama.cpp's server tells of its configuration: `/props`, and `/slots` for whether it drafts.

Names are those of the server's README and of `tools/server`. `/props` may say that nothing is drafted where it is.
"""

from typing import Any

from loadgen.adapters.servers.control import Control
from loadgen.adapters.servers.engine_facts import EngineFacts, count, flag, mapping, text
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration


async def llamacpp_facts(control: Control) -> EngineFacts:
    """Everything that the server tells. Slots hold other people's prompts: of them no more than their settings is read.

    Its answers always carry an account, which tells drafts once there were some.
    """
    props = await control.json_page("/props")
    settings = mapping(props.get("default_generation_settings"))
    slots = await control.page("/slots")
    slot = _first_slot(slots.json() if slots is not None and slots.status == 200 else None)
    drafts = flag(slot.get("speculative"))
    context = count(settings.get("n_ctx"))
    configuration = ServerConfiguration(
        speculates=drafts,
        max_num_seqs=count(props.get("total_slots")),
        max_model_len=context,
    )
    return EngineFacts(
        version=text(props.get("build_info")),
        max_model_len=context,
        configuration=None if configuration == ServerConfiguration() else configuration,
        speculation=_speculation(mapping(slot.get("params"))) if drafts else None,
        page=props or None,
    )


def _first_slot(slots: Any) -> dict[str, Any]:
    return mapping(slots[0]) if isinstance(slots, list) and slots else {}


def _speculation(parameters: dict[str, Any]) -> SpeculationConfiguration:
    return SpeculationConfiguration(
        method=text(parameters.get("speculative.types")) or text(parameters.get("speculative.type")),
        draft_tokens=count(parameters.get("speculative.n_max")),
    )
