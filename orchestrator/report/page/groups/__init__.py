"""The sections of the groups: panels by workload with their tables and figures, and a card per engine."""
