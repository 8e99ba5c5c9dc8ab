"""Life in CellPyLib on one core: `python cellpylib_life.py SOUP.npy GENERATIONS`; prints seconds and population."""

import json
import sys
import time

import cellpylib as cpl
import numpy as np

cells = np.load(sys.argv[1])
generations = int(sys.argv[2])
began = time.process_time()
history = cpl.evolve2d(
    cells[np.newaxis].astype(np.int32),
    timesteps=generations + 1,
    neighbourhood="Moore",
    apply_rule=cpl.game_of_life_rule,
    memoize="recursive",
)
seconds = time.process_time() - began
print(json.dumps({"seconds": [seconds], "generations": generations, "population": int(history[-1].sum())}))
