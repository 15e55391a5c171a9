"""Functions of one instance for the tests of ``aimle.per_instance``: they import only NumPy."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np


def best_two(scores):
    """The two highest scores, the lower index first among ties."""
    z = np.zeros(scores.shape)
    z[np.argsort(-scores, kind="stable")[:2]] = 1
    return z


def in_this_worker(scores):
    """Its process, bit by bit, and whether torch is there."""
    return [os.getpid() >> bit & 1 for bit in range(scores.size - 1)] + ["torch" in sys.modules]


def fails_below_zero(scores):
    """best_two, unless the first score is negative."""
    if scores[0] < 0:
        raise ZeroDivisionError(f"first score {scores[0]:g}")
    return best_two(scores)


def never_ends_below_zero(scores):
    """best_two, unless the first score is negative."""
    while scores[0] < 0:
        time.sleep(60)
    return best_two(scores)


def dies_below_zero(scores):
    """best_two, unless the first score is negative."""
    if scores[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return best_two(scores)


class DiesOnce:
    """best_two; the first to see a negative first score is killed."""

    def __init__(self, folder):
        self.mark = Path(folder) / "died"

    def __call__(self, scores):
        if scores[0] < 0:
            try:
                self.mark.touch(exist_ok=False)
            except FileExistsError:
                return best_two(scores)
            os.kill(os.getpid(), signal.SIGKILL)
        return best_two(scores)


class TellsAndWaits:
    """Writes its process to a file and waits for ever."""

    def __init__(self, file):
        self.file = str(file)

    def __call__(self, scores):
        written = Path(self.file + f".{os.getpid()}")
        written.write_text(str(os.getpid()))
        written.rename(self.file)
        while True:
            time.sleep(60)


def returns_a_lock(scores):
    """No solution, and nothing that can be pickled."""
    return threading.Lock()
