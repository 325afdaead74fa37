"""The self-contained page: markup, style and script."""
