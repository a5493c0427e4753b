"""The systems of Northline Telecom, a company that does not exist: every customer here is made up."""

from collections import OrderedDict
from dataclasses import dataclass

_MAX_TICKETS = 10_000


@dataclass(frozen=True)
class Account:
    number: str
    name: str
    cents: int
    due_date: str

    @property
    def balance_in_words(self) -> str:
        return f"${self.cents / 100:.2f}" if self.cents else "nothing"


_ACCOUNTS = {
    account.number: account
    for account in (
        Account("123456", "Maria Lindqvist", 4250, "the fifteenth of this month"),
        Account("427913", "Samuel Okafor", 0, "the first of next month"),
        Account("555010", "Jean Tremblay", 12999, "the twentieth of this month"),
    )
}
_tickets: OrderedDict[str, str] = OrderedDict()


def find_account(number: str) -> Account | None:
    """Return the account with that number, however its digits were grouped."""
    return _ACCOUNTS.get("".join(c for c in number if c.isdigit()))


def open_ticket(service: str, phone_number: str, details: str, *, key: str) -> str:
    """Open a ticket and return its number. The same ``key`` gives the same ticket again."""
    if key not in _tickets:
        _tickets[key] = str(48100 + len(_tickets))
        while len(_tickets) > _MAX_TICKETS:
            _tickets.popitem(last=False)
    return _tickets[key]
