"""Pictures and movies as objects that notebooks show, and that can be saved."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from pathlib import Path

from minga.errors import CaseError
from minga.output.directory import write_whole

__all__ = ["Movie", "Picture"]

_STYLE = "max-width: 100%; height: auto"


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A PNG picture, which a notebook shows.

    Attributes
    ----------
    png
        Content of the file.
    caption
        Description of what it shows.
    """

    png: bytes
    caption: str

    def __repr__(self) -> str:
        return f"<picture of {self.caption}; save(PATH) writes it>"

    def _repr_html_(self) -> str:
        return f'<img src="{_data("image/png", self.png)}" alt="{escape(self.caption)}" style="{_STYLE}">'

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file NAME.png, which is replaced if it exists, and return its path.

        Raises
        ------
        CaseError
            For another suffix.
        RunError
            If the disk refuses.
        """
        file = Path(path)
        if file.suffix != ".png":
            raise CaseError(f"a picture is a .png file, found {file.name!r}")
        write_whole(file, self.png)
        return file


@dataclass(frozen=True, slots=True, repr=False)
class Movie:
    """A movie, which a notebook shows.

    Attributes
    ----------
    content
        Content of the file.
    kind
        Type of the content: "image/gif", "video/mp4", ...
    caption
        Description of what it shows.
    path
        The file that holds it; None if there is none.
    """

    content: bytes
    kind: str
    caption: str
    path: Path | None = None

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else str(self.path)
        return f"<movie of {self.caption}; {len(self.content) / 1e6:.2g} MB, {place}>"

    def _repr_html_(self) -> str:
        source, name = _data(self.kind, self.content), escape(self.caption)
        if self.kind.startswith("video"):
            return f'<video src="{source}" aria-label="{name}" style="{_STYLE}" controls loop muted></video>'
        return f'<img src="{source}" alt="{name}" style="{_STYLE}">'


def _data(kind: str, content: bytes) -> str:
    """Return content as an address that needs no other file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
