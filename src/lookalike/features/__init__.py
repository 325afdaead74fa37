"""Features: a model applied to a data set, as vectors."""

from lookalike.features.embedding import PooledFeatures, embed, features
from lookalike.features.pixels import centred_pixels, pixels

__all__ = ["PooledFeatures", "centred_pixels", "embed", "features", "pixels"]
