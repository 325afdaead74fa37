"""Figures as data, one layout for all, and two pens that draw it: SVG for pages, PNG for slides."""
