"""Make a release: python scripts/release.py VERSION [--dry-run]

Sets the version in pyproject.toml, uv.lock and CITATION.cff, dates the changelog, builds the wheel and the source
distribution in dist/, checks both, commits and tags. It uploads nothing and pushes nothing; the last lines say how.
With --dry-run everything happens in a copy of the files that git knows, and nothing here changes.
"""

from __future__ import annotations

import argparse
import email
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
NEEDED: Final = (
    "Makefile", "README.md", "LICENSE", "CITATION.cff", "SECURITY.md", "CHANGELOG.md", "pyproject.toml",
    "hatch_build.py", "uv.lock", "requirements.lock", "requirements-dev.lock", "scripts/setup_env.py",
    "src/minga/py.typed",
    "src/minga/examples/zn-cell.toml", "src/minga/examples/patterns/acorn.rle", "tests/conftest.py", "docs/index.md",
    "benchmarks/results/verification.json",
)  # fmt: skip
"""Some of the files that `make demo` and `make test` need in a source distribution."""


class Refused(Exception):
    """A release that cannot be made."""


def dated(changelog: str, version: str, date: str) -> str:
    """Return the changelog with its unreleased changes under a version and a date."""
    match = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if match is None or not match[1].strip():
        raise Refused("CHANGELOG.md has no changes under '## Unreleased'")
    if re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        raise Refused(f"CHANGELOG.md has a section of {version} already")
    return changelog.replace("## Unreleased\n", f"## Unreleased\n\n## {version} ({date})\n", 1)


def with_version(text: str, before: str, version: str, pattern: str) -> str:
    """Return a text with the new version in the one place that a pattern describes; `{}` in it is the version."""
    found, count = re.subn(pattern.format(re.escape(before)), lambda m: m[0].replace(before, version), text)
    if count != 1:
        raise Refused(f"the version {before} stands {count} times where it should once: {pattern}")
    return found


def newer(version: str, before: str) -> None:
    """Refuse a version that is not of the form 1.2.3, or not newer than the present one."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        raise Refused(f"{version!r} is not a version such as 1.2.3 or 1.2.3rc1")
    if _key(version) <= _key(before):
        raise Refused(f"{version} is not newer than {before}")


def _key(version: str) -> tuple[int, ...]:
    numbers, letters, trial = re.fullmatch(r"([\d.]+?)(?:(a|b|rc)(\d+))?", version).groups()  # type: ignore[union-attr]
    return (*map(int, numbers.split(".")), {"a": 0, "b": 1, "rc": 2, None: 3}[letters], int(trial or 0))


def set_version(root: Path, version: str, date: str) -> str:
    """Write the version into all files that state it; return the one before."""
    project = (root / "pyproject.toml").read_text()
    before: str = tomllib.loads(project)["project"]["version"]
    newer(version, before)
    changelog = dated((root / "CHANGELOG.md").read_text(), version, date)
    lock = with_version((root / "uv.lock").read_text(), before, version, r'name = "minga"\nversion = "{}"')
    citation = with_version((root / "CITATION.cff").read_text(), before, version, r"(?m)^version: {}$")
    citation = re.sub(r"(?m)^date-released: .*\n", "", citation) + f"date-released: {date}\n"
    texts = {
        "pyproject.toml": with_version(project, before, version, r'(?m)^version = "{}"$'),
        "CHANGELOG.md": changelog,
        "uv.lock": lock,
        "CITATION.cff": citation,
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    return before


def build(root: Path) -> tuple[Path, Path]:
    """Build wheel and source distribution in dist/; return their paths."""
    shutil.rmtree(root / "dist", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel"], cwd=root, check=True)
    (wheel,), (sdist,) = (root / "dist").glob("*.whl"), (root / "dist").glob("*.tar.gz")
    return wheel, sdist


def faults(wheel: Path, sdist: Path, version: str) -> list[str]:
    """Return the faults of the files of a release, one sentence each."""
    found = [f"{path.name} is not of version {version}" for path in (wheel, sdist) if f"-{version}" not in path.name]
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
        (about,) = (name for name in inside if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(about))
    text = str(metadata.get_payload())
    found += [f"the README links to {link}" for link in re.findall(r"\]\((?!https?:|#)([^)]+)\)", text)]
    found += [
        f"{wheel.name} lacks {name}" for name in ("minga/py.typed", "minga/examples/life.toml") if name not in inside
    ]
    found += [f"{wheel.name} has no {what}" for what in ("entry_points.txt", "LICENSE") if not _ends(inside, what)]
    found += [f"{wheel.name} has {name}" for name in inside if not name.startswith(("minga/", "minga-"))]
    with tarfile.open(sdist) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    found += [f"{sdist.name} lacks {name}" for name in NEEDED if name not in names]
    found += [f"{sdist.name} has {name}" for name in names if name.startswith((".venv", "build/", "runs/", "dist/"))]
    return found


def _ends(names: list[str], ending: str) -> bool:
    return any(name.endswith(ending) for name in names)


def clean(root: Path) -> None:
    """Refuse files that are changed and not committed."""
    if _git(root, "status", "--porcelain"):
        raise Refused("there are changes that are not committed: git status names them")


def repository(root: Path) -> str:
    """Return the URL of the repository; refuse a release without one, whose page on an index would lead nowhere."""
    urls = tomllib.loads((root / "pyproject.toml").read_text())["project"].get("urls", {})
    if "Repository" not in urls:
        raise Refused("pyproject.toml has no [project.urls] with Repository = ...: write down where the sources are")
    return str(urls["Repository"])


def copy_of(root: Path, place: Path) -> Path:
    """Copy the files that git knows, as they are now."""
    for name in _git(root, "ls-files", "-co", "--exclude-standard").splitlines():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, place / name)
    return place


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def release(root: Path, version: str, *, dry: bool) -> None:
    """Make a release in a checkout, or try to in a copy of it."""
    date = datetime.now(UTC).date().isoformat()
    if not dry:
        clean(root)
        repository(root)
    before = set_version(root, version, date)
    found = faults(*build(root), version)
    if found:
        raise Refused("\n".join(found))
    print(f"{before} -> {version}: wheel and source distribution are built and checked")
    if not dry:
        _git(root, "commit", "--all", "--message", f"release {version}")
        _git(root, "tag", "--annotate", f"v{version}", "--message", f"minga {version}")
        print(f"Next: git push --follow-tags, then: python -m twine upload {root / 'dist'}/*")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args()
    try:
        if not given.dry_run:
            release(ROOT, given.version, dry=False)
        else:
            with tempfile.TemporaryDirectory() as folder:
                release(copy_of(ROOT, Path(folder)), given.version, dry=True)
    except Refused as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
