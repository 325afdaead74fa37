"""What millions of photos take, from figures that were measured and assumptions that are stated.

python -m docs.scale_table            # prints the tables
python -m docs.scale_table --write    # puts them into docs/scale.md
python -m docs.scale_table --postgres FILE --write    # takes over what `benchmarks.postgres --json FILE` wrote

Measured figures and assumptions are in docs/measured/scale.json, each with its source. A new measurement changes the
file, `--write` the page, and a test compares the two.
"""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
FIGURES, PAGE = DOCS / "measured" / "scale.json", DOCS / "scale.md"
BEGIN, END = "<!-- what it takes -->\n", "<!-- /what it takes -->"
SIZES = {"10 million": 10, "100 million": 100, "a billion": 1000}  # in millions
MILLION, HOUR = 1e6, 3600.0


class Needs:
    """What so many million photos need; every figure is a method, so that none is hidden."""

    def __init__(self, millions: float, facts: dict[str, float]) -> None:
        self.millions, self.facts = millions, facts

    def of(self, name: str) -> float:
        return self.facts[name]

    def photo_bytes(self) -> float:
        return self.millions * MILLION * self.of("photo_bytes")

    def shard_bytes(self) -> float:
        return self.millions * MILLION * self.of("shard_bytes")

    def core_hours(self) -> float:
        """Of decoding and embedding everything."""
        ms = 1e3 / self.of("decoded_per_second") + self.of("embed_ms")
        return self.millions * MILLION * ms / 1e3 / HOUR

    def embedding_hours(self) -> float:
        """With as many machines as `embedding_machines`."""
        return self.core_hours() / (self.embedding_machines() * self.of("server_cores") * self.of("core_efficiency"))

    def embedding_machines(self) -> int:
        return math.ceil(self.millions / self.of("millions_per_machine"))

    def index_bytes(self) -> float:
        return self.millions * MILLION * (self.of("index_bytes") + self.of("cache_bytes"))

    def scan_servers(self) -> int:
        """So many that one pass ends in time, and its part of the index is in memory."""
        passes = self.millions * MILLION * self.of("scan_bytes") / self.of("server_bandwidth")
        memory = self.millions * MILLION * self.of("cache_bytes") / self.of("server_memory")
        return max(1, math.ceil(passes / self.of("pass_seconds")), math.ceil(memory))

    def scan_load_hours(self) -> float:
        return self.millions * self.of("write_s_per_million") / self.scan_servers() / HOUR

    def scan_answers(self) -> float:
        """Exact answers a second: what memory delivers, times the queries of a pass, or what the cores can do."""
        share = self.millions / self.scan_servers()
        passes = self.of("server_bandwidth") / (share * MILLION * self.of("scan_bytes"))
        cores = self.of("server_cores") * 1e3 / (share * self.of("scan_ms_per_million"))
        return min(passes * self.of("queries_of_a_pass"), cores * self.of("core_efficiency"))

    def postgres_bytes(self) -> float:
        return self.millions * MILLION * (self.of("row_bytes") + self.of("graph_bytes"))

    def postgres_servers(self) -> int:
        """So many that the graph is in memory: a graph that is read from disk answers many times slower."""
        return max(1, math.ceil(self.millions * MILLION * self.of("graph_bytes") / self.of("server_memory")))

    def postgres_build_hours(self) -> float:
        """COPY into all servers at once, then the graphs; both by the cores of each."""
        share = self.millions / self.postgres_servers()
        growth = math.log(max(share, 1) * MILLION) / math.log(MILLION)
        graph = (
            share
            * growth
            * self.of("graph_core_s_per_million")
            / (self.of("build_workers") * self.of("core_efficiency"))
        )
        return (share * self.of("copy_s_per_million") + graph) / HOUR

    def postgres_answers(self) -> float:
        """Approximate answers a second: every query asks every server, whose cores share the queries."""
        growth = math.log(max(self.millions / self.postgres_servers(), 1) * MILLION) / math.log(MILLION)
        return self.of("server_cores") * self.of("core_efficiency") * 1e3 / (growth * self.of("graph_query_ms"))


ROWS: dict[str, Callable[[Needs], str] | None] = {
    "the photos": lambda needs: _bytes(needs.photo_bytes()),
    "**embedding** by [many workers](#many-workers)": None,
    "core-hours": lambda needs: _number(needs.core_hours()),
    "machines": lambda needs: _number(needs.embedding_machines()),
    "hours": lambda needs: _number(needs.embedding_hours()),
    "the vectors as shards": lambda needs: _bytes(needs.shard_bytes()),
    "**exact search**, the embedded index": None,
    "index and cache on disk": lambda needs: _bytes(needs.index_bytes()),
    "servers": lambda needs: _number(needs.scan_servers()),
    "hours to load": lambda needs: _number(needs.scan_load_hours()),
    "answers a second": lambda needs: _number(needs.scan_answers()),
    "**approximate search**, [PostgreSQL](postgres.md) with HNSW": None,
    "tables and graphs": lambda needs: _bytes(needs.postgres_bytes()),
    "servers ": lambda needs: _number(needs.postgres_servers()),
    "hours to load and build": lambda needs: _number(needs.postgres_build_hours()),
    "answers a second ": lambda needs: _number(needs.postgres_answers()),
}


