"""Where datasets come from: folders, tables, arrays, the embedded glyphs and the official benchmark layouts."""
