"""The whole way from a folder of labelled images to a proven, saved model, as one function."""

from lookalike.fit.fit import fit
from lookalike.fit.run import Run
from lookalike.fit.several import run_recipe

__all__ = ["Run", "fit", "run_recipe"]
