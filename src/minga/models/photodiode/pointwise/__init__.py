"""Scheme of Bounanos et al.: node-by-node relaxation with five sub-cycles per iteration."""
