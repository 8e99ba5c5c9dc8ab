"""Search of soups: random cells run until only objects of known behaviour are left, which are counted by name."""
