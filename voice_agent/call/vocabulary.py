"""Words that steer turn-taking, per language: what acknowledges, what stops, what promises more."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def words(text: str) -> tuple[str, ...]:
    """Return the lower-case words of ``text``: ``"Mm-hm, I'm here."`` gives ``mm hm i'm here``."""
    return tuple(_WORD.findall(text.lower().replace("’", "'")))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of one language. Phrases of several words are tuples.

    Attributes:
        backchannels: Say "go on" while the agent speaks; an answer like any other when it is silent.
        hummed: Those of them that are hardly words, so that no recogniser is ever sure of them.
        stops: Take the floor at once.
        unfinished: A sentence that ends with one of these goes on.
        stranded: Those of them that may be the last word of a whole sentence: "I know what it is for."
        fillers: Those of them that are no words; nobody ends with one.
        subordinators: A sentence that begins with one of these has a second clause, unless it is a question.
        lead_ins: May stand before a sentence without changing what it is.
        announcements: A sentence that ends with one of these tells what is still to come.
        openings: A sentence that is nothing else is only beginning.
        answers: Answer a question of yes or no.
        courtesies: Say no more than a greeting, a thank-you or a farewell.
    """

    backchannels: frozenset[tuple[str, ...]]
    hummed: frozenset[str]
    stops: frozenset[tuple[str, ...]]
    unfinished: frozenset[str]
    stranded: frozenset[str]
    fillers: frozenset[str]
    subordinators: frozenset[str]
    lead_ins: frozenset[str]
    announcements: frozenset[tuple[str, ...]]
    openings: frozenset[tuple[str, ...]]
    answers: frozenset[tuple[str, ...]]
    courtesies: frozenset[tuple[str, ...]]

    def content(self, text: str) -> tuple[str, ...]:
        """Return the words of ``text`` that are not part of a backchannel."""
        return _without(self.backchannels, words(text))

    def has_stop(self, text: str) -> bool:
        """Whether a stop word or phrase occurs in ``text``."""
        return _occur(self.stops, text)

    def is_only_stops(self, text: str) -> bool:
        """Whether ``text`` is nothing but stop words: what is wanted instead is still to come."""
        found, at = words(text), 0
        while at < len(found):
            length = next((n for n in (3, 2, 1) if found[at : at + n] in self.stops | self.backchannels), 0)
            if not length:
                return False
            at += length
        return self.has_stop(text)

    def is_hummed(self, text: str) -> bool:
        """Whether ``text`` is nothing but "mm", "uh-huh" and their like."""
        said = words(text)
        return bool(said) and self.hummed.issuperset(said)

    def has_yes_or_no(self, text: str) -> bool:
        """Whether ``text`` begins by saying yes or no, or says nothing more than that."""
        found = words(text)
        return any(found[:n] in self.answers for n in (1, 2, 3))

    def is_courtesy(self, text: str) -> bool:
        """Whether ``text`` is nothing but yes or no, a stop word, a greeting, a thank-you or a farewell."""
        found = words(text)
        return bool(found) and not _without(self.answers | self.courtesies | self.stops, found)


def _without(phrases: frozenset[tuple[str, ...]], found: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that are in none of the phrases, of up to three words each."""
    at, rest = 0, []
    while at < len(found):
        length = next((n for n in (3, 2, 1) if found[at : at + n] in phrases), 0)
        if not length:
            rest.append(found[at])
        at += max(1, length)
    return tuple(rest)


def _occur(phrases: frozenset[tuple[str, ...]], text: str) -> bool:
    found = words(text)
    return any(found[at : at + n] in phrases for at in range(len(found)) for n in (1, 2, 3))


def _phrases(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(phrase.split()) for phrase in text.split(","))


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list that blanks separate."""
    return frozenset(text.split())


ENGLISH = Vocabulary(
    backchannels=_phrases(
        "mm,mmm,hm,hmm,hmmm,mhm,mmhm,mhmm,mmhmm,uh,huh,um,ah,oh,aha,yeah,yep,yup,yes,ya,ok,okay,right,sure,alright,"
        "all right,good,great,cool,fine,nice,exactly,i see,got it,of course,uh huh,go on,oh okay,that's right"
    ),
    hummed=word_set("mm mmm hm hmm hmmm mhm mmhm mhmm mmhmm uh huh um"),
    stops=_phrases(
        "stop,wait,hold on,hang on,no,nope,pause,enough,quiet,excuse me,one second,one moment,just a second,"
        "just a moment,shut up,cancel,never mind,sorry,listen"
    ),
    unfinished=word_set(
        "and or but because so if when while that which who the a an my your our their his her of to in on at for with "
        "from by about is are was were am be been um uh er erm well like then than as into i we it's i'm"
    ),
    stranded=word_set(
        "that which who of to in on at for with from by about is are was were am be been as like than then well"
    ),
    fillers=word_set("um uh er erm"),
    subordinators=word_set("if when because while although though unless since whenever after before once"),
    lead_ins=word_set("um uh er erm oh well so and but okay ok hi hello"),
    announcements=_phrases("number is,name is,account is,code is,address is,thing is,problem is,question is"),
    openings=_phrases(
        "it is,it's,i would like,i'd like,i want,i need,can you,could you,can i,could i,let me see,hold on,"
        "could you tell me,can you tell me,i would like to know,i'd like to know,i want to know,i wanted to ask,"
        "i was wondering"
    ),
    answers=_phrases(
        "yes,yeah,yep,yup,ya,no,nope,nah,sure,ok,okay,correct,exactly,of course,certainly,absolutely,definitely,right,"
        "that's right,that's correct,please do,not really,never,no thanks,all right,alright,go ahead"
    ),
    courtesies=_phrases(
        "please,thank you,thanks,thanks a lot,many thanks,very much,that's all,that is all,bye,goodbye,"
        "good bye,bye bye,see you"
    ),
)
