"""The shape of an embedding space: its spectrum, how tight classes are, how well it is covered and spread."""
