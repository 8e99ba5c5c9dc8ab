"""``minga survey``: a file, pictures and arrays from a case; stops, ranks, and mistakes that leave nothing behind."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from command_line import nothing_written
from minga.cli.case import read_case
from minga.cli.commands import as_click
from minga.errors import CaseError, MingaError, RunError
from minga.models.waves.cli.survey_command import survey
from minga.models.waves.survey import Survey
from minga.output.segy_survey import SegySurvey
from mpi_launch import run_ranks

CASE = """\
model = "fletcher"

[grid]
shape = [16, 40]

[fletcher]
medium = { vp = 2000.0 }
spacing = 10.0
order = 4
boundary = { sponge = 4 }

[survey]
length = 0.02
interval = 0.002
aperture = 60.0
wavelet = { ricker = 20.0 }

[survey.shots]
first = [20.0, 100.0]
step = [0.0, 60.0]
count = 3

[survey.receivers]
first = [30.0, 100.0]
last = [30.0, 220.0]
count = 5
"""


@pytest.fixture(autouse=True)
def here(in_tmp_path: Path) -> Path:
    (in_tmp_path / "sea.toml").write_text(CASE)
    return in_tmp_path


def command(*words: str) -> tuple[int, str, str]:
    """Run the command in this process; return its status, its output, and what it says beside that."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = as_click("survey", survey).main(list(words), "survey", standalone_mode=False) or 0
        except MingaError as error:
            status = error.exit_status
            sys.stderr.write(str(error))
        except typer.Exit as error:
            status = error.exit_code
    return status, out.getvalue(), err.getvalue()


def test_a_check_writes_nothing(here: Path) -> None:
    with nothing_written(here):
        status, said, _ = command("sea.toml", "--check")
    assert status == 0
    assert "3 with 5 receivers, 15 traces" in said
    assert "points per wavelength at 20 Hz" in said
    assert f"{3600 + 15 * (240 + 44):,} bytes" in said


def test_a_survey_with_pictures_and_arrays(here: Path) -> None:
    status, said, err = command("sea.toml", "--also", "sea.rsf", "--gain", "power")
    assert status == 0, err
    assert "3 shots in" in said
    assert (here / "sea.sgy").stat().st_size == 3600 + 15 * 284
    for name in ("geometry", "gather", "spectrum", "waves"):
        assert (here / f"sea-{name}.png").read_bytes().startswith(b"\x89PNG")
    assert b'label2="receiver" unit2="m"' in (here / "sea.rsf").read_bytes()
    with nothing_written(here):
        status, _, err = command("sea.toml", "--no-pictures")
    assert status == 2
    assert "exists already" in err


def test_a_survey_that_was_stopped_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Survey.record

    def stopped(self: Survey, *args: Any, **options: Any) -> Path:
        options["stop"].asked = True  # as a Ctrl-C does
        return record(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Survey, "record", stopped)
        status, said, _ = command("sea.toml", "--no-pictures")
    assert status not in (0, 1, 2)
    assert "the same command computes the others" in said
    assert not (here / "sea.sgy").exists()
    assert len((here / ".sea.sgy.shots").read_text().splitlines()) == 2  # the head of the list, and a shot
    assert command("sea.toml", "--no-pictures")[0] == 0
    assert command("sea.toml", "--no-pictures", "-o", "again.sgy")[0] == 0
    assert (here / "sea.sgy").read_bytes() == (here / "again.sgy").read_bytes()


@pytest.mark.mpi
def test_ranks_write_the_same_bytes(here: Path) -> None:
    assert command("sea.toml", "--no-pictures", "-o", "one.sgy")[0] == 0
    status, _, err = command("sea.toml", "--no-pictures", "-n", "2")
    assert status == 0, err
    assert (here / "sea.sgy").read_bytes() == (here / "one.sgy").read_bytes()
    script = here / "job.py"
    script.write_text(
        "from minga.cli.commands import as_click\nfrom minga.models.waves.cli.survey_command import survey\n"
        "as_click('survey', survey).main(['sea.toml', '--no-pictures', '-o', 'job.sgy'], 'survey')\n"
    )
    run_ranks(2, script).check()
    assert (here / "job.sgy").read_bytes() == (here / "one.sgy").read_bytes()


HERE = """\
#!/usr/bin/env python3
import subprocess, sys
words = [word for word in sys.argv[1:] if word != "-x"]
sys.exit(subprocess.run(" ".join(words[1:]), shell=True).returncode)
"""
"""Stand-in for ssh, which runs a command for another host on this one."""


