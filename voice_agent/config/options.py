"""What all options have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    """Base of all options: frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Milliseconds = Annotated[int, Field(ge=0, le=600_000)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
