"""A carrier's REST API, with a deadline on every request and a typed fault for what fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voice_agent.channels.outbound import DialOutcome
from voice_agent.transfers import TransferReason, TransferResult

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

REQUEST_S = 5.0
"""Limit on one request, connection included."""
CONNECTIONS = 20
MAX_ANSWER_BYTES = 256 * 1024


class ApiFault(Exception):
    """The carrier did not do what was asked.

    Attributes:
        status: Of HTTP, or 0 where there was no answer.
        code: The carrier's own, where it told one.
    """

    def __init__(self, status: int, code: str = "") -> None:
        super().__init__(f"{status or 'no answer'} {code}".strip())
        self.status, self.code = status, code

    @property
    def outcome(self) -> DialOutcome:
        """What that means for a call that was to be placed."""
        return DialOutcome.BAD_ADDRESS if self.status in (400, 422) else DialOutcome.TRUNK_ERROR

    @property
    def transfer_result(self) -> TransferResult:
        """What that means for a transfer."""
        reason = TransferReason.UNREACHABLE if self.status in (400, 422) else TransferReason.TRUNK_ERROR
        return TransferResult(TransferReason.TIMEOUT if not self.status else reason, str(self))


class RestApi:
    """Args: ``base``: URL without a trailing slash."""

    def __init__(self, base: str, *, auth: tuple[str, str] | None = None, bearer: str = "") -> None:
        self._base, self._auth = base.rstrip("/"), auth
        self._headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def send(
        self,
        method: str,
        path: str,
        *,
        form: Mapping[str, Any] | None = None,
        body: Any = None,
        bearer: str = "",
    ) -> dict[str, Any]:
        """Send a request; return the JSON object of the answer, or an empty one.

        Raises:
            ApiFault: It was refused, or there was no answer in time.
        """
        import httpx

        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        client = await self._opened()
        try:
            async with asyncio.timeout(REQUEST_S):
                response = await client.request(
                    method, self._base + path, data=None if form is None else dict(form), json=body, headers=headers
                )
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as fault:
            log.warning("a carrier's API did not answer: %s", type(fault).__name__)
            raise ApiFault(0, type(fault).__name__) from None
        read = _object(response)
        if not response.is_success:
            refusal = ApiFault(response.status_code, str(read.get("code", ""))[:40])
            log.warning("a carrier's API refused: %s", refusal)
            raise refusal
        return read

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _opened(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._client is None:
                # Reading the certificates takes tens of milliseconds.
                self._client = await asyncio.to_thread(self._open)
            return self._client

    def _open(self) -> httpx.AsyncClient:
        import httpx

        return httpx.AsyncClient(
            auth=self._auth,
            headers=self._headers,
            timeout=REQUEST_S,
            limits=httpx.Limits(max_connections=CONNECTIONS),
            trust_env=False,
        )


def _object(response: httpx.Response) -> dict[str, Any]:
    if len(response.content) > MAX_ANSWER_BYTES:
        return {}
    try:
        read = response.json()
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
