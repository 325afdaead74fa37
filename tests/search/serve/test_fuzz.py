"""The API is what its own description says: requests drawn from it, valid and not, get no 5xx and no other form."""

import time
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from tests.search.serve.client import Server
from tests.search.serve.conftest import encoded

EXAMPLES, ITEM = 15, "table/figs0.png"


def checks():
    from schemathesis.checks import not_a_server_error  # which loads slowly
    from schemathesis.specs.openapi import checks

    return [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
        checks.unsupported_method,
    ]


def ask(cases):
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, real=st.booleans())
    def each(case, real):
        if real:
            fill_in(case)
        case.call_and_validate(checks=checks(), timeout=60)

    each()


def fill_in(case):
    """A real picture and a real item in the place of noise, so that requests get beyond the first look."""
    if isinstance(case.body, dict):
        pictures = {"image": encoded(), "not_image": encoded("apple")}
        several = isinstance(case.body.get("image"), list)
        real = {name: [content] if several else content for name, content in pictures.items()}
        names = dict.fromkeys(("item", "not_item", "query_item"), ITEM)
        case.body |= {name: value for name, value in (real | names).items() if name in case.body}
    if "id" in case.path_parameters and case.method != "DELETE":  # others need it yet
        case.path_parameters["id"] = quote(ITEM, safe="")


@pytest.mark.slow
def test_requests_from_the_description(shop):
    import schemathesis

    with Server(shop) as server:
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/openapi.json")
        operations = [result.ok() for result in schema.get_all_operations()]
        for operation in operations:
            for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
                try:
                    ask(operation.as_strategy(generation_mode=mode))
                except Unsatisfiable:  # nothing to get wrong: it takes no parameters
                    assert mode == schemathesis.GenerationMode.NEGATIVE
        assert len(operations) >= 10
        assert server.search(("image", encoded())).status == 200
        assert "Traceback" not in server.errors
        expected = {("search", 200), ("search", 422), ("items", 201), ("items", 200), ("feedback", 201)}
        deadline = time.monotonic() + 120
        while not expected <= (seen := statuses(server)) and time.monotonic() < deadline:
            time.sleep(0.1)  # the line of an answer is written after it
        assert expected <= seen


def statuses(server):
    return {(line["path"].split("/")[2], line["status"]) for line in server.log_lines() if "/v1/" in line["path"]}
