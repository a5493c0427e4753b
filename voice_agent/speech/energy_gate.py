"""An energy gate over a noise floor that adapts: what is no louder than the room is nobody speaking.

Pure arithmetic on levels, well under a microsecond a frame.
"""

from __future__ import annotations

from collections import deque

QUIETEST_FLOOR_DBFS = -70.0
"""The floor never sinks below this, so that a whisper of line noise after digital silence stays shut out."""
ONSET_MARGIN_DB = 6.0
"""How far above the floor speech must begin. White noise varies by 0.3 dB from frame to frame."""
SPEECH_MARGIN_DB = 3.0
"""How far above the floor speech goes on: its last syllable is its softest."""
SPEECH_RANGE_DB = 34.0
"""A frame this far below the loudest of its stretch of speech is decay or breath, not speech."""
PEAK_DECAY_DB = 0.05
"""The loudest level is forgotten at this rate per frame (2.5 dB a second): a caller may grow softer."""

# The floor is the quietest frame of the last 1.8 to 2.0 s: speech has dips that short, noise has not.
_BLOCK_FRAMES = 10
_BLOCKS = 10


class NoiseFloor:
    """The level of the room, in dBFS: the minimum over the last two seconds.

    It follows a quieter room at once and a louder one after two seconds, longer than speech goes
    without a dip. A call starts with the lowest floor, so that a caller who speaks at once is heard.
    """

    __slots__ = ("_block", "_blocks", "_count", "level_dbfs")

    def __init__(self) -> None:
        self.level_dbfs = QUIETEST_FLOOR_DBFS
        self._blocks: deque[float] = deque([QUIETEST_FLOOR_DBFS] * _BLOCKS, maxlen=_BLOCKS)
        self._block, self._count = 0.0, 0

    def update(self, level_dbfs: float) -> None:
        """Take the level of the next frame."""
        if level_dbfs < self._block:
            self._block = level_dbfs
            if level_dbfs < self.level_dbfs:
                self.level_dbfs = max(level_dbfs, QUIETEST_FLOOR_DBFS)
        self._count += 1
        if self._count == _BLOCK_FRAMES:
            self._blocks.append(self._block)
            self.level_dbfs = max(min(self._blocks), QUIETEST_FLOOR_DBFS)
            self._block, self._count = 0.0, 0


class EnergyGate:
    """Opens for frames above the noise floor and, within speech, near enough to its loudest."""

    __slots__ = ("_floor", "_loudest")

    def __init__(self) -> None:
        self._floor = NoiseFloor()
        self._loudest = QUIETEST_FLOOR_DBFS

    def is_open(self, level_dbfs: float, speaking: bool) -> bool:
        """Judge the next frame.

        Args:
            level_dbfs: Its level.
            speaking: The frame before it belonged to confirmed speech.
        """
        self._floor.update(level_dbfs)
        if level_dbfs < self._floor.level_dbfs + (SPEECH_MARGIN_DB if speaking else ONSET_MARGIN_DB):
            return False
        if not speaking:
            self._loudest = level_dbfs
            return True
        self._loudest = max(self._loudest - PEAK_DECAY_DB, level_dbfs)
        return level_dbfs > self._loudest - SPEECH_RANGE_DB
