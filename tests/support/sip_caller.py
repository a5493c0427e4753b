"""A telephone made of sockets, for what no real one does on demand. Speaks SIP by hand, G.711 µ-law by RTP."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re
import struct
from collections.abc import Callable

from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample

EVENTS = "0123456789*#ABCD"
_numbers = itertools.count(1)


class _Socket(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes, tuple[str, int]], None]) -> None:
        self.received = received

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.received(data, addr)


class SipMessage:
    """What came: first line, headers as they stand, body."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.decode().partition("\r\n\r\n")
        self.first, *lines = head.split("\r\n")
        self.lines = lines

    @property
    def status(self) -> int:
        return int(self.first.split()[1]) if self.first.startswith("SIP/2.0") else 0

    @property
    def method(self) -> str:
        return self.header("CSeq").split()[1]

    def header(self, name: str) -> str:
        return next((v for n, _, v in (line.partition(": ") for line in self.lines) if n.lower() == name.lower()), "")


class SipCaller:
    """Implements the far end of the channel contract."""

    reports_position = tells_marks = can_clear = False
    sip: asyncio.DatagramTransport
    rtp: asyncio.DatagramTransport

    def __init__(self, server: tuple[str, int]) -> None:
        self.server = server
        self.messages: list[SipMessage] = []
        self.packets: list[tuple[float, bytes]] = []
        self.packets_by_port: dict[int, int] = {}
        self.over = False
        self.clears, self.marks = 0, list[str]()
        self.call_id, self.tag = f"call-{next(_numbers)}", f"tag-{next(_numbers)}"
        self.sequence, self.to_tag = 0, ""
        self.answers_bye = True
        self.on_request: Callable[[SipMessage], int | None] = lambda message: None
        self._rtp_sequence, self._timestamp, self.ssrc = 1000, 160, 4711
        self._media_peer: tuple[str, int] | None = None
        self._changed = asyncio.Event()

    @classmethod
    async def open(cls, port: int) -> SipCaller:
        loop, self = asyncio.get_running_loop(), cls(("127.0.0.1", port))
        self.sip, _ = await loop.create_datagram_endpoint(lambda: _Socket(self._message), ("127.0.0.1", 0))
        self.rtp, _ = await loop.create_datagram_endpoint(lambda: _Socket(self._packet), ("127.0.0.1", 0))
        return self

    @property
    def port(self) -> int:
        return int(self.sip.get_extra_info("sockname")[1])

    @property
    def media_port(self) -> int:
        return int(self.rtp.get_extra_info("sockname")[1])

    # Signalling

    def sdp(self, direction: str = "sendrecv", port: int | None = None) -> str:
        lines = [
            "v=0",
            "o=- 1 1 IN IP4 127.0.0.1",
            "s=-",
            "c=IN IP4 127.0.0.1",
            "t=0 0",
            f"m=audio {port or self.media_port} RTP/AVP 0 101",
            "a=rtpmap:101 telephone-event/8000",
            f"a={direction}",
        ]
        return "\r\n".join(lines) + "\r\n"

    def write(self, method: str, *more: str, body: str = "", sequence: int | None = None, branch: str = "") -> bytes:
        if sequence is None:
            self.sequence += 1
            sequence = self.sequence
        tag = f";tag={self.to_tag}" if self.to_tag else ""
        host, port = self.server
        lines = [
            f"{method} sip:agent@{host}:{port} SIP/2.0",
            f"Via: SIP/2.0/UDP 127.0.0.1:{self.port};branch={branch or f'z9hG4bK{next(_numbers)}'};rport",
            "Max-Forwards: 70",
            f'From: "Somebody" <sip:+15550123@127.0.0.1:{self.port}>;tag={self.tag}',
            f"To: <sip:+15550100@{host}:{port}>{tag}",
            f"Call-ID: {self.call_id}",
            f"CSeq: {sequence} {method}",
            f"Contact: <sip:+15550123@127.0.0.1:{self.port}>",
            *more,
            *(["Content-Type: application/sdp"] if body else []),
            f"Content-Length: {len(body)}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()

    def send(self, data: bytes) -> None:
        self.sip.sendto(data, self.server)

    async def response(self, method: str = "INVITE", *, final: bool = True, within_s: float = 5.0) -> SipMessage:
        """Return the first response to the last request of a method."""
        async with asyncio.timeout(within_s):
            while True:
                for message in self.messages:
                    current = message.header("CSeq") == f"{self.sequence} {method}"
                    if current and (message.status >= 200 or (message.status and not final)):
                        return message
                self._changed.clear()
                await self._changed.wait()

    async def ask(self, method: str, *more: str, body: str = "") -> SipMessage:
        self.send(self.write(method, *more, body=body))
        return await self.response(method)

    async def invite(self, *more: str, user: str = "", password: str = "", body: str | None = None) -> SipMessage:
        """Call; return the final response. A success is acknowledged."""
        body = self.sdp() if body is None else body
        response = await self.ask("INVITE", *more, body=body)
        if response.status == 401 and user:
            self.acknowledge(response)
            asked = dict(re.findall(r'(\w+)="([^"]*)"', response.header("WWW-Authenticate")))
            uri = f"sip:agent@{self.server[0]}:{self.server[1]}"
            first = hashlib.sha256(f"{user}:{asked['realm']}:{password}".encode()).hexdigest()
            second = hashlib.sha256(f"INVITE:{uri}".encode()).hexdigest()
            proof = hashlib.sha256(f"{first}:{asked['nonce']}:00000001:abc:auth:{second}".encode()).hexdigest()
            header = (
                f'Authorization: Digest username="{user}", realm="{asked["realm"]}", nonce="{asked["nonce"]}", '
                f'uri="{uri}", response="{proof}", algorithm=SHA-256, cnonce="abc", qop=auth, nc=00000001'
            )
            response = await self.ask("INVITE", header, *more, body=body)
        self.acknowledge(response)
        return response

    def acknowledge(self, response: SipMessage) -> None:
        to = response.header("To")
        if response.status < 300:
            self.to_tag = to.partition(";tag=")[2]
            port = re.search(r"m=audio (\d+)", response.body)
            assert port is not None
            self._media_peer = ("127.0.0.1", int(port[1]))
            self.send(self.write("ACK", sequence=self.sequence))

    def _message(self, data: bytes, addr: tuple[str, int]) -> None:
        message = SipMessage(data)
        self.messages.append(message)
        self._changed.set()
        if message.status:
            return
        status = self.on_request(message)
        if message.method == "BYE":
            self.over = True
            status = status or (200 if self.answers_bye else None)
        if status:
            self.answer(message, status)

    def answer(self, request: SipMessage, status: int) -> None:
        kept = [
            line for line in request.lines if line.split(":")[0].lower() in ("via", "from", "to", "call-id", "cseq")
        ]
        self.send("\r\n".join([f"SIP/2.0 {status} Fine", *kept, "Content-Length: 0", "", ""]).encode())

    # Media

    def _packet(self, data: bytes, addr: tuple[str, int]) -> None:
        self.packets.append((asyncio.get_running_loop().time(), data))

    @property
    def audio(self) -> bytes:
        """What was heard, without silence around it."""
        from tests.channels.contract import sounding

        return sounding(
            resample(ulaw_decode(b"".join(p[12:] for _, p in self.packets if p[1] & 0x7F == 0)), 8000, 16000)
        )

    @property
    def pressed(self) -> str:
        """The keys that came as events, each with its end told."""
        keys, last = "", None
        for _, packet in self.packets:
            if packet[1] & 0x7F != 101:
                continue
            (at,), (number, flags) = struct.unpack_from("!I", packet, 4), struct.unpack_from("!BB", packet, 12)
            if flags & 0x80 and at != last:
                keys, last = keys + EVENTS[number], at
        return keys

    def send_rtp(
        self, payload: bytes, payload_type: int = 0, *, timestamp: int | None = None, marker: bool = False
    ) -> None:
        assert self._media_peer is not None
        self._rtp_sequence = (self._rtp_sequence + 1) & 0xFFFF
        second = payload_type | (0x80 if marker else 0)
        at = self._timestamp if timestamp is None else timestamp
        header = struct.pack("!BBHII", 0x80, second, self._rtp_sequence, at & 0xFFFFFFFF, self.ssrc)
        self.rtp.sendto(header + payload, self._media_peer)

    async def speak(self, pcm: bytes) -> None:
        codes = ulaw_encode(resample(pcm, 16000, 8000))
        # What lies in our resampler's filter, and a little more for the agent's own.
        codes += b"\xff" * 800
        for at in range(0, len(codes), 160):
            self.send_rtp(codes[at : at + 160].ljust(160, b"\xff"))
            self._timestamp += 160
            await asyncio.sleep(0.002)

    async def press(self, digit: str) -> None:
        at, number = self._timestamp, EVENTS.index(digit)
        for count in range(6):
            end = 0x80 if count >= 3 else 0
            self.send_rtp(
                struct.pack("!BBH", number, end | 10, min(4, count + 1) * 160), 101, timestamp=at, marker=not count
            )
        self._timestamp += 800

    async def report_played(self, ms: float) -> None:
        raise NotImplementedError

    async def hang_up(self) -> None:
        await self.ask("BYE")

    async def vanish(self) -> None:
        """An exchange notices that a line broke, and says so; a telephone that merely falls silent, nobody can tell."""
        await self.ask("BYE", 'Reason: Q.850;cause=41;text="Temporary failure"')

    async def close(self) -> None:
        self.sip.close()
        self.rtp.close()
