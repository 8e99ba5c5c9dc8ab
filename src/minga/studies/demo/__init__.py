"""The demo: a few runs from different fields, and one page that shows them with their commands."""
