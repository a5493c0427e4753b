"""What both sides of a call know of each other once it stands (RFC 3261, section 12). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from voice_agent.channels.sip.addresses import BadSip, NameAddress, SipUri
from voice_agent.channels.sip.message import Headers, Request, Response

Key = tuple[str, str, str]
"""Call-ID, our tag, theirs."""


@dataclass(eq=False)
class Dialog:
    """One of the two ends: ours.

    Attributes:
        ours, theirs: From and To of our own requests.
        target: Where requests are addressed to.
        route: Proxies that want to see them, first the nearest.
        sequence: Number of our last request.
        their_sequence: Number of their last.
    """

    call_id: str
    ours: NameAddress
    theirs: NameAddress
    target: SipUri
    route: tuple[str, ...]
    sequence: int = 0
    their_sequence: int = 0

    @classmethod
    def of_invite(cls, request: Request, tag: str) -> Dialog:
        """The far end has called us; ``tag`` is ours. Raises: BadSip: No Contact that can be read."""
        route = tuple(_checked(value) for value in request.headers.all("record-route"))
        ours = request.receiver.tagged(tag)
        return cls(request.call_id, ours, request.sender, contact(request), route, 0, request.cseq[0])

    @classmethod
    def of_success(cls, request: Request, response: Response) -> Dialog:
        """We have called the far end, and this is its answer. Raises: BadSip: No Contact that can be read."""
        route = tuple(_checked(value) for value in reversed(response.headers.all("record-route")))
        return cls(request.call_id, request.sender, response.receiver, contact(response), route, request.cseq[0])

    @property
    def key(self) -> Key:
        return self.call_id, self.ours.tag, self.theirs.tag

    def request(self, method: str, *more: tuple[str, str], body: bytes = b"", sequence: int | None = None) -> Request:
        """Return a request to the far end, its Via still missing. ``sequence``: for an ACK, that of its INVITE."""
        if sequence is None:
            self.sequence += 1
            sequence = self.sequence
        uri, route = str(self.target), self.route
        if route and "lr" not in dict(NameAddress.parse(route[0]).uri.parameters):
            # A strict router of old: it takes its own address as the one that is asked (section 12.2.1.1).
            uri, route = str(NameAddress.parse(route[0]).uri), (*route[1:], f"<{uri}>")
        lines = [
            *(("route", value) for value in route),
            ("max-forwards", "70"),
            ("from", str(self.ours)),
            ("to", str(self.theirs)),
            ("call-id", self.call_id),
            ("cseq", f"{sequence} {method}"),
            *more,
        ]
        return Request(Headers(lines), body, method, uri)

    @property
    def next_hop(self) -> SipUri:
        """Whom requests are sent to."""
        return NameAddress.parse(self.route[0]).uri if self.route else self.target

    def follows(self, request: Request) -> bool:
        """Whether a request of theirs comes after their last one; it is the last one then."""
        if request.cseq[0] <= self.their_sequence:
            return False
        self.their_sequence = request.cseq[0]
        return True

    def refresh(self, message: Request | Response) -> None:
        """Take the far end's new address, where a message that may change it names one."""
        if message.headers.get("contact"):
            self.target = contact(message)


def contact(message: Request | Response) -> SipUri:
    """Return where the sender of a message wants to be reached. Raises: BadSip."""
    values = message.headers.all("contact")
    if len(values) != 1:
        raise BadSip("a message that does not name one Contact")
    return NameAddress.parse(values[0]).uri


def _checked(value: str) -> str:
    NameAddress.parse(value)
    return value
