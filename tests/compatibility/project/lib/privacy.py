"""What must not be said aloud."""

import re


def without_member_numbers(text: str) -> str:
    return re.sub(r"\bW\d{6}\b", "your member number", text)
