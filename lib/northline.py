"""The systems of Northline Telecom, a company that does not exist: every customer here is made up."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

_MAX_RECORDS = 10_000
BOOKABLE_DAYS = 28
WINDOWS = ("morning", "afternoon")
SUNDAY = 6


@dataclass(frozen=True)
class Account:
    number: str
    name: str
    cents: int
    due_date: str


_ACCOUNTS = {
    account.number: account
    for account in (
        Account("123456", "Maria Lindqvist", 4250, "the fifteenth of this month"),
        Account("427913", "Samuel Okafor", 0, "the first of next month"),
        Account("555010", "Jean Tremblay", 12999, "the twentieth of this month"),
    )
}


ZONES = ("zone one", "zone two", "zone three")


@dataclass(frozen=True)
class CallRate:
    """What a minute of a call abroad costs, from a day on."""

    since: date
    cents: int


_PRICE_LISTS = (
    (date(2027, 1, 1), (9, 29, 95)),
    (date(2025, 1, 1), (12, 29, 110)),
)
"""Price lists by the day they begin, newest first: cents a minute in each zone."""


def _today() -> date:
    # Looked up when it is called: tests let the calendar of this module stand still.
    return date.today()


class _Register:
    """Numbered records. The same key gives the same number again, so nothing is done twice."""

    def __init__(self, first: int) -> None:
        self._next = first
        self._records: OrderedDict[str, str] = OrderedDict()

    def enter(self, key: str) -> str:
        if key not in self._records:
            self._records[key] = str(self._next)
            self._next += 1
            while len(self._records) > _MAX_RECORDS:
                self._records.popitem(last=False)
        return self._records[key]


_tickets, _receipts, _visits, _callbacks = (_Register(first) for first in (48101, 7301, 2201, 911))


def find_account(number: str) -> Account | None:
    """Return the account with that number, however its digits were grouped."""
    return _ACCOUNTS.get("".join(c for c in number if c.isdigit()))


def cents_due(account: Account, *, paid: float) -> int:
    """Return what is left to pay after ``paid`` dollars that are not booked yet."""
    return max(0, account.cents - round(paid * 100))


def dollars(cents: int) -> str:
    return f"{cents / 100:.2f}"


def charge_card(account: Account, cents: int, *, key: str) -> str:
    """Charge the card on file and return the number of the receipt."""
    return _receipts.enter(key)


def open_ticket(service: str, phone_number: str, details: str, *, key: str) -> str:
    """Open a ticket for an outage and return its number."""
    return _tickets.enter(key)


def request_callback(phone_number: str, *, key: str) -> str:
    """Ask a colleague to call back and return the number of the request."""
    return _callbacks.enter(key)


def day_problem(day: date, *, today: Callable[[], date] = _today) -> str | None:
    """Return why no technician comes on ``day``: ``past``, ``too_far`` or ``sunday``; None if one can."""
    if day <= today():
        return "past"
    if day > today() + timedelta(days=BOOKABLE_DAYS):
        return "too_far"
    return "sunday" if day.weekday() == SUNDAY else None


def book_visit(account: Account, day: date, window: str, *, key: str) -> str:
    """Book a technician and return the number of the visit."""
    return _visits.enter(key)


def call_rate(zone: str, *, today: Callable[[], date] = _today) -> CallRate | None:
    """Return what a minute costs in ``zone`` today; None if there is no such zone."""
    if zone not in ZONES:
        return None
    since, cents = next(one for one in _PRICE_LISTS if one[0] <= today())
    return CallRate(since, cents[ZONES.index(zone)])
