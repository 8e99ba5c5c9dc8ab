"""Surveys of case files: geometry from patterns, SPS and SEG-Y headers; headers by the standard's bytes; mistakes."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from minga.cli.toml import dump
from minga.errors import CaseError
from minga.models.waves import Faces, Free, PointSource, Shot, Sponge
from minga.models.waves.boundary import domain_of, faces_of
from minga.models.waves.cli.survey_reading import read_survey
from minga.models.waves.interpolation import doubtful, place
from minga.models.waves.survey_case import SurveyCase
from minga.models.waves.survey_field_data import read_geometry
from minga.models.waves.survey_frame import Frame
from minga.models.waves.survey_recording import _described
from minga.models.waves.survey_sps import read_sps
from minga.output.segy import SegyFile
from minga.output.survey_cube import read_cube, write_cube

FLETCHER = {"medium": {"vp": 2000.0}, "spacing": 10.0, "order": 4, "dt": 1e-3,
            "boundary": {"sponge": 4, "z": ["free", "sponge"]}}  # fmt: skip
RECORDS = {"length": 0.02, "interval": 0.002, "wavelet": {"ricker": 20.0}, "zero": "peak", "aperture": 50.0}
BOAT = {
    "shots": {"first": [10.0, 300.0], "step": [0.0, 50.0], "count": 3},
    "streamer": {"depth": 20.0, "nearest": -50.0, "spacing": -10.0, "count": 4},
}


def case(folder: Path, shape: tuple[int, ...] = (20, 60), fletcher: Any = None, **survey: Any) -> SurveyCase:
    table = {"model": "fletcher", "grid": {"shape": list(shape)}, "fletcher": FLETCHER | (fletcher or {})}
    (folder / "sea.toml").write_text(dump(table | {"survey": RECORDS | survey}))
    return read_survey(str(folder / "sea.toml"), ())[1]


def written(found: SurveyCase, path: Path) -> bytes:
    return found.survey.record(path, found.samples).read_bytes()


def positions(found: SurveyCase) -> list[tuple[Any, list[tuple[float, ...]]]]:
    rows = []
    for shot in found.survey.shots:
        (source,) = shot.sources
        assert isinstance(source, PointSource)
        rows.append((source.position, list(shot.receivers.positions)))
    return rows


def entry(content: bytes, trace: int, byte: int, kind: str, samples: int) -> Any:
    """An entry of a trace header by the standard's table, whose bytes count from 1."""
    return struct.unpack_from(f">{kind}", content, 3600 + trace * (240 + 4 * samples) + byte - 1)[0]


def test_headers_of_a_towed_survey_by_the_bytes_of_the_standard(tmp_path: Path) -> None:
    found = case(tmp_path, **BOAT, origin=[500000.0, 6000000.0], bearing=0.0, datum=5.0)
    assert (found.samples, found.survey.shots[0].receivers.every) == (11, 2)
    content = written(found, tmp_path / "sea.sgy")
    assert len(content) == 3600 + 12 * (240 + 44)
    assert struct.unpack_from(">hh", content, 3224) == (5, 0)  # IEEE floats
    assert struct.unpack_from(">h", content, 3228) == (5,)  # sorted by sources
    expected = {  # of the second trace of the third shot, at x = 400 north of the origin
        (1, "i"): 10, (5, "i"): 10, (9, "i"): 3, (13, "i"): 2, (17, "i"): 3, (29, "h"): 1, (37, "i"): -60,
        (41, "i"): -1500, (45, "i"): 500, (49, "i"): 1000, (69, "h"): -100, (71, "h"): -100,
        (73, "i"): 50000000, (77, "i"): 600040000, (81, "i"): 50000000, (85, "i"): 600034000, (89, "h"): 1,
        (109, "h"): -60, (115, "H"): 11, (117, "H"): 2000, (197, "i"): 3, (201, "h"): 1,
    }  # fmt: skip
    assert {key: entry(content, 9, *key, 11) for key in expected} == expected
    trace = struct.unpack_from(">11f", content, 3600 + 9 * 284 + 240)
    assert np.array_equal(trace, found.survey.traces(2, 11)[:, 1].astype("f4"))


