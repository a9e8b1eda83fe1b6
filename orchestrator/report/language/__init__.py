"""Words, numbers and text from elsewhere as a page may show them: catalogues, forms of sentences, cleaning."""
