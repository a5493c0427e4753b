from __future__ import annotations

import pytest

from voice_agent.channels import tokens
from voice_agent.channels.tokens import PREFIX, CallTokens, Grant, TokenRefused, TooManyTokens

WINDOW_S = 30.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def out(clock: Clock) -> CallTokens:
    return CallTokens(clock)


def refusal(out: CallTokens, token: str) -> str | None:
    try:
        out.find(token)
    except TokenRefused as fault:
        return fault.code
    return None


def test_a_token_stands_for_one_conversation_and_its_metadata(out: CallTokens) -> None:
    token, grant = out.issue("c1", {"tier": "gold"}, 60)
    assert token.startswith(PREFIX)
    assert len(token) > 60
    assert out.find(token) is grant
    assert (grant.conversation_id, grant.metadata) == ("c1", {"tier": "gold"})
    other, _ = out.issue("c1", {}, 60)
    assert other != token


def test_neither_the_token_nor_its_digest_shows_where_a_grant_is_printed(out: CallTokens) -> None:
    token, grant = out.issue("c1", {}, 60)
    secret = token.rsplit("_", 1)[-1]
    assert secret not in repr(grant)
    assert secret not in repr(vars(out))
    assert "digest" not in repr(grant)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1],
        lambda token: token + "x",
        lambda token: token.upper(),
        lambda token: token.rpartition("_")[0],
        lambda token: "",
        lambda token: "call_",
        lambda token: "call_\ud800_\ud800",
    ],
)
def test_anything_but_the_whole_token_is_unknown(out: CallTokens, spoil: object) -> None:
    token, _ = out.issue("c1", {}, 60)
    assert refusal(out, spoil(token)) == "bad_token"  # type: ignore[operator]


def test_a_token_expires_before_its_call_and_not_during_it(out: CallTokens, clock: Clock) -> None:
    token, grant = out.issue("c1", {}, 60)
    clock.now += 59
    assert refusal(out, token) is None
    grant.begin()
    clock.now += 10_000
    assert refusal(out, token) is None
    late, _ = out.issue("c2", {}, 60)
    clock.now += 61
    assert refusal(out, late) == "token_expired"


def test_a_token_is_good_for_one_call(out: CallTokens) -> None:
    token, grant = out.issue("c1", {}, 60)
    grant.begin()
    grant.end()
    assert refusal(out, token) == "token_used"
    with pytest.raises(TokenRefused):
        grant.begin()


def test_a_dropped_call_is_resumed_within_the_window_and_not_after_it(out: CallTokens, clock: Clock) -> None:
    token, grant = out.issue("c1", {}, 60)
    first = grant.begin()
    assert first == grant.call_id
    clock.now += 500
    grant.end(resumable_s=WINDOW_S)
    clock.now += WINDOW_S
    assert refusal(out, token) is None
    assert grant.begin() != first
    grant.end(resumable_s=WINDOW_S)
    clock.now += WINDOW_S + 1
    assert refusal(out, token) == "token_used"


def test_a_call_of_which_nothing_came_leaves_the_token_as_it_was(out: CallTokens, clock: Clock) -> None:
    token, grant = out.issue("c1", {}, 60)
    for _ in range(3):
        assert grant.begin() == grant.call_id
        clock.now += 15
        grant.give_back()
        assert refusal(out, token) is None
    grant.begin()
    grant.end(resumable_s=WINDOW_S)
    clock.now += WINDOW_S - 1
    assert grant.begin() != grant.call_id
    clock.now += 15
    grant.give_back()
    # Attempts prolong nothing: neither the time to call nor the time to come back.
    assert refusal(out, token) == "token_used"
    late, unused = out.issue("c2", {}, 10)
    unused.begin()
    clock.now += 15
    unused.give_back()
    assert refusal(out, late) == "token_expired"


def test_the_number_of_tokens_is_bounded_and_spent_ones_make_room(
    out: CallTokens, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "MAX_TOKENS", 3)
    live = [out.issue(f"c{n}", {}, 60) for n in range(3)]
    live[0][1].begin()
    with pytest.raises(TooManyTokens):
        out.issue("c9", {}, 60)
    clock.now += 61
    assert [refusal(out, token) for token, _ in live] == [None, "token_expired", "token_expired"]
    out.issue("c9", {}, 60)
    assert len(out) == 2
    assert refusal(out, live[0][0]) is None


def test_used_tokens_are_forgotten_after_a_while(out: CallTokens, clock: Clock) -> None:
    def use(grant: Grant) -> None:
        grant.begin()
        grant.end()

    for n in range(100):
        use(out.issue(f"c{n}", {}, 60)[1])
    clock.now += tokens.KEPT_AFTER_S + 1
    out.issue("c", {}, 60)
    assert len(out) == 1