@pytest.mark.filterwarnings("default")  # of other tools
def test_segyio_reads_the_file(tmp_path: Path) -> None:
    segyio = pytest.importorskip("segyio", reason="needs segyio: pip install segyio")
    found = case(tmp_path, **BOAT, origin=[500000.0, 6000000.0], bearing=90.0, datum=5.0)
    written(found, tmp_path / "sea.sgy")
    with segyio.open(str(tmp_path / "sea.sgy"), ignore_geometry=True) as file:
        key, at = segyio.TraceField, file.attributes
        assert at(key.FieldRecord)[:].tolist() == [1] * 4 + [2] * 4 + [3] * 4
        assert at(key.TraceNumber)[:].tolist() == [1, 2, 3, 4] * 3
        assert file.samples.tolist() == [-60.0 + 2 * n for n in range(11)]
        assert (segyio.tools.dt(file), int(file.format)) == (2000.0, 5)
        scale = -np.unique(at(key.SourceGroupScalar)[:]).item()
        assert -np.unique(at(key.ElevationScalar)[:]).item() == scale == 100
        boat = np.repeat([300.0, 350.0, 400.0], 4)  # east of the origin
        hydrophones = boat - np.tile([50.0, 60.0, 70.0, 80.0], 3)
        for name, expected in {
            "SourceX": 500000 + boat, "SourceY": 0 * boat + 6000000, "GroupX": 500000 + hydrophones,
            "GroupY": 0 * boat + 6000000, "ReceiverGroupElevation": 0 * boat - 15, "SourceDepth": 0 * boat + 10,
            "SourceSurfaceElevation": 0 * boat + 5,
        }.items():  # fmt: skip
            assert (at(getattr(key, name))[:] / scale).tolist() == expected.tolist(), name
        assert at(key.offset)[:].tolist() == (hydrophones - boat).tolist()
        for shot in range(3):
            traces = file.trace.raw[4 * shot : 4 * shot + 4]
            assert np.array_equal(traces, found.survey.traces(shot, 11).T.astype("f4"))


@pytest.mark.filterwarnings("default")  # of other tools
def test_obspy_reads_the_file(tmp_path: Path) -> None:
    segy = pytest.importorskip("obspy.io.segy.segy", reason="needs ObsPy: pip install obspy")
    found = case(tmp_path, **BOAT)
    written(found, tmp_path / "sea.sgy")
    file = segy._read_segy(str(tmp_path / "sea.sgy"))
    traces = file.traces
    assert "minga" in file.textual_file_header.decode("ascii").lower()
    header = traces[5].header
    assert (header.group_coordinate_x, header.source_coordinate_x) == (29000, 35000)
    assert header.scalar_to_be_applied_to_all_coordinates == -100
    assert (header.number_of_samples_in_this_trace, header.sample_interval_in_ms_for_this_trace) == (11, 2000)
    assert (header.delay_recording_time, header.coordinate_units) == (-60, 1)
    assert header.distance_from_center_of_the_source_point_to_the_center_of_the_receiver_group == -60
    assert [trace.header.original_field_record_number for trace in traces] == [1] * 4 + [2] * 4 + [3] * 4
    assert np.array_equal(traces[5].data, found.survey.traces(1, 11)[:, 1].astype("f4"))


def test_records_that_begin_later_are_the_end_of_longer_ones(tmp_path: Path) -> None:
    whole = case(tmp_path, **BOAT)
    late = case(tmp_path, **BOAT, begin=0.01, length=0.01)
    assert (late.survey.first, late.samples, late.survey.delay) == (5, 6, -0.05)
    assert np.array_equal(late.survey.traces(1, 6), whole.survey.traces(1, 11)[5:])


def test_a_survey_repeats_the_geometry_of_a_file(tmp_path: Path) -> None:
    at = {"origin": [1000.0, 2000.0], "bearing": 30.0, "datum": 7.0}
    first = case(tmp_path, **BOAT, **at)
    written(first, tmp_path / "field.sgy")
    again = case(tmp_path, segy={"file": "field.sgy"}, **at)
    for (source, spread), (other, others) in zip(positions(first), positions(again), strict=True):
        assert other == pytest.approx(source, abs=0.02)
        assert np.array(others) == pytest.approx(np.array(spread), abs=0.02)
    assert again.survey.records == [1, 2, 3]
    content = bytearray((tmp_path / "field.sgy").read_bytes())
    content[3600 + 8 : 3600 + 12] = struct.pack(">i", 2)  # the first trace now belongs to shot 2
    (tmp_path / "field.sgy").write_bytes(content)
    with pytest.raises(CaseError, match="shot 2 have sources at several places"):
        case(tmp_path, segy={"file": "field.sgy"}, **at)
    (tmp_path / "field.sgy").write_bytes(b"no seismic data")
    with pytest.raises(CaseError, match="cannot be read as SEG-Y"):
        case(tmp_path, segy={"file": "field.sgy"}, **at)


