"""Looking into losses, batches, theorems and spaces: numbers, and figures that a notebook shows as they are.

Throughout, `loss` is a loss of pairs, `embeddings` are n × d, raw, `labels` the n classes of the batch or the data,
`batches` lists of rows, and `vectors`, n × d, those whose distances count. `generator` draws; None: torch's own.
`trials`, `cases`, `seeds`: how many are tried. `progress(done, total)` is called.
"""

from lookalike.analysis.batch_pictures import draw_batches, draw_contact_sheet, draw_distances, draw_places
from lookalike.analysis.batches import Composition, describe_batches
from lookalike.analysis.figures import save
from lookalike.analysis.operator_norm import lipschitz_bound, operator_norm
from lookalike.analysis.pair_maps import draw_weight_maps, map_numbers, weight_maps
from lookalike.analysis.statement import Statement
from lookalike.analysis.theorem_picture import draw_theorems, theorem_numbers
from lookalike.analysis.theorems import check_theorems
from lookalike.analysis.toy import run_toy, train_toy
from lookalike.analysis.toy_picture import draw_toy, toy_numbers
from lookalike.analysis.weight_curves import Curves, draw_weight_curves, weight_curves
from lookalike.analysis.weighting import (
    Dependence,
    dependence,
    pair_gradients,
    pair_losses,
    pair_weights,
    similarity_types,
)

__all__ = [
    "Composition",
    "Curves",
    "Dependence",
    "Statement",
    "check_theorems",
    "dependence",
    "describe_batches",
    "draw_batches",
    "draw_contact_sheet",
    "draw_distances",
    "draw_places",
    "draw_theorems",
    "draw_toy",
    "draw_weight_curves",
    "draw_weight_maps",
    "lipschitz_bound",
    "map_numbers",
    "operator_norm",
    "pair_gradients",
    "pair_losses",
    "pair_weights",
    "run_toy",
    "save",
    "similarity_types",
    "theorem_numbers",
    "toy_numbers",
    "train_toy",
    "weight_curves",
    "weight_maps",
]
