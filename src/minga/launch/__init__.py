"""Starting ranks and helper processes on this machine and on others, watching them, and ending them."""
