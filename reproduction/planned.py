"""The studies of the reproduction, the most telling ones first."""

from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).parents[1]


class Planned(NamedTuple):
    """A study, the data it needs, and what kind of cells it has."""

    name: str
    data: Literal["cub200", "omniglot"] = "cub200"
    cells: str = "cub"

    @property
    def file(self) -> Path:
        return ROOT / "studies" / f"{self.name}.toml"


STUDIES = (
    *(Planned(f"cub_{name}") for name in (
        "rates", "ccp_rates", "ccp", "ccp_own_rates", "ccp_fast", "p_switch", "roth_losses", "ms_ablation_released",
        "top_k", "fastap_categories", "fastap_batch_size", "mixup", "ms_ablation_printed", "embedding_size",
        "ms_batch_size", "ccp_proxies", "ccp_batch_size", "ccp_proxy_losses", "roth_samplers",
    )),
    Planned("cub_finetuned", cells="finetuned"),
    Planned("omniglot_ms", "omniglot", "omniglot"),
    Planned("omniglot_fastap", "omniglot", "omniglot"),
)  # fmt: skip
SEARCH = "cub_ccp_search"
