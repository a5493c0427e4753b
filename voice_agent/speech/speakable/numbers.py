"""Numbers in all their clothes: ranges, money, percentages, units, ordinals, codes, fractions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from voice_agent.speech.speakable.contacts import digits_in_groups
from voice_agent.speech.speakable.language import Currency, Language
from voice_agent.speech.speakable.traced import Edit, Rewrite, TracedText

_CODE = re.compile(r"(?<![\w.,])(?=[A-Z0-9-]*[A-Z])(?=[A-Z0-9-]*\d)[A-Z0-9]+(?:-[A-Z0-9]+)*(?!\w)")
_CODE_PART = re.compile(r"[A-Z]+|\d+")
_CHAIN = re.compile(r"(?<![\w.,-])\d+(?:-\d+){2,}(?![\w-]|[.,]\d)")
_LONG = re.compile(r"(?<![\w.,])(?:0\d+|\d{7,})(?!\w|[.,]\d)")
_VERSION = re.compile(r"(?<![\w.,])[vV]?(\d+(?:\.\d+){2,})(?!\w)")
_V_NUMBER = re.compile(r"(?<!\w)[vV](?=\d)")
_FRACTION = re.compile(r"(?<![\w./])(?:(\d+)(\s+))?(\d{1,3})/(\d{1,3})(?![\w/]|\.\d)")
_VULGAR = re.compile(r"(?:(?<!\w)(\d+)\s?)?([½⅓⅔¼¾⅛])")
_VULGAR_VALUES = {"½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅛": (1, 8)}
_FEET = re.compile(r"(?<!\w)(\d{1,2})['′]\s?(\d{1,2})(?:\"|″|'')")
_TIMES_BY = re.compile(r"(?<=\d)\s?x\s?(?=\d)")
_TIMES = re.compile(r"(?<=\d)x(?!\w)")
_RATIO = re.compile(r"(?<![\w:.])(\d{1,3}):(\d{1,3})(?![\w:])")
_RANGE = re.compile(r"(?<=\d)(?:\s?[–—]\s?|\s?-\s?)(?=[$€£]?\d)")
_MINUS = re.compile(r"(?<![\w)\]])[-−](?=[$€£]?\.?\d)")
_PLUS = re.compile(r"(?<=\d)\+(?!\w)|(?<!\w)\+(?=\d)")
_LEFT_OVER = re.compile(r"\d+")


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def number_pattern(language: Language) -> str:
    """Return the pattern of a plain number as the language writes it, such as ``1,234.5``."""
    thousands, decimal = re.escape(language.thousands), re.escape(language.decimal)
    return rf"(?:\d{{1,3}}(?:{thousands}\d{{3}})+(?!\d)(?:{decimal}\d+)?|\d+(?:{decimal}\d+)?|{decimal}\d+)"


class Numbers:
    """Says numbers in one language. Stateless; build it once, its patterns are compiled then."""

    def __init__(self, language: Language) -> None:
        self._language = language
        number = number_pattern(language)
        currency = _either(language.currencies)
        magnitude = rf"(?:\s?({_either(language.magnitudes)})(?!\w))?" if language.magnitudes else "()"
        units = _either(language.units)
        start = r"(?<![\w.,])"
        self._number = re.compile(rf"{start}{number}(?!\w)")
        self._magnitude = re.compile(rf"{start}({number})\s?({_either(language.magnitudes)})(?!\w)")
        self._money_before = re.compile(
            rf"(?<![\w$])(?:US|CA|C|A|NZ)?({currency})\s?({number}){magnitude}"
            rf"(?:\s?[-–—]\s?(?:{currency})?\s?({number}){magnitude}(?!\w))?"
        )
        self._money_after = re.compile(rf"{start}({number}){magnitude}\s?({currency})(?!\w)")
        self._cents = re.compile(rf"{start}({number})\s?¢")
        self._percent = re.compile(rf"{start}({number})\s?%")
        self._unit = re.compile(rf"{start}({number})\s?({units})(?![\w²³'’])")
        self._per_unit = re.compile(rf"(?<=[a-z])\s?/\s?({units}|{_either(language.per)})(?!\w)")
        self._ordinal = re.compile(rf"{start}(\d+)(?:{language.ordinal_suffixes})(?!\w)", re.IGNORECASE)
        linkers = _either(language.code_linkers)
        self._identifier = re.compile(
            rf"(?<!\w)({_either(language.code_contexts)})((?:\s+(?:{linkers}))*)\s*[:#]?\s*(#?)(\d{{3,16}})(?!\w|[.,:/-]\d)",
            re.IGNORECASE,
        )
        self._hash = re.compile(r"(?<!\w)#\s?(\d+)(?!\w)")

    def say(self, text: TracedText) -> None:
        language, words = self._language, self._language.words
        text.sub(_VERSION, lambda match: self._version(match[1]))
        text.sub(_V_NUMBER, lambda match: f"{words.version} ")
        text.sub(self._identifier, self._say_identifier)
        text.sub(self._hash, self._say_hash)
        text.sub(_CHAIN, lambda match: ", ".join(digits_in_groups(part, language) for part in match[0].split("-")))
        text.sub(_LONG, lambda match: digits_in_groups(match[0], language))
        text.sub(_FEET, lambda match: f"{self.read(match[1])} {words.foot} {self.read(match[2])}")
        text.sub(_FRACTION, self._say_fraction)
        text.sub(_VULGAR, self._say_vulgar)
        text.sub(_MINUS, lambda match: f"{words.minus} ")
        text.sub(self._money_before, self._say_money_before)
        text.sub(_RANGE, lambda match: f" {words.to} ")
        text.sub(_RATIO, lambda match: f"{self.read(match[1])} {words.to} {self.read(match[2])}")
        text.sub(_TIMES_BY, lambda match: f" {words.by} ")
        text.sub(_TIMES, lambda match: f" {words.times}")
        text.sub(_PLUS, lambda match: f" {words.plus} ")
        text.sub(self._money_after, lambda match: self._money(match[1], match[2], language.currencies[match[3]]))
        text.sub(self._cents, lambda match: self._counted(match[1], language.cents))
        text.sub(self._percent, lambda match: f"{self.read(match[1])} {words.percent}")
        text.sub(self._unit, lambda match: self._counted(match[1], language.units[match[2]]))
        text.sub(self._per_unit, self._say_per_unit)
        text.sub(self._magnitude, lambda match: f"{self.read(match[1])} {language.magnitudes[match[2]]}")
        text.sub(self._ordinal, lambda match: language.ordinal(int(match[1])))
        text.sub(_CODE, lambda match: self._code(match[0]))
        text.sub(self._number, lambda match: self.read(match[0]))
        text.sub(_LEFT_OVER, self._say_left_over)

    def read(self, written: str) -> str:
        """Read a plain number: ``1,234.50`` → ``one thousand two hundred thirty-four point five zero``."""
        language = self._language
        whole, _, decimals = written.replace(language.thousands, "").partition(language.decimal)
        spoken = language.cardinal(int(whole or "0")) if len(whole) <= 15 else digits_in_groups(whole, language)
        if decimals:
            spoken += f" {language.words.point} {' '.join(language.digits[int(digit)] for digit in decimals)}"
        return spoken

    def _is_one(self, written: str) -> bool:
        return written == "1"

    def _counted(self, written: str, names: tuple[str, str]) -> str:
        return f"{self.read(written)} {names[0] if self._is_one(written) else names[1]}"

    def _money(self, written: str, magnitude: str | None, currency: Currency) -> str:
        language = self._language
        whole, _, decimals = written.replace(language.thousands, "").partition(language.decimal)
        if magnitude:
            return f"{self.read(written)} {language.magnitudes[magnitude]} {currency.unit[1]}"
        if not decimals or not int(decimals) or currency.hundredth is None:
            return self._counted(whole if decimals and not int(decimals) else written, currency.unit)
        if len(decimals) > 2:
            return f"{self.read(written)} {currency.unit[1]}"
        hundredths = self._counted(str(int(decimals.ljust(2, "0"))), currency.hundredth)
        if not int(whole or "0"):
            return hundredths
        return f"{self._counted(whole, currency.unit)} {language.words.conjunction} {hundredths}"

    def _say_money_before(self, match: re.Match[str]) -> Rewrite:
        currency = self._language.currencies[match[1]]
        if match[4] is None:
            return self._money(match[2], match[3], currency)
        # "$5-10 million": both ends share what stands once.
        first_end = match.end(3) if match[3] else match.end(2)
        return [
            Edit(match.start(), first_end, self.read(match[2])),
            Edit(
                first_end,
                match.end(),
                f" {self._language.words.to} {self._money(match[4], match[5] or match[3], currency)}",
            ),
        ]

    def _say_identifier(self, match: re.Match[str]) -> Rewrite:
        linked = match[2].strip() or match[3] or match[1].lower() in self._language.strong_code_contexts
        if not linked and len(match[4]) < 5:
            return None
        spoken = digits_in_groups(match[4], self._language)
        return [Edit(match.start(3), match.end(3), ""), Edit(match.start(4), match.end(4), spoken)]

    def _say_hash(self, match: re.Match[str]) -> Rewrite:
        digits = match[1]
        spoken = self.read(digits) if len(digits) < 4 else digits_in_groups(digits, self._language)
        return f"{self._language.words.number} {spoken}"

    def _say_per_unit(self, match: re.Match[str]) -> Rewrite:
        language = self._language
        name = language.per.get(match[1]) or language.units[match[1]][0]
        return f" {language.words.per} {name}"

    def _version(self, written: str) -> str:
        words = self._language.words
        # Four groups are an address of the internet, three a version.
        joint = words.dot if written.count(".") == 3 else words.point
        return f" {joint} ".join(self.read(part) for part in written.split("."))

    def _say_fraction(self, match: re.Match[str]) -> Rewrite:
        part = self._fraction(int(match[3]), int(match[4]))
        if match[1] is None:
            return part
        if (int(match[3]), int(match[4])) not in self._language.fractions:
            return [Edit(match.start(3), match.end(), part)]
        return [
            Edit(match.start(1), match.end(2), f"{self.read(match[1])} {self._language.words.conjunction} "),
            Edit(match.start(3), match.end(), self._fraction(int(match[3]), int(match[4]), mixed=True)),
        ]

    def _say_vulgar(self, match: re.Match[str]) -> Rewrite:
        spoken = self._fraction(*_VULGAR_VALUES[match[2]], mixed=match[1] is not None)
        return spoken if match[1] is None else f"{self.read(match[1])} {self._language.words.conjunction} {spoken}"

    def _fraction(self, part: int, whole: int, *, mixed: bool = False) -> str:
        language = self._language
        if (part, whole) in language.fractions:
            alone, after_number = language.fractions[part, whole]
            return after_number if mixed else alone
        return f"{language.cardinal(part)} {language.words.out_of} {language.cardinal(whole)}"

    def _code(self, written: str) -> str:
        """``AB12CD`` → ``A-B twelve C-D``; ``X-4071`` → ``X four zero seven one``."""
        spoken = []
        for part in _CODE_PART.findall(written):
            if part.isdigit():
                short = len(part) <= 2 and not part.startswith("0")
                spoken.append(self.read(part) if short else digits_in_groups(part, self._language))
            else:
                spoken.append("-".join(part) if len(part) <= 3 else part)
        return " ".join(spoken)

    def _say_left_over(self, match: re.Match[str]) -> Rewrite:
        """Digits inside a word, such as ``win10pro``."""
        short = len(match[0]) <= 2 and not match[0].startswith("0")
        spoken = self.read(match[0]) if short else digits_in_groups(match[0], self._language)
        before = " " if match.string[: match.start()][-1:].isalnum() else ""
        after = " " if match.string[match.end() :][:1].isalnum() else ""
        return f"{before}{spoken}{after}"
