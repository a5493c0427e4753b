"""The fixed lines of the embedded model. A project's own wording goes before them wherever the engine has one."""

from __future__ import annotations

GREETING = "Hello! How can I help you?"
HOW_ARE_YOU = "I am fine, thank you. How can I help you?"
WELCOME = "You are welcome. Is there anything else I can help you with?"
GOODBYE = "Thank you for calling. Goodbye."
OFFER = "How can I help you?"
ANYTHING_ELSE = "Is there anything else I can help you with?"
CANNOT_HELP = "I am sorry, I cannot help with that."
NOT_UNDERSTOOD = "Sorry, I did not get that."
YES_OR_NO = "Please say yes or no."
GO_AHEAD = "Shall I go ahead?"
WHAT_ABOUT = "Thank you. What can I do for you?"
NOT_DONE = "All right, I have not done that."
STOPPED = "All right, I have stopped that. What else can I do for you?"
DONE = "That is done."
WHAT_NEXT = "What comes next?"
GIVEN_UP = "I am sorry, I still did not get that, so let us leave it."
NOTHING_TO_REPEAT = "I have not said anything yet. How can I help you?"


def abilities(skills: list[str]) -> str:
    """Return a line that names what can be asked for."""
    if not skills:
        return OFFER
    *most, last = skills[:6]
    listed = f"{', '.join(most)} or {last}" if most else last
    return f"I can help you with {listed}. What would you like?"


def and_then(digits: str) -> str:
    """Return the question for the rest of a number; digits that stand apart are said one by one."""
    return f"I have {' '.join(digits)}. {WHAT_NEXT}"


def where_to_find(thing: str) -> str:
    """Return the question of a caller who does not know ``thing``."""
    return f"Where do I find my {thing}?"


def or_choices(choices: list[str]) -> str:
    """Return a hint that names what can be said."""
    *most, last = choices
    return f"You can say {', '.join(most)} or {last}." if most else f"You can say {last}."


def which(first: str, second: str) -> str:
    """Return the question that tells two skills apart."""
    return f"Is this about {first}, or about {second}?"
