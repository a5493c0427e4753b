"""What the simulated carriers have in common, and the secrets that they share with the agent.

Each signs its requests with its own package, asks by webhook what to do with a call, and streams it where it is told.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.asyncio.client import ClientConnection, connect

from tests.support.carrier_api import CarrierApi
from tests.support.exchanges import Exchange
from voice_agent.audio.g711 import ulaw_encode

PUBLIC = "https://agent.example.com"
CALLER, CALLED = "+15550100", "+15550199"


@cache
def vonage_private_key() -> str:
    """A key of an application, made for these tests."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, *form).decode()


TELNYX_KEY = Ed25519PrivateKey.from_private_bytes(b"a private key of 32 bytes, so it")
VONAGE_APPLICATION = "aaaaaaaa-bbbb-cccc-dddd-0123456789ab"
SECRETS = {
    "TWILIO_ACCOUNT_SID": "AC" + "0" * 32,
    "TWILIO_AUTH_TOKEN": "twilio-token-of-the-tests",
    "TELNYX_PUBLIC_KEY": base64.b64encode(TELNYX_KEY.public_key().public_bytes_raw()).decode(),
    "TELNYX_API_KEY": "KEY-of-the-tests",
    "PLIVO_AUTH_ID": "MA" + "0" * 18,
    "PLIVO_AUTH_TOKEN": "plivo-token-of-the-tests",
    "VONAGE_SIGNATURE_SECRET": "vonage-signature-secret-of-the-tests",
    "VONAGE_APPLICATION_ID": VONAGE_APPLICATION,
    "VONAGE_PRIVATE_KEY": vonage_private_key(),
}


class HungUpOn(Exception):
    """The webhook or the upgrade was refused. ``status`` is that of HTTP."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


class CarrierCall(Exchange):
    """One call as its carrier carries it.

    Attributes:
        call: The carrier's id of it.
        token: What it was told to show, or "".
        played_s: Agent audio that the caller has heard, or is still to hear.
        stops: When the agent was made to fall silent, by the loop's time, and `played_s` then.
    """

    api: ClassVar[CarrierApi]
    channel: ClassVar[str]
    answer_path: ClassVar[str]
    stream_path: ClassVar[str]
    tells_marks = True
    call = token = ""
    echoes_cleared_marks = True
    token_in_upgrade: ClassVar[bool] = False
    """The token proves the upgrade; otherwise it comes with the first message, and the upgrade is signed."""
    required: ClassVar[tuple[str, ...]]
    """Without these variables the channel does not start."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._unplayed: list[tuple[Any, Any]] = []
        self.played_s = 0.0
        self.stops: list[tuple[float, float]] = []
        self._talks_since: float | None = None

    @classmethod
    async def ring(cls, address: str, *, secret: str | None = None, call: str = "") -> Any:
        """Somebody calls: ask what to do, connect the stream, begin. Raises `HungUpOn`."""
        call, token = await cls.announce(address, secret=secret, call=call)
        return await cls.stream(address, call, token, secret)

    @classmethod
    async def announce(cls, address: str, *, secret: str | None = None, call: str = "") -> tuple[str, str]:
        """Somebody calls: ask what to do. Returns the call, and the token that its stream is to show."""
        call = call or cls.new_call()
        response = await cls.ask(address, call, secret)
        if response.status_code != 200:
            raise HungUpOn(response.status_code)
        return call, await cls.token_of(response, call)

    @classmethod
    async def open_socket(cls, address: str, token: str, secret: str | None = None) -> ClientConnection:
        """Connect the stream of a call."""
        return await connect(
            f"ws://{address}{cls.stream_path}{cls.query(token)}",
            compression=None,
            proxy=None,
            additional_headers=cls.upgrade_headers(token, secret),
        )

    @classmethod
    async def stream(cls, address: str, call: str, token: str, secret: str | None = None) -> Any:
        """Connect the stream of a call, and begin."""
        carried = cls(await cls.open_socket(address, token, secret), cls.RATE)
        carried.call, carried.token = call, token
        await carried.begin()
        return carried

    RATE: ClassVar[int] = 8000

    @classmethod
    def new_call(cls) -> str:
        return secrets.token_hex(16)

    @classmethod
    def encode_audio(cls, pcm: bytes) -> bytes:
        return ulaw_encode(pcm)

    @classmethod
    async def ask(cls, address: str, call: str, secret: str | None) -> httpx.Response:
        """Post the webhook of a new call."""
        raise NotImplementedError

    @classmethod
    async def token_of(cls, response: httpx.Response, call: str) -> str:
        raise NotImplementedError

    @classmethod
    def query(cls, token: str) -> str:
        return f"?token={token}" if token and cls.token_in_upgrade else ""

    @classmethod
    def upgrade_headers(cls, token: str, secret: str | None) -> dict[str, str]:
        raise NotImplementedError

    # Calls that the agent places

    dial_path: ClassVar[str]

    @classmethod
    async def token_placed(cls, address: str, call: str) -> str:
        """What the stream of a placed call is to show, once it is answered."""
        raise NotImplementedError

    @classmethod
    async def tell(cls, address: str, call: str, what: str, secret: str | None = None) -> httpx.Response:
        """Post the webhook that tells ``busy``, ``no_answer``, ``ended``, ``machine`` of a placed call."""
        raise NotImplementedError

    def mark(self, name: str, echo: Mapping[str, Any] | str) -> None:
        super().mark(name, echo)
        self._unplayed = [(handle, said) for handle, said in self._unplayed if not handle.cancelled()]
        self._unplayed.append((self._echoes[-1], echo))

    @property
    def pressed(self) -> str:
        """The keys that the carrier was asked to press in this call."""
        asked = [body for _, path, body in self.api.requests if self.call in path and "dtmf" in path.lower()]
        return "".join(body["digits"] for body in asked)

    async def talk(self, pcm: bytes) -> None:
        """Say something in real time."""
        self._talks_since = asyncio.get_running_loop().time()
        try:
            await self.speak(pcm)
        finally:
            self._talks_since = None

    async def due(self, frame: int) -> None:
        """Wait until this frame of what is said has been spoken, where that matters."""
        if self._talks_since is not None:
            wait_s = self._talks_since + (frame + 1) * 0.02 - asyncio.get_running_loop().time()
            await asyncio.sleep(max(0.0, wait_s))

    def play(self, pcm: bytes) -> None:
        super().play(pcm)
        self.played_s += len(pcm) / 2 / self.rate

    def drop(self) -> None:
        now = asyncio.get_running_loop().time()
        self.played_s -= max(0.0, self.playing_until - now)
        self.stops.append((now, self.played_s))
        waiting = [echo for handle, echo in self._unplayed if handle.when() > now]
        self._unplayed.clear()
        super().drop()
        for echo in waiting if self.echoes_cleared_marks else ():
            self.say(echo)


async def post(address: str, path: str, headers: Mapping[str, str], **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        return await client.post(f"http://{address}{path}", headers=dict(headers), **body)
