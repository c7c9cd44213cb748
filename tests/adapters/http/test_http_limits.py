"""What this process may hold is checked before a load that needs more."""

import sys

import pytest

from loadgen.adapters.http.limits import check_connections, raise_descriptor_limit
from loadgen.core.errors import ConfigError


def test_as_many_connections_as_descriptors_are_refused() -> None:
    """No room is left for anything else: refused with the limit and what to do; a few are fine."""
    limit = raise_descriptor_limit()
    if limit is None:
        pytest.skip("descriptors are not limited here")
    with pytest.raises(ConfigError, match=f"{limit} open descriptors"):
        check_connections(limit, local_ports=False)
    check_connections(5, local_ports=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells its range of local ports")
def test_more_connections_than_local_ports_are_refused() -> None:
    """One destination cannot be reached by more TCP connections than there are ports."""
    with pytest.raises(ConfigError, match="local ports"):
        check_connections(65_536, local_ports=True)
    check_connections(20, local_ports=False)
