"""How two strings of phonemes correspond: the one of a sentence, and that of its words said alone.

Levenshtein's distance with a cost of its own for the gap between words, which a sentence may lack.
"""

from __future__ import annotations

from collections.abc import Sequence

SPACE = " "
"""The gap between two words."""
# Cost of a phoneme that has no partner, and of one whose partner differs.
_GAP, _OTHER, _WORD_GAP = 2, 2, 1
# Alignment looks this many phonemes to either side of the diagonal.
BAND = 24


def edit_distance(one: str, other: str) -> int:
    """Return the least number of characters to insert, delete or replace (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        previous, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (left != right))
    return row[-1]


def edit_path(symbols: Sequence[str], said: Sequence[str]) -> list[int]:
    """Return, for each element of ``said``, the index in ``symbols`` it is aligned to (never descending)."""
    far = 1 << 30
    rows, columns = len(symbols) + 1, len(said) + 1
    cost = [[far] * columns for _ in range(rows)]
    for i in range(rows):
        middle = i * (columns - 1) // max(1, rows - 1)
        for j in range(max(0, middle - BAND), min(columns, middle + BAND + 1)):
            if i == j == 0:
                cost[0][0] = 0
                continue
            best = far
            if i and j:
                best = cost[i - 1][j - 1] + _difference(symbols[i - 1], said[j - 1])
            if i:
                best = min(best, cost[i - 1][j] + (_WORD_GAP if symbols[i - 1] == SPACE else _GAP))
            if j:
                best = min(best, cost[i][j - 1] + (_WORD_GAP if said[j - 1] == SPACE else _GAP))
            cost[i][j] = best
    partners = [0] * len(said)
    i, j = rows - 1, columns - 1
    while j:
        diagonal = cost[i - 1][j - 1] + _difference(symbols[i - 1], said[j - 1]) if i else far
        if i and cost[i][j] == diagonal:
            i, j = i - 1, j - 1
            partners[j] = i
        elif i and cost[i][j] == cost[i - 1][j] + (_WORD_GAP if symbols[i - 1] == SPACE else _GAP):
            i -= 1
        else:
            j -= 1
            partners[j] = max(0, i - 1)
    return partners


def _difference(one: str, other: str) -> int:
    if one == other:
        return 0
    # A gap between words is never a sound.
    return 1 << 20 if SPACE in (one, other) else _OTHER
