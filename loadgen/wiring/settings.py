"""What the engine is told of a run beside its plan."""

from loadgen.core.request import RequestTemplate
from loadgen.core.run import Load
from loadgen.core.schedule.share import WHOLE, Share
from loadgen.engine.runner import RunSettings
from loadgen.options.load import CommonOptions


def settings_of(
    options: CommonOptions,
    load: Load,
    template: RequestTemplate,
    *,
    warmup_requests: int,
    secrets: tuple[str, ...],
    share: Share = WHOLE,
) -> RunSettings:
    """The settings of one run, or of one process's share of it."""
    return RunSettings(
        load=load,
        share=share,
        endpoint=template.endpoint,
        template=template,
        warmup_requests=warmup_requests,
        ramp_up_s=options.ramp_up,
        grace_s=options.grace,
        keep_text=options.save_text,
        secrets=secrets,
    )
