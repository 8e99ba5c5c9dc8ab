"""Media in files: every format gives the same values for every box, and what a file says is believed or refused."""

from __future__ import annotations

import contextlib
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from minga.errors import CaseError
from minga.models.waves.media import from_volume
from minga.models.waves.media_files import open_volume, quantities
from minga.models.waves.media_write import write_medium
from minga.models.waves.synthetic import QUANTITIES, synthetic
from minga.output.netcdf import NetcdfVariable, write_netcdf
from minga.output.segy import write_segy
from minga.space.box import Box

SHAPE, SPACING = (6, 5, 7), (10.0, 12.5, 20.0)
BOXES = [Box.of(SHAPE), Box((2, 1, 3), (5, 4, 4)), Box((5, 4, 6), (6, 5, 7))]
VALUES = (1500 + np.arange(np.prod(SHAPE), dtype="f4")).reshape(SHAPE)


def same(volume: Any) -> None:
    assert volume.cells == SHAPE
    for box in BOXES:
        assert np.array_equal(volume.values(box), VALUES[box.slices((0, 0, 0))])


def rsf(path: Path, header: str = "", values: np.ndarray[Any, Any] = VALUES) -> Path:
    nz, ny, nx = values.shape
    text = f'sfmath\n in="data.bin" data_format="native_float" esize=4 n1={nx} n2={ny} n3={nz}\n d1=20 d2=12.5 d3=10\n'
    path.write_text(text + header)
    values.astype("<f4").tofile(path.parent / "data.bin")
    return path


LABELS = 'label1="x" label2="y" label3="Depth" unit1="m" unit2="m" unit3="m" unit="m/s"\n'


def test_numpy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    same(open_volume(tmp_path / "a.npy"))
    np.save(tmp_path / "b.npy", np.asfortranarray(VALUES).transpose(2, 1, 0).copy())
    same(open_volume(tmp_path / "b.npy", axes="xyz"))


@pytest.mark.parametrize(("unit", "metres"), [("km", 1000.0), ("ft", 0.3048), ("", 1.0)])
def test_units_of_positions(tmp_path: Path, unit: str, metres: float) -> None:
    labels = LABELS.replace('="m"', f'="{unit}"')
    assert open_volume(rsf(tmp_path / "a.rsf", labels)).spacing == pytest.approx([metres * s for s in SPACING])
    with pytest.raises(CaseError, match="are in 'rod'"):
        open_volume(rsf(tmp_path / "a.rsf", LABELS.replace('="m"', '="rod"')))


def test_madagascar(tmp_path: Path) -> None:
    volume = open_volume(rsf(tmp_path / "a.rsf", LABELS))
    same(volume)
    assert volume.spacing == SPACING
    assert volume.unit == "m/s"
    same(open_volume(rsf(tmp_path / "b.rsf"), axes="zyx"))
    with pytest.raises(CaseError, match="which of its axes is depth"):
        open_volume(tmp_path / "b.rsf")


def test_madagascar_with_depth_first_and_data_inside(tmp_path: Path) -> None:
    turned = VALUES.transpose(2, 1, 0)  # x, y, z: n1 is depth
    head = 'in="stdin" data_format="xdr_float" n1=6 n2=5 n3=7 d1=0.01 d2=0.0125 d3=0.02 n4=1\n'
    head += 'label1="Depth" label2="Y" label3="Distance" unit1="km" unit2="km" unit3="km"\n'
    file = tmp_path / "a.rsf"
    file.write_bytes(head.encode() + b"\x0c\x0c\x04" + turned.astype(">f4").tobytes())
    volume = open_volume(file)
    same(volume)
    assert volume.spacing == pytest.approx(SPACING)
    assert volume.axes == "xyz"


@pytest.mark.parametrize("kind", ["ieee", "ibm"])
def test_segy(tmp_path: Path, kind: str) -> None:
    nz, ny, nx = SHAPE
    traces = VALUES.transpose(1, 2, 0).reshape(ny * nx, nz)
    lines = {"inline": np.repeat(np.arange(ny), nx), "crossline": np.tile(np.arange(nx), ny)}
    file = tmp_path / "a.sgy"
    write_segy(file, traces, 0.01, headers=lines)
    if kind == "ibm":
        as_ibm(file, nz)
    same(open_volume(file))
    write_segy(file, traces, 0.01, headers=lines | {"inline": np.arange(ny * nx) % 3})
    with pytest.raises(CaseError, match="do not fill a volume"):
        open_volume(file)


