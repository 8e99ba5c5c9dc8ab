"""Index space: boxes, grids, fields, regions, layouts, transfers and boundary fills."""
