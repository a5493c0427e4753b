"""Work at the end of a call, which nothing may hold up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from voice_agent.dialogue.cancellation import CancelReason, CancelToken, TurnCancelled, race

log = logging.getLogger(__name__)

TURN_SHARE = 0.6
"""Share of `TurnTaking.close_timeout_s` that a turn may use to finish after a hang-up; the rest is for what follows."""
HALF_OPEN_S = 0.2
"""Limit on hanging up on a connection that its caller has left behind."""
HANG_UP_SHARE = 0.3
"""Share of it, within the turn's, that the wire may use for its own hang-up."""
TEARDOWN_GRACE_S = 0.3
"""How long work that is out of time may take to end."""


async def bounded(work: Coroutine[Any, Any, Any], name: str, limit_s: float) -> None:
    """Run ``work`` for at most ``limit_s``; a fault is logged, never raised."""
    token = CancelToken()
    timer = asyncio.get_running_loop().call_later(limit_s, token.cancel, CancelReason.TIMEOUT)
    try:
        await race(work, token, name=name, grace_s=TEARDOWN_GRACE_S)
    except TurnCancelled:
        log.warning("%s did not finish within %.1f s", name, limit_s)
    except Exception:
        log.exception("%s failed", name)
    finally:
        timer.cancel()
