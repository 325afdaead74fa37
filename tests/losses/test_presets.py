"""The values of the papers [math A], as they reach the user: defaults, and presets by name."""

import pytest

from lookalike import losses
from lookalike.catalog import presets_of
from tests.losses.facts import facts

PRINTED = [(name, preset) for name in losses.names() for preset in getattr(facts(name), "PRESETS", {})]


def assert_settings(loss, settings):
    for key, value in settings.items():
        assert getattr(loss, key) == value, key


@pytest.mark.parametrize("name", losses.names())
def test_defaults_are_the_printed_values(name):
    assert_settings(losses.build(name, classes=3, dim=4), facts(name).DEFAULTS)


@pytest.mark.parametrize(("name", "preset"), PRINTED)
def test_presets_carry_the_values_of_the_papers(name, preset):
    assert_settings(losses.build(name, preset=preset, classes=3, dim=4), facts(name).PRESETS[preset])


@pytest.mark.parametrize("name", losses.names())
def test_every_preset_builds(name):
    for preset in presets_of(losses.MEMBERS[name]):
        losses.build(name, preset=preset, classes=3, dim=4)


def test_a_setting_overrides_its_preset():
    assert losses.build("margin_contrastive", preset="cars", negative_margin=0.9).negative_margin == 0.9
