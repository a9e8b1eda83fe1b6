"""From ``matrix.yaml`` to cells: load, expand, select."""
