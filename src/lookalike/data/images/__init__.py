"""From files to pixels: decoding, the decoded cache, augmented views."""