def record(length: int, **columns: tuple[int, int, str]) -> str:
    """A line of a file of fixed columns, which count from 1."""
    text = [" "] * length
    for first, last, word in columns.values():
        text[first - 1 : last] = word.rjust(last - first + 1)
    return "".join(text)


def sps_files(folder: Path, revision: str) -> None:
    """Two shots over a line of four receivers; the second shot has them backwards."""
    new = revision == "2.1"
    line, number, depth = ((2, 11), (12, 21), (31, 34)) if new else ((2, 17), (18, 25), (33, 36))
    head = "H00 SPS format version num.     " + ("SPS 2.1;" if new else "SPS001,12.10.90")

    def point(kind: str, at: float, name: str, below: str, east: float) -> str:
        return kind + record(
            80, a=(*line, "101"), b=(*number, name), c=(*depth, below), d=(47, 55, f"{east:.1f}"),
            e=(56, 65, f"{at:.1f}"), f=(66, 71, "-5.0"),
        )[1:]  # fmt: skip

    sources = [point("S", 0.0, "11", "5.0", 150.0), point("S", 0.0, "12", "5.0", 200.0)]
    spread = [point("R", 3.0, f"{n}", "0.0", 100.0 + 20 * n) for n in range(1, 5)]
    own = {  # of X records
        "record": (8, 15) if new else (8, 11), "line": (18, 27) if new else (14, 29),
        "number": (28, 37) if new else (30, 37), "first": (39, 43) if new else (39, 42),
        "last": (44, 48) if new else (43, 46), "step": (49, 49) if new else (47, 47),
        "to": (50, 59) if new else (48, 63), "low": (60, 69) if new else (64, 71),
        "high": (70, 79) if new else (72, 79),
    }  # fmt: skip

    def relation(name: str, number: str, low: str, high: str, last: str) -> str:
        words = [name, "101", number, "1", last, "1", "101", low, high]
        return "X" + record(80, **{k: (*at, word) for (k, at), word in zip(own.items(), words, strict=True)})[1:]

    (folder / "a.s").write_text("\n".join([head, *sources]))
    (folder / "a.r").write_text("\n".join([head, *spread]))
    (folder / "a.x").write_text(
        "\n".join([head, relation("901", "11", "1", "4", "4"), relation("905", "12", "4", "2", "3")])
    )


@pytest.mark.parametrize("revision", ["0", "2.1"])
def test_sps_files(tmp_path: Path, revision: str) -> None:
    sps_files(tmp_path, revision)
    table = {"shots": "a.s", "receivers": "a.r", "relation": "a.x"}
    found = case(tmp_path, sps=table, datum=15.0)
    assert positions(found) == [
        ((25.0, 150.0), [(20.0, 120.0), (20.0, 140.0), (20.0, 160.0), (20.0, 180.0)]),
        ((25.0, 200.0), [(20.0, 180.0), (20.0, 160.0), (20.0, 140.0)]),
    ]
    assert (found.survey.records, found.survey.points) == ([901, 905], [11.0, 12.0])
    assert ("off the line", "points lie up to 3 m beside x, and were moved onto it") in found.notes
    files = [tmp_path / name for name in ("a.s", "a.r", "a.x")]
    files[0].write_text(files[0].read_text().replace("    150.0", "    east0"))
    with pytest.raises(CaseError, match="line 2: 'east0' in columns 47 to 55 is no number"):
        read_sps(*files)
    sps_files(tmp_path, revision)
    files[1].write_text("\n".join(files[1].read_text().splitlines()[:-1]))
    with pytest.raises(CaseError, match="line 2: 4 channels, but 3 receivers from 1 to 4 of line 101"):
        read_sps(*files)
    files[1].write_text("H00 unknown\n")
    with pytest.raises(CaseError, match="does not say which revision"):
        read_sps(*files)


