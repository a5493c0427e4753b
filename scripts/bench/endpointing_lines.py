"""What the callers of `endpointing.py` say, by the kind of their inner pauses."""

from __future__ import annotations

LINES: dict[str, list[tuple[str, ...]]] = {
    "comma": [
        ("I want to pay my bill,", "with my credit card."),
        ("I was at the shop yesterday,", "and the lamp I bought is broken."),
        ("On Monday,", "on Tuesday,", "and on Friday."),
        ("If it is not too late,", "I would like to change my order."),
        ("I would like to book a technician,", "for next Tuesday morning."),
        ("I need a new router,", "because the old one is broken."),
        ("Please send it to my office,", "not to my home address."),
        ("When I switch it on,", "the red light starts to blink."),
        ("Could you tell me,", "when my contract ends?"),
        ("I have an appointment on Thursday,", "at ten in the morning."),
    ],
    "digits": [
        ("Four two seven,", "nine one three,", "five five."),
        ("My number is", "oh one seven two,", "three four five,", "six seven eight nine."),
        ("Zero two zero,", "seven nine four six,", "one two three four."),
        ("It is eight eight one,", "four four oh two."),
        ("My account number is four two,", "seven nine,", "one three."),
    ],
    "thought": [
        ("I would like a coffee and", "a piece of apple cake."),
        ("Can I book a table for um", "four people this evening?"),
        ("I need to speak to", "somebody about my contract."),
        ("The thing is that", "my card was stolen on the train."),
        ("I would like to know", "whether my order has been sent."),
        ("My name is", "Catherine Miller."),
        ("I ordered a blue", "winter jacket in large."),
        ("We have been waiting for", "more than two weeks."),
    ],
    "whole": [
        ("What is my balance?",),
        ("I would like to speak to a person.",),
        ("When do you open on Sunday?",),
        ("Yes please.",),
        ("I would like to book an appointment with the dentist.",),
        ("Can you please check the status of my order?",),
        ("My internet is not working.",),
        ("That is all.",),
        ("I do not know where it is.",),
        ("Could you tell me what this charge is for?",),
        ("Tomorrow at ten o'clock.",),
        ("Thank you very much for your help.",),
    ],
}
"""What is said, by the kind of its inner pauses."""