def as_ibm(file: Path, samples: int) -> None:
    """The same file with IBM floats: fraction of 24 bits, exponent of 16."""
    data = bytearray(file.read_bytes())
    data[3224:3226] = (1).to_bytes(2, "big")
    for place in range(3600 + 240, len(data), 240 + 4 * samples):
        values = np.frombuffer(bytes(data[place : place + 4 * samples]), ">f4").astype("f8")
        exponent = np.ceil(np.log2(values) / 4).astype(int)
        words = ((exponent + 64) << 24) + np.rint(values * 2.0**24 / 16.0**exponent).astype(int)
        data[place : place + 4 * samples] = words.astype(">u4").tobytes()
    file.write_bytes(bytes(data))


def test_zarr_by_names_of_axes(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    for name, length, step in zip("zyx", SHAPE, SPACING):
        array = group.create_array(
            name, shape=(length,), dtype="f8", dimension_names=(name,), attributes={"units": "m"}
        )
        array[:] = np.arange(length) * step + 3
    turned = VALUES.transpose(2, 0, 1)
    array = group.create_array("vel", shape=turned.shape, dtype="f4", dimension_names=("x", "z", "y"))
    array[:] = turned
    volume = open_volume(tmp_path / "a.zarr")
    same(volume)
    assert volume.spacing == pytest.approx(SPACING)
    assert quantities(tmp_path / "a.zarr") == ["vel"]
    with pytest.raises(CaseError, match="names its axes itself"):
        open_volume(tmp_path / "a.zarr", axes="zyx")
    with pytest.raises(CaseError, match="did you mean 'vel'"):
        open_volume(tmp_path / "a.zarr", "vell")


@pytest.mark.parametrize("ending", [".zarr", ".npy", ".rsf"])
def test_what_is_written_is_read(tmp_path: Path, ending: str) -> None:
    medium = synthetic("salt", SHAPE, SPACING)
    files = write_medium(medium, tmp_path / f"model{ending}")
    whole = medium.values(Box.of(SHAPE))
    for number, name in enumerate(QUANTITIES):
        volume = open_volume(files[0], name) if ending == ".zarr" else open_volume(files[number])
        assert np.array_equal(volume.values(Box.of(SHAPE)), whole[name])
        assert volume.spacing == (None if ending == ".npy" else pytest.approx(SPACING))
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(CaseError, match="nothing is overwritten"):
        write_medium(medium, tmp_path / f"model{ending}")


def volume_of(tmp_path: Path, values: np.ndarray[Any, Any]) -> Any:
    np.save(tmp_path / "v.npy", values)
    return open_volume(tmp_path / "v.npy")


def foreign(path: Path, **changes: Any) -> Path:
    """A store of version 2, as other programs write them; `changes` are made in the description of its array."""
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    array = group.create_array("vp", shape=SHAPE, dtype="f4", chunks=SHAPE)
    array[...] = VALUES
    array.attrs["_ARRAY_DIMENSIONS"] = ["z", "y", "x"]
    for name, length, step in zip("zyx", SHAPE, SPACING):
        group.create_array(name, shape=(length,), dtype="f8")[...] = np.arange(length) * step
    described = path / "vp" / ".zarray"
    described.write_text(json.dumps(json.loads(described.read_text()) | changes))
    return path


def test_zarr_of_version_2(tmp_path: Path) -> None:
    store = foreign(tmp_path / "a.zarr")
    (odd := store / "odd").mkdir()
    (odd / ".zarray").write_text((store / "vp" / ".zarray").read_text().replace("<f4", "|O"))
    (store / "notes").mkdir()  # is none of Zarr's
    assert quantities(store) == ["vp"]
    volume = open_volume(store)
    same(volume)
    assert volume.spacing == SPACING
    with pytest.raises(CaseError, match="cannot read odd in"):
        open_volume(store, "odd")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"compressor": {"id": "none of ours"}}, "vp cannot be read: codec not available"),
        ({"dtype": "|O"}, "vp cannot be read"),
        ({"shape": SHAPE[:1], "chunks": SHAPE[:1]}, "no quantity on two or three axes \\(vp has 1"),
    ],
)
def test_foreign_stores_that_cannot_be_read(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    store = foreign(tmp_path / "a.zarr", **changes)
    with pytest.raises(CaseError, match=said) as caught:
        open_volume(store)
    assert caught.value.remedy is not None


def test_values_without_a_header_need_one(tmp_path: Path) -> None:
    values = np.arange(1500.0, 1512.0).reshape(4, 3).astype(">f4")
    values.tofile(tmp_path / "raw.bin")
    with pytest.raises(CaseError, match=r'write a text file raw\.rsf: in="raw\.bin"'):
        open_volume(tmp_path / "raw.bin")
    (tmp_path / "raw.rsf").write_text(
        'in="raw.bin" data_format="xdr_float" esize=4\n'
        'n1=3 d1=0.004 label1="Depth" unit1="km"\nn2=4 d2=0.004 label2="Distance" unit2="km"\n'
    )
    volume = open_volume(tmp_path / "raw.rsf")
    assert volume.spacing == pytest.approx((4.0, 4.0))
    assert np.array_equal(volume.values(Box.of((3, 4))), values.T)


def test_damaged_values_are_told(tmp_path: Path) -> None:
    store = foreign(tmp_path / "a.zarr")
    (store / "vp" / "0.0.0").write_bytes(b"no chunk")
    volume = open_volume(store)
    with pytest.raises(CaseError, match="cannot read the values"):
        volume.values(Box.of(SHAPE))


def test_sections_and_columns(tmp_path: Path) -> None:
    """Files on the axes z, x in either order, and on z."""
    section = VALUES[:, 0]
    np.save(tmp_path / "a.npy", section)
    np.save(tmp_path / "turned.npy", section.T)
    np.save(tmp_path / "column.npy", section[:, 0])
    box = Box((1, 2), (3, 5))
    for volume in (open_volume(tmp_path / "a.npy"), open_volume(tmp_path / "turned.npy", axes="xz")):
        assert volume.cells == section.shape
        assert np.array_equal(volume.values(box), section[1:3, 2:5].astype("f8"))
    assert open_volume(tmp_path / "column.npy").cells == section.shape[:1]
    with pytest.raises(CaseError, match="expected the letters z, x"):
        open_volume(tmp_path / "a.npy", axes="zy")
    flat = rsf(tmp_path / "a.rsf", f"n3=1 n2={section.shape[1]} n1={section.shape[0]} d1=5 d2=10 label1=depth label2=x")
    volume = open_volume(flat)
    assert (volume.axes, volume.cells, volume.spacing, volume.named) == ("xz", section.shape, (5.0, 10.0), True)


def test_units(tmp_path: Path) -> None:
    volume = volume_of(tmp_path, VALUES / 1000)
    fast = from_volume("vp", volume, "km/s", None, "k")
    assert callable(fast)
    assert np.allclose(fast(BOXES[1]), VALUES[BOXES[1].slices((0, 0, 0))], rtol=1e-6)
    wrong = from_volume("vp", volume, None, None, "k")
    assert callable(wrong)
    with pytest.raises(CaseError, match="km/s"):
        wrong(BOXES[0])
    turned = from_volume("theta", volume_of(tmp_path, np.full(SHAPE, 90.0)), None, "degree", "k")
    assert callable(turned)
    assert np.allclose(turned(BOXES[0]), np.pi / 2)
    for name, unit, text in [("theta", None, "angles ="), ("vp", "mph", "mph"), ("epsilon", "m/s", "unit of epsilon")]:
        with pytest.raises(CaseError, match=text):
            from_volume(name, volume, unit, None, "k")


@pytest.mark.parametrize(
    ("name", "unit", "factor"),
    [
        ("vp", "m.s**-1", 1.0), ("vp", "km s^-1", 1e3), ("vp", "KM/S", 1e3), ("rho", "kg m**-3", 1.0),
        ("rho", "kg.m-3", 1.0), ("rho", "kg/m^3", 1.0), ("rho", "g/cm^3", 1e3), ("rho", "g cm^-3", 1e3),
        ("rho", "g/cc", 1e3), ("rho", "t/m3", 1e3), ("rho", "kg/l", 1e3), ("rho", "kg/m\N{SUPERSCRIPT THREE}", 1.0),
    ],
)  # fmt: skip
def test_spellings_of_units(tmp_path: Path, name: str, unit: str, factor: float) -> None:
    """A file and a case may spell the same unit differently."""
    volume = volume_of(tmp_path, VALUES / factor)
    for given, said in ((volume, unit), (replace(volume, unit=unit), None), (replace(volume, unit=unit), unit.upper())):
        values = from_volume(name, given, said, None, "k")
        assert callable(values)
        assert np.allclose(values(BOXES[1]), VALUES[BOXES[1].slices((0, 0, 0))], rtol=1e-6)


def test_densities_without_a_unit(tmp_path: Path) -> None:
    """Gases beside rocks are densities in kg/m3; numbers below 20 alone may be g/cm3."""
    light = VALUES / 1000
    with pytest.raises(CaseError, match=r"the largest density is 1\.709 kg/m3"):
        from_volume("rho", volume_of(tmp_path, light), None, None, "k")
    assert callable(from_volume("rho", volume_of(tmp_path, light), "kg/m3", None, "k"))
    light[-1] = 2000.0
    assert callable(from_volume("rho", volume_of(tmp_path, light), None, None, "k"))


def test_a_file_and_a_case_that_contradict(tmp_path: Path) -> None:
    volume = open_volume(rsf(tmp_path / "a.rsf", LABELS))
    with pytest.raises(CaseError, match="the case says km/s"):
        from_volume("vp", volume, "km/s", None, "k")


def wrong_files(folder: Path) -> dict[str, str]:
    """Files that are none, each with a part of what is said about it."""
    (folder / "empty.npy").write_bytes(b"")
    np.save(folder / "flat.npy", np.zeros((3, 4, 1, 2)))
    np.save(folder / "words.npy", np.array([[["a"]]]))
    (folder / "text.npy").write_text("not an array, but long enough to be looked at")
    (folder / "none.rsf").write_text("nothing here")
    rsf(folder / "lost.rsf", 'in="missing.bin" ' + LABELS)
    rsf(folder / "short.rsf", "n3=600 " + LABELS)
    rsf(folder / "complex.rsf", 'data_format="native_complex" ' + LABELS)
    rsf(folder / "odd.rsf", "n1=seven " + LABELS)
    rsf(folder / "quote.rsf", "label1='x\n")
    (folder / "empty.sgy").write_bytes(b"")
    (folder / "zero.sgy").write_bytes(bytes(4000))
    (folder / "bare.zarr").mkdir()
    (folder / "file.zarr").write_text("x")
    (folder / "bad.nc").write_text("no netcdf")
    (folder / "a.xyz").write_text("x")
    return {
        "empty.npy": "cannot read", "flat.npy": "expected one to three", "words.npy": "expected numbers",
        "text.npy": "cannot read", "none.rsf": "in=", "lost.rsf": "is not there", "short.rsf": "are needed",
        "complex.rsf": "native_complex", "odd.rsf": "should be numbers", "quote.rsf": "not an RSF header",
        "empty.sgy": "0 bytes", "zero.sgy": "sample format is 0", "bare.zarr": "zarr", "file.zarr": "zarr",
        "bad.nc": "cannot read", "a.xyz": "kind of file", "flatt.npy": "did you mean 'flat.npy'",
    }  # fmt: skip


def test_files_that_are_none(tmp_path: Path) -> None:
    for name, text in wrong_files(tmp_path).items():
        with pytest.raises(CaseError) as caught:
            open_volume(tmp_path / name, key="fletcher.medium.vp")
        assert text in str(caught.value), (name, str(caught.value))
        assert caught.value.key == "fletcher.medium.vp"


def test_a_damaged_volume_is_told_by_its_cell(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[2, 3, 4] = 1e9
    fast = from_volume("vp", volume_of(tmp_path, values), None, None, "k")
    assert callable(fast)
    with pytest.raises(CaseError, match=r"\(2, 3, 4\)"):
        fast(Box((1, 2, 3), (4, 5, 6)))


def netcdf(file: Path, values: np.ndarray[Any, Any], dims: str, unit: str = "m/s") -> Path:
    """A classic file, as minga itself exports them."""

    def variable(name: str, dims: tuple[str, ...], values: np.ndarray[Any, Any], unit: str) -> NetcdfVariable:
        return NetcdfVariable(name, dims, values.shape, values.dtype, {"units": unit}, lambda: [values])

    positions = [variable(n, (n,), np.arange(c) * h + 1.5, "m") for n, c, h in zip("zyx", SHAPE, SPACING)]
    write_netcdf(file, [*positions, variable("vp", tuple(dims), values, unit)], {"title": "a medium"})
    return file


def test_netcdf_of_the_classic_formats(tmp_path: Path) -> None:
    file = netcdf(tmp_path / "a.nc", VALUES.transpose(1, 2, 0).copy(), "yxz")
    volume = open_volume(file)
    same(volume)
    assert volume.spacing == pytest.approx(SPACING)
    assert volume.unit == "m/s"
    assert quantities(file) == ["vp"]
    wide = netcdf(tmp_path / "b.nc", VALUES.astype("i8"), "zyx", "1")  # has no word in CDF-2
    assert wide.read_bytes()[3] == 5
    same(open_volume(wide))
    (tmp_path / "c.nc").write_bytes(file.read_bytes()[:-40])
    with pytest.raises(CaseError, match="beyond the end"):
        open_volume(tmp_path / "c.nc")
    (tmp_path / "d.nc").write_bytes(file.read_bytes()[:60])
    with pytest.raises(CaseError, match="damaged or truncated"):
        open_volume(tmp_path / "d.nc")


@pytest.mark.filterwarnings("default")  # of other tools
def test_netcdf_by_xarray(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="needs xarray: pip install xarray")
    if not {"h5netcdf", "netcdf4"} & set(xarray.backends.list_engines()):
        pytest.skip("needs a reader of NetCDF 4: pip install h5netcdf")
    turned = (("y", "x", "z"), VALUES.transpose(1, 2, 0), {"units": "m/s"})
    xarray.Dataset({"vp": turned}).to_netcdf(tmp_path / "a.nc", format="NETCDF4")
    volume = open_volume(tmp_path / "a.nc")
    same(volume)
    assert (volume.unit, volume.axes) == ("m/s", "yxz")


class _Program:
    """What runs when it is unpickled: it makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.file,)


@pytest.mark.parametrize(
    "kind",
    [
        {"dtype": "|O", "compressor": {"id": "pickle"}, "filters": [{"id": "vlen-utf8"}]},
        {"dtype": "|O", "compressor": None, "filters": [{"id": "pickle"}]},
        {"dtype": "<f8", "compressor": {"id": "pickle"}, "filters": None},
    ],
)
@pytest.mark.parametrize("where", ["z", "vel"])
def test_what_is_pickled_in_a_store_never_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, object], where: str
) -> None:
    """Also where numcodecs would unpickle, as older ones do."""
    import numcodecs.pickles

    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    store, ran = tmp_path / "foreign.zarr", tmp_path / "ran"
    usual = {"zarr_format": 2, "fill_value": 0, "order": "C", "dtype": "<f8", "compressor": None, "filters": None}
    for name, shape in (("z", (2,)), ("vel", (2, 2, 2))):
        (store / name).mkdir(parents=True)
        about = {**usual, "shape": shape, "chunks": shape, **(kind if name == where else {})}
        (store / name / ".zarray").write_text(json.dumps(about))
        (store / name / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": list("zyx")[: len(shape)]}))
        content = np.ones(shape).tobytes() if name != where else pickle.dumps(_Program(ran))
        (store / name / ".".join("0" * len(shape))).write_bytes(content)
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    with contextlib.suppress(CaseError):
        open_volume(store).values(Box((0, 0, 0), (2, 2, 2)))
    assert not ran.exists()
