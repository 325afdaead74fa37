"""Looking into losses and spaces."""

from lookalike.analysis.weighting import Dependence, dependence, pair_gradients, pair_weights, similarity_types

__all__ = ["Dependence", "dependence", "pair_gradients", "pair_weights", "similarity_types"]
