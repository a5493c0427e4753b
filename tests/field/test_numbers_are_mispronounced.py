"""Numbers, money and telephone numbers came out as the engine's own guess: "$3.50" as "dollar three fifty", a phone
number as "five billion".

Right: a deterministic normaliser per language says them as people do. Left is what is displayed, right what is said.
"""

from __future__ import annotations

import pytest

from voice_agent.speech.speakable import speakable

GOLDEN = {
    # Money
    "That is $42.": "That is forty-two dollars.",
    "It costs $3.50 a day": "It costs three dollars and fifty cents a day",
    "only $1": "only one dollar",
    "$0.99 each": "ninety-nine cents each",
    "$1,234.56": "one thousand two hundred thirty-four dollars and fifty-six cents",
    "$1.01": "one dollar and one cent",
    "$20.00": "twenty dollars",
    "$1.5 million": "one point five million dollars",
    "$5k": "five thousand dollars",
    "-$5": "minus five dollars",
    "$5-$10": "five to ten dollars",
    "$5–10 million": "five to ten million dollars",
    "I paid $5 to 10 people": "I paid five dollars to ten people",
    "Mon-Fri 9-17": "Monday to Friday nine to seventeen",
    "€9.99": "nine euros and ninety-nine cents",
    "£1.20": "one pound and twenty pence",
    "42 USD": "forty-two dollars",
    "USD 42": "forty-two dollars",
    "¥500": "five hundred yen",
    "US$7": "seven dollars",
    "$10/month": "ten dollars per month",
    "$10/mo, $99/yr.": "ten dollars per month, ninety-nine dollars per year.",
    "50¢": "fifty cents",
    # Plain numbers, percentages, ranges
    "Pi is 3.14.": "Pi is three point one four.",
    "1,000,000 people": "one million people",
    "0.5": "zero point five",
    "2001 items": "two thousand one items",
    "5%": "five percent",
    "3.5 % more": "three point five percent more",
    "5-10% off": "five to ten percent off",
    "5–10 days": "five to ten days",
    "-5 degrees": "minus five degrees",
    "about 24+ years": "about twenty-four plus years",
    "2x faster, 3x4": "two times faster, three by four",
    "a ratio of 3:1": "a ratio of three to one",
    "2+2=4": "two plus two equals four",
    # Ordinals and fractions
    "the 1st, 2nd and 23rd": "the first, second and twenty-third",
    "1/2 cup and 3/4": "one half cup and three quarters",
    "1 1/2 hours": "one and a half hours",
    "2½ hours": "two and a half hours",
    "8/10": "eight out of ten",
    "open 24/7": "open twenty-four seven",
    # Units
    "5 km": "five kilometers",
    "1kg": "one kilogram",
    "72°F": "seventy-two degrees Fahrenheit",
    "100 Mbps": "one hundred megabits per second",
    "10GB": "ten gigabytes",
    "5 ft": "five feet",
    "30 min": "thirty minutes",
    "60 km/h": "sixty kilometers per hour",
    "6'2\" tall": "six foot two tall",
    # Dates
    "2024-03-15": "March fifteenth, twenty twenty-four",
    "due 3/15/2024.": "due March fifteenth, twenty twenty-four.",
    "15/03/2024": "March fifteenth, twenty twenty-four",
    "on 12/25": "on December twenty-fifth",
    "March 3, 2024": "March third, twenty twenty-four",
    "March 3rd": "March third",
    "Mar. 3": "March third",
    "3 March 2024": "the third of March, twenty twenty-four",
    "the 3rd of March": "the third of March",
    "March 3-5": "March third to fifth",
    "in May 2024": "in May twenty twenty-four",
    "in 1999": "in nineteen ninety-nine",
    "since 2005": "since two thousand five",
    "2019-2024": "twenty nineteen to twenty twenty-four",
    "the 1990s and '80s": "the nineteen nineties and eighties",
    "In May 5 of us met": "In May fifth of us met",
    "may 5 people": "may five people",
    # Times
    "at 3:30": "at three thirty",
    "at 3:05 pm": "at three oh five P-M",
    "at 3:00": "at three o'clock",
    "9 a.m. to 5 p.m.": "nine A-M to five P-M.",
    "9am-5pm": "nine A-M to five P-M",
    "09:00-17:30": "nine A-M to five thirty P-M",
    "at 00:15": "at twelve fifteen A-M",
    "9-5pm": "nine to five P-M",
    # Telephone numbers and identifiers
    "Call 555-123-4567.": "Call five five five, one two three, four five six seven.",
    "(555) 123-4567": "five five five, one two three, four five six seven",
    "+1 (555) 123-4567": "plus one, five five five, one two three, four five six seven",
    "+44 20 7946 0958": "plus four four, two zero, seven nine four six, zero nine five eight",
    "555-1234": "five five five, one two three four",
    "555.123.4567": "five five five, one two three, four five six seven",
    "call 5551234567": "call five five five, one two three, four five six seven",
    "Your account number is 427913.": "Your account number is four two seven, nine one three.",
    "code 0042": "code zero zero four two",
    "the PIN is 1234": "the PIN is one two three four",
    "card ending in 4242": "card ending in four two four two",
    "order #12345": "order one two three, four five",
    "ticket #7": "ticket number seven",
    "order 3 pizzas": "order three pizzas",
    "booking AB12CD": "booking A-B twelve C-D",
    "model X-4071": "model X four zero seven one",
    "B12 and 5G": "B twelve and five G",
    "COVID-19": "COVID nineteen",
    "version 1.2.3": "version one point two point three",
    "at 192.168.0.1": "at one hundred ninety-two dot one hundred sixty-eight dot zero dot one",
    "No. 5": "number five",
    "room 204": "room two zero four",
    "dial 911": "dial nine one one",
    "4111 1111 1111 1111": "four one one one, one one one one, one one one one, one one one one",
    # Abbreviations and signs
    "Dr. Smith and Mr. Jones": "Doctor Smith and Mister Jones",
    "St. Mary on Main St.": "Saint Mary on Main Street.",
    "e.g. this, i.e. that, etc.": "for example this, that is that, et cetera.",
    "the U.S. Navy": "the U-S Navy",
    "AT&T, Q&A": "AT and T, Q and A",
    "and/or, he/she": "and or, he or she",
    "The answer is no.": "The answer is no.",
    "He sat. She left.": "He sat. She left.",
    "~5 of them": "about five of them",
}


@pytest.mark.parametrize(("display", "spoken"), GOLDEN.items(), ids=list(GOLDEN))
def test_numbers_are_said_as_people_say_them(display: str, spoken: str) -> None:
    assert speakable(display).text == spoken


@pytest.mark.parametrize("display", GOLDEN)
def test_no_digit_reaches_the_engine(display: str) -> None:
    assert not any(character.isdigit() for character in speakable(display).text)
