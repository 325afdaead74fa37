"""What a loss tells the person at the keyboard: its settings, what they mean, and which one was meant."""

import copy
import inspect
import pickle

import pytest

from lookalike import losses
from lookalike.catalog import settings_of
from tests.contracts.catalogue import NAMES, build


@pytest.mark.parametrize("name", NAMES)
def test_repr_shows_the_settings(name):
    loss = build(name)
    assert repr(loss).startswith(f"{type(loss).__name__}(")
    for setting in settings_of(type(loss)):
        assert f"{setting}=" in repr(loss)


def test_repr_shows_what_the_settings_are_now():
    loss = losses.Triplet(0.5, squared=True)
    assert repr(loss) == (
        "Triplet(margin=0.5, squared=True, similarity='euclidean', reduction='mean', smooth=False, normalise='sphere')"
    )
    loss.margin = 0.7
    assert "margin=0.7" in repr(loss)
    # resolved where the default depends on other settings; a learnt boundary is shown as it began
    assert "normalise='none'" in repr(losses.NPair())
    assert "boundary=0.6, boundary_weight=0.0, classes=3" in repr(losses.Margin(boundary=0.6, classes=3))


@pytest.mark.parametrize("name", NAMES)
def test_copies_show_the_same(name):
    loss = build(name)
    loss.generator = None  # of quadruplet: a generator cannot be copied
    assert repr(copy.deepcopy(loss)) == repr(pickle.loads(pickle.dumps(loss))) == repr(loss)


@pytest.mark.parametrize("name", NAMES)
def test_help_explains_every_setting_in_one_line(name):
    member = losses.MEMBERS[name]
    lines = inspect.getdoc(member).splitlines()
    explained = [line.partition(":")[0] for line in lines[2:]]
    assert explained == settings_of(member)
    assert all(len(line.partition(": ")[2]) > 8 and line.endswith(".") for line in lines[2:])


@pytest.mark.parametrize("name", NAMES)
def test_a_misspelt_setting_is_refused_with_the_nearest(name):
    member = losses.MEMBERS[name]
    setting = settings_of(member)[-1]
    with pytest.raises(
        TypeError, match=f"^unknown setting of {member.__name__} '{setting}s': did you mean '{setting}'"
    ):
        member(**{setting + "s": 1})


@pytest.mark.plain  # the shape hook has words of its own
def test_python_still_says_what_is_missing_or_too_much():
    with pytest.raises(TypeError, match="missing 2 required positional arguments: 'classes' and 'dim'"):
        losses.ProxyAnchor()
    with pytest.raises(TypeError, match="takes from 1 to 3 positional arguments but 4 were given"):
        losses.NCA(1.0, "sphere", 3)
    with pytest.raises(TypeError, match="multiple values for argument 'margin'"):
        losses.Triplet(0.2, margin=0.2)
