"""Running a Python file that a case names, to get the names that it defines."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

from minga.errors import CaseError, MingaError

__all__ = ["run_file"]


def run_file(path: Path, key: str) -> dict[str, Any]:
    """Run a Python file, which can import modules next to it, and return the names that it defines.

    Raises
    ------
    CaseError
        If there is no such file, or if it fails; the error names `key` and the line.
    """
    if not path.is_file():
        raise CaseError(
            f"there is no file {str(path)!r}", key=key, remedy="paths are relative to the case file's directory"
        )
    before = list(sys.path)
    sys.path.insert(0, str(path.parent))
    try:
        return runpy.run_path(str(path), run_name=f"minga_case_{path.stem}")
    except MingaError:
        raise
    except SyntaxError as error:
        raise CaseError(
            f"{path.name} is not valid Python: {error.msg}", key=key, where=(str(path), error.lineno or 0)
        ) from error
    except Exception as error:
        lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        raise CaseError(
            f"running {path.name}: {type(error).__name__}: {error}",
            key=key,
            where=(str(path), lines[-1] if lines else 0),
            remedy="the file must run without errors by itself",
        ) from error
    finally:
        sys.path[:] = before
