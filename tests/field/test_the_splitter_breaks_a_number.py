"""A sentence splitter cut "3.14", "$3.50", "Dr.", "a.m.", web addresses or a decimal comma in two, and the voice
read the halves with a pause between them.

Right: text fed token by token comes out in pieces that concatenate to it, and no piece ends inside a token.
"""

from __future__ import annotations

import pytest

from voice_agent.speech.splitter import SentenceSplitter

TOKENS = [
    "3.14",
    "$3.50",
    "1,000.50",
    "1.000,50",
    "3,5",
    "Dr. Jones",
    "Mr. Smith",
    "9 a.m. tomorrow",
    "5:30 p.m. today",
    "e.g. this",
    "i.e., that",
    "the U.S. Navy",
    "U.S.",
    "https://shop.example.com/a.b,c?d=1.5&e=f!g",
    "www.example.co.uk",
    "first.last@mail.example.com",
    "hm... well",
    "192.168.0.1",
    "v1.2.3",
    "March 3, 2024",
    "No. 5",
    "J. R. R. Tolkien",
    "Acme Inc. building",
    "12:30",
    "555-123-4567",
    "etc. and so on",
    "well-known",
    "5 - 10",
    "Ph.D. student",
    "St. Mary",
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("first_clause", [True, False])
def test_no_piece_ends_inside_a_token(token: str, size: int, first_clause: bool) -> None:
    text = f"Here is something that you asked for: {token} is what it says. Then we saw {token}, and left. Bye."
    splitter = SentenceSplitter(first_clause)
    pieces = [piece for at in range(0, len(text), size) for piece in splitter.push(text[at : at + size])]
    pieces += splitter.flush()
    assert "".join(pieces) == text
    assert sum(piece.count(token) for piece in pieces) == 2, pieces
    assert len(pieces) >= 3
