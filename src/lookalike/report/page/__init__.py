"""The self-contained page: sections, tables, style and script."""
