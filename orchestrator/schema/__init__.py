"""The nouns of the product: the bottom floor, importing nothing of the project but itself."""