@pytest.mark.parametrize("bearing", [90.0, 0.0, 37.0, -90.0])
def test_the_map_and_back(bearing: float) -> None:
    frame = Frame((100.0, -50.0), bearing)
    x, y = np.array([3.0, -4.0]), np.array([5.0, 0.5])
    there = frame.on_map(x, y)
    assert np.allclose(frame.in_model(*there), (x, y))
    assert np.hypot(there[0] - 100.0, there[1] + 50.0) == pytest.approx(np.hypot(x, y))
    along, left = (np.concatenate(frame.on_map(*unit)) for unit in np.eye(2)[:, :, None])
    angle = math.radians(bearing)
    assert along == pytest.approx([100.0 + math.sin(angle), -50.0 + math.cos(angle)])
    assert left == pytest.approx([100.0 - math.cos(angle), -50.0 + math.sin(angle)])
    if bearing == 90.0:
        assert np.array_equal(there, (x + 100.0, y - 50.0))


def test_channels_of_sps_files_run_either_way_and_come_in_any_order(tmp_path: Path) -> None:
    sps_files(tmp_path, "2.1")
    files = [tmp_path / name for name in ("a.s", "a.r", "a.x")]
    head, first, _ = files[2].read_text().splitlines()

    def x(channels: tuple[str, str], receivers: tuple[str, str]) -> str:
        """The first relation with other channels and receivers: columns 39 to 48 and 60 to 79."""
        a, b = channels
        return f"{first[:38]}{a:>5}{b:>5}{first[48:59]}{receivers[0]:>10}{receivers[1]:>10}{first[79:]}"

    def eastings(*lines: str) -> list[float]:
        files[2].write_text("\n".join([head, *lines]))
        (shot,) = read_sps(*files)
        return [point.easting for point in shot.receivers]

    assert eastings(x(("1", "4"), ("1", "4"))) == [120.0, 140.0, 160.0, 180.0]
    assert eastings(x(("4", "1"), ("1", "4"))) == [180.0, 160.0, 140.0, 120.0]
    assert eastings(x(("3", "4"), ("3", "4")), x(("1", "2"), ("1", "2"))) == [120.0, 140.0, 160.0, 180.0]
    with pytest.raises(CaseError, match="'nan' in columns 39 to 43 is no number"):
        eastings(x(("nan", "4"), ("1", "4")))


@pytest.mark.parametrize(("bearing", "shots"), [(30.0, "d3=1.0 o3=1.0"), (270.0, "d3=-50.0 o3=-300.0")])
def test_offsets_do_not_depend_on_the_map(tmp_path: Path, bearing: float, shots: str) -> None:
    found = case(tmp_path, **BOAT, bearing=bearing)
    written(found, tmp_path / "sea.sgy")
    write_cube(tmp_path / "sea.rsf", read_cube(tmp_path / "sea.sgy"))
    text = (tmp_path / "sea.rsf").read_bytes().partition(b"\x0c\x0c\x04")[0].decode()
    assert 'label2="offset" unit2="m"' in text
    found_axis = re.search(r"n2=4 d2=(\S+) o2=(\S+)", text)
    assert found_axis is not None
    assert [float(number) for number in found_axis.groups()] == pytest.approx([-10.0, -50.0], abs=0.03)
    assert shots in text


def test_cubes(tmp_path: Path) -> None:
    found = case(tmp_path, **BOAT)
    written(found, tmp_path / "sea.sgy")
    cube = read_cube(tmp_path / "sea.sgy")
    traces = SegyFile.open(tmp_path / "sea.sgy").traces(slice(None))
    assert np.array_equal(cube.samples, traces.reshape(3, 4, 11))
    write_cube(tmp_path / "sea.rsf", cube)
    head, _, data = (tmp_path / "sea.rsf").read_bytes().partition(b"\x0c\x0c\x04")
    text = head.decode()
    assert 'n3=3 d3=50.0 o3=300.0 label3="shot" unit3="m"' in text
    assert 'n2=4 d2=-10.0 o2=-50.0 label2="offset" unit2="m"' in text
    assert "n1=11 d1=0.002" in text
    assert data == cube.samples.astype("<f4").tobytes()
    write_cube(tmp_path / "sea.zarr", cube)
    with xarray.open_zarr(tmp_path / "sea.zarr") as data_set:
        assert data_set.p.dims == ("shot", "receiver", "time")
        assert float(data_set.time[0]) == -0.06
        assert data_set.source_x.values.tolist() == [300.0, 350.0, 400.0]
        assert float(data_set.p.sel(shot=2)[3, 10]) == traces[7, 10]
    with pytest.raises(CaseError, match="ends in"):
        write_cube(tmp_path / "sea.doc", cube)


