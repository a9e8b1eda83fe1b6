"""The conclusions for machines: ``summary.json`` and the CSV inside the page."""
