"""HTML to text. Pages nested very deeply take the parser very long: larger ones are read by `readers.read_apart`."""

from __future__ import annotations

import re

_LEFT_OUT = ("script", "style", "noscript", "template", "svg", "iframe", "object", "nav", "form", "button", "head")
_BLOCK_TAGS = (
    "address article aside blockquote body dd div dl dt fieldset figcaption figure footer header hr html li main ol p "
    "pre section table tbody td tfoot th thead tr ul br"
)
_BLOCKS = frozenset(_BLOCK_TAGS.split())


def page_text(source: str) -> tuple[str, str]:
    """Return the text of a page as markdown, with its headings, and its title.

    Raises:
        ImportError: The parser is not installed.
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(source)
    heading = tree.css_first("title")
    title = " ".join(heading.text().split())[:200] if heading is not None else ""
    tree.strip_tags(list(_LEFT_OUT))
    parts: list[str] = []
    for node in tree.root.traverse(include_text=True) if tree.root is not None else ():
        tag = node.tag or ""
        if tag == "-text":
            parts.append(re.sub(r"\s+", " ", node.text(deep=False) or ""))
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            parts.append(f"\n\n\x00{tag[1]}")
        elif tag in _BLOCKS or tag.startswith("-"):
            parts.append("\n- " if tag == "li" else " | " if tag in ("td", "th") else "\n\n")
    return _headed("".join(parts)), title


def _headed(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("\x00"):
            lines.append(f"{'#' * int(line[1])} {line[2:].strip()}" if line[2:].strip() else "")
        else:
            # A mark of markdown at the beginning of a line is text in a page.
            lines.append(f"\\{line}" if line.startswith("#") else line.strip("| ") if "|" in line else line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).replace("\x00", "")
