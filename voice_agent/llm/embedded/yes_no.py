"""Yes, no, or neither: what an answer to a question amounts to.

`plain_answer` is for permission: it says yes only to a yes that adds nothing ("yes but Tuesday"
is none). `polarity` is for facts, where more may be said ("yes, I have one at home"). Where an
answer says both ("yes, no, wait") or wavers, both return None, and the question is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

MAX_TEXT = 500


class _Mark(Enum):
    YES = "yes"
    NO = "no"
    NEGATION = "negation"
    """A no that turns the yes right after it around: "not correct", "don't do it"."""
    TAKEN_IN = "taken in"
    """Agrees when nothing else is said ("okay"); before more words it may only say that the caller has listened."""
    WEAK_YES = "weak yes"
    """Agrees when it stands alone ("I do"), not at the head of a sentence ("I would like …")."""
    WAVERING = "wavering"
    CHANGE = "change"


_PHRASES: dict[_Mark, str] = {
    _Mark.YES: (
        "no problem|no worries|no objection|no objections|why not|i don't mind|i do not mind|yes|yeah|yep|yup|yea|ya|"
        "sure thing|sure|correct|exactly|absolutely|definitely|certainly|of course|go ahead|"
        "go right ahead|go for it|please do|do it|do that|do so|sounds good|sounds great|sounds right|affirmative|"
        "indeed|by all means|i'd like that|i'd love to|i'll take it|i'll take that|that works|works for me|confirm|"
        "confirmed|i agree|agreed|true|you bet|i think so|i guess so|i suppose so|i believe so"
    ),
    _Mark.TAKEN_IN: "okay|ok|right|alright|all right|fine|perfect|great|good|mm-hm|uh-huh|aha",
    _Mark.WEAK_YES: "i do|i am|i have|i did|i would|it is|it does|they are|it was|he is|she is|we do|we have|we are",
    _Mark.NO: (
        "no way|no thanks|no thank you|not at all|not really|not now|not today|not yet|of course not|absolutely not|"
        "certainly not|definitely not|rather not|please don't|please do not|never mind|nevermind|forget it|no|nope|"
        "nah|naw|never|negative|wrong|incorrect|cancel|abort|stop|neither|none|false|i don't think so|"
        "i do not think so"
    ),
    _Mark.NEGATION: (
        "not|don't|do not|does not|doesn't|did not|didn't|have not|haven't|has not|hasn't|is not|isn't|am not|"
        "are not|aren't|was not|wasn't|cannot|can't|won't|will not|would not|wouldn't"
    ),
    _Mark.WAVERING: (
        "not sure|not certain|unsure|don't know|do not know|no idea|maybe|perhaps|possibly|it depends|hold on|wait|"
        "hang on|one moment|let me think|pardon|sorry|what|why|how|which|when|who|repeat|again|hmm"
    ),
    _Mark.CHANGE: "but|except|instead|change|only if|unless|make it|actually|however|other than|different",
}
_MARK_OF = {phrase: mark for mark, phrases in _PHRASES.items() for phrase in phrases.split("|")}
_ANY = re.compile(
    r"(?<![\w'-])(?:" + "|".join(map(re.escape, sorted(_MARK_OF, key=len, reverse=True))) + r")(?![\w'-])"
)
_EMPTY_WORDS = (
    "a an the i i'm it it's that that's this is am are was be you to me my we us and so then well uh um er erm oh ah "
    "please thanks thank very much think believe guess suppose just really would like want with for of in on at do "
    "does did have has can could will shall let's let now there's there one ours yours they them their he she his her "
    "hi hello sir madam ma'am quite pretty kind"
)
_AT_A_LOSS = re.compile(
    r"\b(?:(?:don't|do not|can't|cannot|can not|haven't|have not) (?:really |even )?"
    r"(?:know|have|remember|find|recall|see|got|got it)|no idea|not sure|forgot|forgotten|lost)\b"
)
_POLITENESS = re.compile(r"(?i)\b(?:please|thanks|thank you)\b")
_WHOLE = re.compile(
    r"(?:pay )?\b(?:everything|in full|all(?: of (?:it|that|them))?|"
    r"the (?:whole|full|total|entire) (?:thing|lot|amount|sum|bill|balance))\b"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())


def polarity(text: str, about: str = "") -> bool | None:
    """Return True or False for an answer that leans one way only, else None.

    Args:
        about: What was asked for. "Okay" before other words than these takes note and answers nothing.
    """
    return _verdict(_normal(text), _normal(about).split())


def plain_answer(text: str, context: Iterable[str] = ()) -> bool | None:
    """Return True or False for an answer that says yes or no and asks for nothing else; else None.

    Args:
        context: Words of the question. Repeating them adds nothing: "yes, transfer the money".
    """
    said = _normal(text)
    known = {word for line in context for word in _normal(line).split()}
    verdict = _verdict(said, known)
    if verdict is None or _Mark.CHANGE in _marks(said):
        return None
    # A no stands even with a reason after it; a yes does not stand with anything after it.
    return verdict if verdict is False or not _rest(said) - known else None


def is_bare_answer(text: str) -> bool:
    """Whether ``text`` says yes, no or neither and nothing else: "yes, that's right", "I don't know"."""
    said = _normal(text)
    return bool(_marks(said)) and not _rest(said)


def affirms_by_repeating(text: str, question: str) -> bool:
    """Whether ``text`` says yes by repeating what was asked: "all of it" to "Do you want to pay all of it?".

    Words for the whole mean the same. A question between two things is not answered by yes.
    """
    said = _normal(_POLITENESS.sub("", text))
    asked = _normal(question)
    if " or " in asked or _marks(said):
        return False
    repeats = bool(_rest(said)) and f" {said} " in f" {asked} "
    return repeats or (_WHOLE.fullmatch(said) is not None and _WHOLE.search(asked) is not None)


def is_at_a_loss(text: str) -> bool:
    """Whether the caller cannot answer: "I don't have it", "no idea", "I forgot"."""
    return _AT_A_LOSS.search(_normal(text)) is not None


def _verdict(said: str, known: Iterable[str]) -> bool | None:
    marks = _marks(said)
    if not marks or _Mark.WAVERING in marks or _rest(_ANY.split(said, maxsplit=1)[0]):
        # An answer begins with its yes or no: "my phone is not working" is none.
        return None
    leaning: set[bool] = set()
    taken_in = False
    for mark, before in zip(marks, [None, *marks], strict=False):
        if mark in (_Mark.NO, _Mark.NEGATION):
            leaning.add(False)
        elif before is _Mark.NEGATION:
            continue
        elif mark is _Mark.YES or (mark is _Mark.TAKEN_IN and leaning):
            leaning.add(True)
        elif mark is _Mark.TAKEN_IN:
            taken_in = True
    if not leaning:
        agrees = (taken_in and not _rest(said) - set(known)) or (_Mark.WEAK_YES in marks and not _rest(said))
        return True if agrees else None
    return leaning.pop() if len(leaning) == 1 else None


def _rest(said: str) -> set[str]:
    """Return the words that neither say yes or no nor are empty."""
    return set(_ANY.sub(" ", said).split()) - _EMPTY


def _marks(said: str) -> list[_Mark]:
    return [_MARK_OF[phrase] for phrase in _ANY.findall(said)]


def _normal(text: str) -> str:
    text = text[:MAX_TEXT].lower().replace("’", "'")
    text = re.sub(r"\bu+h+[- ]?hu+h+\b", "uh-huh", re.sub(r"\bm+[- ]?h+m+\b", "mm-hm", text))
    return " ".join(re.findall(r"[a-z0-9]+(?:['-][a-z0-9]+)*", text))
