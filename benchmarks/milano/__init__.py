"""The times of Milano, Mocskos and Marshall's parallel runs, Tables 7 to 9, on a cluster in a box."""
