"""Looking into losses, batches and spaces: numbers, and figures that a notebook shows as they are.

Throughout, `loss` is a loss of pairs, `embeddings` are n × d, raw, `labels` the n classes of the batch or the data,
`batches` lists of rows, and `vectors`, n × d, those whose distances count. `generator` draws; None: torch's own.
`trials`: how many are tried. `progress(done, total)` is called.
"""

from lookalike.analysis.batch_pictures import draw_batches, draw_contact_sheet, draw_distances, draw_places
from lookalike.analysis.batches import Composition, describe_batches
from lookalike.analysis.figures import save
from lookalike.analysis.pair_maps import draw_weight_maps, map_numbers, weight_maps
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
    "dependence",
    "describe_batches",
    "draw_batches",
    "draw_contact_sheet",
    "draw_distances",
    "draw_places",
    "draw_weight_curves",
    "draw_weight_maps",
    "map_numbers",
    "pair_gradients",
    "pair_losses",
    "pair_weights",
    "save",
    "similarity_types",
    "weight_curves",
    "weight_maps",
]
