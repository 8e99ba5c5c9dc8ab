"""Networks of machines: measuring their performance, and broadcasting over them."""
