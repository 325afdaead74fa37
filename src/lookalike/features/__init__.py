"""Features: a model applied to a data set, as vectors."""

from lookalike.features.embedding import embed, features
from lookalike.features.extract import extract
from lookalike.features.pixels import centred_pixels, pixels
from lookalike.features.views import CENTRE, View

__all__ = ["CENTRE", "View", "centred_pixels", "embed", "extract", "features", "pixels"]
