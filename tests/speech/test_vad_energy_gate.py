"""The gate follows the room and never a speaker."""

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.speech.energy_gate import QUIETEST_FLOOR_DBFS, EnergyGate, NoiseFloor

levels = st.lists(st.floats(-96, 0), max_size=400)


def floor_after(*parts: tuple[float, int]) -> float:
    floor = NoiseFloor()
    for level, count in parts:
        for _ in range(count):
            floor.update(level)
    return floor.level_dbfs


def test_the_floor_rises_to_a_louder_room_within_two_seconds():
    assert floor_after((-40, 90)) == QUIETEST_FLOOR_DBFS
    assert floor_after((-40, 110)) == -40


def test_the_floor_sinks_to_a_quieter_room_at_once():
    assert floor_after((-40, 200), (-55, 1)) == -55


def test_digital_silence_does_not_sink_it_below_its_bottom():
    assert floor_after((-96, 500)) == QUIETEST_FLOOR_DBFS


def test_speech_with_dips_does_not_raise_it():
    assert floor_after((-50, 200), *[(-20, 60), (-50, 2)] * 20) == -50


@given(levels)
def test_the_floor_is_never_above_the_last_frame_except_at_the_bottom(data: list[float]):
    floor = NoiseFloor()
    for level in data:
        floor.update(level)
        assert QUIETEST_FLOOR_DBFS <= floor.level_dbfs <= max(level, QUIETEST_FLOOR_DBFS)


def test_a_steady_sound_closes_the_gate_whatever_its_level():
    gate = EnergyGate()
    assert [gate.is_open(-20, speaking=False) for _ in range(200)][-50:] == [False] * 50


def test_speech_may_end_softer_than_it_must_begin():
    gate = EnergyGate()
    for _ in range(200):
        gate.is_open(-50, speaking=False)
    assert not gate.is_open(-46, speaking=False)
    assert gate.is_open(-43, speaking=False)
    assert gate.is_open(-46, speaking=True)
    assert not gate.is_open(-48, speaking=True)


def test_decay_far_below_the_voice_is_not_speech_even_in_a_silent_room():
    gate = EnergyGate()
    for _ in range(200):
        gate.is_open(-96, speaking=False)
    assert gate.is_open(-10, speaking=False)
    assert gate.is_open(-40, speaking=True)
    assert not gate.is_open(-50, speaking=True)


def test_a_soft_voice_after_a_loud_one_is_judged_by_its_own_level():
    gate = EnergyGate()
    gate.is_open(-5, speaking=False)
    assert gate.is_open(-50, speaking=False)
    assert gate.is_open(-60, speaking=True)