@pytest.mark.mpi
def test_hosts_write_the_same_bytes(here: Path) -> None:
    """Two hosts that are this machine; the second one reads a copy of the case and of its tables."""
    (here / "here").write_text(HERE)
    (here / "here").chmod(0o755)
    (here / "hosts").write_text("a address=127.0.0.1 slots=1 weight=1\nb address=127.0.0.1 slots=1 weight=2\n")
    (here / "shots.csv").write_text("shot,z,x\n7,20,100\n8,20,160\n9,20,220\n")
    (here / "receivers.csv").write_text("shot,z,x\n*,30,100\n*,30,180\n9,30,220\n")
    tables = (
        CASE[: CASE.index("[survey.shots]")] + '[survey.tables]\nshots = "shots.csv"\nreceivers = "receivers.csv"\n'
    )
    (here / "sea.toml").write_text(tables)
    assert command("sea.toml", "--no-pictures", "-o", "one.sgy")[0] == 0
    words = ("sea.toml", "--no-pictures", "--hosts", "hosts", "--shell", "./here")
    status, said, err = command(*words, "--set", "survey.length=0.02")
    assert status == 0, err
    assert "3 shots in" in said
    assert (here / "sea.sgy").read_bytes() == (here / "one.sgy").read_bytes()
    with nothing_written(here):
        status, _, err = command(*words, "-n", "3", "-o", "more.sgy")
    assert status == 2
    assert "3 ranks do not fit on the hosts, which take 2" in err


def test_replacing_a_survey(here: Path) -> None:
    """The file whose geometry a survey repeats is never replaced; the beginning of another survey is."""
    assert command("sea.toml", "--no-pictures")[0] == 0
    field = (here / "sea.sgy").read_bytes()
    repeated = CASE[: CASE.index("[survey.shots]")] + '[survey.segy]\nfile = "sea.sgy"\n'
    (here / "again.toml").write_text(repeated)
    status, _, err = command("again.toml", "-o", "sea.sgy", "--force", "--no-pictures")
    assert status == 2
    assert "from which its geometry is read" in err
    assert (here / "sea.sgy").read_bytes() == field
    (here / ".sea.sgy.shots").write_text('{"survey": "another"}\n')
    (here / ".sea.sgy.partial").write_bytes(b"")
    assert command("sea.toml", "--no-pictures", "--force")[0] == 0
    assert (here / "sea.sgy").read_bytes() == field
    assert not list(here.glob(".sea*"))
    assert command("again.toml", "--no-pictures")[0] == 0
    assert command("again.toml", "--no-pictures", "--check")[0] == 0  # which writes nothing, so that the file may exist


WRONG = [
    (("sea.toml", "--check", "--gain", "loud"), "there is no gain"),
    (("none.toml",), "there is no file"),
    (("sea.toml", "-n", "0"), "0 ranks cannot be started"),
    (("sea.toml", "--hosts", "nowhere"), "the hosts file nowhere cannot be read"),
    (("sea.toml", "-o", "sea.doc"), "neither .sgy"),
    (("sea.toml", "--gain", "loud"), "there is no gain"),
    (("sea.toml", "--also", "sea.doc"), "ends in .rsf or .zarr"),
    (("sea.toml", "--set", "survey.shots.step=[0.0, 900.0]"), "outside the model"),
    (("sea.toml", "--set", "survey.length=1e9"), "samples of a trace; in SEG-Y"),
    (("sea.toml", "--set", 'model="pde"'), "needs a model of waves"),
    (("sea.toml", "--set", "run.steps=3"), "unknown table or key 'run'"),
    (("sea.toml", "--set", "fletcher.dt=0.1"), "above the stability limit"),
]


@pytest.mark.parametrize(("words", "text"), WRONG)
def test_mistakes(here: Path, words: tuple[str, ...], text: str) -> None:
    with nothing_written(here):
        status, _, err = command(*words)
    assert status == 2
    assert text in err


def test_waves_are_drawn_where_they_are(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part of the model on which a shot is computed has its positions in the model."""
    drawn: list[Any] = []

    def draw(planes: Any, times: Any, model: Any, ends: Any, labels: Any, title: str) -> bytes:
        drawn.extend([planes[0].shape, ends, title])
        return b""

    monkeypatch.setattr("minga.models.waves.cli.survey_pictures.draw_waves", draw)
    assert command("sea.toml")[0] == 0
    # The second of three shots at 160 m, receivers from 100 to 220 m, 60 m on either side.
    assert drawn == [(16, 25), ((0.0, 150.0), (40.0, 280.0)), "sea, shot 2"]


def test_other_commands_send_surveys_here(here: Path) -> None:
    with pytest.raises(CaseError, match="unknown table 'survey'") as caught:
        read_case("sea.toml")
    assert caught.value.remedy == "such a case is for the command minga survey"


def test_shots_of_an_earlier_call_are_told(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "begun" not in command("sea.toml", "--check")[1]
    write = SegySurvey.write

    def failing(self: SegySurvey, shot: int, *rest: Any) -> None:
        if shot == 2:
            raise RunError("the disk is gone")
        write(self, shot, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(SegySurvey, "write", failing)
        assert command("sea.toml", "--no-pictures")[0] == 1
    assert "2 of 3 shots are there from an earlier call" in command("sea.toml", "--check")[1]
    assert "begun" not in command("sea.toml", "--check", "--force")[1]
