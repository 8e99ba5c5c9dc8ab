"""The README as package indexes show it: its links and pictures lead into the repository, or are plain text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)([^)]+)\)\n+", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)]+)\)")


def for_index(text: str, repository: str | None, version: str) -> str:
    """Return the README with absolute links; without a repository, with neither pictures nor links to its files.

    Parameters
    ----------
    text
        The README, whose links are relative.
    repository
        URL of the repository, as `[project.urls]` gives it, or None.
    version
        The version, whose tag links lead to.
    """
    if repository is None:
        return _LINK.sub(r"\1", _PICTURE.sub("", text))
    base = repository.rstrip("/")
    text = re.sub(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)", rf"![\1]({base}/raw/v{version}/\2)", text)
    return _LINK.sub(rf"[\1]({base}/blob/v{version}/\2)", text)


class ReadmeHook(MetadataHookInterface):
    """Give the package the README that `for_index` makes."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the entry `readme`."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_index(text, repository, str(metadata["version"])),
        }
