"""The live page: a run in a browser on the same machine, made only from the files in its directory.

``server.py`` answers one browser, ``state.py`` and ``picture.py`` read the run, ``page.html``, ``page.css`` and
``page.js`` are the page. It is a process of its own, of which the run knows nothing.
"""
