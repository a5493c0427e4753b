"""Claims and members, all made up."""

from dataclasses import dataclass

LIMITS = {"luggage": 1500, "cancellation": 3000, "medical": 50000}


@dataclass(frozen=True)
class Member:
    number: str
    name: str
    cover: str


MEMBERS = {"W204417": Member("W204417", "Ada Okonkwo", "plus")}
CLAIMS = {"5521": "under review"}


def file(kind: str, cost: float) -> dict:
    return {"number": "5530", "limit": LIMITS[kind], "within_limit": cost <= LIMITS[kind]}
