"""The [tune] table: what is drawn from it, and what is refused."""

import pytest

from lookalike.errors import UserError
from lookalike.recipe import overridden
from lookalike.sweeps.ranges import Corner, draw, take

BASE = {"loss": {"name": "triplet", "margin": 0.2}, "optimiser": {"lr": 1e-4}}


class Last(Corner):
    """Takes the last choice."""

    def suggest_categorical(self, name, choices):
        del name
        return choices[-1]


def test_names_are_set_first_and_conditions_look_at_them():
    _, ranges = take(
        {
            "tune": {
                "loss.margin": {"low": 0.05, "high": 0.5, "when": "loss.name=triplet"},
                "loss.name": {"choices": ["triplet", "multi_similarity"]},
                "sampler": {"per_class": {"low": 2, "high": 8, "step": 2}},
            }
        }
    )
    assert draw(ranges, BASE, Corner()) == ['loss.name="triplet"', "sampler.per_class=2", "loss.margin=0.05"]
    overrides = draw(ranges, BASE, Last())
    assert overrides == ['loss.name="multi_similarity"', "sampler.per_class=2"]
    assert overridden(BASE, overrides)["loss"] == {"name": "multi_similarity"}


def test_a_drawn_setting_sticks_beside_a_drawn_name():
    _, ranges = take(
        {
            "tune": {
                "loss.margin": {"low": 0.05, "high": 0.5},
                "loss.name": {
                    "choices": ["triplet", "contrastive"],
                    "when": "loss.margin=0.05",
                },  # so that it is drawn last
            }
        }
    )
    overrides = draw(ranges, BASE, Last())
    assert overrides == ["loss.margin=0.05", 'loss.name="contrastive"']
    assert overridden(BASE, overrides)["loss"] == {"name": "contrastive", "margin": 0.05}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "does not say what to search"),
        ({"seed": 3}, "tune.seed is a range"),
        ({"seed": {"low": 1}}, "needs low and high, or choices"),
        ({"seed": {"low": 1, "high": 3, "choices": [1]}}, "needs low and high, or choices"),
        ({"seed": {"low": 3, "high": 1}}, "low 3 must be below high 1"),
        ({"optimiser.lr": {"low": 0.0, "high": 1.0, "log": True}}, "low must be above 0"),
        ({"optimiser.lr": {"lo": 0.0, "high": 1.0}}, "did you mean 'low'"),
        ({"seed": {"low": 1, "high": 3, "when": "always"}}, "when is a condition"),
    ],
)
def test_what_is_refused(table, words):
    with pytest.raises(UserError, match=words):
        take({"tune": table})