OUT = {"shots": {"first": [0.0, 300.0], "step": [0.0, 200.0], "count": 3}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "found none of them"),
    ({"shots": BOAT["shots"]}, "no receivers"),
    (BOAT | {"receivers": {"positions": [[10.0, 0.0]]}}, "receivers and streamer"),
    (BOAT | {"interval": 0.0015}, "no multiple of the time step"),
    (BOAT | {"interval": 0.00200055}, "whole microseconds"),
    (BOAT | {"length": 0.003}, "no multiple of the interval"),
    (BOAT | {"zero": 0.0105}, "whole milliseconds"),
    (BOAT | {"wavelet": {"ricker": 150.0}}, "too coarse for waves"),
    (BOAT | {"shots": {"first": [10.0, 5.0, 300.0], "step": [0.0, 50.0], "count": 3}}, "no point of the model"),
    (BOAT | {"shots": {"first": [10.0, 300.0], "step": [0.0, 50.0], "count": 0}}, "of at least 1"),
    (BOAT | {"tables": {"shots": "a.csv", "receivers": "b.csv"}}, "found shots, tables"),
    ({"tables": {"shots": "a.csv", "receivers": "b.csv"}}, "there is no file"),
    (BOAT | {"apertur": 3.0}, "unknown key 'survey.apertur'"),
]


@pytest.mark.parametrize(("survey", "said"), WRONG)
def test_mistakes(tmp_path: Path, survey: dict[str, Any], said: str) -> None:
    with pytest.raises(CaseError, match=said):
        case(tmp_path, **survey)


def test_all_wrong_positions_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(CaseError) as caught:
        case(tmp_path, **(BOAT | OUT))
    text = str(caught.value)
    assert "7 positions are wrong" in text  # three sources, and four receivers
    assert "shot 1: a source lies at (z, x) = (0, 300), on a free surface" in text
    assert "shot 3: a source lies at (z, x) = (0, 700), outside the model" in text
    assert "shot 3: a receiver lies at (z, x) = (20, 650), outside the model" in text
    assert "sea.toml" in text


def test_surveys_record_velocities(tmp_path: Path) -> None:
    for medium in ({"vp": 2000.0}, {"vp": 2000.0, "epsilon": 0.2, "delta": 0.1}):
        found = case(tmp_path, fletcher={"record": ["vz", "p"], "medium": medium}, **BOAT)
        assert found.survey.quantities == ("vz", "p")
    with pytest.raises(CaseError, match="receivers record"):
        case(tmp_path, fletcher={"record": ["vy"]}, **BOAT)


def test_many_points_are_judged_as_each_is() -> None:
    faces = faces_of(Faces(Sponge(3), z=(Free(), Sponge(3)), x=(Sponge(3), Free())), 2)
    domain = domain_of((20, 30), (10.0, 5.0), faces)
    rng = np.random.default_rng(3)
    points = np.concatenate([rng.integers(-2, 32, (300, 2)) * [10.0, 5.0], rng.uniform(-10, 210, (100, 2))])

    def refused(point: Any) -> bool:
        try:
            place(tuple(point), domain, "linear", "source")
        except CaseError:
            return True
        return False

    found = doubtful(points, domain)
    truth = np.array([refused(point) for point in points])
    assert 50 < np.count_nonzero(truth) < 350
    assert found[truth].all()  # none is missed
    assert np.count_nonzero(found & ~truth) < 40  # points between a surface and its next cell are asked about


def test_shots_of_tables_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffshot,z,x\n1002,10,300\n1001,10,350\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("shot,z,x\n*,20,200\n*,20,210\n")
    tables = {"tables": {"shots": "a.csv", "receivers": "b.csv"}}
    found = case(tmp_path, **tables)
    content = written(found, tmp_path / "sea.sgy")
    assert [(entry(content, k, 9, "i", 11), entry(content, k, 17, "i", 11)) for k in (0, 2)] == [
        (1002,) * 2,
        (1001,) * 2,
    ]
    (tmp_path / "a.csv").write_text("shot,z,x\neast,10,300\nwest,10,350\n")
    named = case(tmp_path, **tables)
    assert named.survey.records is None
    assert any("numbered 1, 2" in text for _, text in named.notes)
    (tmp_path / "a.csv").write_text("shot,z,x\n1,10,300\n\n\n2,10,west\n")
    with pytest.raises(CaseError, match="line 5: a position is not a number"):
        case(tmp_path, **tables)


