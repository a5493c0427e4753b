from __future__ import annotations

import pytest

from voice_agent.channels.tokens import CallTokens, granted
from voice_agent.config import ServerOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.security import Gate, api_key, is_loopback

KEY = "0123456789abcdef-key"


OWN_PATHS = ["/agent", "/ws", "/offer", "/webrtc/config", "/call/1234"]


def scope(
    path: str = "/v1/x",
    *,
    kind: str = "http",
    host: str = "127.0.0.1:8080",
    origin: str = "",
    bearer: str = "",
    q: str = "",
) -> dict[str, object]:
    headers = [(b"host", host.encode())]
    if origin:
        headers.append((b"origin", origin.encode()))
    if bearer:
        headers.append((b"authorization", bearer.encode()))
    return {"type": kind, "path": path, "headers": headers, "query_string": q.encode()}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "LOCALHOST.", "x.localhost"])
def test_loopback_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.2", "example.com", "localhost.evil.com", "127.0.0.1.evil.com", ""]
)
def test_other_names(host: str) -> None:
    assert not is_loopback(host)


def test_listening_wider_than_loopback_needs_a_key() -> None:
    options = ServerOptions(host="0.0.0.0", api_key_env="MY_KEY")
    with pytest.raises(RemediableError, match="Set MY_KEY"):
        api_key(options, {})
    assert api_key(options, {"MY_KEY": KEY}) == KEY
    assert api_key(ServerOptions(), {}) is None


def test_a_short_key_is_refused() -> None:
    with pytest.raises(RemediableError, match="shorter than 16"):
        api_key(ServerOptions(), {"VOICE_AGENT_API_KEY": "secret"})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bearer": "Bearer wrong"},
        {"bearer": "Bearer "},
        {"bearer": f"Basic {KEY}"},
        {"bearer": KEY},
        {"bearer": f"Bearer {KEY}x"},
        {"q": f"token={KEY}"},
        {"kind": "websocket", "q": "token=wrong"},
        {"kind": "websocket", "q": "token="},
        {"kind": "websocket", "q": f"Token={KEY}"},
    ],
)
def test_without_the_right_key_nobody_comes_in(given: dict[str, str]) -> None:
    denial = Gate(KEY)(scope(**given))
    assert denial is not None
    assert denial.status == 401


@pytest.mark.parametrize(
    "given",
    [
        {"bearer": f"Bearer {KEY}"},
        {"bearer": f"bearer  {KEY}"},
        {"kind": "websocket", "bearer": f"Bearer {KEY}"},
        {"kind": "websocket", "q": f"rate=8000&token={KEY}"},
        {"path": "/healthz"},
        {"path": "/readyz"},
    ],
)
def test_with_the_key_or_for_a_probe_the_gate_opens(given: dict[str, str]) -> None:
    assert Gate(KEY)(scope(**given)) is None


@pytest.mark.parametrize("path", ["/metrics", "/ws", "/healthz/../metrics", "/healthz/", "//healthz", "/readyz%00"])
def test_only_the_probes_are_open(path: str) -> None:
    assert Gate(KEY)(scope(path)) is not None


@pytest.mark.parametrize(
    ("origin", "host", "comes_in"),
    [
        ("", "127.0.0.1:8080", True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", True),
        ("http://localhost:8080", "localhost:8080", True),
        ("http://localhost:3000", "localhost:8080", False),
        ("http://evil.com", "127.0.0.1:8080", False),
        ("null", "127.0.0.1:8080", False),
        ("http://evil.com:8080", "evil.com:8080", False),  # a name pointed at 127.0.0.1
        ("", "evil.com:8080", False),
        ("", "", False),
        ("http://[::1", "127.0.0.1:8080", False),
        ("", "[::1", False),
        ("https://www.example.com", "127.0.0.1:8080", True),
        ("https://www.example.com", "www.example.com", True),
        ("https://WWW.example.com", "127.0.0.1:8080", True),
    ],
)
def test_on_loopback_a_web_page_of_another_host_does_not_come_in(origin: str, host: str, comes_in: bool) -> None:
    gate = Gate(None, ("https://www.example.com/",))
    for kind in ("http", "websocket"):
        assert (gate(scope(kind=kind, origin=origin, host=host)) is None) is comes_in


def test_with_a_key_any_host_name_will_do_but_not_any_origin() -> None:
    gate = Gate(KEY)
    assert gate(scope(host="agent.example.com", bearer=f"Bearer {KEY}")) is None
    assert gate(scope(host="agent.example.com", origin="https://evil.com", bearer=f"Bearer {KEY}")) is not None


@pytest.mark.parametrize("key", [KEY, None])
def test_a_call_token_opens_what_a_call_needs_and_nothing_else(key: str | None) -> None:
    tokens = CallTokens(lambda: 0.0)
    token, grant = tokens.issue("c1", {}, 60)
    gate = Gate(key, tokens=tokens)
    for path in OWN_PATHS:
        request = scope(path, bearer=f"Bearer {token}")
        assert gate(request) is None
        assert granted(request) is grant
    for path in ("/metrics", "/v1/calls", "/v1/conversations/c1/messages", "/ws/", "/call", "/v1/call/1"):
        denial = gate(scope(path, bearer=f"Bearer {token}"))
        assert denial is not None
        assert (denial.status, denial.code) == (403, "not_with_token")
    assert gate(scope("/ws", kind="websocket", q=f"rate=8000&token={token}")) is None
    assert gate(scope("/ws", origin="https://evil.com", bearer=f"Bearer {token}")) is not None


@pytest.mark.parametrize("key", [KEY, None])
def test_a_token_that_is_no_good_comes_in_nowhere(key: str | None) -> None:
    now = [0.0]
    tokens = CallTokens(lambda: now[0])
    gate = Gate(key, tokens=tokens)
    token, grant = tokens.issue("c1", {}, 60)

    def refusal(presented: str) -> tuple[int, str] | None:
        denial = gate(scope("/ws", kind="websocket", q=f"token={presented}"))
        return denial and (denial.status, denial.code)

    assert refusal(token[:-1]) == refusal("call_x_y") == refusal("call_") == (401, "bad_token")
    now[0] = 61.0
    assert refusal(token) == (401, "token_expired")
    now[0] = 0.0
    grant.begin()
    grant.end()
    assert refusal(token) == (403, "token_used")
    # On loopback without a key, other tokens mean nothing and are no hindrance.
    assert (refusal("anything else") is None) is (key is None)


def test_whoever_shows_the_key_is_named_by_its_fingerprint_and_never_by_the_key() -> None:
    key = "a-key-that-is-long-enough"
    name = Gate(key).key_name
    assert name.startswith("key:")
    assert len(name) == 16
    assert key not in name
    assert Gate(None).key_name == "loopback"
