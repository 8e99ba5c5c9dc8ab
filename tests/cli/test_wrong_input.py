"""Every mistake in a case or on the command line: one clear error, status 2, no traceback, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import SMALL, Said, as_person, in_process, nothing_written


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> Path:
    """A correct small case, ``case.toml``, in the working directory."""
    path = in_tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def check(said: Said, *expected: str) -> None:
    assert said.status == 2, said
    assert said.out == ""
    assert "Traceback" not in said.err
    for text in expected:
        assert text in said.err, said.err


# What a person types after `minga run small.toml`, and what the error must say.
OVERRIDES = [
    ("run.step=3", "unknown key 'run.step'", "did you mean 'steps'"),
    ("rnu.steps=3", "unknown table 'rnu'", "did you mean 'run'"),
    ("stpes=3", "unknown key 'stpes'", "at: --set stpes=3"),
    ('run.steps="ten"', "run.steps: expected a whole number of at least 0, found 'ten'", 'at: --set run.steps="ten"'),
    ("run.steps=1.5", "run.steps: expected a whole number of at least 0, found 1.5", "fix: steps to do"),
    ("run.steps=-1", "run.steps", "at least 0"),
    ("run.steps=true", "run.steps", "a whole number"),
    ("run.ranks=0", "run.ranks", "at least 1"),
    ("run.threads=0", "run.threads", "at least 1"),
    ("run.halo_depth=0", "run.halo_depth: expected a whole number of at least 1", "fix: steps between"),
    ("run.overlap=1", "run.overlap", "true or false"),
    ("run.layout=slab", "run.layout", "did you mean 'slabs'"),
    ("run.layout=auot", "run.layout", "did you mean 'auto'"),
    ("run.halo_depth=deep", "run.halo_depth", "found 'deep'"),
    ("run.machine=two-aegs", "two-aegs", "did you mean 'two-ages'"),
    ("run.machine=missing.json", "missing.json", "No such file"),
    ("run.machine=small.toml", "small.toml", "not valid JSON"),
    ("run.machine=3", "run.machine", "a word in quotes"),
    ("run.balance=0", "run.balance", "at least 1"),
    (
        "run.balance=often",
        "run.balance: expected a whole number of at least 1 or one of 'auto' or 'off'",
        "found 'often'",
    ),
    ("run.poll=-1", "run.poll", "at least 0"),
    ("run.device=tpu", "run.device: expected one of 'cpu', 'gpu' or 'gpu-shared'", "found 'tpu'"),
    ("run.layout=cartesian:3x5", "run.layout", "15 parts"),
    ("run.layout=3", "run.layout", "a word in quotes"),
    ("run.layout=slabs:2", "run.layout", "fix: write "),
    ("run.layout=blocks:0", "run.layout", "fix: write "),
    ("run.layout=foo", "run.layout", "fix: write one of"),
    ("run.ranks=100000", "run.ranks: 100000 ranks are too many", "mg.run_virtual"),
    ('automaton.parameters.p="x"', "automaton.parameters.p: expected true or false or a number", "found 'x'"),
    ("run=3", "run", "expected a table"),
    ("grid=3", "grid", "expected a table"),
    ("grid.shape=[]", "grid.shape", "at least 1"),
    ("grid.shape=[0, 5]", "grid.shape[0]", "found 0"),
    ("grid.shape=[1, 2, 3, 4, 5]", "grid.shape", "at most 4"),
    ('grid.shape=["40", 5]', "grid.shape[0]", "a whole number"),
    ("grid.shape=40", "grid.shape", "a list"),
    ("grid.shape=[1000000000, 1000]", "grid.shape", "GiB"),
    ("grid.shape=[99999999999999999999, 1]", "grid.shape", "too large"),
    ("grid.shpae=[3, 3]", "unknown key 'grid.shpae'", "did you mean 'shape'"),
    ("grid.boundary=periodc", "grid.boundary", "did you mean 'periodic'"),
    ('grid.boundary=["periodic"]', "grid.boundary", "1 entries for a grid of 2 axes"),
    ("model=autmaton", "model", "did you mean 'automaton'"),
    ("model=3", "model", "found 3"),
    ("model=missing.py", "model", "missing.py"),
    ("name=3", "name", "a word in quotes"),
    ("automaton=3", "automaton", "expected a table"),
    ("automaton.rle=B3/S23", "automaton.rle", "did you mean 'rule'"),
    ("automaton.rule=B3/S2x", "automaton.rule", "is not a rule"),
    ("automaton.rule=B9/S23", "automaton.rule", "9 live neighbours"),
    ("automaton.rule=5", "automaton.rule", "5"),
    ("automaton.init=missing.rle", "automaton.init", "missing.rle"),
    ("automaton.init={soup = 2}", "automaton.init", "2"),
    ("automaton.seed=-1", "automaton.seed", "-1"),
    ("output.every=0", "output.every", "at least 1"),
    ('output.fields=["cel"]', "output.fields", "did you mean 'cell'"),
    ('output.fields=["cell", "cell"]', "'cell'", "another output field"),
    ("output.fields=[]", "output.fields", "at least 1"),
    ("output.pictures=many", "output.pictures", "a whole number"),
    ("output.report=1", "output.report", "true or false"),
    ("output.trace=yes", "output.trace", "true or false"),
    ("output.writers=1", "output.writers", "none would compute"),
    ("output.region.q=[0,2]", "output.region", "no axis 'q'"),
    ("output.decimate=0", "output.decimate", "1"),
    ("output.codec=zip", "output.codec", "'blosc'"),
    ("output.buffers=1", "output.buffers", "2"),
    ("nonsense", "--set", "KEY=VALUE"),
    ("=3", "--set", "KEY=VALUE"),
    ("run.steps.more=3", "run.steps", "not a table"),
]


@pytest.mark.few(20)
@pytest.mark.parametrize(("override", "key", "text"), OVERRIDES, ids=[o for o, _, _ in OVERRIDES])
def test_overrides(in_tmp_path: Path, override: str, key: str, text: str) -> None:
    with nothing_written(in_tmp_path):
        check(in_process("run", "small.toml", "--set", override), key, text)


# The same in a file: the error names the line.
FILES = [
    ("steps = 10", "stepz = 10", "small.toml:12", "did you mean 'steps'"),
    ("steps = 10", "", "small.toml:11", "'run.steps' is missing"),
    ("steps = 10", "steps = '10'", "small.toml:12", "expected a whole number"),
    ("[run]", "[rum]", "small.toml:11", "did you mean 'run'"),
    ("[40, 64]", "[40, -64]", "small.toml:4", "grid.shape[1]"),
    ('"periodic"', '"perodic"', "small.toml:5", "did you mean 'periodic'"),
    ('"B3/S23"', '"B3/S2x"', "small.toml:8", "automaton.rule"),
    ("{soup = 0.3, seed = 1}", '"glider.rle"', "small.toml:9", "glider.rle"),
    ("every = 5", "every = 5.0", "small.toml:16", "output.every"),
    ('model = "automaton"', "", "small.toml", "'model' is missing"),
    ("[run]", "[run", "small.toml:11", "not valid TOML"),
    ("steps = 10", "steps = 10\nsteps = 11", "small.toml:13", "not valid TOML"),
]


@pytest.mark.parametrize(("old", "new", "where", "text"), FILES, ids=[f"{o} -> {n}" for o, n, _, _ in FILES])
def test_files(in_tmp_path: Path, case: Path, old: str, new: str, where: str, text: str) -> None:
    assert old in SMALL
    case.write_text(SMALL.replace(old, new))
    with nothing_written(in_tmp_path):
        check(in_process("run", "small.toml"), f"at: {where}", text)


def test_a_pattern_larger_than_the_grid(in_tmp_path: Path, case: Path) -> None:
    Path("line.rle").write_text("x = 50, y = 1\n50o!\n")
    case.write_text(SMALL.replace("{soup = 0.3, seed = 1}", '"line.rle"').replace("[40, 64]", "[40, 44]"))
    with nothing_written(in_tmp_path):
        check(in_process("run", "small.toml"), "automaton.init", "larger than the grid", "small.toml:9")


PYTHON = [
    ("def model(n=3: pass", "broken.py:1", "not valid Python"),
    ("import numpie", "broken.py:1", "No module named 'numpie'"),
    ("x = 1\ny = x / 0", "broken.py:2", "ZeroDivisionError"),
    ("x = 1", "broken.py", "defines no model"),
    ("model = 3", "broken.py", "model is an int"),
    ("run = {'steps': 1}\ndef model():\n    return 3", "broken.py:2", "not a Model"),
    ("run = {'steps': 1}\ndef model():\n    return nothing", "broken.py:2", "NameError"),
    ("run = {'stepz': 1}\ndef model():\n    return 3", "broken.py", "unknown key 'run.stepz'"),
]


@pytest.mark.parametrize(("text", "where", "expected"), PYTHON, ids=[expected for _, _, expected in PYTHON])
def test_python_files(in_tmp_path: Path, text: str, where: str, expected: str) -> None:
    Path("broken.py").write_text(text + "\n")
    with nothing_written(in_tmp_path):
        check(in_process("run", "broken.py"), where, expected)


def test_a_kernel_that_cannot_be_traced(in_tmp_path: Path) -> None:
    Path("broken.py").write_text("""\
