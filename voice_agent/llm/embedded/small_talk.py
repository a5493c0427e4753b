"""Courtesies and the conversation itself: what needs no skill."""

from __future__ import annotations

import re
from enum import Enum

MAX_TEXT = 300


class SmallTalk(Enum):
    GREETING = "greeting"
    HOW_ARE_YOU = "how_are_you"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    NOTHING_MORE = "nothing_more"
    """A no to "anything else?"; means goodbye only where that was asked."""
    REPEAT = "repeat"
    CANCEL = "cancel"
    ABILITIES = "abilities"
    ASSENT = "assent"


_START = (
    r"^(?:(?:so|oh|well|um|uh|okay|ok|alright|all right|right|great stuff|great|perfect|lovely|brilliant|cool|nah|"
    r"no|nope|yes|and|hey|please|sorry|but|then) )*"
)
_END = (
    r"(?: (?:then|now|please|today|there|agent|everyone|again|all|so much|very much|a lot|to you|you too|everything))*$"
)
_THANKED = r"(?: (?:thanks|thank you))*"
_HELLO = r"(?:hi|hiya|yo|hello|hey|good (?:morning|afternoon|evening|day))"
_WELL_WISH = r"have a (?:nice|good|great) (?:day|one|evening|weekend)"
_PATTERNS = {
    SmallTalk.HOW_ARE_YOU: (
        r"(?:(?:hi|hello|good morning|good afternoon) )?how (?:are|r) you(?: doing)?",
        r"how(?: is|'s) it going|what's up",
    ),
    SmallTalk.GREETING: (
        rf"{_HELLO}(?: {_HELLO})*|greetings|hello there",
        rf"(?:{_HELLO} )*(?:is (?:anyone|anybody|someone) there|can you hear me|are you there)",
    ),
    SmallTalk.GOODBYE: (
        r"(?:(?:thanks|thank you|that(?:'s| is| was) all)(?: for (?:your|the) help)? )*"
        rf"(?:good ?bye|bye|bye bye|see you(?: later)?|{_WELL_WISH}|talk to you later|cheers bye|"
        r"i have to go|i've got to go|(?:you can )?hang up|end the call)"
        rf"(?: (?:good ?bye|bye|bye bye|{_WELL_WISH}))*",
    ),
    SmallTalk.NOTHING_MORE: (
        r"that(?:'s| is| was| will be|'ll be) (?:all|it|everything)"
        r"(?: (?:for today|for now|i need|i needed|thanks|thank you))*",
        rf"nothing(?: else)?{_THANKED}",
        rf"(?:i'm|i am|we're) (?:good|fine|done|all set){_THANKED}",
        r"(?:no|nope)(?: (?:thanks|thank you|that's all|that is all|that's it))+",
        rf"not (?:right now|today|at the moment){_THANKED}|no|nope|nah",
    ),
    SmallTalk.THANKS: (
        r"(?:(?:many )?thanks|thank you)(?: for (?:your help|the help|that|helping|everything))?|cheers|ta",
        r"much appreciated|i appreciate it|great thanks|perfect thank you",
        r"(?:that is|that's|that was|you are|you're|you've been) (?:very |so |really )?"
        r"(?:kind|helpful|great|lovely|good|nice|perfect|brilliant|wonderful|good to know)(?: of you)?"
        rf"{_THANKED}",
    ),
    SmallTalk.REPEAT: (
        r"(?:could|can|would|will) you (?:please )?(?:repeat|say)(?: (?:that|it|this))?(?: again)?",
        r"(?:say|repeat) (?:that|it)(?: again)?|repeat|pardon(?: me)?|come again|excuse me|sorry",
        r"what did you say|what was that|what|once more|one more time",
        r"i (?:didn't|did not|couldn't|could not) (?:hear|catch|understand|get) (?:that|you|it)",
    ),
    SmallTalk.CANCEL: (
        r"(?:please )?(?:cancel|stop|abort|quit|exit)(?: (?:that|this|it))?|never ?mind|let's not",
        r"forget (?:it|about it|that)|leave it|drop it|start over|go back",
        r"i(?: have|'ve)? changed my mind|i don't want (?:to do )?(?:that|this|it)(?: anymore)?",
    ),
    SmallTalk.ABILITIES: (
        r"what (?:can|could) you (?:do(?: for me)?|help(?: me)? with)|(?:how|what) can you help(?: me)?",
        r"help(?: me)?|(?:what are|tell me) (?:my|the) options|what can i (?:ask|say|do)(?: you)?",
        r"who are you|what are you|(?:i need|can you|could you) (?:some )?help(?: me)?(?: with something)?",
        r"i have a question",
    ),
    SmallTalk.ASSENT: (
        r"yes|yeah|yep|ok|okay|right|sure|fine|alright|all right|i see|got it|mm-hm|uh-huh|aha|understood",
        r"good|great|cool|perfect|makes sense",
    ),
}
_COMPILED = {kind: re.compile(f"{_START}(?:{'|'.join(patterns)}){_END}") for kind, patterns in _PATTERNS.items()}

_OPENING = re.compile(
    r"(?i)^\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|so|well|um+|uh+|okay|ok|yes|yeah|there|"
    r"wait|hold on|hang on|excuse me|listen)\b[\s,.!]*)+"
)
_CLOSING = re.compile(r"(?i)[\s,.!]*\b(?:please|thanks|thank you(?: very much)?)[\s.!?]*$")


def small_talk(text: str) -> SmallTalk | None:
    """Return what courtesy the whole of ``text`` is, or None if it says more than that."""
    said = _normal(text)
    if not said:
        return None
    return next((kind for kind, pattern in _COMPILED.items() if pattern.match(said)), None)


def without_courtesy(text: str) -> str:
    """Return ``text`` without a greeting or politeness around what it asks for.

    A sentence encoder gives weight to "Hello, good morning, could you please …" that its
    request should have.
    """
    text = _OPENING.sub("", text)
    text = _CLOSING.sub("", text)
    return text.strip()


def _normal(text: str) -> str:
    text = text[:MAX_TEXT].lower().replace("’", "'")
    text = re.sub(r"\bu+h+[- ]?hu+h+\b", "uh-huh", re.sub(r"\bm+[- ]?h+m+\b", "mm-hm", text))
    return " ".join(re.findall(r"[a-z0-9]+(?:['-][a-z0-9]+)*", text))
