"""HTML pages and figures of measured networks and machines."""
