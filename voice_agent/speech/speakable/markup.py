"""Takes out what is written for the eye: markdown, HTML, code, tables, link targets, emoji."""

from __future__ import annotations

import html
import re

from voice_agent.speech.speakable.traced import Edit, Rewrite, TracedText

_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TABLE_ROW = re.compile(r"^[ \t]*\|.*$|^[ \t]*:?-{3,}:?(?:[ \t]*\|[ \t]*:?-{3,}:?)+[ \t]*$", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})$", re.MULTILINE)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_LINK_DEFINITION = re.compile(r"^[ \t]*\[[^\]]+\]:[ \t]+\S+.*$", re.MULTILINE)
_CITATION = re.compile(r"\[\^?\d{1,3}\](?!\()")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^>\s]+|[^@<>\s]+@[^<>\s]+)>")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>")
_ENTITY = re.compile(r"&(?:#\d{1,6}|#x[0-9a-fA-F]{1,6}|[A-Za-z]{2,10});")
_INLINE_CODE = re.compile(r"(`+)([^`]+)\1")
_PLAIN_CODE = re.compile(r"[\w' -]+")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+|[ \t]+#+[ \t]*$", re.MULTILINE)
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•◦▪‣·][ \t]+(?:\[[ xX]\][ \t]+)?)", re.MULTILINE)
_NUMBERED = re.compile(r"^([ \t]*\d{1,3})[.)](?=[ \t]+\S)", re.MULTILINE)
_EMPHASIS = re.compile(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|~~|(?<!\w)_{1,3}(?=\w)|(?<=[\w.,!?])_{1,3}(?!\w)")
_MULTIPLIED = re.compile(r"(?<=\d) ?\*(?= ?\d)")
_EMOTICON = re.compile(r"(?<!\S)(?:[:;=8][-'^]?[)(DPpOo/|*3]|<3|\^_\^|xD|XD)(?=\s|$|[.,!?])")
_SHORTCODE = re.compile(r"(?<!\w):[a-z][a-z0-9_+-]+:(?!\w)")
_EMOJI = re.compile(
    "(?:[0-9#*]\ufe0f?\u20e3)|[\U0001f000-\U0001faff\U0001fb00-\U0001fbff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff"
    "\u25a0-\u25ff\u3030\u303d\u3297\u3299\U000e0000-\U000e007f\ufe0e\ufe0f\u200d\u20e3]+"
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_END = re.compile(r"[ \t]*\n\s*(?=\S)")
_BLOCK_START = re.compile(r"[-*+•#|]|\d{1,3}[.)]\s")
_BLOCK_LINE = re.compile(r"[ \t]*(?:[-*+•][ \t]|#{1,6}[ \t]|\d{1,3}[.)][ \t])")


def strip_markup(text: TracedText) -> None:
    """Remove what is not for the ear. Keeps the words, their order and their punctuation."""
    for pattern in (_CODE_BLOCK, _COMMENT, _LINK_DEFINITION, _TABLE_ROW, _RULE, _IMAGE):
        text.sub(pattern, lambda match: "")
    text.sub(_CITATION, lambda match: "")
    text.sub(_LINK, _keep_inside)
    text.sub(_AUTOLINK, _keep_inside)
    text.sub(_TAG, lambda match: " " if match[0].lower().startswith(("<br", "<p", "<li", "</p", "</li")) else "")
    text.sub(_ENTITY, lambda match: html.unescape(match[0]))
    text.sub(_INLINE_CODE, _inline_code)
    text.sub(_QUOTE, lambda match: "")
    text.sub(_LINE_END, _line_end)
    for pattern in (_HEADING, _BULLET):
        text.sub(pattern, lambda match: "")
    text.sub(_NUMBERED, lambda match: [Edit(match.end(1), match.end(), ",")])
    text.sub(_MULTIPLIED, lambda match: " ×")
    for pattern in (_EMPHASIS, _EMOTICON, _SHORTCODE):
        text.sub(pattern, lambda match: "")
    text.sub(_EMOJI, lambda match: " ")
    text.sub(_INVISIBLE, lambda match: "")


def _keep_inside(match: re.Match[str]) -> Rewrite:
    """Keep group 1 of the match, character by character."""
    return [Edit(match.start(), match.start(1), ""), Edit(match.end(1), match.end(), "")]


def _inline_code(match: re.Match[str]) -> Rewrite:
    """Keep code that is words (``Save``, a file's plain name); anything else is for the eye."""
    if not _PLAIN_CODE.fullmatch(match[2]):
        return ""
    return [Edit(match.start(), match.start(2), ""), Edit(match.end(2), match.end(), "")]


def _line_end(match: re.Match[str]) -> Rewrite:
    """End a line with a stop where the next one is not its continuation, or a list is said in one breath."""
    text, at = match.string, match.start()
    if not at or text[at - 1] in ".!?:;,…":
        return None
    line = text[text.rfind("\n", 0, at) + 1 : at]
    is_break = match[0].count("\n") > 1 or _BLOCK_START.match(text, match.end()) or _BLOCK_LINE.match(line)
    return [Edit(at, at, ".")] if is_break else None