def test_units_and_dead_traces_of_field_data(tmp_path: Path) -> None:
    whole = tmp_path / "field.sgy"
    written(case(tmp_path, **BOAT), whole)
    metric = read_geometry(whole)
    content = bytearray(whole.read_bytes())
    struct.pack_into(">h", content, 3254, 2)  # feet
    struct.pack_into(">h", content, 3600 + 284 + 28, 2)  # the second trace is dead
    whole.write_bytes(content)
    feet = read_geometry(whole)
    assert [len(shot.receivers) for shot in feet] == [3, 4, 4]
    assert feet[2].source.easting == pytest.approx(0.3048 * metric[2].source.easting)
    assert feet[2].receivers[3].easting == pytest.approx(0.3048 * metric[2].receivers[3].easting)
    assert feet[2].source.elevation == pytest.approx(0.3048 * metric[2].source.elevation)
    struct.pack_into(">h", content, 3600 + 88, 2)
    whole.write_bytes(content)
    with pytest.raises(CaseError, match="unit 2 in byte 89"):
        read_geometry(whole)


def test_coordinates_that_headers_cannot_hold_are_refused_before_a_shot(tmp_path: Path) -> None:
    for map_ in ({"origin": [38_500_000.0, 4e6]}, {"datum": 1e300}):
        found = case(tmp_path, **BOAT, **map_)
        with pytest.raises(CaseError, match="too large for centimetres"):
            found.survey.record(tmp_path / "sea.sgy", 11)
        assert not list(tmp_path.glob("*sea.sgy*"))


@pytest.mark.parametrize("change", ["medium", "interpolation"])
def test_a_survey_is_not_continued_with_another_medium_or_interpolation(tmp_path: Path, change: str) -> None:
    """Each cell of a file counts."""
    np.save(tmp_path / "vp.npy", np.full((20, 60), 1500.0))
    options: dict[str, Any] = {"fletcher": {"medium": {"vp": "vp.npy"}, "dt": 1e-3}}
    found = case(tmp_path, **options, **BOAT)
    found.survey.record(tmp_path / "sea.sgy", 11, stop=lambda: True)
    assert (tmp_path / ".sea.sgy.partial").exists()
    other = np.full((20, 60), 1500.0)
    other[13, 17] = 1501.0 if change == "medium" else 1500.0
    np.save(tmp_path / "vp.npy", other)
    again = case(tmp_path, **options, **BOAT).survey
    if change == "interpolation":
        shots = [
            Shot([replace(s, interpolation="linear") for s in shot.sources], shot.receivers) for shot in again.shots
        ]
        again = replace(again, shots=shots)
    with pytest.raises(CaseError, match="beginning of another survey"):
        again.record(tmp_path / "sea.sgy", 11)


def test_a_list_of_shots_that_was_never_written_starts_anew(tmp_path: Path) -> None:
    found = case(tmp_path, **BOAT)
    found.survey.record(tmp_path / "sea.sgy", 11, stop=lambda: True)
    (tmp_path / ".sea.sgy.shots").write_text("")
    expected = written(found, tmp_path / "other.sgy")
    assert written(found, tmp_path / "sea.sgy") == expected


def test_sources_in_the_air_are_refused(tmp_path: Path) -> None:
    vp = np.full((20, 60), 1500.0)
    vp[:2] = 340.0
    np.save(tmp_path / "vp.npy", vp)
    slow = BOAT | {"wavelet": {"ricker": 5.0}}
    with pytest.raises(CaseError, match=r"shot 2: a source lies at .10.0, 350.0., where vp is 340 m/s"):
        case(tmp_path, fletcher={"medium": {"vp": "vp.npy"}}, **slow)


def test_what_belongs_to_a_single_shot_is_refused(tmp_path: Path) -> None:
    for name, value in (("time", 0.1), ("sources", [{"position": [10.0, 10.0]}])):
        with pytest.raises(CaseError, match=f"takes its {name} from"):
            case(tmp_path, fletcher={name: value}, **BOAT)


def test_a_survey_with_attenuation(tmp_path: Path) -> None:
    """Weaker traces, a shorter limit of the time step, and a file that belongs to this attenuation."""
    plain = case(tmp_path, **BOAT)
    found = case(tmp_path, fletcher={"attenuation": {"q": 10.0, "band": [5.0, 50.0]}}, **BOAT)
    assert found.survey.attenuation is not None
    assert found.survey.attenuation.q == 10.0
    one, other = (each.survey.traces(1, 11) for each in (plain, found))
    assert 0 < np.linalg.norm(one - other) < np.linalg.norm(one)
    assert _described(plain.survey, 11) != _described(found.survey, 11)
