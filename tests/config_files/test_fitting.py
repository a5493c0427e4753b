"""A refused value: what would be right, and never the value itself."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from voice_agent.config_files.fitting import what_fits
from voice_agent.config_files.validation import validate
from voice_agent.yaml_source import Reader, YamlFile


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("annotation", "given", "words"),
    [
        (Annotated[int, Field(gt=3)], 3, "Write a value above 3."),
        (Annotated[float, Field(ge=0.5)], 0, "Write a value of at least 0.5."),
        (Annotated[int, Field(lt=3)], 3, "Write a value below 3."),
        (Annotated[int, Field(le=3)], 4, "Write a value of at most 3."),
        (Annotated[int, Field(multiple_of=20)], 30, "Write a multiple of 20."),
        (Annotated[str, Field(min_length=1)], "", "Write a longer text: 1 or more characters."),
        (Annotated[str, Field(max_length=2)], "long", "Write a shorter text: 2 or fewer characters."),
        (Annotated[str, Field(pattern="^[a-z]+$")], "A", "Write a text of the form ^[a-z]+$."),
        (Annotated[list[int], Field(min_length=2)], [1], "Give more entries: 2 at least."),
        (Literal["a", "b"], "c", "Write 'a' or 'b'."),
        (Colour, "green", "Write 'red' or 'blue'."),
        (bool, "perhaps", "Write true or false."),
        (int, 1.5, "Write a whole number."),
        (dict[str, int], 1, "Write a mapping of keys to values."),
        (Path, 1, ""),
    ],
)
def test_what_would_be_right_follows_from_the_kind_of_fault(annotation: Any, given: Any, words: str) -> None:
    with pytest.raises(ValidationError) as fault:
        TypeAdapter(annotation).validate_python(given)
    (error,) = fault.value.errors()
    assert what_fits(error["type"], error.get("ctx", {})) == words


def test_an_error_of_a_known_kind_with_another_context_has_no_words() -> None:
    assert what_fits("enum", {}) == ""


def test_a_setting_below_its_least_value_is_told_what_it_must_be_and_what_it_is(tmp_path: Path) -> None:
    class Section(BaseModel):
        times: int = Field(1, ge=1)

    file = YamlFile("times: 0\n", tmp_path / "agent.yml")
    reader = Reader(tmp_path / "agent.yml", [], "config")
    assert validate(Section, file.value, reader) is None
    assert [problem.remedy for problem in reader.problems] == ["Write a value of at least 1. It is 0."]
