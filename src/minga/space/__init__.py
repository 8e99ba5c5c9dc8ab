"""Where cells live: boxes, grids, fields, regions, layouts, transfers and boundary fills."""
