from __future__ import annotations

import pytest

from voice_agent.channels.outbound_calls import allows


@pytest.mark.parametrize(
    ("prefix", "to", "allowed"),
    [
        ("+1555", "+15550123", True),
        ("+1555", "+1555", True),
        ("+1555", "+1444", False),
        ("sip:", "sip:anybody@anywhere.example", True),
        ("sip:desk@", "sip:desk@anywhere.example", True),
        ("sip:desk@example.com", "sip:desk@example.com", True),
        ("sip:desk@example.com", "sip:desk@example.com:5070;transport=udp", True),
        ("sip:desk@example.com", "sip:desk@example.com.elsewhere.example", False),
        ("sip:desk@example.com", "sip:desk@example.comx", False),
    ],
)
def test_a_prefix_allows_what_begins_with_it_and_no_other_host(prefix: str, to: str, allowed: bool) -> None:
    assert allows(prefix, to) is allowed
