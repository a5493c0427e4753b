"""Backchannels, stop words and unfinished sentences in each language, over the agent and in its silence."""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeDetector, FakeWire, ScriptedEars
from tests.support.calls import OPTIONS
from tests.support.virtual_time import virtual_time
from voice_agent.call.barge_in import BargeIn, Decision, Words, weigh
from voice_agent.call.call import Call
from voice_agent.call.clock import MediaClock
from voice_agent.call.endpointing import Endpointing
from voice_agent.call.vocabulary import ENGLISH, Vocabulary, languages, vocabulary_for
from voice_agent.config import TurnTaking

GOES_ON = {
    "en": ["Mm-hm.", "Yeah.", "Okay.", "I see.", "All right, go on."],
    "de": ["Mhm.", "Ja, ja.", "Okay.", "Ach so.", "Ich verstehe."],
    "es": ["Mhm.", "Sí, sí.", "Vale.", "De acuerdo.", "Ya veo."],
    "fr": ["Mhm.", "Oui, oui.", "D'accord.", "C’est ça.", "Je vois."],
    "it": ["Mhm.", "Sì, sì.", "Certo.", "Va bene.", "D'accordo."],
}
STOPS = {
    "en": ["Stop.", "Wait.", "Okay, hold on.", "No."],
    "de": ["Stopp.", "Warten Sie.", "Ja, einen Moment.", "Nein."],
    "es": ["Para.", "Espere.", "Sí, un momento.", "No."],
    "fr": ["Stop.", "Attendez.", "Oui, un instant.", "Excusez-moi.", "Non."],
    "it": ["Stop.", "Aspetti.", "Sì, un attimo.", "Mi scusi.", "No."],
}
OTHERS = {
    "en": "What about Sunday?",
    "de": "Was ist mit Sonntag?",
    "es": "¿Y qué hay del domingo?",
    "fr": "Et le dimanche alors?",
    "it": "E la domenica invece?",
}
PROMISES = {
    "en": ["I would like to come on Monday and", "My number is"],
    "de": ["Ich komme am Montag und", "Meine Nummer ist"],
    "es": ["Quiero ir el lunes y", "Mi número es"],
    "fr": ["Je viens lundi et", "Mon numéro est"],
    "it": ["Vorrei venire lunedì e", "Il mio numero è"],
}
YES = {"en": "Yes.", "de": "Ja.", "es": "Sí.", "fr": "Oui.", "it": "Sì."}
LANGUAGES = sorted(GOES_ON)


def _of(language: str) -> Vocabulary:
    vocabulary = vocabulary_for(language)
    assert vocabulary is not None
    return vocabulary


def _pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(language, text) for language, texts in table.items() for text in texts]


def test_five_languages_have_a_vocabulary() -> None:
    assert set(LANGUAGES) <= set(languages())


@pytest.mark.parametrize(("language", "text"), _pairs(GOES_ON))
def test_a_backchannel_lets_the_agent_go_on(language: str, text: str) -> None:
    assert BargeIn(OPTIONS, _of(language)).on_words(text, 200) is Decision.RESUME


@pytest.mark.parametrize(("language", "text"), _pairs(STOPS))
def test_a_stop_word_stops_the_agent(language: str, text: str) -> None:
    assert BargeIn(OPTIONS, _of(language)).on_words(text, 200) is Decision.CONFIRM


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_words_stop_it_when_there_are_enough_of_them(language: str) -> None:
    assert weigh(OTHERS[language], 2, _of(language)) is Words.INTERRUPTION


@pytest.mark.parametrize(("language", "text"), _pairs(PROMISES))
def test_an_unfinished_sentence_is_waited_for(language: str, text: str) -> None:
    endpointing = Endpointing(OPTIONS, _of(language))
    finished = endpointing.endpoint(OTHERS[language]).reply_ms
    assert endpointing.endpoint(text).reply_ms > finished


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_says_yes_and_no_list_contradicts_another(language: str) -> None:
    vocabulary = _of(language)
    assert vocabulary.has_yes_or_no(YES[language])
    assert not vocabulary.backchannels & vocabulary.stops
    assert {(word,) for word in vocabulary.hummed if "-" not in word} <= vocabulary.backchannels
    assert all(len(phrase) <= 3 for phrase in vocabulary.backchannels | vocabulary.stops)


@virtual_time
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("speaks", [True, False])
async def test_the_same_word_is_a_backchannel_over_the_agent_and_an_answer_in_its_silence(
    language: str, speaks: bool
) -> None:
    text = GOES_ON[language][2]
    wire = FakeWire(12)
    wire.speak(1.0 if speaks else 6.0, text)
    talk = ScriptedConversation(says("One two three four five six seven eight nine ten eleven."), says("Very well."))
    async with MediaClock() as clock:
        call = Call(
            call_id="call",
            conversation=talk,
            wire=wire,
            voice=FakeVoice(),
            recognizer=ScriptedEars(wire),
            detector=FakeDetector(),
            options=OPTIONS,
            clock=clock,
            vocabulary=_of(language),
            strict=True,
        )
        await call.run()
    assert talk.of("turn") == (["/session_start"] if speaks else ["/session_start", text])


def test_a_project_adds_words_of_its_own_and_takes_some_from_the_other_list() -> None:
    vocabulary = vocabulary_for("de-AT", backchannels=("eh klar", "Entschuldigung"), stop_words=("Servus", "weiter"))
    assert vocabulary is not None
    assert BargeIn(TurnTaking(), vocabulary).on_words("Eh klar.", 200) is Decision.RESUME
    assert BargeIn(TurnTaking(), vocabulary).on_words("Entschuldigung!", 200) is Decision.RESUME
    assert BargeIn(TurnTaking(), vocabulary).on_words("Servus.", 200) is Decision.CONFIRM
    assert BargeIn(TurnTaking(), vocabulary).on_words("Weiter.", 200) is Decision.CONFIRM


def test_a_language_without_a_vocabulary_has_none() -> None:
    assert vocabulary_for("tlh") is None
    assert vocabulary_for("en-GB") == ENGLISH
