"""The description of the API for programs, and the same as a plain page for people."""

from html import escape
from typing import Any

from fastapi import FastAPI

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; }
h2 { margin-top: 2.5rem; border-top: 1px solid; padding-top: 1rem; }
h2 code { font-size: 18px; }
table { border-collapse: collapse; }
td, th { text-align: left; vertical-align: top; padding: 0.2rem 1rem 0.2rem 0; }
"""


def described(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1, with the token that a server may ask for."""
    content = app.openapi()
    components = content.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    content["security"] = [{}, {"token": []}]
    return content


def page(content: dict[str, Any]) -> str:
    """Every route with its fields and answers; nothing is loaded from elsewhere."""
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        "<title>lookalike API</title><link rel=stylesheet href=/docs.css></head><body><h1>lookalike API</h1>",
        f"<p>{escape(content['info']['description'])} For programs: <a href=/openapi.json>openapi.json</a>. "
        'Errors have one form: <code>{"error": {"code", "message", "request_id"}}</code>. '
        "Where the server has a token, send <code>Authorization: Bearer TOKEN</code>.</p>",
    ]
    for path, methods in content["paths"].items():
        for method, route in methods.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(route['description'])}</p>")
            parts += [_fields(kind, form["schema"]) for kind, form in _bodies(route).items()]
            statuses = ", ".join(status for status in route["responses"])
            parts.append(f"<p>Answers: {statuses}.</p>")
    return "".join([*parts, "</body></html>"])


def _bodies(route: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = route.get("requestBody", {}).get("content", {})
    return content


def _fields(kind: str, form: dict[str, Any]) -> str:
    required = form.get("required", ())
    rows = []
    for name, field in form["properties"].items():
        meaning = ("Required. " if name in required else "") + field.get("description", "")
        rows.append(f"<tr><td><code>{escape(name)}</code></td><td>{_type(field)}</td><td>{escape(meaning)}</td></tr>")
    return f"<p>{kind}</p><table>{''.join(rows)}</table>"


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"])
    if field.get("type") == "array":
        return f"{_type(field['items'])}, any number"
    return "file" if field.get("format") == "binary" else str(field.get("type", ""))
