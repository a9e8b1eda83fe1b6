"""From a run's records to its conclusions, as plain data: no word of the page is written here."""
