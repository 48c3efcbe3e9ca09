"""Wrong inputs of claimed operators raise at the call what PyTorch raises."""

import pytest

from .claims import read
from .known import KNOWN_ERRORS

CLAIMED = [
    claim.entry
    for claim in read().values()
    if claim.errors and claim.all_errors and claim.entry not in KNOWN_ERRORS
]


@pytest.mark.parametrize("entry", CLAIMED)
def test_raises(entry):
    from .faults import check_errors

    outcomes = [o for o in check_errors(entry) if o.state != "skipped"]
    assert outcomes
    assert [o for o in outcomes if o.state != "ok"] == []
