"""Networks of machines: measuring what they do, and broadcasts over them."""
