"""An image of the rock below a survey, by reverse time migration (E. Baysal, D. Kosloff and J. Sherwood, 1983).

A plane wave travels down, a fold reflects it, and receivers at the surface record the reflection. Then the wave is
propagated back in time while the records travel down from the receivers: where the two waves coincide, there is a
reflector. `image` is the sum over time of p times the wave of the records; frames show how it grows, from below.
"""

import functools

import numpy as np

import minga as mg
from minga.compile.portable import exp
from minga.models.waves import (
    Medium,
    PlaneSource,
    Random,
    Receivers,
    Ricker,
    Sponge,
    Wavelet,
    add_sources,
    adjoint_fields,
    prepare,
    record_adjoint_step,
)

STEPS = 420
"""Steps of the survey. The way back takes the same number, and one step in between reverses the direction of time."""

SPACING, DT, SURFACE = 10.0, 1.2e-3, 20.0  # m, s, m
ABOVE, BELOW = 2000.0, 2500.0  # m/s

run = {"steps": 2 * STEPS + 1}
output = {"every": 60}


@mg.kernel
def correlate(p, adjoint, image):
    """Add the product of both waves to the image."""
    image[0, 0, 0] = image[0, 0, 0] + p[0, 0, 0] * adjoint[0, 0, 0]


def fold(shape):
    """Return the depth of the reflector over x, in cells: a fold in the middle, 12 % of the height of the model."""
    x = np.arange(shape[2]) / (shape[2] - 1) - 0.5
    return shape[0] * (0.7 - 0.12 * exp(-np.square(6 * x)))


def survey(shape, steps, wavelet):
    """Return the records of the reflection for each step from 0 on: records with the fold minus those without it."""

    def rock(box):
        z, _, x = np.ogrid[box.slices((0, 0, 0))]
        return np.where(z < fold(shape)[x], ABOVE, BELOW) + np.zeros(box.shape)

    def recorded(vp):
        shot = mg.fletcher(
            shape, SPACING, dt=DT, medium=Medium(vp), boundary=Sponge(12), sources=[source(wavelet)],
            receivers=receivers(shape),
        )  # fmt: skip
        return mg.run(shot, steps, observe=1).receivers.values

    return recorded(rock) - recorded(ABOVE)


def source(wavelet):
    """Return the source, a plane below the surface."""
    return PlaneSource("z", SURFACE, wavelet, "legacy")  # subtracted again on the way back


def receivers(shape):
    """Return receivers above every second cell along x and every fourth along y."""
    y, x = (SPACING * np.arange(0, n, every) for n, every in zip(shape[1:], (4, 2)))
    return Receivers([(SURFACE, b, a) for b in y.tolist() for a in x.tolist()])


def model(shape=(60, 24, 100), *, steps=STEPS, frequency=18.0):
    """Return the model: a survey of `steps` steps with a Ricker wavelet of peak `frequency` in Hz, and its way back."""
    waves = prepare(shape, SPACING, dt=DT, medium=Medium(ABOVE), boundary=Random(12))
    adjoint = adjoint_fields(waves)
    image = mg.Field("image", waves.grid, "f8", description="reflectors")
    taps = receivers(shape).taps(waves.domain)
    ricker = Ricker(frequency)
    records = functools.cache(lambda: survey(shape, steps, ricker))  # computed when they are first needed

    # Step k goes from time k to k + 1, step `steps` reverses time, and step 2 steps - n goes back from n to n - 1:
    # there the source's amplitude at n is subtracted from the previous waves.
    sent = ricker.at(DT * np.arange(steps))
    there = Wavelet(np.concatenate([sent, np.zeros(steps + 1)]))
    back = Wavelet(np.concatenate([np.zeros(steps + 1), [0.0], -sent[:0:-1]]))
    here, before = waves.fields, [field.previous for field in waves.fields]

    def inject_records(engine):
        taps.inject(engine, adjoint[:1], records()[2 * steps - engine.read(mg.STEP)])

    step = mg.Program("step")
    for fields, wavelet in ((here, there), (before, back)):
        add_sources(step, [source(wavelet)], fields, waves.domain, waves.dt)
    with step.when(steps < mg.STEP):
        step.call(inject_records, reads=adjoint[:1], writes=adjoint[:1])
        step.apply(correlate, here[0], adjoint[0], image)
        record_adjoint_step(step, waves, adjoint)
    with step.when(steps != mg.STEP):
        waves.record_kernel(step)
    step.rotate(*here)  # reversing time needs nothing else: the next and the previous waves are exchanged
    step.let(mg.STEP, mg.STEP + 1)
    return mg.Model(
        name="rtm", grid=waves.grid, fields=(*here, *adjoint, image, *waves.medium), step=step, initial=waves.start(),
        output=("image",), window=waves.domain.inside, parameters={"frequency": frequency, "steps": steps},
        presentation=mg.Presentation(dict.fromkeys((field.name for field in (*here, image)), waves.style)),
    )  # fmt: skip
