"""Features: a model applied to a data set, as vectors.

Throughout, `model` embeds the images of `dataset`; `model.headless()` gives features instead, n × width. `backend`
computes them: "torch", "onnx", or "auto": onnx on a CPU where it agrees with torch. `progress(done, total)` is called.
"""

from lookalike.features.embedding import centred_pixels, embed, embed_features, features, pixels
from lookalike.features.extract import backend_of, extract
from lookalike.features.feature_views import FeatureViews, feature_views
from lookalike.features.maps import Maps, embed_maps, feature_maps
from lookalike.features.shard_status import Status, status
from lookalike.features.shard_work import embed_shards
from lookalike.features.shards import Shards
from lookalike.features.small_export import Proof, export_small
from lookalike.features.views import CENTRE, View

__all__ = [
    "CENTRE",
    "FeatureViews",
    "Maps",
    "Proof",
    "Shards",
    "Status",
    "View",
    "backend_of",
    "centred_pixels",
    "embed",
    "embed_features",
    "embed_maps",
    "embed_shards",
    "export_small",
    "extract",
    "feature_maps",
    "feature_views",
    "features",
    "pixels",
    "status",
]
