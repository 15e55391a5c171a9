"""Runs commands of the program one after the other in processes that torchrun has started.

torchrun --standalone --nproc-per-node 2 train_commands.py COMMANDS.json

The file has a list of the expected exit codes and the words of the commands.
"""

import json
import sys
from pathlib import Path

from aimle.program import distributed

if __name__ == "__main__":
    place = distributed.find()
    assert place is not None
    with distributed.joined(place) as program:
        for expected, command in json.loads(Path(sys.argv[1]).read_text()):
            code = program(command)
            assert code == expected, (command, code)
