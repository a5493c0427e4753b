"""Markdown, emoji, code, tables and web addresses were read out sign by sign.

Right: what is for the eye alone is not said; the display text is not touched. Left is shown, right is said.
"""

from __future__ import annotations

import pytest

from voice_agent.speech.speakable import speakable

GOLDEN = {
    "**Bold**, *italic*, __strong__, _soft_ and ~~gone~~": "Bold, italic, strong, soft and gone",
    "***All* of it**": "All of it",
    "# Opening hours": "Opening hours",
    "## Plans ##\nThere are two.": "Plans. There are two.",
    "Options:\n- one\n- two\n* three": "Options: one. two. three",
    "1. Unplug it.\n2. Wait.": "one, Unplug it. two, Wait.",
    "- [x] done\n- [ ] open": "done. open",
    "> Quoted\n> text": "Quoted text",
    "A soft\nline break": "A soft line break",
    "One\n\nTwo": "One. Two",
    "See [our help page](https://help.example.com/a?b=c#d).": "See our help page.",
    "![A chart](https://example.com/x.png)Done": "Done",
    "As shown [1][2], yes.": "As shown, yes.",
    "Go to https://www.example.com/path/to?x=1&y=2.": "Go to example dot com.",
    "Visit www.example.com/help": "Visit example dot com slash help",
    "example.com is ours": "example dot com is ours",
    "<https://example.org>": "example dot org",
    "Write to john.smith_9@mail.example.com": "Write to john dot smith underscore nine at mail dot example dot com",
    "```python\nprint('hi')\n```": "",
    "Run this:\n```\nls -la\n```\nThen wait.": "Run this: Then wait.",
    "```unclosed\nx = 1": "",
    "Press `Save` or run `rm -rf /tmp/*`.": "Press Save or run.",
    "| Plan | Price |\n|---|---|\n| S | $5 |": "",
    "Prices:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nAnything else?": "Prices: Anything else?",
    "Great! 🎉👍🏽 Thanks 👨‍👩‍👧": "Great! Thanks",
    "🇩🇪 1️⃣ ☎️": "",
    "😀": "",
    "Nice :) really :-D": "Nice really",
    "Done :tada:": "Done",
    "Use <b>this</b><br>now": "Use this now",
    "Fish &amp; chips": "Fish and chips",
    "---": "",
    "***": "",
    "Hmm... well… ok": "Hmm, well, ok",
    "Wait... What?!": "Wait. What?",
    "Really?! Yes!!!": "Really? Yes!",
    "It is — as said – good - yes": "It is, as said, good, yes",
    "Free (of charge) today (really).": "Free, of charge, today, really.",
    "“Quoted” and ‘so’ and it’s": "Quoted and so and it's",
    "snake_case_name": "snake case name",
    "A → B": "A, B",
    "#hello world": "hello world",
    "well-known e-mail": "well-known e-mail",
    "3 * 4": "three times four",
    "© 2024 Acme™": "twenty twenty-four Acme",
    "Hello\u200b wor\u00adld": "Hello world",
    "  Hello   there  ": "Hello there",
    "": "",
    "...": "",
}


@pytest.mark.parametrize(("display", "spoken"), GOLDEN.items(), ids=[repr(text) for text in GOLDEN])
def test_only_what_is_for_the_ear_is_said(display: str, spoken: str) -> None:
    assert speakable(display).text == spoken
