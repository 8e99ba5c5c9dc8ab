"""Cases: what text files say about a model, the registry of models, and Python files that define one."""
