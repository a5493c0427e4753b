"""People and lines that a caller can be put through to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from voice_agent.config.options import Options, Seconds
from voice_agent.transfers import TransferTarget

DestinationName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
_ADDRESS = r"^(\+[1-9]\d{2,14}|sips?:[A-Za-z0-9+._~%*#-]+@[A-Za-z0-9.\[\]:-]+(;[A-Za-z0-9=._-]+)*)$"
"""E.164 with its plus, or a SIP address: nothing that could carry further headers or commands."""


class TransferOptions(Options):
    """One destination. Skills and models name it; only the service knows where it leads."""

    to: str = Field(pattern=_ADDRESS, max_length=256, repr=False)
    """Number in international form (``+15550100``), or ``sip:`` address."""
    description: str = Field("", max_length=500)
    """Who answers there and for what, for the model that chooses."""
    utter: str = Field("utter_transfer", pattern=r"^utter_\w+$")
    """Response that is said before the caller is put through."""
    mode: Literal["blind", "warm"] = "blind"
    """``blind`` hands the call over; ``warm`` stays until somebody has answered, where the channel can."""
    ring_timeout_s: Seconds = Field(30, gt=0, le=180)
    """How long it may ring there."""
    hold_audio: str | None = None
    """WAV file, from the project's folder, that the caller hears meanwhile; a soft ringing tone if not given."""

    def target(self, name: str) -> TransferTarget:
        """Return what a wire is told."""
        return TransferTarget(name, self.to, self.mode == "warm", self.ring_timeout_s, self.hold_audio)