def _bytes(count: float) -> str:
    """Bytes with two digits that count.

    >>> _bytes(5.2e9), _bytes(2e12), _bytes(7.3e14)
    ('5.2 GB', '2 TB', '730 TB')
    """
    unit, name = next((unit, name) for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if count >= unit)
    return f"{_number(count / unit)} {name}"


def _number(value: float) -> str:
    """Two digits that count; more would claim more than was measured.

    >>> _number(0.0421), _number(7), _number(132.8), _number(14690)
    ('0.042', '7', '130', '15,000')
    """
    digits = 1 - math.floor(math.log10(value)) if value > 0 else 0
    rounded = round(value, digits)
    return (
        f"{rounded:,.0f}" if rounded >= 10 or rounded == int(rounded) else f"{rounded:.{max(digits, 0)}f}".rstrip("0")
    )


def tables() -> str:
    """The table, and the figures and assumptions behind it."""
    content = json.loads(FIGURES.read_text(encoding="utf-8"))
    known = content["measured"] | content["assumed"]
    facts = {name: fact["value"] for name, fact in known.items()}
    lines = [f"| | {' | '.join(SIZES)} |", "|---|" + "---|" * len(SIZES)]
    for title, cell in ROWS.items():
        cells = ["" if cell is None else cell(Needs(millions, facts)) for millions in SIZES.values()]
        lines.append(f"| {title.strip()} | {' | '.join(cells)} |")
    for kind, column in (("measured", "by"), ("assumed", "because")):
        lines += ["", f"| {kind} | | {column} |", "|---|---|---|"]
        lines += [f"| {fact['what']} | {_fact(fact)} | {fact['source']} |" for fact in content[kind].values()]
    return "\n".join(lines) + "\n"


def _fact(fact: dict[str, object]) -> str:
    value = float(str(fact["value"]))
    if fact["unit"] == "bytes" and value >= MILLION:
        return _bytes(value)
    return f"{value:,.10g} {fact['unit']}".strip()


def postgres_figures(rows: list[dict[str, Any]]) -> dict[str, float]:
    """What the largest run on one server says, carried over to a million rows where it was smaller."""
    exact, near = (_largest(rows, f"PostgreSQL, {kind}") for kind in ("exact", "approximate"))
    share, growth = MILLION / near["rows"], math.log(MILLION) / math.log(near["rows"])
    figures = {
        "row_bytes": exact["size"],
        "graph_bytes": near["size"] - exact["size"],
        "copy_s_per_million": exact["load"] * share,
        "graph_core_s_per_million": near["build"] * near["cores"] * share * growth,
        "graph_query_ms": near["p50"] * growth,
    }
    return {name: float(f"{value:.2g}") for name, value in figures.items()}


def _largest(rows: list[dict[str, Any]], engine: str) -> dict[str, Any]:
    some = [row for row in rows if (row["engine"], row["question"], row["width"]) == (engine, "all", 128)]
    if not some:
        raise SystemExit(f"the file has no row of '{engine}' for everything at 128 numbers: run benchmarks.postgres")
    return max(some, key=lambda row: int(row["rows"]))


def take(file: Path, figures: Path = FIGURES) -> None:
    """Put the figures of the benchmark into the file of figures, as measured ones."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    content = json.loads(figures.read_text(encoding="utf-8"))
    most = _largest(rows, "PostgreSQL, approximate")["rows"]
    for name, value in postgres_figures(rows).items():
        fact = content["measured"].get(name) or content["assumed"].pop(name)
        source = f"`python -m benchmarks.postgres`, {most:,} rows"
        content["measured"][name] = fact | {"value": value, "source": source}
    parts = [
        f'  "{kind}": {{\n'
        + ",\n".join(f'    "{name}": {json.dumps(fact, ensure_ascii=False)}' for name, fact in facts.items())
        + "\n  }"
        for kind, facts in content.items()
    ]
    figures.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    parser.add_argument("--postgres", type=Path, metavar="FILE", help="figures of benchmarks.postgres --json FILE")
    given = parser.parse_args()
    if given.postgres is not None:
        take(given.postgres)
    if given.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + tables() + END + rest.split(END)[1], encoding="utf-8")
    else:
        print(tables(), end="")


if __name__ == "__main__":
    main()