import minga as mg
run = {"steps": 3}

@mg.kernel
def k(u, new):
    if u[0, 0] > 0:
        new[0, 0] = 1.0

def model():
    u = mg.Field("u", mg.Grid((8, 8)), slots=2)
    step = mg.Program("step")
    step.apply(k, u, u.next)
    return mg.Model(name="x", grid=u.grid, fields=(u,), step=step)
""")
    with nothing_written(in_tmp_path):
        check(in_process("run", "broken.py"), "broken.py:6", "where")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("lif", "did you mean 'life'"),
        ("smal.toml", "did you mean 'small.toml'"),
        ("nowhere/case.toml", "there is no file"),
        ("notes.txt", "neither a TOML file nor a Python file"),
        ("binary.toml", "not UTF-8"),
    ],
)
def test_targets(in_tmp_path: Path, target: str, text: str) -> None:
    Path("notes.txt").touch()
    Path("binary.toml").write_bytes(b"\xff\xfe")
    with nothing_written(in_tmp_path):
        check(in_process("run", target), text)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("run", "small.toml", "--bogus"),
        ("run", "small.toml", "-n", "x"),
        ("run", "small.toml", "-n", "0"),
        ("run", "small.toml", "--threads", "-1"),
        ("run", "small.toml", "extra"),
        ("explode",),
        ("export", "runs/none", "--out", "x.npy"),
        ("export", "small.toml", "--out", "x.npy"),
        ("doctor", "--bogus"),
    ],
    ids=" ".join,
)
def test_options(in_tmp_path: Path, words: tuple[str, ...]) -> None:
    with nothing_written(in_tmp_path):
        check(in_process(*words))


def test_out_is_never_overwritten(in_tmp_path: Path) -> None:
    (in_tmp_path / "thesis").mkdir()
    (in_tmp_path / "thesis" / "thesis.tex").touch()
    with nothing_written(in_tmp_path):
        check(in_process("run", "small.toml", "--out", "thesis"), "thesis holds files already")
        check(in_process("run", "small.toml", "--out", "thesis", "--force"), "thesis holds files already")
        check(in_process("run", "small.toml", "--out", "small.toml"), "cannot write to small.toml")


def test_as_a_person_sees_it(in_tmp_path: Path) -> None:
    """In a process of its own: exactly this on standard error, and nothing else anywhere."""
    with nothing_written(in_tmp_path):
        said = as_person("run", "small.toml", "--set", "run.stepz=3", "-n", "2", "--json")
    assert said.status == 2
    assert said.out == ""
    assert said.err.splitlines() == [
        "minga: unknown key 'run.stepz'",
        "  at: --set run.stepz=3",
        (
            "  fix: remove or rename it; [run] has balance, device, edits, halo_depth, layout, machine, mapping, "
            "on_loss, overlap, paint, poll, ranks, steps, threads, topology, until, wall_time, watch, weights"
        ),
        "  hint: did you mean 'steps'?",
    ]


def test_a_start_that_cannot_work_is_found_before_ranks_start(in_tmp_path: Path) -> None:
    Path("start.py").write_text("def start(shape, x):\n    return 0 * x\n")
    with nothing_written(in_tmp_path):
        check(in_process("run", "small.toml", "-n", "2", "--set", "automaton.init=start.py:start"), "start.py:1")
