"""`python -m papers page`: docs/reproduction.md, drawn from what is kept."""

EXAMPLE = "python -m papers page"


def run() -> None:
    """Draw docs/reproduction.md and its pictures from papers/reproduction/claims.toml and results/; nothing is run."""
    from papers.reproduction import page

    page.write()
