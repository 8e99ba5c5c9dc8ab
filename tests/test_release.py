"""A release states one version everywhere, has what it needs, and its README leads somewhere on a package index."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from loading import SCRIPTS, load

ROOT = Path(__file__).parents[1]
RELEASE = load(SCRIPTS / "release.py")
HATCHLING = "needs hatchling: pip install hatchling"


def version() -> str:
    """Return the version that pyproject.toml states."""
    stated: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return stated


def with_a_change(folder: Path) -> Path:
    """Add an unreleased change to the changelog of a folder, which has none just after a release."""
    path = folder / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## Unreleased\n", "## Unreleased\n\n- A change.\n", 1))
    return folder


def copied(folder: Path) -> Path:
    for name in ("pyproject.toml", "CHANGELOG.md", "uv.lock", "CITATION.cff"):
        shutil.copy(ROOT / name, folder)
    return with_a_change(folder)


def test_a_version_is_set_everywhere(tmp_path: Path) -> None:
    assert RELEASE.set_version(copied(tmp_path), "77.1.0", "2031-02-03") == version()
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["version"] == "77.1.0"
    locked = tomllib.loads((tmp_path / "uv.lock").read_text())["package"]
    assert [package["version"] for package in locked if package["name"] == "minga"] == ["77.1.0"]
    citation = (tmp_path / "CITATION.cff").read_text()
    assert "\nversion: 77.1.0\n" in citation
    assert "\ndate-released: 2031-02-03\n" in citation
    changelog = (tmp_path / "CHANGELOG.md").read_text()
    assert re.search(r"^## Unreleased\n\n## 77.1.0 \(2031-02-03\)\n", changelog, re.MULTILINE)
    with pytest.raises(RELEASE.Refused, match="no changes under"):
        RELEASE.set_version(tmp_path, "77.1.1", "2031-02-04")


@pytest.mark.parametrize("wrong", [version(), "0.0.9", f"{version()}rc1", "77.0", "v77.0.0", "77.0.0-2"])
def test_a_version_that_is_not_next_is_refused_and_changes_nothing(wrong: str, tmp_path: Path) -> None:
    copied(tmp_path)
    with pytest.raises(RELEASE.Refused, match=r"newer|is not a version"):
        RELEASE.set_version(tmp_path, wrong, "2031-02-03")
    assert (tmp_path / "pyproject.toml").read_text() == (ROOT / "pyproject.toml").read_text()


def test_trials_come_before_their_release() -> None:
    for older, newer in (("1.0.0rc1", "1.0.0"), ("1.0.0a2", "1.0.0b1"), ("1.0.0rc1", "1.0.0rc2"), ("1.9.0", "1.10.0")):
        RELEASE.newer(newer, older)
        with pytest.raises(RELEASE.Refused):
            RELEASE.newer(older, newer)


def test_a_release_is_refused_without_a_place_of_the_sources(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "minga"\n')
    with pytest.raises(RELEASE.Refused, match="Repository"):
        RELEASE.repository(tmp_path)


def test_the_locks_are_of_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (own,) = (p for p in tomllib.loads((ROOT / "uv.lock").read_text())["package"] if p["name"] == "minga")
    name = re.compile(r"[\w.-]+")
    declared = {name.match(entry)[0] for entry in project["dependencies"]}  # type: ignore[index]
    assert {entry["name"] for entry in own["dependencies"]} == declared
    assert set(own["optional-dependencies"]) == set(project["optional-dependencies"])
    wanted = declared | {"matplotlib", "scipy", "xarray"}
    for lock in ("requirements.lock", "requirements-dev.lock"):
        locked = set(re.findall(r"^([\w.-]+)==", (ROOT / lock).read_text(), re.MULTILINE))
        assert wanted <= locked, lock


def test_the_readme_of_an_index_has_no_relative_links() -> None:
    pytest.importorskip("hatchling", reason=HATCHLING)
    made = load(ROOT / "hatch_build.py").for_index
    text = (ROOT / "README.md").read_text()
    assert "](docs/" in text
    plain = made(text, None, "1.2.3")
    assert re.findall(r"\]\((?!https:)[^)]*\)", plain) == []
    assert "Gray-Scott patterns" not in plain
    linked = made(text, "https://example.org/minga/", "1.2.3")
    assert "](https://example.org/minga/raw/v1.2.3/docs/images/gray-scott.png)" in linked
    assert "](https://example.org/minga/blob/v1.2.3/docs/rules.md)" in linked
    for path in re.findall(r"example.org/minga/(?:raw|blob)/v1.2.3/([^)#]+)", linked):
        assert (ROOT / path).exists(), path


@pytest.mark.slow
def test_a_release_is_built_and_checked_in_a_copy(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("hatchling", reason=HATCHLING)
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout, whose files git lists: git clone")
    copy = RELEASE.copy_of
    monkeypatch.setattr(RELEASE, "copy_of", lambda root, place: with_a_change(copy(root, place)))
    monkeypatch.setattr("sys.argv", ["release.py", "99.0.0", "--dry-run"])
    assert RELEASE.main() == 0, capfd.readouterr().err
    assert "wheel and source distribution are built and checked" in capfd.readouterr().out
