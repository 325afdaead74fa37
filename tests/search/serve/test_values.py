"""Odd values in the columns of a new item: refused with 422 and a sentence, never half."""

import pytest

from tests.search.serve.conftest import encoded


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ('{"price": "n/a"}', "'price' of the item 'odd' is 'n/a', and the column holds numbers"),
        ('{"price": true}', "'price' of the item 'odd' is true, and the column holds numbers"),
        ('{"v": 1e999}', "must be text, a number or null"),
        ('{"v": -1e999}', "must be text, a number or null"),
        ('{"v": [1]}', "must be text, a number or null"),
        ('{"v": {}}', "must be text, a number or null"),
    ],
)
def test_values_that_a_column_cannot_hold(inside, columns, message):
    reply = inside.form("/v1/items", ("image", encoded()), ("id", "odd"), ("columns", columns))
    assert (reply.status, reply.json["error"]["code"]) == (422, "bad_value")
    assert message in reply.json["error"]["message"]
    assert inside("GET", "/v1/items/odd").status == 404
