"""A network whose making is noted in a file, since another process makes it."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.problems.prerequisite import Prerequisite
from metricopt.errors import DivergedError


@dataclass(frozen=True)
class KeptNetwork(Prerequisite):
    """Notes in a folder when, where and with how many threads it was made."""

    folder: Path
    name: str
    diverges: bool = False
    start: "KeptNetwork | None" = None

    @property
    def digest(self):
        return f"digest of {self.name}"

    @property
    def warm(self):
        return [] if self.start is None else [self.start]

    @property
    def file(self):
        return self.folder / self.name

    @property
    def note(self):
        return json.loads(self.file.read_text())

    @property
    def is_made(self):
        return self.file.exists()

    @property
    def is_ready(self):
        return self.is_made

    def make(self, *, quiet=False):
        if self.diverges:
            raise DivergedError("the loss became nan")
        note = {"process": os.getpid(), "threads": torch.get_num_threads()}
        self.file.write_text(json.dumps(note | {"made": time.time()}))

    def release(self):
        self.file.write_text(json.dumps(self.note | {"released": True}))
        return {}
