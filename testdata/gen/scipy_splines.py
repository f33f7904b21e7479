#!/usr/bin/env python3
"""Writes ../scipy_splines.json: what SciPy's CubicSpline gives for 1 000 random sets of keys.

The keys themselves are not stored. They follow from the set's number by a generator of
whole numbers and by + - * / alone, so that `crates/inbetween/tests/scipy_splines.rs` makes
the very same ones: the tests need no Python.

Run with SciPy installed: python3 testdata/gen/scipy_splines.py
"""
import json
import os

import numpy
import scipy
from scipy.interpolate import CubicSpline

SETS = 1000
SAMPLES = 6
ENDS = ["natural", "clamped", "not-a-knot", "periodic"]


class Dice:
    """Shares from 0 to 1, the same in every language."""

    def __init__(self, seed):
        self.state = (seed * 2654435761 + 12345) % 2**64

    def share(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) / 2.0**53


def keys_of(number):
    """Times, values and the kind of ends of a set."""
    dice = Dice(number)
    n = 2 + int(dice.share() * 48.0)
    time = (dice.share() - 0.5) * 20.0
    times, values = [], []
    for _ in range(n):
        gap = dice.share()
        time = time + (0.01 + 3.0 * gap * gap)
        times.append(time)
        values.append((dice.share() - 0.5) * 200.0)
    ends = ENDS[number % len(ENDS)]
    if ends == "periodic":
        values[-1] = values[0]
    asked = [times[0] + (times[-1] - times[0]) * ((i + 0.37) / SAMPLES) for i in range(SAMPLES)]
    return times, values, ends, asked


def main():
    sets = []
    for number in range(SETS):
        times, values, ends, asked = keys_of(number)
        spline = CubicSpline(times, values, bc_type=ends)
        sets.append({
            "value": [float(v) for v in spline(asked)],
            "velocity": [float(v) for v in spline(asked, 1)],
            "acceleration": [float(v) for v in spline(asked, 2)],
        })
    document = {
        "made_by": f"testdata/gen/scipy_splines.py, SciPy {scipy.__version__}, NumPy {numpy.__version__}",
        "sets": sets,
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scipy_splines.json")
    with open(path, "w") as file:
        file.write("{\n \"made_by\": %s,\n \"sets\": [\n" % json.dumps(document["made_by"]))
        file.write(",\n".join("  " + json.dumps(s) for s in sets))
        file.write("\n ]\n}\n")
    print(f"{SETS} sets written to {os.path.normpath(path)}")


if __name__ == "__main__":
    main()
