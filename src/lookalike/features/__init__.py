"""Features: a model applied to a data set, as vectors."""

from lookalike.features.embedding import embed, embed_features, features
from lookalike.features.extract import extract
from lookalike.features.feature_views import FeatureViews, feature_views
from lookalike.features.pixels import centred_pixels, pixels
from lookalike.features.views import CENTRE, View

__all__ = [
    "CENTRE",
    "FeatureViews",
    "View",
    "centred_pixels",
    "embed",
    "embed_features",
    "extract",
    "feature_views",
    "features",
    "pixels",
]
