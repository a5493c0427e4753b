"""Files become passages, or a reason why they do not."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.recall import documents
from voice_agent.recall.chunks import MAX_PASSAGE_CHARS, passages
from voice_agent.recall.documents import HTML, MARKDOWN, PDF, TEXT, digest_of, read_document
from voice_agent.recall.readers import Unreadable


def pdf(*pages: list[str], title: str = "", password: str = "") -> bytes:
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen import canvas

    buffer = io.BytesIO()
    made = canvas.Canvas(buffer, encrypt=StandardEncryption(password) if password else None)
    made.setTitle(title)
    for lines in pages:
        for number, line in enumerate(lines):
            made.drawString(72, 700 - 20 * number, line)
        made.showPage()
    made.save()
    return buffer.getvalue()


def test_a_pdf_is_read_by_page_under_its_title() -> None:
    data = pdf(
        ["Press the button for ten sec-", "onds to reset it."], ["Bills are due", "in four weeks."], title="Manual"
    )
    found = read_document("m.pdf", data, PDF).passages
    assert [(p.title, p.text, p.source) for p in found] == [
        ("Manual", "Press the button for ten seconds to reset it.", "m.pdf#page=1"),
        ("Manual", "Bills are due in four weeks.", "m.pdf#page=2"),
    ]


def test_a_heading_of_a_pdf_stands_apart_from_the_sentence_below_it() -> None:
    page = ["Returns", "A router may be returned within thirty days, in its original", "box, to any shop in", "Bath."]
    (passage,) = read_document("r.pdf", pdf(page), PDF).passages
    heading, text = passage.text.split("\n\n", 1)
    assert heading == "Returns"
    assert text.startswith("A router may be returned within thirty days, in its original box, to any shop in")


PAGE = b"""<html><head><title>Help &amp; hours</title><style>p{}</style></head><body><nav>Menu</nav>
<h1>Hours</h1><p>We are <b>open</b> from nine.<script>alert("no")</script></p>
<h2>Sunday</h2><ul><li>Closed</li></ul><p># no heading</p>
<table><tr><td>Monday</td><td>nine to six</td></tr></table></body></html>"""


def test_a_page_gives_its_text_under_its_headings() -> None:
    found = read_document("help.html", PAGE, HTML).passages
    assert (found[0].title, found[0].text) == ("Hours", "We are open from nine.")
    (sunday,) = [p.text for p in found if p.title == "Hours - Sunday"]
    assert "- Closed" in sunday
    assert "Monday | nine to six" in sunday
    everything = " ".join(p.text for p in found)
    assert not [word for word in ("alert", "Menu", "p{}") if word in everything]


def test_a_large_page_is_read_like_a_small_one() -> None:
    small, large = (read_document("help.html", PAGE + b"<!--" + b"x" * n + b"-->", HTML) for n in (1, 40_000))
    assert small.passages == large.passages


def test_a_page_nested_without_end_is_given_up_and_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PAGE_LIMIT_S", 0.4)
    with pytest.raises(Unreadable, match="longer than"):
        read_document("deep.html", b"<div>" * 60_000, HTML)


@pytest.mark.parametrize("named", ["undefined", "punycode", "idna", "hex", "utf-7", "no-such", "utf-16"])
def test_a_page_that_names_an_encoding_which_no_page_has_is_read_all_the_same(named: str) -> None:
    page = f"<meta charset={named}><p>Gr\u00fc\u00dfe aus -- Bath-".encode()
    assert "Gr\u00fc\u00dfe aus -- Bath-" in read_document("a.html", page, HTML).passages[0].text


@pytest.mark.parametrize(
    ("data", "encoding"),
    [("Grüße", "utf-8"), ("Grüße", "utf-8-sig"), ("Grüße", "cp1252"), ("Grüße", "utf-16")],
)
def test_common_encodings_are_understood(data: str, encoding: str) -> None:
    assert read_document("a.txt", data.encode(encoding), TEXT).passages[0].text == "Grüße"


@pytest.mark.parametrize(
    ("data", "media_type", "reason"),
    [
        (b"", MARKDOWN, "empty"),
        (b" \n ", TEXT, "empty"),
        (b"\x00\x01\x02" * 50, TEXT, "binary"),
        (bytes(range(1, 32)) * 20 + b"word" + b"\x81\x8d" * 90, TEXT, "encoding"),
        (b"%PDF-1.7 rubbish", PDF, "no PDF that can be read"),
        (pdf(["text"])[:300], PDF, "no PDF that can be read"),
        (pdf(["text"], password="secret"), PDF, "encrypted"),
        (pdf([]), PDF, "no text in it"),
        (b"<html><body><script>x</script></body>", HTML, "no text in it"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(data: bytes, media_type: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read_document("file", data, media_type)


def test_what_is_too_large_is_refused_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 100)
    with pytest.raises(Unreadable, match="MB"):
        read_document("a.txt", b"x" * 101, TEXT)
    monkeypatch.undo()
    monkeypatch.setattr(documents, "MAX_TEXT_CHARS", 100)
    with pytest.raises(Unreadable, match="100 characters"):
        read_document("a.txt", b"x " * 60, TEXT)


def test_a_pdf_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PDF_LIMIT_S", 0.01)
    with pytest.raises(Unreadable, match="longer than"):
        read_document("a.pdf", pdf(["text"]), PDF)


def test_a_digest_tells_content_and_kind_apart() -> None:
    assert len({digest_of(b"a", TEXT), digest_of(b"b", TEXT), digest_of(b"a", MARKDOWN)}) == 3


def test_long_paragraphs_are_cut_between_sentences() -> None:
    text = " ".join(f"Sentence number {n} says something of use." for n in range(60))
    found = passages(text, "a.md", "A")
    assert len(found) > 3
    assert all(p.text.endswith(".") and len(p.text) <= MAX_PASSAGE_CHARS for p in found)


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=3000))
def test_no_text_is_lost_or_too_long(text: str) -> None:
    found = passages(text, "a", "A", headings=False)
    assert all(len(p.text) <= MAX_PASSAGE_CHARS for p in found)
    assert "".join("".join(p.text.split()) for p in found) == "".join("\n".join(text.splitlines()).split())


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=600), st.sampled_from([TEXT, HTML, MARKDOWN]))
def test_no_bytes_do_harm(data: bytes, media_type: str) -> None:
    try:
        assert read_document("x", data, media_type).passages
    except Unreadable as fault:
        assert str(fault)


def test_a_path_is_not_needed_to_read(tmp_path: Path) -> None:
    assert read_document("id of any kind", b"# T\nwords", MARKDOWN).passages[0].title == "T"
