"""How items come into an index: from images, from vectors made elsewhere, from another model."""
