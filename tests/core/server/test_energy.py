"""Energy of GPUs over a span, from a counter or from power."""

import pytest

from loadgen.core.server.energy import Energy, EnergyOrigin, energy
from loadgen.core.server.sample import GpuSample
from tests.core.server.factory import S, gpus, unread


def test_a_counter_gives_the_energy_of_the_span_itself() -> None:
    """100 J a second from 0 to 10 s: 4.5 s of it are 450 J, wherever the readings fell."""
    scrapes = [gpus(at, GpuSample(gpu="0", energy_j=5000 + 100 * at, power_w=1.0)) for at in (0, 3, 4, 10)]
    found = energy(scrapes, 2 * S, round(6.5 * S))
    assert found == Energy(energy_j=pytest.approx(450), gpus=1, origin=EnergyOrigin.COUNTER)


def test_power_is_integrated_by_trapezoids_where_there_is_no_counter() -> None:
    """From 100 W to 300 W over four seconds: 800 J, and 300 J in the first two; a failed reading is no zero."""
    scrapes = [
        gpus(0, GpuSample(gpu="0", power_w=100)),
        unread(1, source="gpu"),
        gpus(4, GpuSample(gpu="0", power_w=300)),
    ]
    assert energy(scrapes, 0, 4 * S) == Energy(energy_j=pytest.approx(800), gpus=1, origin=EnergyOrigin.POWER)
    assert energy(scrapes, 0, 2 * S) == Energy(energy_j=pytest.approx(300), gpus=1, origin=EnergyOrigin.POWER)


def test_gpus_add_up_and_are_all_read_the_same_way() -> None:
    """One GPU without a counter: both by power."""
    scrapes = [
        gpus(at, GpuSample(gpu="0", energy_j=100.0 * at, power_w=100), GpuSample(gpu="1", power_w=50)) for at in (0, 10)
    ]
    assert energy(scrapes, 0, 10 * S) == Energy(energy_j=pytest.approx(1500), gpus=2, origin=EnergyOrigin.POWER)


def test_a_counter_that_fell_is_left_for_power() -> None:
    """A driver that was loaded anew counts from zero."""
    scrapes = [
        gpus(at, GpuSample(gpu="0", energy_j=joules, power_w=10)) for at, joules in ((0, 900), (1, 5), (2, 1000))
    ]
    found = energy(scrapes, 0, 2 * S)
    assert found == Energy(energy_j=pytest.approx(20), gpus=1, origin=EnergyOrigin.POWER)


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (0, 3), (5, 6)])
def test_readings_that_do_not_reach_make_no_energy(start: int, end: int) -> None:
    """Part of the span is not the span."""
    scrapes = [gpus(at, GpuSample(gpu="0", power_w=10)) for at in (0, 1, 2)]
    assert energy(scrapes, start * S, end * S) is None


def test_no_gpu_no_energy_and_no_token_no_joules_a_token() -> None:
    """Unknown, not zero."""
    assert energy([], 0, S) is None
    found = Energy(energy_j=600.0, gpus=1, origin=EnergyOrigin.COUNTER)
    assert found.per_token_j(300) == 2.0
    assert found.per_token_j(0) is None
    assert found.per_token_j(None) is None
