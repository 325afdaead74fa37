"""Figures as data, and how they are drawn: SVG for pages, PNG for slides."""
