"""Where datasets come from: folders, tables, arrays, the built-in glyphs and the official benchmark layouts."""
