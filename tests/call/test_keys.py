"""Keys are gathered into one entry."""

from __future__ import annotations

from voice_agent.call.keys import MAX_DIGITS, KeyBuffer


def test_the_hash_closes_an_entry() -> None:
    keys = KeyBuffer()
    assert [keys.press(k, 0.0) for k in "12#"] == [None, None, "12"]
    assert not keys


def test_a_pause_closes_an_entry_once() -> None:
    keys = KeyBuffer(3.0)
    keys.press("7", 0.0)
    keys.press("8", 2.0)
    assert keys.expired(4.9) is None
    assert keys.expired(5.0) == "78"
    assert keys.expired(9.0) is None


def test_a_hash_alone_is_an_entry() -> None:
    assert KeyBuffer().press("#", 0.0) == "#"


def test_what_is_no_key_is_ignored() -> None:
    keys = KeyBuffer()
    for key in ("", "x", "12", "€"):
        assert keys.press(key, 0.0) is None
    assert not keys


def test_no_entry_grows_without_bound() -> None:
    keys = KeyBuffer()
    entries = [keys.press("1", 0.0) for _ in range(MAX_DIGITS)]
    assert entries[-1] == "1" * MAX_DIGITS
