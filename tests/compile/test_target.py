"""The processor's name: LLVM's, unless the processor has instructions that the named one lacks."""

import llvmlite.binding as llvm
import pytest

from minga.compile import target


@pytest.fixture
def named(monkeypatch):
    """Return the name for a processor of which LLVM says this name and these features."""

    def name(reported: str, **features: bool) -> str:
        monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: reported)
        monkeypatch.setattr(
            llvm, "get_host_cpu_features", lambda: {k.replace("_", "-"): v for k, v in features.items()}
        )
        return target.processor_name.__wrapped__()

    return name


def test_a_processor_has_the_name_that_llvm_gives_it(named):
    assert named("znver4", avx512f=True) == "znver4"
    assert named("icelake-server", avx512f=True, amx_tile=False) == "icelake-server"
    assert named("graniterapids", avx512f=True, amx_tile=True) == "graniterapids"


def test_a_processor_with_more_instructions_than_its_model_number_tells_has_another_name(named):
    assert named("rocketlake", avx512f=True, amx_tile=True) == "sapphirerapids"
