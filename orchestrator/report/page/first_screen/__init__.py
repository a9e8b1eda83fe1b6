"""What stands on top: advice, sentences, validity, coverage, and what was measured on which machine."""
