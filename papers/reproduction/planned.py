"""The studies of the reproduction, the most telling ones first."""

from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).parents[2]


class PlannedRun(NamedTuple):
    """A study, its file below papers/, the data it needs, and what kind of cells it has."""

    place: str
    data: Literal["cub200", "cars196", "omniglot"] = "cub200"
    cells: str = "cub"

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def file(self) -> Path:
        return ROOT / "papers" / f"{self.place}.toml"


STUDIES = (
    *(
        PlannedRun(place)
        for place in (
            "reproduction/cub_rates",
            "ccp/cub_ccp_rates",
            "ccp/cub_ccp",
            "ccp/cub_ccp_own_rates",
            "ccp/cub_ccp_fast",
            "roth/cub_p_switch",
            "roth/cub_roth_losses",
            "multi_similarity/cub_ms_ablation_released",
            "top_k/cub_top_k",
            "fastap/cub_fastap_categories",
            "fastap/cub_fastap_batch_size",
            "roth/cub_mixup",
            "multi_similarity/cub_ms_ablation_printed",
            "multi_similarity/cub_embedding_size",
            "multi_similarity/cub_ms_batch_size",
            "ccp/cub_ccp_proxies",
            "ccp/cub_ccp_batch_size",
            "ccp/cub_ccp_proxy_losses",
            "roth/cub_roth_samplers",
            "reproduction/cub_untrained",
            "ccp/cub_ccp_one_of_one",
            "multi_similarity/cub_lifted",
        )
    ),
    *(
        PlannedRun(place, "cars196", "cars")
        for place in (
            "reproduction/cars_untrained",
            "reproduction/cars_rates",
            "ccp/cars_ccp",
            "multi_similarity/cars_ms_ablation",
            "roth/cars_roth_losses",
            "top_k/cars_top_k",
        )
    ),
    PlannedRun("reproduction/cub_finetuned", cells="finetuned"),
    PlannedRun("multi_similarity/omniglot_ms", "omniglot", "omniglot"),
    PlannedRun("fastap/omniglot_fastap", "omniglot", "omniglot"),
    PlannedRun("fastap/omniglot_fastap_five", "omniglot", "omniglot"),
)
SEARCH = "cub_ccp_search"
SEARCH_FILE = ROOT / "papers" / "ccp" / f"{SEARCH}.toml"
