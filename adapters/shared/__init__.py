"""What several engines' adapters use: files of models, texts of tokens, counts of rounds."""
