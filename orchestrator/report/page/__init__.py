"""Builds the view-model from an analysis: the first screen, the groups, and the chapters below them."""
