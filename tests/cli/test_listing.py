"""``minga list`` and ``minga --help``: what is installed, in the order in which people need it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import in_process
from minga.case.examples import examples
from minga.cli.commands import GROUP
from minga.cli.listing import KINDS
from minga.plugins import names


def listed(*words: str) -> dict[str, list[dict[str, object]]]:
    said = in_process("list", *words, "--json")
    assert said.status == 0, said.err
    found: dict[str, list[dict[str, object]]] = json.loads(said.out)
    return found


def test_all_that_is_installed() -> None:
    found = listed()
    assert list(found) == [*KINDS]
    assert [entry["name"] for entry in found["examples"]] == sorted(examples())
    assert {"automaton", "fletcher"} <= {str(entry["name"]) for entry in found["models"]}
    assert {"npy", "vtr"} <= {str(entry["name"]) for entry in found["formats"]}
    assert {"group", "chain"} <= {str(entry["name"]) for entry in found["routes"]}
    for kind, entries in found.items():
        assert all(entry["description"] for entry in entries), kind


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_one_kind(kind: str) -> None:
    assert list(listed(kind)) == [kind]
    text = in_process("list", kind).out
    assert all(len(line) < 150 for line in text.splitlines())


def test_every_shipped_case_is_an_example_of_its_model() -> None:
    found = listed()
    by_model = {str(entry["name"]): entry["examples"] for entry in found["models"]}
    for entry in found["examples"]:
        if not str(entry["model"]).endswith(".py"):
            assert entry["name"] in by_model[str(entry["model"])], entry  # type: ignore[operator]


def test_an_unknown_kind() -> None:
    said = in_process("list", "modls")
    assert said.status == 2
    assert "did you mean 'models'" in said.err


def test_commands_come_in_the_order_of_a_first_day() -> None:
    commands = [str(entry["name"]) for entry in listed("commands")["commands"]]
    assert commands[:4] == ["run", "new", "show", "list"]
    assert set(names(GROUP)) <= set(commands)
    shown = in_process("--help").out
    assert all(f" {name} " in shown for name in commands)


def test_unknown_commands_are_suggested() -> None:
    assert "'measure'" in in_process("mesure").err
    assert "'report'" in in_process("reprt").err


@pytest.mark.parametrize("source", ["photodiode", "life", "heat"])
def test_an_example_begins_a_case(in_tmp_path: Path, source: str) -> None:
    ending = ".py" if source == "heat" else ".toml"
    assert in_process("new", f"mine{ending}", "--from", source).status == 0
    assert Path(f"mine{ending}").read_text() == examples()[{"photodiode": "pin-inp"}.get(source, source)].read_text()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("mine.toml", "--from", "lief"), "did you mean 'life'"),
        (("mine.py", "--from", "life"), "name mine.toml"),
        (("mine.toml", "--from", "life", "--rule", "W30"), "an example has its own rule"),
    ],
)
def test_mistakes_in_examples(in_tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    said = in_process("new", *words)
    assert (said.status, said.out) == (2, "")
    assert text in said.err
    assert not list(in_tmp_path.iterdir())
