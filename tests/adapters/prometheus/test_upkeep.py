"""What is done for a monitor while it is watched, and undone."""

import sys
import threading

from loadgen.adapters.prometheus.upkeep import Upkeep


def test_what_waits_is_counted_without_a_reader() -> None:
    """Again and again, by a thread that is gone in the end."""
    before, taken = threading.active_count(), threading.Semaphore(0)
    upkeep = Upkeep(taken.release, every_s=0.01)
    assert taken.acquire(timeout=10)
    assert taken.acquire(timeout=10)
    upkeep.close()
    assert threading.active_count() == before


def test_the_lock_changes_hands_sooner_meanwhile() -> None:
    """And as before afterwards."""
    interval_s = sys.getswitchinterval()
    upkeep = Upkeep(lambda: None)
    assert sys.getswitchinterval() < interval_s / 5
    upkeep.close()
    assert sys.getswitchinterval() == interval_s
