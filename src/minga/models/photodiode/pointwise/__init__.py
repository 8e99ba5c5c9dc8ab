"""The scheme of Bounanos and others: node after node, in five sub-cycles an iteration."""
